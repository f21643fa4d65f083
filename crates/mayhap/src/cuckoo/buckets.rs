//! The operations on buckets that the table needs, for any storage format.

use std::sync::atomic::AtomicU64;

use crate::simd::word_at_byte;
use crate::store::Lines;

/// The most slots in a bucket.
pub(super) const MAX_SLOTS: usize = 8;

/// The content of one bucket: its fingerprints, and 0 for a free slot. Slots it does not have are 0 too.
pub(super) type Content = [u32; MAX_SLOTS];

/// The result of searching a bucket for one fingerprint.
#[derive(Clone, Copy)]
pub(super) struct BucketLook {
    /// Whether the fingerprint is in the bucket.
    pub(super) holds: bool,
    /// As in [`Buckets::room`].
    pub(super) room: u64,
}

/// A format for buckets in an array of words. There must be one spare word after the last bucket.
pub(super) trait Buckets: Copy {
    /// Slots in a bucket.
    fn slots(&self) -> usize;

    /// Returns the bits that a bucket takes.
    fn bucket_bits(&self) -> u64;

    /// Returns whether `fingerprint`, which is not 0, is in the bucket.
    fn holds(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> bool;

    /// Returns zero if the bucket is full, and a larger number the more room there is.
    fn room(&self, words: &[AtomicU64], bucket: u64) -> u64;

    /// Returns [`holds`](Self::holds) and [`room`](Self::room) from one read of the bucket.
    fn look(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> BucketLook;

    fn read(&self, words: &[AtomicU64], bucket: u64) -> Content;

    /// Writes `fingerprint` into a free slot. There must be one.
    fn put(&self, lines: &mut Lines, bucket: u64, fingerprint: u32);

    /// Replaces `from` with `to` in a slot that holds it. There must be one. `to` 0 frees the slot.
    fn replace(&self, lines: &mut Lines, bucket: u64, from: u32, to: u32);

    /// Returns the word in which a bucket begins.
    #[inline(always)]
    fn word_of(&self, bucket: u64) -> usize {
        (bucket * self.bucket_bits() / 64) as usize
    }

    /// Returns the word in which a bucket ends. For about one bucket in ten it is in the next cache line.
    #[inline(always)]
    fn last_word_of(&self, bucket: u64) -> usize {
        ((bucket * self.bucket_bits() + self.bucket_bits() - 1) / 64) as usize
    }
}

/// Returns the bits from `bit` on: at least 57 of them, 60 if `bit` is a multiple of four, 64 if it is a
/// multiple of eight.
#[inline(always)]
pub(super) fn bits_at(words: &[AtomicU64], bit: u64) -> u64 {
    word_at_byte(words, (bit / 8) as usize) >> (bit % 8)
}

/// Overwrites the `width` bits from `bit` on, at most 64, with those of `value`, which must have no others.
#[inline(always)]
pub(super) fn set_bits(words: &mut [u64], bit: u64, width: u32, value: u64) {
    let (word, shift) = ((bit / 64) as usize, bit % 64);
    let mask = u64::MAX >> (64 - width);
    let pair = &mut words[word..word + 2];
    pair[0] = pair[0] & !(mask << shift) | value << shift;
    pair[1] = pair[1] & !(mask >> 1 >> (63 - shift)) | value >> 1 >> (63 - shift);
}
