//! `scalable_cuckoo_filter`: a chain of bit-packed cuckoo filters; one is enough if the size is known. Removal is not measured: an item whose
//! fingerprint is 0 is "found" in empty slots, and its count goes below 0.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::{FixedState, FoldHasher};
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};

use super::SEED;
use crate::{
    contender::{Contender, Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

type Filter<T> = ScalableCuckooFilter<T, FoldHasher<'static>>;

impl<T: Hash> Single<T> for Filter<T> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }

    fn load(&self) -> Option<f64> {
        Some(self.len() as f64 / self.capacity() as f64)
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("scalable_cuckoo_filter", Kind::Cuckoo, make).slow(),
        Entry::rival("scalable_cuckoo_filter (n/16)", Kind::Growable, |items, fpr| make(items / 16, fpr))
            .slow(),
    ]
}

fn make<T: BenchItem>(items: u64, fpr: f64) -> Box<dyn Contender<T>> {
    let builder = ScalableCuckooFilterBuilder::new()
        .initial_capacity(items.max(1) as usize)
        .false_positive_probability(fpr)
        .hasher(FixedState::with_seed(SEED).build_hasher());
    Box::new(OneByOne(builder.finish::<T>()))
}
