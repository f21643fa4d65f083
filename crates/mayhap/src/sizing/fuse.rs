//! Static filters with three slots per item, xor and binary fuse: the slots that `n` items need, and the rates.
//!
//! An xor filter is smaller than a binary fuse filter of 56 to about 16,000 items, because the latter rounds up to whole
//! segments. Up to about 53,000 items it depends on the rounding; beyond that the binary fuse filter is smaller.

/// Slots per item of a large binary fuse filter. With fewer than about 9 / 8 building fails; more would waste memory.
pub const FUSE_SLOTS_PER_ITEM: f64 = 1.125;
/// Slots per item of an xor filter.
pub const XOR_SLOTS_PER_ITEM: f64 = 1.23;
/// Additional slots of an xor filter, so that small ones can be built too.
pub const XOR_SPARE_SLOTS: u64 = 32;
/// The longest segment of a binary fuse filter is `2^18` slots.
pub const MAX_SEGMENT_BITS: u32 = 18;
/// The possible widths of a fingerprint in bits, narrowest first.
pub const FINGERPRINT_BITS: [u32; 3] = [8, 16, 32];

/// The default for the most items in a shard. It is large enough that sharding costs less than 0.3 % of the memory, and
/// small enough that the working memory of a shard is a small part of a large set.
pub const ITEMS_PER_SHARD: u64 = 1 << 22;

/// The base-2 logarithm of the segment length for `n` items. Short segments can be built more often, long
/// ones need fewer slots. Fitted by Graf and Lemire.
#[must_use]
pub fn segment_bits(n: u64) -> u32 {
    let fitted = (n.max(1) as f64).ln() / 3.33_f64.ln() + 2.25;
    (fitted.floor() as u32).min(MAX_SEGMENT_BITS)
}

/// The slots per item that a binary fuse filter of `n` items needs: more for small sets, 9 / 8 from a million items on.
#[must_use]
pub fn fuse_slots_per_item(n: u64) -> f64 {
    let n = n.max(2) as f64;
    FUSE_SLOTS_PER_ITEM.max(0.875 + 0.25 * 1e6_f64.ln() / n.ln())
}

/// The segments an item may begin in, for a binary fuse filter of `n` items. There are two more, in which no item begins.
#[must_use]
pub fn fuse_segments(n: u64) -> u64 {
    if n < 2 {
        return 1;
    }
    let slots = (n as f64 * fuse_slots_per_item(n)).round() as u64;
    slots.div_ceil(1 << segment_bits(n)).saturating_sub(2).max(1)
}

/// The length of each of the three blocks of an xor filter of `n` items.
#[must_use]
pub fn xor_block(n: u64) -> u64 {
    let slots = (n as f64 * XOR_SLOTS_PER_ITEM).ceil() as u64 + XOR_SPARE_SLOTS;
    slots.div_ceil(3)
}

/// The base-2 logarithm of the number of shards for `n` items, with at most about `per_shard` in each.
#[must_use]
pub fn shard_bits(n: u64, per_shard: u64) -> u32 {
    n.div_ceil(per_shard.max(1)).max(1).next_power_of_two().trailing_zeros()
}

/// The expected number of items in the fullest of `2^bits` shards, out of `n`: the average and some deviations.
#[must_use]
pub fn fullest_shard(n: u64, bits: u32) -> u64 {
    if bits == 0 {
        return n;
    }
    let shards = 2_f64.powi(bits as i32);
    let average = n as f64 / shards;
    let deviations = (2.0 * shards.ln()).sqrt() + 1.0;
    (average + deviations * average.sqrt()).ceil().min(n as f64) as u64
}

/// The rate of `bits`-bit fingerprints.
#[must_use]
pub fn rate(bits: u32) -> f64 {
    // Computed exactly, on every machine: the rate is stored in files and compared. The precision of `powi` is unspecified.
    1.0 / (1_u128 << bits.min(127)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_items_take_nine_bits_each_and_a_few_take_more() {
        let bits = |n: u64| ((fuse_segments(n) + 2) << segment_bits(n)) as f64 * 8.0 / n as f64;
        assert!(bits(1_000_000) < 9.05 && bits(10_000_000) < 9.05);
        assert!(bits(1_000) > 10.0 && bits(1_000) < 13.0, "{}", bits(1_000));
        assert_eq!((fuse_segments(0), fuse_segments(1), fuse_segments(2)), (1, 1, 1));
        assert!((3 * xor_block(1_000_000)) as f64 / 1e6 < 1.2301);
    }

    /// The figures that the docs of [`Xor`](crate::Xor) and of this module give.
    #[test]
    fn an_xor_filter_is_smaller_than_a_binary_fuse_filter_of_up_to_16_000_items() {
        let fuse_is_smaller = |n: u64| (fuse_segments(n) + 2) << segment_bits(n) < 3 * xor_block(n);
        assert!(fuse_is_smaller(55) && !(56..16_623).any(fuse_is_smaller));
        assert!(fuse_is_smaller(16_623) && !fuse_is_smaller(53_254));
        assert!((53_255..200_000).all(fuse_is_smaller));
    }

    #[test]
    fn shards_are_as_few_as_possible() {
        assert_eq!([0, 1, 100, 101, 200, 201, 401].map(|n| shard_bits(n, 100)), [0, 0, 0, 1, 1, 2, 3]);
        assert_eq!(fullest_shard(12_345, 0), 12_345);
        let fullest = fullest_shard(10_000_000, 2) as f64;
        assert!(fullest > 2_500_000.0 && fullest < 2_500_000.0 * 1.003, "{fullest}");
        assert_eq!(fullest_shard(1, 3), 1);
    }
}
