//! The part of an item that is kept: 8, 16 or 32 bits.

use std::fmt::Debug;
use std::ops::BitXor;
use std::sync::atomic::{AtomicU64, Ordering};

use super::graph::PLACED_BITS;

/// The part of an item that a [`BinaryFuse`](crate::BinaryFuse) or [`Xor`](crate::Xor) filter stores: `u8`,
/// `u16` or `u32`.
///
/// Its width determines the rate: a non-member matches with probability `2^-BITS`.
pub trait Fingerprint:
    sealed::SealedFingerprint + Copy + Default + Debug + Eq + BitXor<Output = Self> + Send + Sync + 'static
{
    /// The number of bits.
    const BITS: u32;

    /// Returns the fingerprint of an item whose mixed key is `mixed`.
    #[doc(hidden)]
    fn of(mixed: u64) -> Self;

    /// Returns the lowest bits of `word`.
    #[doc(hidden)]
    fn lowest(word: u64) -> Self;

    /// Returns the fingerprint as the lowest bits of a word.
    #[doc(hidden)]
    fn widen(self) -> u64;
}

mod sealed {
    pub trait SealedFingerprint {}
    impl SealedFingerprint for u8 {}
    impl SealedFingerprint for u16 {}
    impl SealedFingerprint for u32 {}
}

/// Fingerprints up to this width are made from the bits that also place the item; building needs the other
/// bits for a counter.
pub(crate) const NARROW_BITS: u32 = 16;

/// Odd. Multiplies the bits that the three slots are computed from, so that the fingerprint does not depend
/// on the slots.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

#[inline(always)]
const fn narrow(mixed: u64) -> u64 {
    (mixed & PLACED_BITS).wrapping_mul(SPREAD)
}

impl Fingerprint for u8 {
    const BITS: u32 = 8;

    #[inline(always)]
    fn of(mixed: u64) -> Self {
        (narrow(mixed) >> 56) as Self
    }

    #[inline(always)]
    fn lowest(word: u64) -> Self {
        word as Self
    }

    #[inline(always)]
    fn widen(self) -> u64 {
        self.into()
    }
}

impl Fingerprint for u16 {
    const BITS: u32 = 16;

    #[inline(always)]
    fn of(mixed: u64) -> Self {
        (narrow(mixed) >> 48) as Self
    }

    #[inline(always)]
    fn lowest(word: u64) -> Self {
        word as Self
    }

    #[inline(always)]
    fn widen(self) -> u64 {
        self.into()
    }
}

impl Fingerprint for u32 {
    const BITS: u32 = 32;

    #[inline(always)]
    fn of(mixed: u64) -> Self {
        (mixed.wrapping_mul(SPREAD) >> 32) as Self
    }

    #[inline(always)]
    fn lowest(word: u64) -> Self {
        word as Self
    }

    #[inline(always)]
    fn widen(self) -> u64 {
        self.into()
    }
}

/// Returns the number of fingerprints in a 64-bit word.
pub(crate) const fn per_word<F: Fingerprint>() -> usize {
    64 / F::BITS as usize
}

/// Reads fingerprint `index` from `words`.
#[inline(always)]
pub(crate) fn load<F: Fingerprint>(words: &[AtomicU64], index: usize) -> F {
    let word = words[index / per_word::<F>()].load(Ordering::Relaxed);
    F::lowest(word >> (index % per_word::<F>() * F::BITS as usize))
}

/// Writes `fingerprints` to `words`, the first in the lowest bits of word 0.
pub(crate) fn pack<F: Fingerprint>(fingerprints: &[F], words: &mut [u64]) {
    for (word, group) in words.iter_mut().zip(fingerprints.chunks(per_word::<F>())) {
        *word = group.iter().rev().fold(0, |word, fingerprint| word << F::BITS | fingerprint.widen());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lines;

    fn packed_ones_come_back<F: Fingerprint>() {
        for count in [1, 7, 8, 9, 64, 100] {
            let made: Vec<F> = (0..count).map(|i| F::of(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i))).collect();
            let mut lines = Lines::zeroed(10).unwrap();
            pack(&made, lines.words_mut());
            assert!(
                made.iter().enumerate().all(|(i, fingerprint)| load::<F>(lines.words(), i) == *fingerprint)
            );
        }
    }

    #[test]
    fn packed_fingerprints_come_back_in_order() {
        packed_ones_come_back::<u8>();
        packed_ones_come_back::<u16>();
        packed_ones_come_back::<u32>();
    }
}
