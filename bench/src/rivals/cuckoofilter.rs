//! `cuckoofilter`: 8-bit fingerprints, a power of two of slots. Its hasher is a type parameter, so foldhash is wrapped in a type with a default.

use std::hash::{BuildHasher, Hash, Hasher};

use cuckoofilter::CuckooFilter;
use foldhash::fast::{FixedState, FoldHasher};

use super::SEED;
use crate::{
    contender::{Entry, Kind, Remove, Removing, Single},
    items::BenchItem,
};

/// Above this load it may reject an item, and by then it has already lost another one.
const FULLEST: f64 = 0.96;

/// A foldhash with a fixed seed.
struct Folding(FoldHasher<'static>);

impl Default for Folding {
    #[inline]
    fn default() -> Self {
        Folding(FixedState::with_seed(SEED).build_hasher())
    }
}

impl Hasher for Folding {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0.write_u64(value);
    }
}

/// The filter, and its number of slots, which it does not expose.
struct Filter {
    filter: CuckooFilter<Folding>,
    slots: usize,
}

impl<T: Hash> Single<T> for Filter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.filter.add(item).expect("room is left");
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.filter.contains(item)
    }

    fn load(&self) -> Option<f64> {
        Some(self.filter.len() as f64 / self.slots as f64)
    }
}

impl<T: Hash> Remove<T> for Filter {
    #[inline]
    fn remove_one(&mut self, item: &T) -> bool {
        self.filter.delete(item)
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::rival("cuckoofilter", Kind::Cuckoo, |items, _| {
        let slots = ((items as f64 / FULLEST).ceil() as usize).next_power_of_two();
        Box::new(Removing(Filter { filter: CuckooFilter::with_capacity(slots), slots }))
    })
    .layout("8-bit fingerprints")
    .slow()
}
