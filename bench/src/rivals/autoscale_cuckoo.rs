//! `autoscale_cuckoo_filter`: a chain of bit-packed cuckoo filters; one is enough if the size is known. Its default hash does not compile with stock
//! settings; it is shown with its fallback, SipHash, and with foldhash.

use std::hash::{BuildHasher, Hash, Hasher};

use autoscale_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder, DefaultHasher};
use foldhash::fast::{FixedState, FoldHasher};

use super::SEED;
use crate::{
    contender::{Contender, Entry, Kind, Remove, Removing, Single},
    items::BenchItem,
};

/// The highest rate at which it uses 12-bit fingerprints: it halves the rate for its first filter, and uses log2(8 / rate) bits, rounded up.
const TWELVE_BITS: f64 = 16.0 / 4095.0;

impl<T: Hash, H: Hasher + Clone> Single<T> for CuckooFilter<T, H> {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.add(item);
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }

    fn load(&self) -> Option<f64> {
        Some(self.load_factor())
    }
}

impl<T: Hash, H: Hasher + Clone> Remove<T> for CuckooFilter<T, H> {
    #[inline]
    fn remove_one(&mut self, item: &T) -> bool {
        self.remove(item)
    }
}

/// Its batch calls are loops over the single ones, so they are not shown.
pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::rival("autoscale_cuckoo_filter+foldhash 12-bit", Kind::Cuckoo, |items, _| {
            make(items, TWELVE_BITS, folding())
        }),
        Entry::rival("autoscale_cuckoo_filter 12-bit", Kind::Cuckoo, |items, _| {
            make(items, TWELVE_BITS, DefaultHasher::default())
        }),
        Entry::rival("autoscale_cuckoo_filter+foldhash", Kind::Cuckoo, |items, fpr| {
            make(items, fpr, folding())
        }),
        Entry::rival("autoscale_cuckoo_filter+foldhash (n/16)", Kind::Growable, |items, fpr| {
            make(items / 16, fpr, folding())
        })
        .slow(),
    ]
}

fn folding() -> FoldHasher<'static> {
    FixedState::with_seed(SEED).build_hasher()
}

fn make<T: BenchItem, H: Hasher + Clone + 'static>(items: u64, fpr: f64, hasher: H) -> Box<dyn Contender<T>> {
    let builder = CuckooFilterBuilder::new()
        .initial_capacity(items.max(1) as usize)
        .false_positive_probability(fpr)
        .hasher(hasher);
    Box::new(Removing(builder.finish::<T>()))
}
