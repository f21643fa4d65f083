//! Semi-sorted buckets: four fingerprints in the memory of four that are one bit shorter.
//!
//! The order of fingerprints in a bucket has no meaning, so it need not be stored. Sorted by their lowest
//! four bits, the four nibbles of a bucket are one of 3 876 combinations. A combination takes 12 bits, four
//! separate nibbles take 16.
//!
//! ```text
//!  bit 0        12          12 + h       12 + 2h      12 + 3h      12 + 4h         h = width - 4
//!   │ combination │ high bits 0 │ high bits 1 │ high bits 2 │ high bits 3 │
//! ```
//!
//! A combination of nibbles a ≤ b ≤ c ≤ d has the number C(a, 1) + C(b + 1, 2) + C(c + 2, 3) + C(d + 3, 4).

use std::sync::atomic::AtomicU64;

use super::buckets::{BucketLook, Buckets, Content, MAX_SLOTS, bits_at, set_bits};
use crate::store::Lines;

/// Slots in a semi-sorted bucket.
pub(super) const SLOTS: u32 = 4;
const NIBBLE_BITS: u32 = 4;
const CODE_BITS: u32 = 12;
/// The number of ways to choose four nibbles, regardless of order.
const COMBINATIONS: usize = 3_876;

/// The four nibbles of every combination, the smallest lowest. Invalid numbers have four zeroes.
static NIBBLES: [u16; 1 << CODE_BITS] = {
    let mut table = [0; 1 << CODE_BITS];
    let mut code = 0;
    while code < COMBINATIONS {
        let (mut left, mut nibbles, mut place) = (code, 0, SLOTS as usize);
        while place > 0 {
            place -= 1;
            let mut nibble = 15;
            while RANKS[place][nibble] as usize > left {
                nibble -= 1;
            }
            left -= RANKS[place][nibble] as usize;
            nibbles |= (nibble as u16) << (place as u32 * NIBBLE_BITS);
        }
        table[code] = nibbles;
        code += 1;
    }
    table
};

/// `RANKS[i][x]` is the binomial C(x + i, i + 1): the contribution of nibble `x` at index `i` to the number
/// of a combination.
static RANKS: [[u16; 16]; SLOTS as usize] = {
    let mut table = [[0; 16]; SLOTS as usize];
    let mut nibble = 0;
    while nibble < 16 {
        table[0][nibble] = nibble as u16;
        nibble += 1;
    }
    let mut place = 1;
    while place < SLOTS as usize {
        // C(x + i, i + 1) is the sum of C(y + i - 1, i) for y = 1 to x.
        nibble = 1;
        while nibble < 16 {
            table[place][nibble] = table[place][nibble - 1] + table[place - 1][nibble];
            nibble += 1;
        }
        place += 1;
    }
    table
};

/// Semi-sorted buckets of four fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SemiSorted {
    /// Bits of a fingerprint above its nibble: 1 to 28.
    high_bits: u32,
}

impl SemiSorted {
    /// Creates the layout for fingerprints of `width` bits: 5 to 32.
    pub(super) const fn new(width: u32) -> Self {
        Self { high_bits: width - NIBBLE_BITS }
    }

    /// Returns the number of its combination, the high bits of its first two fingerprints, and those of its
    /// last two, each with unrelated bits above.
    #[inline(always)]
    fn load(&self, words: &[AtomicU64], bucket: u64) -> (u64, [u64; 2]) {
        let start = bucket * self.bucket_bits();
        let code = bits_at(words, start);
        // Buckets begin at multiples of four bits. A short one lies completely in its first word.
        if self.bucket_bits() <= 60 {
            return (code, [code >> CODE_BITS, code >> CODE_BITS >> (2 * self.high_bits)]);
        }
        let highs = start + u64::from(CODE_BITS);
        (code, [bits_at(words, highs), bits_at(words, highs + 2 * u64::from(self.high_bits))])
    }

    #[inline(always)]
    fn decoded(&self, (code, [low, high]): (u64, [u64; 2])) -> [u32; SLOTS as usize] {
        let nibbles = u64::from(NIBBLES[(code & ((1 << CODE_BITS) - 1)) as usize]);
        let mask = u64::MAX >> (64 - self.high_bits);
        let fingerprint = |high: u64, place: u32| {
            ((high & mask) << NIBBLE_BITS | nibbles >> (place * NIBBLE_BITS) & 15) as u32
        };
        [
            fingerprint(low, 0),
            fingerprint(low >> self.high_bits, 1),
            fingerprint(high, 2),
            fingerprint(high >> self.high_bits, 3),
        ]
    }

    #[inline(always)]
    fn fingerprints(&self, words: &[AtomicU64], bucket: u64) -> [u32; SLOTS as usize] {
        self.decoded(self.load(words, bucket))
    }

    fn write(&self, words: &mut [u64], bucket: u64, mut fingerprints: [u32; SLOTS as usize]) {
        // Sorted by nibble, and equal nibbles by the rest, so equal contents have equal bits.
        fingerprints.sort_unstable_by_key(|fingerprint| fingerprint.rotate_right(NIBBLE_BITS));
        let ranks =
            fingerprints.iter().zip(&RANKS).map(|(fingerprint, ranks)| ranks[*fingerprint as usize & 15]);
        let start = bucket * self.bucket_bits();
        set_bits(words, start, CODE_BITS, u64::from(ranks.sum::<u16>()));
        for (place, fingerprint) in (0..).zip(fingerprints) {
            let at = start + u64::from(CODE_BITS) + place * u64::from(self.high_bits);
            set_bits(words, at, self.high_bits, u64::from(fingerprint >> NIBBLE_BITS));
        }
    }
}

impl Buckets for SemiSorted {
    #[inline(always)]
    fn slots(&self) -> usize {
        SLOTS as usize
    }

    #[inline(always)]
    fn bucket_bits(&self) -> u64 {
        u64::from(CODE_BITS + SLOTS * self.high_bits)
    }

    #[inline(always)]
    fn holds(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> bool {
        let loaded = self.load(words, bucket);
        // The high bits of most non-members are not in the bucket. For those nothing is decoded.
        let ones = 1 | 1 << self.high_bits;
        let everywhere = u64::from(fingerprint >> NIBBLE_BITS) * ones;
        let some_zero = |lanes: u64| lanes.wrapping_sub(ones) & !lanes;
        let near = some_zero(loaded.1[0] ^ everywhere) | some_zero(loaded.1[1] ^ everywhere);
        if near & ones << (self.high_bits - 1) == 0 {
            return false;
        }
        self.decoded(loaded).iter().fold(false, |found, &held| found | (held == fingerprint))
    }

    #[inline(always)]
    fn room(&self, words: &[AtomicU64], bucket: u64) -> u64 {
        self.look(words, bucket, 0).room
    }

    #[inline(always)]
    fn look(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> BucketLook {
        let fingerprints = self.fingerprints(words, bucket);
        let room = fingerprints.iter().map(|&held| u64::from(held == 0)).sum();
        BucketLook { holds: fingerprints.contains(&fingerprint), room }
    }

    #[inline]
    fn read(&self, words: &[AtomicU64], bucket: u64) -> Content {
        let mut content = [0; MAX_SLOTS];
        content[..SLOTS as usize].copy_from_slice(&self.fingerprints(words, bucket));
        content
    }

    fn put(&self, lines: &mut Lines, bucket: u64, fingerprint: u32) {
        self.replace(lines, bucket, 0, fingerprint);
    }

    fn replace(&self, lines: &mut Lines, bucket: u64, from: u32, to: u32) {
        let mut fingerprints = self.fingerprints(lines.words(), bucket);
        if let Some(place) = fingerprints.iter_mut().find(|fingerprint| **fingerprint == from) {
            *place = to;
            self.write(lines.words_mut(), bucket, fingerprints);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    #[test]
    fn every_combination_has_its_own_number() {
        let mut next = 0;
        for d in 0..16_u16 {
            for c in 0..=d {
                for b in 0..=c {
                    for a in 0..=b {
                        let number: u16 = [a, b, c, d]
                            .iter()
                            .zip(&RANKS)
                            .map(|(&nibble, ranks)| ranks[nibble as usize])
                            .sum();
                        assert_eq!(number, next, "{a} {b} {c} {d}");
                        assert_eq!(NIBBLES[number as usize], a | b << 4 | c << 8 | d << 12);
                        next += 1;
                    }
                }
            }
        }
        assert_eq!(next as usize, COMBINATIONS);
    }

    #[test]
    fn semi_sorted_buckets_are_like_plain_vectors() {
        for width in 5..=32 {
            let sorted = SemiSorted::new(width);
            assert_eq!(sorted.bucket_bits(), u64::from(4 * width - 4), "one bit less for each of four");
            let mut lines = Lines::zeroed(5).unwrap();
            let buckets = (5 * 512 - 64) / sorted.bucket_bits();
            let mut truth = vec![Vec::<u32>::new(); buckets as usize];
            let mut rng = Rng::new(u64::from(width));
            let most = u64::from(u32::MAX >> (32 - width));
            for _ in 0..3_000 {
                let bucket = rng.below(buckets);
                let held = &mut truth[bucket as usize];
                let any = [1, most, 16, 1 + rng.below(most), 1 + rng.below(18)][rng.below(5) as usize] as u32;
                let look = sorted.look(lines.words(), bucket, any);
                assert_eq!(look.holds, held.contains(&any));
                assert_eq!(sorted.holds(lines.words(), bucket, any), held.contains(&any));
                assert_eq!(look.room, 4 - held.len() as u64);
                if let (Some(place), true) = (held.iter().position(|&it| it == any), rng.below(2) == 0) {
                    sorted.replace(&mut lines, bucket, any, 0);
                    held.swap_remove(place);
                } else if look.room > 0 {
                    sorted.put(&mut lines, bucket, any);
                    held.push(any);
                }
                for bucket in bucket.saturating_sub(1)..(bucket + 2).min(buckets) {
                    let mut content = sorted.read(lines.words(), bucket);
                    content.sort_unstable();
                    let mut held = truth[bucket as usize].clone();
                    held.sort_unstable();
                    assert_eq!(content[MAX_SLOTS - held.len()..], held[..], "{width} bits");
                    assert!(content[..MAX_SLOTS - held.len()].iter().all(|&it| it == 0));
                }
            }
        }
    }

    #[test]
    fn invalid_combination_numbers_do_no_harm() {
        let sorted = SemiSorted::new(12);
        let mut lines = Lines::zeroed(1).unwrap();
        lines.words_mut()[..7].fill(u64::MAX);
        for bucket in 0..10 {
            sorted.read(lines.words(), bucket);
            sorted.replace(&mut lines, bucket, 0xff0, 0);
        }
    }
}
