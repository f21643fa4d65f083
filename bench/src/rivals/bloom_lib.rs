//! `bloom-lib`: a classic Bloom filter with its own fast default hash.

use std::hash::Hash;

use bloom_lib::BloomFilter;

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

impl<T: Hash> Single<T> for BloomFilter<T> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry {
        name: "bloom-lib",
        kind: Kind::Bloom,
        ours: false,
        slow: false,
        layout: None,
        make: |items, fpr| {
            Box::new(OneByOne(BloomFilter::<T>::new(items as usize, fpr).expect("a checked rate")))
        },
    }
}
