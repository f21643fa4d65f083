//! `qfilter`: a rank-and-select quotient filter, with its own foldhash. Items are inserted by `insert_duplicated`: its `insert` stores a shared
//! fingerprint once, and removing one of the two items then loses the other.

use std::hash::Hash;

use qfilter::Filter;

use crate::{
    contender::{Contender, Entry, Kind, Remove, Removing, Single},
    items::BenchItem,
};

/// Above this load it doubles its slots.
const FULLEST: f64 = 0.95;

impl<T: Hash> Single<T> for Filter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert_duplicated(item).expect("room is left");
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }

    fn load(&self) -> Option<f64> {
        Some(self.len() as f64 / (self.capacity() as f64 / FULLEST))
    }
}

impl<T: Hash> Remove<T> for Filter {
    #[inline]
    fn remove_one(&mut self, item: &T) -> bool {
        self.remove(item)
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("qfilter", Kind::Quotient, |items, fpr| make(items, items, fpr)),
        Entry::rival("qfilter (n/16, told n)", Kind::Growable, |items, fpr| make(items / 16, items, fpr)),
        Entry::rival("qfilter (n/2^20, told n)", Kind::Growing, |items, fpr| make(items >> 20, items, fpr)),
    ]
}

fn make<T: BenchItem>(start: u64, items: u64, fpr: f64) -> Box<dyn Contender<T>> {
    Box::new(Removing(Filter::new_resizeable(start.max(1), items, fpr).expect("a checked size and rate")))
}

/// The rate it really has with `items` items: its slots are a power of two, its remainders whole bits.
pub(crate) fn fpr_of(items: u64, fpr: f64) -> f64 {
    let slots = ((items as f64 / FULLEST).ceil() as u64).next_power_of_two().max(64);
    let remainder_bits = (-fpr.log2()).ceil().max(1.0) as i32;
    -(-(items as f64 / slots as f64) * 2f64.powi(-remainder_bits)).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 19.1 bits for 0.37 % at a million items: the figure of the study.
    #[test]
    fn a_million_items_fall_just_past_a_doubling() {
        assert!((fpr_of(1_000_000, 0.01) - 0.003_72).abs() < 0.000_02);
        assert!((fpr_of(990_000, 0.01) - 0.007_35).abs() < 0.000_02);
    }
}
