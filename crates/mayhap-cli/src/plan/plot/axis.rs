//! An axis with ticks at chosen values.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// A range with a number and a line at every tick.
#[derive(Clone)]
pub(super) struct Axis {
    ends: Range<f64>,
    ticks: Vec<f64>,
}

impl Axis {
    pub(super) fn new(ends: Range<f64>, ticks: impl IntoIterator<Item = f64>) -> Self {
        let ticks = ticks.into_iter().filter(|tick| (ends.start..=ends.end).contains(tick)).collect();
        Self { ends, ticks }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.ends.start) / (self.ends.end - self.ends.start);
        (f64::from(from) + share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }
}
