//! `aleph-filter`: an expandable quotient filter of 9 bytes per slot, on byte slices.

use aleph_filter::AlephFilter;

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

impl<T: BenchItem> Single<T> for AlephFilter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        item.with_bytes(|bytes| self.insert(bytes));
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        item.with_bytes(|bytes| self.contains(bytes))
    }

    fn load(&self) -> Option<f64> {
        Some(self.load_factor())
    }
}

/// Started at a sixteenth only: started at a millionth it takes 3 000 bits per item at 10^5 items, and does not finish at 10^6.
pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::rival("aleph-filter (n/16)", Kind::Growable, |items, fpr| {
        Box::new(OneByOne(AlephFilter::new((items / 16).max(1) as usize, fpr)))
    })
    .slow()
}
