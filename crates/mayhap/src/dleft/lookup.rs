//! Looking up one item or many, with four buckets each.

use std::sync::atomic::AtomicU64;

use super::DLeftShape;
use super::bucket::{Bucket, Pattern};
use super::found::Found;
use super::place::DLeftPlace;
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::hash::{HashScheme, ItemHash};
use crate::simd::prefetch;

/// The buckets as the lookups see them.
#[derive(Clone, Copy)]
pub(super) struct DLeftTables<'a> {
    pub(super) words: &'a [AtomicU64],
    pub(super) shape: &'a DLeftShape,
}

impl DLeftTables<'_> {
    #[inline(always)]
    pub(super) fn holds<const N: usize>(&self, hash: ItemHash) -> bool {
        self.holds_at::<N>(DLeftPlace::of(hash, self.shape))
    }

    /// Always reads all four buckets: a branch would be mispredicted too often.
    #[inline(always)]
    fn holds_at<const N: usize>(&self, place: DLeftPlace) -> bool {
        let pattern = Pattern::<N>::of(place.fingerprint, self.shape.slot_bits());
        let matching = place.bytes.map(|byte| Bucket::<N>::read(self.words, byte).matching(&pattern));
        u32::from_le_bytes(matching) != 0
    }

    pub(super) fn copies<const N: usize>(&self, hash: ItemHash) -> u32 {
        let place = DLeftPlace::of(hash, self.shape);
        Found::<N>::look(self.words, place, self.shape.slot_bits()).copies()
    }

    #[inline(always)]
    pub(super) fn holds_batch<const N: usize>(
        &self,
        scheme: &HashScheme,
        items: &[impl Hashed],
        answers: &mut Answers,
    ) {
        /// Each item prefetches four lines or more.
        const CHUNK: usize = 16;
        answers.reset(items.len());
        let start = |hash: ItemHash| {
            let place = DLeftPlace::of(hash, self.shape);
            place.for_each_line(self.shape, |word| prefetch(self.words, word));
            place
        };
        hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, places| {
            for (index, &place) in places.iter().enumerate() {
                if self.holds_at::<N>(place) {
                    answers.set(first + index);
                }
            }
        });
    }
}
