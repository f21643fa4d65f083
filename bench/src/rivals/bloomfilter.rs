//! `bloomfilter`: the most downloaded Bloom filter; SipHash twice.

use std::hash::Hash;

use bloomfilter::Bloom;

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

/// Two different halves: with equal halves this crate's rate is 3.7 % instead of 1 %.
const SEED: [u8; 32] = *b"mayhap measures rivals fairly...";

impl<T: Hash> Single<T> for Bloom<T> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.set(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.check(item)
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::rival("bloomfilter", Kind::Bloom, |items, fpr| {
        let filter = Bloom::<T>::new_for_fp_rate_with_seed(items as usize, fpr, &SEED);
        Box::new(OneByOne(filter.expect("a checked rate")))
    })
    .slow()
}
