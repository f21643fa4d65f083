//! `bloom-lib`: a classic Bloom filter and a cuckoo filter of 16-bit fingerprints, with its own fast default hash.

use std::hash::Hash;

use bloom_lib::{BloomFilter, CuckooFilter};

use crate::{
    contender::{Entry, Kind, OneByOne, Remove, Removing, Single},
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

impl<T: Hash> Single<T> for CuckooFilter<T> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item).expect("room is left");
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }

    fn load(&self) -> Option<f64> {
        Some(self.load_factor())
    }
}

impl<T: Hash> Remove<T> for CuckooFilter<T> {
    #[inline]
    fn remove_one(&mut self, item: &T) -> bool {
        self.remove(item)
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("bloom-lib", Kind::Bloom, |items, fpr| {
            Box::new(OneByOne(BloomFilter::<T>::new(items as usize, fpr).expect("a checked rate")))
        }),
        // It accepts no rate, and rounds its slots up to a power of two.
        Entry::rival("bloom-lib cuckoo", Kind::Cuckoo, |items, _| {
            Box::new(Removing(CuckooFilter::<T>::new(items as usize).expect("a checked size")))
        })
        .layout("16-bit fingerprints"),
    ]
}
