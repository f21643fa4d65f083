//! `fastbloom`: the best classic Bloom filter on crates.io, with its default SipHash and with foldhash.

use std::hash::{BuildHasher, Hash};

use fastbloom::{AtomicBloomFilter, BloomFilter};
use foldhash::fast::FixedState;

use super::SEED;
use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

impl<T: Hash, S: BuildHasher> Single<T> for BloomFilter<S> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }
}

impl<T: Hash, S: BuildHasher> Single<T> for AtomicBloomFilter<S> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("fastbloom+foldhash", Kind::Bloom, |items, fpr| {
            Box::new(OneByOne(
                BloomFilter::with_false_pos(fpr)
                    .hasher(FixedState::with_seed(SEED))
                    .expected_items(items as usize),
            ))
        }),
        Entry::rival("fastbloom", Kind::Bloom, |items, fpr| {
            Box::new(OneByOne(
                BloomFilter::with_false_pos(fpr).seed(&u128::from(SEED)).expected_items(items as usize),
            ))
        }),
        Entry::rival("fastbloom-atomic+foldhash", Kind::BloomAtomic, |items, fpr| {
            Box::new(OneByOne(
                AtomicBloomFilter::with_false_pos(fpr)
                    .hasher(FixedState::with_seed(SEED))
                    .expected_items(items as usize),
            ))
        }),
    ]
}
