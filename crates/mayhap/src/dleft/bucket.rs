//! Bit-sliced buckets of eight slots: byte `j` of a bucket holds bit `j` of each of its slots.
//!
//! ```text
//!             slot  7 6 5 4 3 2 1 0
//! byte 0            . . . 1 . . 1 1   low bit of the counters     slots 0, 1 and 4 are taken: their counters are not 0
//! byte 1            . . . 1 . . . .   high bit of the counters
//! byte 2            . . . 0 . . 1 1   bit 0 of the fingerprints
//!  …                                                              all eight are compared together: each pattern byte
//! last byte         . . . 1 . . 0 1   last bit of the fingerprints        is 00 or ff, and a slot without differences matches
//! ```
//!
//! A bucket has as many bytes as a slot has bits, so fingerprints of any length need no padding. One
//! comparison takes a few word operations without a branch. Buckets begin at any byte; `N` words hold one.

use std::sync::atomic::AtomicU64;

use crate::simd::unaligned;
use crate::sizing::dleft::COUNTER_BITS;

/// The lowest bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// Bit `j` of byte `j`.
const DIAGONAL: u64 = 0x8040_2010_0804_0201;
/// The bytes of the counters, in the first word.
const COUNTERS: u64 = (1 << (8 * COUNTER_BITS)) - 1;

/// Byte `j` is `ff` if bit `j` of `bits` is set, else `00`.
#[inline(always)]
const fn spread(bits: u8) -> u64 {
    let one_bit_each = (bits as u64).wrapping_mul(ONES) & DIAGONAL;
    // Each byte is at most 80: adding 7f sets its top bit if anything is set, and carries nothing over.
    ((one_bit_each + 0x7f * ONES) >> 7 & ONES) * 0xff
}

/// A fingerprint in bit-sliced form, as a bucket with that fingerprint in all eight slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern<const N: usize> {
    words: [u64; N],
    /// The bytes that belong to the bucket.
    own: [u64; N],
}

impl<const N: usize> Pattern<N> {
    /// Returns the pattern of slots of `width` bits that hold one copy of `fingerprint`.
    #[inline(always)]
    pub(super) fn of(fingerprint: u64, width: u32) -> Self {
        let slot = fingerprint << COUNTER_BITS | 1;
        let words = std::array::from_fn(|k| spread((slot >> (8 * k)) as u8));
        let own = std::array::from_fn(|k| {
            let bytes = width.saturating_sub(8 * k as u32);
            if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
        });
        Self { words, own }
    }

    /// Returns the change that writes this pattern into `slot` of `bucket`.
    #[inline(always)]
    pub(super) fn put(&self, bucket: &Bucket<N>, slot: u32) -> [u64; N] {
        std::array::from_fn(|k| (bucket.words[k] ^ self.words[k]) & self.own[k] & ONES << slot)
    }

    /// Returns the change that empties `slot` of `bucket`.
    #[inline(always)]
    pub(super) fn take(&self, bucket: &Bucket<N>, slot: u32) -> [u64; N] {
        std::array::from_fn(|k| bucket.words[k] & self.own[k] & ONES << slot)
    }
}

/// The words of a bucket, followed by unrelated bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<const N: usize> {
    words: [u64; N],
}

impl<const N: usize> Bucket<N> {
    /// Reads the bucket that begins at byte `byte`.
    #[inline(always)]
    pub(super) fn read(words: &[AtomicU64], byte: usize) -> Self {
        Self { words: unaligned::read(words, byte) }
    }

    /// Returns one bit per slot: set if it is taken.
    #[inline(always)]
    pub(super) const fn taken(&self) -> u8 {
        self.low() | self.high()
    }

    /// Returns one bit per slot: set if its counter is at its maximum.
    #[inline(always)]
    pub(super) const fn full(&self) -> u8 {
        self.low() & self.high()
    }

    /// Returns the low bits of the counters.
    #[inline(always)]
    pub(super) const fn low(&self) -> u8 {
        self.words[0] as u8
    }

    /// Returns the high bits of the counters.
    #[inline(always)]
    pub(super) const fn high(&self) -> u8 {
        (self.words[0] >> 8) as u8
    }

    /// Returns one bit per slot: set if it holds this fingerprint.
    #[inline(always)]
    pub(super) fn matching(&self, pattern: &Pattern<N>) -> u8 {
        let mut differing = (self.words[0] ^ pattern.words[0]) & pattern.own[0] & !COUNTERS;
        for k in 1..N {
            differing |= (self.words[k] ^ pattern.words[k]) & pattern.own[k];
        }
        differing |= differing >> 32;
        differing |= differing >> 16;
        differing |= differing >> 8;
        self.taken() & !(differing as u8)
    }

    /// Returns the fingerprint and the count in `slot`, of `width` bits.
    pub(super) fn slot(&self, slot: u32, width: u32) -> (u64, u32) {
        let bit = |j: u32| self.words[(j / 8) as usize] >> (j % 8 * 8 + slot) & 1;
        let bits = (0..width).fold(0, |bits, j| bits | bit(j) << j);
        (bits >> COUNTER_BITS, (bits & ((1 << COUNTER_BITS) - 1)) as u32)
    }

    /// Returns the change that raises the counter of `slot`, which is below three.
    #[inline(always)]
    pub(super) const fn raise(&self, slot: u32) -> [u64; N] {
        // 1 becomes 2: both bits change. 2 becomes 3: only the low one.
        self.count_change(slot, self.low())
    }

    /// Returns the change that lowers the counter of `slot`, which is above one.
    #[inline(always)]
    pub(super) const fn lower(&self, slot: u32) -> [u64; N] {
        self.count_change(slot, !self.low())
    }

    /// Flips the low bit, and the high one if `carries` is set.
    #[inline(always)]
    const fn count_change(&self, slot: u32, carries: u8) -> [u64; N] {
        let mut change = [0; N];
        change[0] = 1 << slot | ((carries as u64) & 1 << slot) << 8;
        change
    }
}

/// Applies a change to the bucket that begins at byte `byte`.
#[inline(always)]
pub(super) fn change<const N: usize>(words: &mut [u64], byte: usize, change: [u64; N]) {
    let (first, shift) = (byte / 8, byte % 8 * 8);
    let words = &mut words[first..first + N + 1];
    for k in 0..N {
        words[k] ^= change[k] << shift;
        words[k + 1] ^= change[k] >> 1 >> (63 - shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    #[test]
    fn spread_makes_a_byte_of_each_bit() {
        for bits in 0..=255_u8 {
            let bytes = spread(bits).to_le_bytes();
            assert!((0..8).all(|j| bytes[j] == if bits >> j & 1 == 1 { 0xff } else { 0 }), "{bits:#x}");
        }
    }

    /// Compares with eight plain slots per bucket: after any change to one bucket, at any byte, every slot of
    /// every bucket is correct.
    fn behaves_like_plain_slots<const N: usize>(width: u32) {
        const BUCKETS: usize = 5;
        let mut rng = Rng::new(u64::from(width));
        let mut lines = crate::store::Lines::zeroed(6).unwrap();
        // Few different fingerprints, so several slots match.
        let prints: [u64; 3] = std::array::from_fn(|_| rng.next_u64() & ((1 << (width - 2)) - 1));
        let mut plain = [[(0_u64, 0_u32); 8]; BUCKETS];
        for _ in 0..4_000 {
            let (at, slot) = (rng.below(BUCKETS as u64) as usize, rng.below(8) as u32);
            let byte = at * width as usize;
            let bucket = Bucket::<N>::read(lines.words(), byte);
            let print = prints[rng.below(3) as usize];
            let pattern = Pattern::<N>::of(print, width);
            let entry = &mut plain[at][slot as usize];
            let delta = match (*entry, rng.below(2)) {
                ((_, 0), _) => {
                    *entry = (print, 1);
                    pattern.put(&bucket, slot)
                }
                ((print, count @ 1..=2), 0) => {
                    *entry = (print, count + 1);
                    bucket.raise(slot)
                }
                ((print, count), _) if count > 1 => {
                    *entry = (print, count - 1);
                    bucket.lower(slot)
                }
                _ => {
                    *entry = (0, 0);
                    pattern.take(&bucket, slot)
                }
            };
            change(lines.words_mut(), byte, delta);
            for (at, plain) in plain.iter().enumerate() {
                let bucket = Bucket::<N>::read(lines.words(), at * width as usize);
                let mask = |holds: &dyn Fn((u64, u32)) -> bool| {
                    (0..8).fold(0, |mask, slot| mask | u8::from(holds(plain[slot])) << slot)
                };
                assert!((0..8).all(|slot| bucket.slot(slot, width) == plain[slot as usize]), "width {width}");
                assert_eq!(bucket.taken(), mask(&|(_, count)| count > 0));
                assert_eq!(bucket.full(), mask(&|(_, count)| count == 3));
                assert_eq!(bucket.matching(&pattern), mask(&|(other, count)| count > 0 && other == print));
            }
        }
    }

    #[test]
    fn buckets_of_every_width_behave_like_plain_slots() {
        (3..=8).for_each(behaves_like_plain_slots::<1>);
        (9..=16).for_each(behaves_like_plain_slots::<2>);
        (17..=24).for_each(behaves_like_plain_slots::<3>);
        (25..=32).for_each(behaves_like_plain_slots::<4>);
        (33..=40).for_each(behaves_like_plain_slots::<5>);
    }
}
