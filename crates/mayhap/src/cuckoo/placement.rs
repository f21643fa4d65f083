//! From an [`ItemHash`] to two buckets and a fingerprint, and from either bucket to the other.
//!
//! ```text
//! low  ──▶ reduce ─────────────────────────▶ base bucket ──┐
//! high ──▶ reduce ─▶ tag ─▶ mix ─▶ odd number ─▶ minus ◀───┘ ──▶ the other base bucket
//!   └────▶ spare bits: some appended to the base bucket, the rest stored above the tag
//! ```
//!
//! A fingerprint consists of a tag, which never changes, and spare bits. The number of base buckets is even.
//! The two base buckets of an item add up to an odd number that depends on the tag alone. So each can be
//! computed from the other, and they are never the same: one is even, the other odd.
//!
//! **Doubling** splits every bucket in two, and the next spare bit chooses the half. In odd buckets a bit
//! derived from the tag may flip that choice. Otherwise doubling would cut the table into halves that cannot
//! exchange items: after ten doublings it would consist of a thousand small tables, and the fullest of them
//! would limit the capacity.

use crate::hash::{ItemHash, reduce};

/// The number of hash bits that can become spare bits: the low ones of `high`. Tags come from the high ones.
const SPARE_SOURCE_BITS: u32 = 32;

/// The rule that assigns buckets to items. Frozen as placement scheme 1 of both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Half the number of buckets before any doubling.
    base_half: u64,
    tag_bits: u32,
    /// The most doublings.
    spare_bits: u32,
    /// How often the table has doubled.
    doublings: u32,
}

/// The place of one item: its fingerprint and two buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BucketSpot {
    /// The stored value, never zero.
    pub(super) fingerprint: u32,
    pub(super) first: u64,
    /// Never the same bucket as `first`.
    pub(super) second: u64,
}

impl Placement {
    /// `base_buckets` must be even and not 0. `tag_bits` and `spare_bits` must add up to at most 32.
    pub(super) const fn new(base_buckets: u64, tag_bits: u32, spare_bits: u32, doublings: u32) -> Self {
        Self { base_half: base_buckets / 2, tag_bits, spare_bits, doublings }
    }

    pub(super) const fn buckets(&self) -> u64 {
        (self.base_half * 2) << self.doublings
    }

    /// Bits of a stored fingerprint.
    pub(super) const fn width(&self) -> u32 {
        self.tag_bits + self.spare_bits - self.doublings
    }

    #[inline(always)]
    pub(super) fn spot(&self, hash: ItemHash) -> BucketSpot {
        let tag = 1 + reduce(hash.high, (1 << self.tag_bits) - 1);
        let base = reduce(hash.low, self.base_half * 2);
        let mixed = mix(tag);
        let plain = BucketSpot { fingerprint: tag as u32, first: base, second: self.other_base(base, mixed) };
        if self.spare_bits == 0 { plain } else { self.spread(plain, mixed, hash.high & u64::from(u32::MAX)) }
    }

    /// Returns the spot after all doublings so far, from the spot before the first.
    #[inline(always)]
    const fn spread(&self, base: BucketSpot, mixed: u64, spare: u64) -> BucketSpot {
        let odd = (base.first & 1).wrapping_neg();
        let appended = self.moved(spare ^ (twist(mixed) & odd));
        let kept = spare >> (SPARE_SOURCE_BITS - self.spare_bits)
            & !(u64::MAX << (self.spare_bits - self.doublings));
        BucketSpot {
            fingerprint: base.fingerprint | (kept << self.tag_bits) as u32,
            first: base.first << self.doublings | appended,
            second: base.second << self.doublings | (appended ^ self.moved(twist(mixed))),
        }
    }

    /// Returns the other bucket of a fingerprint in `bucket`. Defined for every bucket and every fingerprint.
    #[inline(always)]
    pub(super) fn other(&self, bucket: u64, fingerprint: u32) -> u64 {
        let mixed = mix(u64::from(fingerprint) & !(u64::MAX << self.tag_bits));
        if self.doublings == 0 {
            return self.other_base(bucket, mixed);
        }
        let appended = bucket & !(u64::MAX << self.doublings);
        let base = self.other_base(bucket >> self.doublings, mixed);
        base << self.doublings | (appended ^ self.moved(twist(mixed)))
    }

    #[inline(always)]
    fn other_base(&self, base: u64, mixed: u64) -> u64 {
        let sum = reduce(mixed, self.base_half) * 2 + 1;
        let (difference, below) = sum.overflowing_sub(base);
        difference.wrapping_add((self.base_half * 2) & u64::from(below).wrapping_neg())
    }

    /// Returns the highest of 32 bits: as many as the table has doubled.
    #[inline(always)]
    const fn moved(&self, bits: u64) -> u64 {
        bits >> (SPARE_SOURCE_BITS - self.doublings)
    }

    /// Returns the placement after one more doubling.
    pub(super) const fn doubled(self) -> Self {
        Self { doublings: self.doublings + 1, ..self }
    }

    /// Returns the new bucket and the new stored value of a fingerprint in `bucket` when the table doubles.
    #[inline(always)]
    pub(super) fn split(&self, bucket: u64, fingerprint: u32) -> (u64, u32) {
        let top = self.width() - 1;
        let mixed = mix(u64::from(fingerprint) & !(u64::MAX << self.tag_bits));
        let odd = bucket >> self.doublings & 1;
        let flipped = self.doubled().moved(twist(mixed)) & odd;
        let half = u64::from(fingerprint >> top) ^ (flipped & 1);
        (bucket << 1 | half, fingerprint & !(u32::MAX << top))
    }
}

/// Mixes the tag well: neighbouring tags must not have neighbouring buckets.
#[inline(always)]
const fn mix(tag: u64) -> u64 {
    let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Returns the 32 bits by which the moved bits of an item differ between its two buckets.
#[inline(always)]
const fn twist(mixed: u64) -> u64 {
    mixed & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(count: u64) -> impl Iterator<Item = ItemHash> {
        (0..count).map(ItemHash::from_unmixed)
    }

    #[test]
    fn each_bucket_leads_to_the_other_and_they_differ() {
        for (base, tag_bits, spare_bits) in
            [(2, 4, 0), (4, 8, 3), (6, 5, 27), (1_000_002, 12, 4), (1 << 40, 32, 0)]
        {
            for doublings in 0..=spare_bits {
                let placement = Placement::new(base, tag_bits, spare_bits, doublings);
                for hash in hashes(2_000) {
                    let BucketSpot { fingerprint, first, second } = placement.spot(hash);
                    assert!(first < placement.buckets() && second < placement.buckets());
                    assert_ne!(first, second);
                    assert_eq!(placement.other(first, fingerprint), second);
                    assert_eq!(placement.other(second, fingerprint), first);
                    assert!(fingerprint != 0 && u64::from(fingerprint) >> placement.width() == 0);
                }
            }
        }
    }

    #[test]
    fn split_agrees_with_spot_in_the_doubled_table() {
        for (base, tag_bits, spare_bits) in [(2, 4, 28), (10, 7, 9), (1_000_002, 12, 4)] {
            for doublings in 0..spare_bits {
                let before = Placement::new(base, tag_bits, spare_bits, doublings);
                for hash in hashes(500) {
                    let (old, new) = (before.spot(hash), before.doubled().spot(hash));
                    for (old_bucket, new_bucket) in [(old.first, new.first), (old.second, new.second)] {
                        assert_eq!(before.split(old_bucket, old.fingerprint), (new_bucket, new.fingerprint));
                    }
                }
            }
        }
    }

    #[test]
    fn hostile_fingerprints_stay_inside_the_table() {
        let placement = Placement::new(6, 4, 8, 3);
        for bucket in 0..placement.buckets() {
            for fingerprint in [0, 1, 15, 16, 0xff, 0x1ff] {
                assert!(placement.other(bucket, fingerprint) < placement.buckets());
                assert!(placement.split(bucket, fingerprint).0 < placement.doubled().buckets());
            }
        }
    }

    #[test]
    fn placement_scheme_1_is_frozen() {
        let hash = ItemHash { low: 0x0123_4567_89ab_cdef, high: 0xfedc_ba98_7654_3210 };
        let plain = Placement::new(1_000_002, 12, 0, 0).spot(hash);
        assert_eq!(plain, BucketSpot { fingerprint: 4077, first: 4444, second: GOLDEN[0] });
        let grown = Placement::new(1_000_002, 12, 6, 4).spot(hash);
        assert_eq!(grown, BucketSpot { fingerprint: 4077 | 1 << 12, first: GOLDEN[1], second: GOLDEN[2] });
    }

    const GOLDEN: [u64; 3] = [166_749, 71_111, 2_667_990];
}
