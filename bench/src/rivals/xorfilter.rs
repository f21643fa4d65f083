//! `xorfilter-rs`: binary fuse filters over 64-bit keys that it mixes itself.

use xorfilter::Fuse8;

use crate::{
    contender::{Ask, Entry, Whole},
    items::BenchItem,
};

impl<T: BenchItem> Ask<T> for Fuse8 {
    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains_key(item.key())
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::whole_rival("xorfilter-rs Fuse8", |items, _| {
        let mut filter: Fuse8 = Fuse8::new(items.len() as u32);
        filter.build_keys(T::keys(items, &mut Vec::new())).expect("distinct keys");
        Box::new(Whole(filter))
    })
}
