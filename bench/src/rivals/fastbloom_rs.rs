//! `fastbloom-rs`: classic and counting, on byte slices.

use fastbloom_rs::{BloomFilter, CountingBloomFilter, FilterBuilder, Membership};

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

impl<T: BenchItem> Single<T> for BloomFilter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        item.with_bytes(|bytes| self.add(bytes));
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        item.with_bytes(|bytes| self.contains(bytes))
    }
}

impl<T: BenchItem> Single<T> for CountingBloomFilter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        item.with_bytes(|bytes| self.add(bytes));
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        item.with_bytes(|bytes| self.contains(bytes))
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("fastbloom-rs", Kind::Bloom, |items, fpr| {
            Box::new(OneByOne(FilterBuilder::new(items, fpr).build_bloom_filter()))
        })
        .slow(),
        Entry::rival("fastbloom-rs counting", Kind::Counting, |items, fpr| {
            Box::new(OneByOne(FilterBuilder::new(items, fpr).build_counting_bloom_filter()))
        })
        .layout("4-bit counters")
        .slow(),
    ]
}
