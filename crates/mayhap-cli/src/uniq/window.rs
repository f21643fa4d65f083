//! `--window`: remembers the last N lines, or the lines of the last TIME.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayhap::{BuildError, ItemHash, Pace, Window, WindowShape, say};

use super::loss::Loss;
use super::memory::{Judged, Settings};
use super::state::State;
use crate::error::CliError;
use crate::{output, progress, quantity};

/// How long lines are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowLength {
    /// A number of lines.
    Lines(u64),
    /// A time.
    Time(Duration),
}

/// Parses `1000`, `1e6`, `10M`; `500ms`, `30s`, `15m`, `15min`, `1h`, `7d`. A capital M means a million lines, a small m
/// means minutes.
pub(super) fn length(text: &str) -> Result<WindowLength, String> {
    let unit_from =
        text.trim_end().rfind(|letter: char| !letter.is_ascii_alphabetic()).map_or(0, |at| at + 1);
    let (number, unit) = text.trim_end().split_at(unit_from);
    let milliseconds = match unit {
        "ms" => 1,
        "s" | "sec" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => {
            let lines = quantity::count(text).map_err(|error| error.to_string())?;
            return if lines == 0 {
                Err("must be at least 1 line".into())
            } else {
                Ok(WindowLength::Lines(lines))
            };
        }
    };
    let number: f64 = number.trim().parse().map_err(|_| "not a number; write for example 90s or 1.5h")?;
    let span = number * f64::from(milliseconds);
    if !(1.0..=1e15).contains(&span) {
        return Err("a time must be between 1ms and 30,000 years".into());
    }
    Ok(WindowLength::Time(Duration::from_millis(span as u64)))
}

/// The memory for a window of time, unless `--memory` is given.
const TIME_BYTES: u64 = 64 << 20;
/// Lines between two measurements of the rate.
const RATE_EVERY: u64 = 1 << 16;

/// A window and its counts.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) window: Window,
    quiet: bool,
    fpr: f64,
    rate: f64,
    lines: u64,
    lines_until_look: u64,
    pub(super) warned: bool,
}

impl Recent {
    pub(super) fn new(
        length: WindowLength,
        memory: Option<u64>,
        settings: &Settings,
    ) -> Result<Self, CliError> {
        let cli_error = |error: BuildError| match error {
            BuildError::TooLarge { bytes, limit } => CliError::Usage(format!(
                "--window needs {} at --fpr {}, --memory is {}",
                say::bytes(bytes),
                say::rate(settings.fpr),
                say::bytes(limit)
            )),
            error => CliError::Usage(format!("--window: {error}")),
        };
        let shape = match length {
            WindowLength::Lines(lines) => WindowShape::of_items(lines, settings.fpr)
                .and_then(|shape| shape.within(settings.limit_bytes)),
            WindowLength::Time(span) => largest(span, memory.unwrap_or(TIME_BYTES), settings.fpr),
        };
        let window = shape.and_then(|shape| Window::with_shape(shape, 0)).map_err(cli_error)?;
        Ok(Self::with(window, settings))
    }

    /// Continues with the window of an earlier run.
    pub(super) fn continued(
        window: Window,
        length: WindowLength,
        settings: &Settings,
        state: &State,
    ) -> Result<Self, CliError> {
        let (theirs, fpr) = (of(&window), window.target_fpr());
        if theirs != length {
            return Err(state.cli_error(format!(
                "this state has a window of {}, but --window is {}: give the same --window, or begin a new state",
                said(theirs),
                said(length)
            )));
        }
        if fpr > settings.fpr {
            return Err(state.cli_error(format!(
                "this state was built for a rate of {}, but --fpr is {}: raise --fpr, or begin a new state",
                say::rate(fpr),
                say::rate(settings.fpr)
            )));
        }
        Ok(Self::with(window, settings))
    }

    fn with(window: Window, settings: &Settings) -> Self {
        let (quiet, fpr) = (settings.quiet, settings.fpr);
        Self { window, quiet, fpr, rate: 0.0, lines: 0, lines_until_look: 0, warned: false }
    }

    pub(super) fn look_at_the_clock(&mut self) {
        if let Pace::Time { .. } = self.window.shape().pace() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.window.advance(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn judge(&mut self, hashes: &[ItemHash], judged: &mut Judged, loss: &mut Loss) {
        for hashes in hashes.chunks(64) {
            let mut seen = 0;
            for (index, &hash) in hashes.iter().enumerate() {
                seen |= u64::from(!self.window.insert_hash(hash)) << index;
            }
            judged.seen.push(seen);
        }
        judged.count = hashes.len();
        let (lines, old) = (hashes.len() as u64, judged.old());
        loss.add(lines - old, old, self.rate(lines));
    }

    /// The probability that a line that is not in the window is dropped.
    fn rate(&mut self, lines: u64) -> f64 {
        if self.lines_until_look < lines {
            let now = self.window.expected_fpr();
            // In a window of lines the rate rises and falls with each generation, and the highest counts. A window of
            // time may hold less for long after a burst.
            self.rate =
                if let Pace::Time { .. } = self.window.shape().pace() { now } else { now.max(self.rate) };
            // Measured often at first, while the window holds little. One measurement takes as long as many lines.
            self.lines_until_look =
                if self.rate > self.fpr * 1.05 { 0 } else { RATE_EVERY.min(self.lines / 8) };
            if self.rate > self.fpr * 1.05 && !self.warned {
                self.warned = true;
                if !self.quiet {
                    output::warn(format!(
                        "too many lines in {} for --memory {} at --fpr {}: the rate is {} now and may rise",
                        said(of(&self.window)),
                        say::bytes(self.window.memory_bytes()),
                        say::rate(self.fpr),
                        say::rate(self.rate)
                    ));
                }
            }
        }
        self.lines += lines;
        self.lines_until_look = self.lines_until_look.saturating_sub(lines);
        self.rate
    }

    /// The length of the window, as text.
    pub(super) fn said(&self) -> String {
        said(of(&self.window))
    }
}

fn of(window: &Window) -> WindowLength {
    match window.shape().pace() {
        Pace::Time { span } => WindowLength::Time(Duration::from_millis(span)),
        _ => WindowLength::Lines(window.capacity()),
    }
}

fn said(length: WindowLength) -> String {
    match length {
        WindowLength::Lines(lines) => format!("{} lines", say::count(lines)),
        WindowLength::Time(span) => progress::duration(span),
    }
}

/// The window of this time that uses as much of the memory as possible.
fn largest(span: Duration, limit_bytes: u64, fpr: f64) -> Result<WindowShape, BuildError> {
    let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (mut low, mut high) = (1, limit_bytes.max(2));
    while high - low > low / 1000 + 1 {
        let middle = low + (high - low) / 2;
        let fits = WindowShape::of_time(span, middle, fpr)?.within(limit_bytes).is_ok();
        if fits { low = middle } else { high = middle }
    }
    WindowShape::of_time(span, low, fpr)?.within(limit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_lines_or_times() {
        let time = |milliseconds| Ok(WindowLength::Time(Duration::from_millis(milliseconds)));
        assert_eq!(length("1000"), Ok(WindowLength::Lines(1_000)));
        assert_eq!(length("1e6"), Ok(WindowLength::Lines(1_000_000)));
        assert_eq!(length("10M"), Ok(WindowLength::Lines(10_000_000)));
        assert_eq!(length("500ms"), time(500));
        assert_eq!(length("30s"), time(30_000));
        assert_eq!(length("15m"), time(900_000));
        assert_eq!(length("15min"), time(900_000));
        assert_eq!(length("1.5 h"), time(5_400_000));
        assert_eq!(length("7d"), time(604_800_000));
        for wrong in ["", "0", "h", "-1h", "0s", "1y", "ten", "1e30d", "nans"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_of_time_uses_the_whole_memory() {
        for bytes in [64 << 10, 1 << 20, 64 << 20] {
            let shape = largest(Duration::from_secs(3600), bytes, 1e-3).unwrap();
            assert!((bytes * 95 / 100..=bytes).contains(&shape.memory_bytes()), "{shape}");
        }
    }
}
