//! `jdb_xorf`: the fastest binary fuse filter on crates.io, over 64-bit keys that it mixes itself. Its default hash for other items does not compile
//! with stock settings, so such items use our key.

use jdb_xorf::{Bf8, Bf16, Fingerprint};

use crate::{
    contender::{Ask, Entry, Whole},
    items::BenchItem,
};

/// The filter over keys, with buffers for the keys and answers of a batch.
struct Keyed<F> {
    filter: F,
    keys: Vec<u64>,
    answers: Vec<bool>,
}

impl<T: BenchItem, F: Fingerprint> Ask<T> for Keyed<jdb_xorf::Base<F>> {
    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.filter.has_key(item.key())
    }

    fn count_batch(&mut self, items: &[T]) -> Option<usize> {
        self.answers.resize(items.len(), false);
        self.filter.contains_batch(T::keys(items, &mut self.keys), &mut self.answers);
        Some(self.answers.iter().map(|&may| usize::from(may)).sum())
    }
}

pub(super) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    vec![
        Entry::whole_rival("jdb_xorf Bf8", |items, _| {
            let filter = Bf8::try_from_slice(T::keys(items, &mut Vec::new())).expect("distinct keys");
            Box::new(Whole(Keyed { filter, keys: Vec::new(), answers: Vec::new() }))
        }),
        Entry::whole_rival("jdb_xorf Bf16", |items, _| {
            let filter = Bf16::try_from_slice(T::keys(items, &mut Vec::new())).expect("distinct keys");
            Box::new(Whole(Keyed { filter, keys: Vec::new(), answers: Vec::new() }))
        }),
    ]
}
