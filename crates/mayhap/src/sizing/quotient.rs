//! The quotient filter: `n` items, `h` homes with a slot each, remainders of `r` bits.

/// The fewest bits of a remainder: a counter needs one for its digits and one to mark that more follow.
pub const MIN_REMAINDER_BITS: u32 = 2;
/// The most bits of a remainder.
pub const MAX_REMAINDER_BITS: u32 = 58;

/// The most slots that may be in use in a table of `h` homes: 95 %. Above that, runs get long and everything slows down.
#[must_use]
pub const fn max_slots(h: u64) -> u64 {
    (h as u128 * 19 / 20) as u64
}

/// The rate with `n` different items.
///
/// A fingerprint is one of `h · 2^r`, all equally likely. A non-member is a false positive if one of the `n` items has its
/// fingerprint: if its home holds items (Poisson with mean `n/h`) and one of them has the same remainder.
#[must_use]
pub fn expected_fpr(h: u64, r: u32, n: u64) -> f64 {
    -f64::exp_m1(-(n as f64 / fingerprints(h, r)))
}

/// The estimated number of different items if there are `d` different fingerprints.
#[must_use]
pub fn items_from_fingerprints(h: u64, r: u32, d: u64) -> u64 {
    let all = fingerprints(h, r);
    (-all * f64::ln_1p(-(d as f64 / all).min(1.0))).min(super::MAX_CAPACITY as f64 * 64.0).round() as u64
}

/// The number of possible fingerprints, as a number that may be larger than any integer type.
fn fingerprints(h: u64, r: u32) -> f64 {
    h as f64 * f64::powi(2.0, r as i32)
}

/// The slots that `n` different items may take. One each, or fewer: items that share a fingerprint share a counter. Only three
/// items with remainder 0 take four slots, so there is room for as many of those as expected, and for six standard deviations
/// more.
fn slots_needed(h: u64, r: u32, n: u64) -> u64 {
    let mean = n as f64 / fingerprints(h, r);
    let triples = h as f64 * mean.powi(3) / 6.0;
    n + (triples + 6.0 * triples.sqrt()).ceil() as u64 + 2
}

/// The fewest homes with room for `n` different items and a rate of at most `p`.
fn homes_for(r: u32, n: u64, p: f64) -> u64 {
    let by_rate = n as f64 / (-f64::ln_1p(-p) * f64::powi(2.0, r as i32));
    let guess = (n as f64 / 0.95).max(by_rate) as u64;
    super::fewest(guess, |h| max_slots(h) >= slots_needed(h, r, n) && expected_fpr(h, r, n) <= p)
}

/// The homes and remainder bits of the smallest filter for `n` different items at rate `p`.
///
/// One more bit of remainder halves the rate, so for a rate between two powers of two a table that is not quite full may be
/// smaller.
#[must_use]
pub fn size(n: u64, p: f64) -> (u64, u32) {
    let p = p * super::AIM;
    let enough = (0.95 / -f64::ln_1p(-p)).log2().ceil();
    let most = (enough as u32 + 1).clamp(MIN_REMAINDER_BITS, MAX_REMAINDER_BITS);
    let least = most.saturating_sub(2).max(MIN_REMAINDER_BITS);
    let sizes = (least..=most).map(|r| (homes_for(r, n, p), r));
    // Finding a slot costs a little more than two bits per slot.
    let price = |&(h, r): &(u64, u32)| u128::from(h) * (128 + 60 * u128::from(r));
    sizes.min_by_key(price).unwrap_or((super::MAX_BITS, MAX_REMAINDER_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_chance_that_any_item_has_the_same_fingerprint() {
        for (h, r, n) in [(10, 2, 9), (100, 7, 95), (1_000, 3, 900), (7, 4, 1)] {
            let all = (h << r) as f64;
            let exact = 1.0 - (1.0 - 1.0 / all).powi(n as i32);
            let model = expected_fpr(h, r, n);
            assert!((model / exact - 1.0).abs() < 0.02, "{h} {r} {n}: {model} for {exact}");
        }
        assert_eq!(expected_fpr(10, 58, 0), 0.0);
        assert!(expected_fpr(1 << 40, 58, 1 << 40) > 0.0, "no digits are lost near zero");
    }

    #[test]
    fn sizes_keep_the_rate_and_are_the_smallest() {
        for n in [1, 2, 10, 1_000, 1_000_000, 123_456_789] {
            for p in [0.5, 0.1, 0.01, 0.0074, 0.001, 1e-6, 1e-12] {
                let (h, r) = size(n, p);
                assert!(expected_fpr(h, r, n) <= p * super::super::AIM, "{n} {p}");
                assert!(slots_needed(h, r, n) <= max_slots(h) && n + 2 <= slots_needed(h, r, n), "{n} {p}");
                assert!(
                    slots_needed(h - 1, r, n) > max_slots(h - 1)
                        || expected_fpr(h - 1, r, n) > p * super::super::AIM,
                    "{n} {p}"
                );
                // The room for three rare items with one fingerprint is negligible.
                assert!(n < 100_000 || p > 0.2 || slots_needed(h, r, n) - n < 3 + n / 1_000, "{n} {p}");
            }
        }
    }

    #[test]
    fn between_two_powers_of_two_the_smaller_table_is_chosen() {
        // 0.95 · 2^-7 is 0.74 %: with seven bits a table may be full.
        let (full, r) = size(1_000_000, 0.01);
        assert_eq!((r, full / 10_000), (7, 105));
        // 0.7 % takes seven bits and 90 % load, not eight bits.
        let (h, r) = size(1_000_000, 0.007);
        assert_eq!(r, 7);
        assert!((0.89..0.91).contains(&(1e6 / h as f64)), "{h}");
        // 0.5 % with seven bits would be 64 % load: eight bits are smaller.
        assert_eq!(size(1_000_000, 0.005).1, 8);
    }

    #[test]
    fn items_are_estimated_from_their_fingerprints() {
        for (h, r, n) in [(1_000, 2, 900), (1_000, 7, 900), (1_000_000, 20, 950_000)] {
            let different = fingerprints(h, r) * expected_fpr(h, r, n);
            let items = items_from_fingerprints(h, r, different.round() as u64);
            assert!(items.abs_diff(n) <= 1 + n / 1_000, "{items} for {n}");
        }
        assert_eq!(items_from_fingerprints(10, 2, 0), 0);
        assert!(items_from_fingerprints(10, 2, 40) > 1 << 40, "no upper end");
    }
}
