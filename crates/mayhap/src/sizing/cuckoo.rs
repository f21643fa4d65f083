//! Cuckoo filters: `m` buckets of `b` slots, fingerprints of `f` bits. `v = 2^f - 1` values are used: 0 is a free slot.

/// The numbers of slots a bucket can have.
pub const BUCKET_SIZES: [u32; 4] = [1, 2, 4, 8];
/// The fewest bits a fingerprint can have.
pub const MIN_FINGERPRINT_BITS: u32 = 4;
/// The most bits a fingerprint can have.
pub const MAX_FINGERPRINT_BITS: u32 = 32;
/// The lowest rate a cuckoo filter can promise: fingerprints of 32 bits in buckets of 2.
pub const MIN_CUCKOO_RATE: f64 = 1e-9;

/// How often a filter sized here may reject an ordinary item below its capacity, by the model of [`crowded_pairs`].
pub const UNLUCKY: f64 = 1e-9;

/// The number of different fingerprints of `f` bits.
#[must_use]
pub const fn fingerprint_values(f: u32) -> u64 {
    (1 << f) - 1
}

/// The rate with `n` different items. A non-member is a false positive exactly if an item has its fingerprint, one of `v`, and
/// has one of its two buckets of `m` as the first.
///
/// This is close to `2·b·load / v`, and exact: it does not matter where evictions put the items.
#[must_use]
pub fn expected_fpr(m: u64, v: u64, n: u64) -> f64 {
    let alike = (2.0 / (m as f64 * v as f64)).min(1.0);
    -(n as f64 * (-alike).ln_1p()).exp_m1()
}

/// The expected number of bucket pairs that are the two buckets of more than `2·b` of `n` items. With one such pair the filter
/// must reject an item, however much room there is elsewhere.
///
/// There are `m²/4` pairs of an even and an odd bucket, but a bucket has at most one partner per fingerprint. So larger tables
/// need longer fingerprints, whatever the rate.
#[must_use]
pub fn crowded_pairs(m: u64, b: u32, v: u64, n: u64) -> f64 {
    let half = m as f64 / 2.0;
    // Two fingerprints have the same partner for a bucket if they are equal, or by chance.
    let partners = 1.0 / (1.0 / v as f64 + (1.0 - 1.0 / v as f64) / half);
    let too_many = 2 * b + 1;
    if n < u64::from(too_many) {
        return 0.0;
    }
    let ways: f64 = (0..too_many).map(|i| ((n as f64 - f64::from(i)) / f64::from(i + 1)).ln()).sum();
    (ways - f64::from(too_many - 1) * (half * partners).ln()).exp()
}

/// The number of items that `m` buckets of `b` slots hold, not considering crowded pairs.
///
/// The average share of slots at which a table is full depends on `b`, with a deviation in proportion to the root of the number
/// of slots. Both were measured by filling tables of 4 to a million buckets until they rejected an item. Small tables stay 6.5
/// deviations below. In large ones the search for a free slot gets long before that, so they stop where it is still short.
#[must_use]
pub fn safe_items(m: u64, b: u32) -> u64 {
    if m == 2 {
        // Every item has both buckets.
        return 2 * u64::from(b);
    }
    let (most, mean, deviation) = match b {
        1 => (0.45, 0.50, 0.60),
        2 => (0.84, 0.8975, 0.45),
        4 => (0.955, 0.9805, 0.20),
        _ => (0.985, 0.998, 0.07),
    };
    let places = m as f64 * f64::from(b);
    let safe = (places * mean - 6.5 * deviation * places.sqrt()).min(places * most);
    safe.max(2.0 * f64::from(b)) as u64
}

/// Do `n` items always fit in `m` buckets of `b` slots with `v` fingerprints?
#[must_use]
pub fn fits(m: u64, b: u32, v: u64, n: u64) -> bool {
    n <= safe_items(m, b) && crowded_pairs(m, b, v, n) <= UNLUCKY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_close_to_the_usual_formula_and_never_above_one() {
        // 95 % of 4-slot buckets, 12 bits: 1 - (1 - 2^-12)^7.6 by the usual formula.
        let usual = 1.0 - (1.0 - 1.0 / 4096.0_f64).powf(7.6);
        let rate = expected_fpr(250_000, fingerprint_values(12), 950_000);
        assert!((rate / usual - 1.0).abs() < 0.001, "{rate} {usual}");
        // 4 bits: 15 values, not 16, and the exact one.
        assert!((expected_fpr(250_000, 15, 950_000) - (1.0 - (-7.6_f64 / 15.0).exp())).abs() < 1e-6);
        assert_eq!(expected_fpr(2, 15, 0), 0.0);
        assert!(expected_fpr(2, 15, u64::MAX) <= 1.0);
    }

    #[test]
    fn crowded_pairs_are_counted_like_balls_in_bins() {
        assert_eq!(crowded_pairs(2, 4, 1 << 20, 8), 0.0, "everything fits in both");
        // Four buckets, four pairs, nine items on one of them: 4 · 4^-9, without fingerprints.
        let crowded = crowded_pairs(4, 4, u64::MAX, 9);
        assert!((crowded / 4.0_f64.powi(-8) - 1.0).abs() < 1e-9, "{crowded}");
        // Short fingerprints cause crowded pairs in large tables, longer ones do not.
        assert!(crowded_pairs(1_000_000, 4, 15, 3_800_000) > 0.01);
        assert!(crowded_pairs(1_000_000, 4, 1023, 3_800_000) < UNLUCKY);
    }

    #[test]
    fn large_tables_are_filled_to_95_percent_and_small_ones_less() {
        assert_eq!(safe_items(2, 4), 8);
        assert!(safe_items(250_000, 4) >= 950_000);
        assert!(safe_items(125_000, 8) >= 980_000);
        for b in BUCKET_SIZES {
            for m in (2..2_000).step_by(2) {
                let places = m * u64::from(b);
                assert!(safe_items(m, b) <= places && safe_items(m, b) <= safe_items(m + 2, b), "{m} of {b}");
            }
        }
    }
}
