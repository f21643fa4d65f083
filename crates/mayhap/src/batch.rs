//! Batches: hash one chunk of items and start its memory loads while the previous chunk is being answered.
//!
//! In a filter larger than the cache, a lookup spends its time waiting for memory. Working one chunk behind keeps the
//! memory system busy across chunk boundaries. A plain "prefetch all, then test all" does not: its queue of loads runs
//! empty at every boundary.

use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;

/// A value that can be turned into an [`ItemHash`]: an item, or a hash.
#[doc(hidden)]
pub trait Hashed {
    fn hashed(&self, scheme: &HashScheme) -> ItemHash;
}

impl<I: Item> Hashed for I {
    #[inline(always)]
    fn hashed(&self, scheme: &HashScheme) -> ItemHash {
        scheme.hash(self)
    }
}

impl Hashed for ItemHash {
    #[inline(always)]
    fn hashed(&self, _: &HashScheme) -> ItemHash {
        *self
    }
}

/// Calls `start` for every item in turn, to hash it and begin its memory loads. One chunk of at most `N` items later it
/// calls `finish` with the results of `start` for that chunk and the index of the chunk's first item.
#[inline(always)]
pub(crate) fn one_chunk_behind<const N: usize, H, P: Copy + Default>(
    items: &[H],
    start: impl Fn(&H) -> P,
    mut finish: impl FnMut(usize, &[P]),
) {
    let mut buffers = [[P::default(); N]; 2];
    let mut waiting: Option<(usize, usize)> = None;
    for (number, chunk) in items.chunks(N).enumerate() {
        let [even, odd] = &mut buffers;
        let (ours, theirs) = if number % 2 == 0 { (even, odd) } else { (odd, even) };
        for (slot, item) in ours.iter_mut().zip(chunk) {
            *slot = start(item);
        }
        if let Some((first, len)) = waiting {
            finish(first, &theirs[..len]);
        }
        waiting = Some((number * N, chunk.len()));
    }
    if let Some((first, len)) = waiting {
        finish(first, &buffers[(first / N) % 2][..len]);
    }
}

/// [`one_chunk_behind`] for items that are hashed first. The scheme is chosen outside the loop.
#[inline(always)]
pub(crate) fn hash_one_chunk_behind<const N: usize, H: Hashed, P: Copy + Default>(
    items: &[H],
    scheme: &HashScheme,
    start: impl Fn(ItemHash) -> P,
    finish: impl FnMut(usize, &[P]),
) {
    match *scheme {
        HashScheme::Fast { seed } => {
            let scheme = HashScheme::Fast { seed };
            one_chunk_behind::<N, _, _>(items, |item| start(item.hashed(&scheme)), finish);
        }
        HashScheme::Keyed { key } => {
            let scheme = HashScheme::Keyed { key };
            one_chunk_behind::<N, _, _>(items, |item| start(item.hashed(&scheme)), finish);
        }
        HashScheme::Foreign(_) => {
            one_chunk_behind::<N, _, _>(items, |item| start(item.hashed(scheme)), finish);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::one_chunk_behind;
    use std::cell::Cell;

    #[test]
    fn every_item_is_started_once_and_finished_in_order() {
        for count in [0_usize, 1, 7, 8, 9, 16, 17, 100] {
            let items: Vec<u64> = (0..count as u64).collect();
            let (started, mut finished) = (Cell::new(0), Vec::new());
            let start = |item: &u64| {
                assert_eq!(started.replace(started.get() + 1), *item);
                item * 10
            };
            one_chunk_behind::<8, _, _>(&items, start, |first, made| {
                assert_eq!(first, finished.len());
                assert!(started.get() > first as u64, "an item was finished before it was started");
                finished.extend_from_slice(made);
            });
            assert_eq!(finished, items.iter().map(|item| item * 10).collect::<Vec<_>>());
        }
    }
}
