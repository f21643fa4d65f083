//! The hot loops of the counting filter: k scattered counters, one item at a time or many.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counters::{shift_of, word_of};
use crate::answers::Answers;
use crate::batch::{Hashed, one_chunk_behind};
use crate::hash::{HashScheme, ItemHash};
use crate::probe::{PositionStream as _, Probes, Range};
use crate::simd::prefetch;
use crate::sizing::counting::MAX_COUNT;

/// A counter array as the lookups see it: `probes` counters per item among the first `counters` counters of
/// `words`.
#[derive(Clone, Copy)]
pub(super) struct CounterArray<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) counters: u64,
    pub(super) probes: u32,
}

/// As in the classic filter: one branch on the first three rejects seven of eight non-members.
const FIRST_GROUP: u32 = 3;

impl CounterArray<'_> {
    #[inline(always)]
    pub(super) fn count(&self, position: u64) -> u64 {
        self.words[word_of(position)].load(Ordering::Relaxed) >> shift_of(position) & MAX_COUNT
    }

    /// 1 if the counter is not zero, 0 if it is.
    #[inline(always)]
    fn bit(&self, position: u64) -> u64 {
        u64::from(self.count(position) != 0)
    }

    /// Returns whether all counters of the item are above zero.
    #[inline]
    pub(super) fn covers(&self, hash: ItemHash) -> bool {
        let mut stream = Probes::new(hash);
        let mut all = 1;
        for _ in 0..FIRST_GROUP.min(self.probes) {
            all &= self.bit(stream.next(Range::of(self.counters)));
        }
        if all == 0 {
            return false;
        }
        for _ in FIRST_GROUP..self.probes {
            all &= self.bit(stream.next(Range::of(self.counters)));
        }
        all == 1
    }

    /// Returns the lowest counter of the item.
    #[inline]
    pub(super) fn lowest(&self, hash: ItemHash) -> u64 {
        let mut stream = Probes::new(hash);
        (0..self.probes).map(|_| self.count(stream.next(Range::of(self.counters)))).min().unwrap_or(0)
    }

    #[inline(always)]
    fn prefetch(&self, stream: Probes) {
        prefetch(self.words, word_of(stream.position(Range::of(self.counters))));
    }

    /// Answers a batch round by round: one counter of every remaining item, while its next one is being
    /// loaded.
    #[inline(always)]
    pub(super) fn covers_batch<H: Hashed>(&self, scheme: &HashScheme, items: &[H], answers: &mut Answers) {
        /// Enough for the loads of the few items left in the last rounds to overlap.
        const CHUNK: usize = 256;
        answers.reset(items.len());
        let start = |item: &H| {
            let stream = Probes::new(item.hashed(scheme));
            self.prefetch(stream);
            stream
        };
        one_chunk_behind::<CHUNK, _, _>(items, start, |first, started| {
            let mut running = [(Probes::default(), 0); CHUNK];
            let mut left = started.len();
            for (slot, (stream, index)) in running.iter_mut().zip(started.iter().zip(0..)) {
                *slot = (*stream, index);
            }
            for _ in 0..self.probes {
                let mut kept = 0;
                for i in 0..left {
                    let (mut stream, index): (Probes, u32) = running[i];
                    let set = self.bit(stream.next(Range::of(self.counters)));
                    self.prefetch(stream);
                    // Always written, but kept only if the counter is above zero: no branch to mispredict.
                    running[kept] = (stream, index);
                    kept += set as usize;
                }
                left = kept;
            }
            for (_, index) in &running[..left] {
                answers.set(first + *index as usize);
            }
        });
    }
}
