//! `xorf`: xor and binary fuse filters over 64-bit keys that it mixes itself. The items of a run are distinct, because on a duplicate its xor filters
//! would loop forever. Its older fuse filters are deprecated, and fail to build at 10^5 items.

use xorf::{BinaryFuse8, BinaryFuse16, Filter, Xor8, Xor16};

use crate::{
    contender::{Ask, Entry, Whole},
    items::BenchItem,
};

/// A filter over keys, for items that have keys.
struct Keyed<F>(F);

impl<T: BenchItem, F: Filter<u64>> Ask<T> for Keyed<F> {
    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.0.contains(&item.key())
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::whole_rival("xorf BinaryFuse8", |items, _| {
            let filter = BinaryFuse8::try_from(T::keys(items, &mut Vec::new()));
            Box::new(Whole(Keyed(filter.expect("distinct keys"))))
        }),
        Entry::whole_rival("xorf BinaryFuse16", |items, _| {
            let filter = BinaryFuse16::try_from(T::keys(items, &mut Vec::new()));
            Box::new(Whole(Keyed(filter.expect("distinct keys"))))
        }),
        Entry::whole_rival("xorf Xor8", |items, _| {
            Box::new(Whole(Keyed(Xor8::from(T::keys(items, &mut Vec::new())))))
        }),
        Entry::whole_rival("xorf Xor16", |items, _| {
            Box::new(Whole(Keyed(Xor16::from(T::keys(items, &mut Vec::new())))))
        }),
    ]
}
