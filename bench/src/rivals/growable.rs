//! `growable-bloom-filter`: a chain of layers, started at a sixteenth of the items it will get.

use std::hash::Hash;

use growable_bloom_filter::GrowableBloom;

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

impl<T: Hash> Single<T> for GrowableBloom {
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
    Entry::rival("growable-bloom-filter (n/16)", Kind::Growable, |items, fpr| {
        Box::new(OneByOne(GrowableBloom::new(fpr, (items / 16).max(1) as usize)))
    })
    .slow()
}
