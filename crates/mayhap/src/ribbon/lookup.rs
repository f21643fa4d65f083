//! The hot loops: one item at a time or many.

use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{RibbonLayer, RibbonLayout, THRESHOLDS, next_key};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::hash::HashScheme;
use crate::simd::prefetch;
use crate::simd::ribbon::{Probe, agrees, agrees_chunk};
use crate::sizing::ribbon::BUCKET_ROWS;
use crate::statics;
use crate::store::WORDS_PER_LINE;

/// The thresholds, a byte each.
const PACKED_THRESHOLDS: u32 = u32::from_le_bytes(THRESHOLDS);

/// The layers as lookups see them. All blocks and thresholds of `layout` are in `words`.
#[derive(Clone, Copy)]
pub(super) struct Layers<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) layout: &'a RibbonLayout,
}

impl Layers<'_> {
    /// Returns `false` if it is certainly not one of the keys.
    #[inline]
    pub(super) fn may_contain(&self, key: u64) -> bool {
        let Some(first) = self.layout.layers().first() else { return false };
        agrees(self.words, &self.probe(first, key))
    }

    /// Finds the item: in the first layer that does not bump it.
    #[inline(always)]
    fn probe(&self, first: &RibbonLayer, key: u64) -> Probe {
        let start = first.start(key);
        if self.layout.layers().len() == 1 || self.is_bumped(first, start) {
            return self.probe_later_layers(key);
        }
        first.probe(key, start)
    }

    /// Finds an item that is not in the first layer, or any item if there is only one layer.
    #[cold]
    #[inline(never)]
    fn probe_later_layers(&self, key: u64) -> Probe {
        let Some((last, before)) = self.layout.layers().split_last() else { return Probe::default() };
        let mut key = key;
        for layer in before {
            let start = layer.start(key);
            if !self.is_bumped(layer, start) {
                return layer.probe(key, start);
            }
            key = next_key(key);
        }
        let key = self.layout.last_key(key);
        last.probe(key, last.start(key))
    }

    #[inline(always)]
    pub(super) fn is_bumped(&self, layer: &RibbonLayer, start: u64) -> bool {
        self.threshold(layer, start) > start % BUCKET_ROWS
    }

    /// Returns the number of rows at the beginning of the bucket whose items are bumped.
    #[inline(always)]
    pub(super) fn threshold(&self, layer: &RibbonLayer, row: u64) -> u64 {
        let (word, shift) = layer.threshold(row);
        let code = self.words[word as usize].load(Ordering::Relaxed) >> shift & 3;
        u64::from(PACKED_THRESHOLDS >> (8 * code) & 0xff)
    }

    /// Answers a batch: the threshold and the columns of one chunk are being loaded while the previous chunk
    /// is answered.
    pub(super) fn may_contain_batch<H: Hashed>(
        &self,
        scheme: &HashScheme,
        items: &[H],
        answers: &mut Answers,
    ) {
        /// Each item has two or three lines, and two chunks are in flight.
        const CHUNK: usize = 32;
        answers.reset(items.len());
        let Some(&first) = self.layout.layers().first() else { return };
        let start = |hash| {
            let key = statics::key(hash);
            let start = first.start(key);
            let block = start / 64;
            let word = first.word_of(block) as usize;
            let words = 2 * first.columns_of(block) as usize;
            prefetch(self.words, first.threshold(start).0 as usize);
            for line in 0..=(words / WORDS_PER_LINE) {
                prefetch(self.words, word + line * WORDS_PER_LINE);
            }
            key
        };
        let words = answers.words_mut();
        hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |at, keys| {
            let mut probes = [Probe::default(); CHUNK];
            for (probe, &key) in probes.iter_mut().zip(keys) {
                *probe = self.probe(&first, key);
            }
            let found = agrees_chunk(self.words, &probes[..keys.len()]);
            words[at / 64] |= found << (at % 64);
        });
    }
}
