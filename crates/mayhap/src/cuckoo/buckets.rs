//! What the table asks of its buckets, however they are stored.

use std::sync::atomic::AtomicU64;

use crate::simd::word_at_byte;
use crate::store::Lines;

/// The most places a bucket has.
pub(super) const MAX_SLOTS: usize = 8;

/// What is in one bucket: its fingerprints, 0 for a free place. Places it does not have are 0 too.
pub(super) type Content = [u32; MAX_SLOTS];

/// A bucket seen with one fingerprint in mind.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Is the fingerprint in it?
    pub(super) holds: bool,
    /// As in [`Buckets::room`].
    pub(super) room: u64,
}

/// A way to keep buckets in an array of words. The words have one to spare behind the last bucket.
pub(super) trait Buckets: Copy {
    /// Places in a bucket.
    fn slots(&self) -> usize;

    /// Bits a bucket takes.
    fn bucket_bits(&self) -> u64;

    /// Is `fingerprint`, which is not 0, in the bucket?
    fn holds(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> bool;

    /// Zero if the bucket is full; the more room, the larger.
    fn room(&self, words: &[AtomicU64], bucket: u64) -> u64;

    /// [`holds`](Self::holds) and [`room`](Self::room), of one look at the bucket.
    fn look(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> Look;

    fn read(&self, words: &[AtomicU64], bucket: u64) -> Content;

    /// Puts `fingerprint` in a free place; there is one.
    fn put(&self, lines: &mut Lines, bucket: u64, fingerprint: u32);

    /// Puts `to` in a place that holds `from`; there is one. With `to` 0 it is free then.
    fn replace(&self, lines: &mut Lines, bucket: u64, from: u32, to: u32);

    /// The word a bucket begins in.
    #[inline(always)]
    fn word_of(&self, bucket: u64) -> usize {
        (bucket * self.bucket_bits() / 64) as usize
    }

    /// The word a bucket ends in: one in ten or so is in the next cache line.
    #[inline(always)]
    fn last_word_of(&self, bucket: u64) -> usize {
        ((bucket * self.bucket_bits() + self.bucket_bits() - 1) / 64) as usize
    }
}

/// The bits from `bit` on: 57 of them at least, 60 if `bit` is a multiple of four, 64 if it is one of eight.
#[inline(always)]
pub(super) fn bits_at(words: &[AtomicU64], bit: u64) -> u64 {
    word_at_byte(words, (bit / 8) as usize) >> (bit % 8)
}

/// Overwrites the `width` bits from `bit` on, 64 at most, with those of `value`, which has no others.
#[inline(always)]
pub(super) fn set_bits(words: &mut [u64], bit: u64, width: u32, value: u64) {
    let (word, shift) = ((bit / 64) as usize, bit % 64);
    let mask = u64::MAX >> (64 - width);
    let pair = &mut words[word..word + 2];
    pair[0] = pair[0] & !(mask << shift) | value << shift;
    pair[1] = pair[1] & !(mask >> 1 >> (63 - shift)) | value >> 1 >> (63 - shift);
}
