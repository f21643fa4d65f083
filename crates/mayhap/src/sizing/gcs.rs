//! The Golomb–Rice coded set: `n` items are mapped to values below a range `r`, and the gaps between neighbours are encoded.
//!
//! A non-member has a value of the set with probability `d`, the share of the range that is taken. That share *is* the rate,
//! so everything here is a function of it: gaps are geometric, `P(gap = g) = d·(1-d)^g`.

/// The largest range. Values and their arithmetic stay in 64 bits.
pub const MAX_RANGE: u64 = 1 << 62;
/// The most low bits of a gap that are stored unchanged.
pub const MAX_REMAINDER_BITS: u32 = 56;
/// Items per bucket on average. The index has one entry per bucket, and a lookup decodes half a bucket.
///
/// An entry takes 18.3 bits, so 64 items cost 0.29 bits each. Fewer make lookups faster and the filter larger.
pub const ITEMS_PER_BUCKET: u64 = 64;

/// The smallest range in which `n` items have a rate of at most `p`. Not rounded: buckets round it.
#[must_use]
pub fn range(n: u64, p: f64) -> f64 {
    // 1 - (1 - 1/r)^n = p, without losing the precision of a small p.
    let taken_by_one = -((-p).ln_1p() / n as f64).exp_m1();
    (1.0 / taken_by_one).max(1.0)
}

/// The share of a range `r` that `n` items take, which is the false-positive rate.
#[must_use]
pub fn expected_fpr(r: u64, n: u64) -> f64 {
    if r <= 1 {
        return if n == 0 || r == 0 { 0.0 } else { 1.0 };
    }
    -(n as f64 * (-1.0 / r as f64).ln_1p()).exp_m1()
}

/// The average bits of an encoded gap, if a share `d` of the range is taken: the low `low` bits, and the rest in unary with its
/// end.
#[must_use]
pub fn code_bits(d: f64, low: u32) -> f64 {
    // The probability that a gap is at least 2^low; the number of such steps is geometric again.
    let step = (f64::from(low).exp2() * (-d.min(1.0)).ln_1p()).exp();
    f64::from(low) + 1.0 + step / (1.0 - step).max(f64::MIN_POSITIVE)
}

/// The number of low bits with the shortest code, if a share `d` of the range is taken.
#[must_use]
pub fn best_remainder_bits(d: f64) -> u32 {
    // The length has one minimum: if one more bit does not help, no further bit does.
    let longer = |low: u32| code_bits(d, low + 1) >= code_bits(d, low);
    (0..MAX_REMAINDER_BITS).find(|&low| longer(low)).unwrap_or(MAX_REMAINDER_BITS)
}

/// The share that corresponds to the gaps of a bucket: `k` values in `w` places leave `k + 1` gaps of `(w - k) / (k + 1)` places
/// each, and the last gap is not encoded. So codes are a little shorter than in one long stream.
#[must_use]
pub fn share_in_bucket(r: u64, n: u64, buckets: u64) -> f64 {
    let places = r as f64 / buckets as f64;
    ((expected_fpr(r, n) * places + 1.0) / (places + 1.0)).min(1.0)
}

/// The bits of all codes of `n` items in a range `r` with this number of buckets.
#[must_use]
pub fn stream_bits(r: u64, n: u64, buckets: u64, low: u32) -> f64 {
    expected_fpr(r, n) * r as f64 * code_bits(share_in_bucket(r, n, buckets), low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_the_smallest_that_keeps_the_rate() {
        for n in [1, 2, 10, 1_000, 1 << 30] {
            for p in [0.5, 0.1, 0.01, 1e-4, 1e-8] {
                let r = range(n, p);
                assert!(expected_fpr(r.ceil() as u64, n) <= p * (1.0 + 1e-9), "{n} {p}");
                assert!(r < 4.0 || expected_fpr((r * 0.999 - 1.0) as u64, n) > p, "{n} {p}");
            }
        }
        assert_eq!(expected_fpr(100, 0), 0.0);
        assert_eq!((expected_fpr(1, 5), expected_fpr(0, 5)), (1.0, 0.0));
    }

    /// The average over single gaps, for shares at which the sum covers all gaps that occur.
    #[test]
    fn code_lengths_are_those_of_geometric_gaps() {
        for d in [0.9_f64, 0.3, 0.05, 0.01] {
            for low in 0..8 {
                let length = |gap: u64| f64::from(low + 1) + (gap >> low) as f64;
                let plain: f64 = (0..10_000).map(|gap| d * (1.0 - d).powi(gap as i32) * length(gap)).sum();
                assert!((code_bits(d, low) / plain - 1.0).abs() < 1e-9, "{d} {low}");
            }
        }
    }

    #[test]
    fn the_best_code_is_an_eighth_of_a_bit_above_the_entropy_at_most() {
        // For shares below three in eight. A code has at least one bit, which is too many if most values are taken.
        for step in 14..480 {
            let d = (-f64::from(step) / 10.0).exp2();
            let low = best_remainder_bits(d);
            assert!((0..=MAX_REMAINDER_BITS).all(|other| code_bits(d, low) <= code_bits(d, other) + 1e-9));
            let entropy = -d.log2() - (1.0 - d) / d * (-d).ln_1p() / std::f64::consts::LN_2;
            let above = code_bits(d, low) - entropy;
            assert!((-1e-6..0.125).contains(&above), "{d}: {above}");
        }
        assert_eq!((best_remainder_bits(1.0 / 256.0), best_remainder_bits(0.9)), (7, 0));
    }
}
