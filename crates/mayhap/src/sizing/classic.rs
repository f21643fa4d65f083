//! The classic Bloom filter: `k` probes over all of `m` bits.

use super::{AIM, MIN_RATE};
use crate::error::BuildError;
use crate::probe::MAX_PROBES;

/// The rate of `m` bits and `k` probes with `n` items: `E[F^k]` for the fill `F` of `n·k` probes.
///
/// The textbook's `(1 - e^(-kn/m))^k` ignores that the fill varies. That is 0.2 % of the rate for a thousand items at 1e-6,
/// and 23 % for ten items.
#[must_use]
pub fn expected_fpr(m: u64, k: u32, n: u64) -> f64 {
    /// The exact sum matters for few bits. With many terms it would be lost in rounding errors.
    const MOST_BITS: f64 = 65_536.0;
    const LEAST: f64 = 1e-9;
    const MOST_FOLLOWED: f64 = 2048.0;
    if n == 0 {
        return 0.0;
    }
    let (m, balls) = (m as f64, n as f64 * f64::from(k));
    let rate = by_two_moments(m, k, balls);
    if m > MOST_BITS || rate == 0.0 {
        return rate;
    }
    if k <= MOST_PROBES {
        return if rate < LEAST { rate } else { exactly(m, k, balls) };
    }
    // Only filters of other programs have more probes than this.
    let few = k <= MAX_PROBES && m <= MOST_FOLLOWED && balls <= MOST_FOLLOWED;
    if few { ball_by_ball(m, k, balls as usize) } else { rate }
}

/// [`expected_fpr`] for callers that need it many times. For more than 24 probes it uses the mean and the variance of the
/// fill, which is within 4 % for up to 30 probes even in 512 bits.
pub(crate) fn quickly_expected_fpr(m: u64, k: u32, n: u64) -> f64 {
    if k <= MOST_PROBES || n == 0 {
        return expected_fpr(m, k, n);
    }
    by_two_moments(m as f64, k, n as f64 * f64::from(k))
}

/// The most probes that [`exactly`] is used for.
const MOST_PROBES: u32 = 24;

/// The probability that `k` probes find only set bits: the sum, over the number of different bits they hit, of the
/// probability that this many given bits are all set.
fn exactly(m: f64, k: u32, balls: f64) -> f64 {
    let k = k.min(MOST_PROBES) as usize;
    let different: [f64; MOST_PROBES as usize + 1] = different_bits(m, k);
    // By inclusion and exclusion, the probability that j given bits are all set is the j-th difference of
    // "i given bits are all clear".
    let mut differences: [f64; MOST_PROBES as usize + 1] =
        std::array::from_fn(|i| (balls * (-(i as f64) / m).max(-1.0).ln_1p()).exp());
    let mut rate = 0.0;
    for (j, chance) in different[..=k].iter().enumerate() {
        rate += chance * differences[0];
        for i in 0..k - j {
            differences[i] -= differences[i + 1];
        }
    }
    rate.clamp(0.0, 1.0)
}

/// The probability that `k` probes hit `j` different bits, for every `j` up to `k`, which is below `N`.
fn different_bits<const N: usize>(m: f64, k: usize) -> [f64; N] {
    let mut different = [0.0; N];
    different[0] = 1.0;
    for _ in 0..k {
        for j in (1..=k).rev() {
            let (stays, grows) = (j as f64 / m, 1.0 - (j as f64 - 1.0) / m);
            different[j] = different[j] * stays + different[j - 1] * grows.max(0.0);
        }
        different[0] = 0.0;
    }
    different
}

/// [`exactly`] for more probes: the probability that `j` given bits are all set, ball by ball. It subtracts no terms, so
/// nothing is lost to rounding, and takes `k` steps per ball. Following the number of set bits would take `m` steps per
/// ball; that is too slow for a loaded filter, which can have a thousand layers.
fn ball_by_ball(m: f64, k: u32, balls: usize) -> f64 {
    const N: usize = MAX_PROBES as usize + 1;
    let k = k.min(MAX_PROBES) as usize;
    let different: [f64; N] = different_bits(m, k);
    // The next ball hits one of j given bits.
    let hit: [f64; N] = std::array::from_fn(|j| (j as f64 / m).min(1.0));
    let mut all_set = [0.0; N];
    all_set[0] = 1.0;
    for _ in 0..balls {
        for j in (1..=k).rev() {
            // Either the last ball hit one of them and the others were set before, or all were set before.
            all_set[j] += hit[j] * (all_set[j - 1] - all_set[j]);
        }
    }
    let rate: f64 = different.iter().zip(&all_set).map(|(chance, set)| chance * set).sum();
    rate.clamp(0.0, 1.0)
}

/// `E[F^k]` from the exact distribution of the number of set bits, ball by ball: the reference for the other functions.
#[cfg(test)]
fn followed(m: usize, k: u32, balls: usize) -> f64 {
    let mut set = vec![0.0; m.min(balls) + 1];
    set[0] = 1.0;
    for thrown in 1..=balls {
        for count in (1..set.len().min(thrown + 1)).rev() {
            let (stays, grows) = (count as f64 / m as f64, 1.0 - (count as f64 - 1.0) / m as f64);
            set[count] = set[count] * stays + set[count - 1] * grows;
        }
        set[0] = 0.0;
    }
    let wrong = |count: usize| (count as f64 / m as f64).powi(k as i32);
    set.iter().enumerate().map(|(count, chance)| chance * wrong(count)).sum()
}

/// `E[F^k]` from the mean and the variance of the fill: precise enough for many bits, also at very small rates.
fn by_two_moments(m: f64, k: u32, balls: f64) -> f64 {
    let empty = (balls * (-1.0 / m).max(-1.0).ln_1p()).exp();
    let both_empty = if m > 2.0 { (balls * (-2.0 / m).ln_1p()).exp() } else { 0.0 };
    let fill = 1.0 - empty;
    let variance = (empty / m + (1.0 - 1.0 / m) * both_empty - empty * empty).max(0.0);
    let pairs = f64::from(k) * (f64::from(k) - 1.0) / 2.0;
    (fill.powi(k as i32) + pairs * fill.powi(k as i32 - 2) * variance).min(1.0)
}

/// The fewest bits, and the probes, that keep `rate` with `n` items: `(m, k)`.
///
/// `m` is a multiple of 64. There is no upper limit here; the result may be more memory than any machine has.
#[must_use]
pub fn size(n: u64, rate: f64) -> (u64, u32) {
    let best = -rate.log2();
    let around = [best.floor(), best.ceil()].map(|k| (k as u32).clamp(1, MAX_PROBES));
    around.map(|k| (bits_for(n, rate, k), k)).into_iter().min().unwrap_or((64, 1))
}

/// The fewest bits that keep `rate` with `n` items and `k` probes, as a multiple of 64.
#[must_use]
pub fn bits_for(n: u64, rate: f64, k: u32) -> u64 {
    let goal = rate * AIM;
    // Start from the textbook value, which is always close; then find the exact boundary by bisection.
    let fill = goal.powf(1.0 / f64::from(k));
    let textbook = n as f64 * f64::from(k) / -(-fill).ln_1p();
    super::fewest((textbook / 64.0) as u64, |words| expected_fpr(words.saturating_mul(64), k, n) <= goal)
        .saturating_mul(64)
}

/// The best number of probes for `n` items in `m` bits.
#[must_use]
pub fn best_probes(m: u64, n: u64) -> u32 {
    let exact = m as f64 / n.max(1) as f64 * std::f64::consts::LN_2;
    let around = [exact.floor(), exact.ceil()].map(|k| k.clamp(1.0, f64::from(MAX_PROBES)) as u32);
    if expected_fpr(m, around[0], n) <= expected_fpr(m, around[1], n) { around[0] } else { around[1] }
}

/// The upper limit of estimates: "very many".
const MAX_ESTIMATE: u64 = 1 << 52;

/// The rate that `k` probes in `m` bits of `bytes` bytes promise for `n` items.
pub(crate) fn rate_in_memory(bytes: u64, m: u64, k: u32, n: u64) -> Result<f64, BuildError> {
    let rate = expected_fpr(m, k, n).max(MIN_RATE);
    if rate < 1.0 { Ok(rate) } else { Err(BuildError::TooSmall { bytes, capacity: n }) }
}

/// The probable number of items inserted, if `ones` of `m` bits are set with `k` probes per item.
#[must_use]
pub fn items_from_fill(m: u64, k: u32, ones: u64) -> u64 {
    if ones == 0 {
        return 0;
    }
    // A full filter only tells "very many": count it as if one bit were still clear.
    let ones = ones.min(m.saturating_sub(1).max(1)) as f64;
    let estimate = -(-ones / m as f64).ln_1p() * m as f64 / f64::from(k);
    (estimate.round() as u64).min(MAX_ESTIMATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_for_few_bits_and_for_many() {
        for (m, k, n) in [
            (1, 1, 1),
            (2, 3, 1),
            (64, 1, 40),
            (64, 7, 6),
            (128, 8, 8),
            (512, 6, 50),
            (512, 16, 40),
            (700, 20, 24),
            (1, 64, 3),
            (30, 64, 5),
            (64, 25, 1),
            (64, 64, 20),
            (1_024, 43, 20),
            (2_048, 64, 32),
        ] {
            let (followed, found) = (followed(m, k, k as usize * n as usize), expected_fpr(m as u64, k, n));
            assert!(
                (found / followed - 1.0).abs() < 1e-6,
                "{m} bits, {k} probes, {n} items: {found} for {followed}"
            );
        }
        // With many bits both ways agree, and they are the textbook's rate.
        for (k, n) in [(1, 700_000), (7, 104_000), (13, 53_000), (20, 34_000)] {
            let (exact, moments) =
                (exactly(1e6, k, f64::from(k) * n as f64), by_two_moments(1e6, k, f64::from(k) * n as f64));
            let textbook = (1.0 - (-f64::from(k) * n as f64 / 1e6).exp()).powi(k as i32);
            assert!((exact / moments - 1.0).abs() < 1e-5, "{exact} and {moments}");
            assert!((exact / textbook - 1.0).abs() < 1e-3, "{exact} and {textbook}");
        }
    }

    #[test]
    fn rates_are_valid_for_extreme_inputs() {
        assert_eq!(expected_fpr(64, 7, 0), 0.0);
        for n in [1, 4, 8, 12, 20, 40] {
            let (exact, quick) = (expected_fpr(512, 30, n), quickly_expected_fpr(512, 30, n));
            assert!((quick / exact - 1.0).abs() < 0.04, "{n} items: {quick} for {exact}");
            assert_eq!(expected_fpr(512, 24, n), quickly_expected_fpr(512, 24, n));
        }
        assert_eq!(quickly_expected_fpr(512, 30, 0), 0.0);
        assert_eq!(expected_fpr(1, 1, 1), 1.0);
        assert!(expected_fpr(64, 7, 1_000_000) > 0.999_999);
        assert!(expected_fpr(1 << 40, 7, 1) < 1e-70);
        assert!(expected_fpr(1 << 49, 64, 1 << 42) < 1e-10);
    }

    /// A loaded filter can have a thousand layers of any shape, and one answer needs the rates of all of them.
    #[test]
    fn the_rate_of_any_shape_is_computed_quickly() {
        let begun = std::time::Instant::now();
        for k in [25, 30, 43, 64, 65, 255, 1_075] {
            for n in 1..=2_048 / u64::from(k) + 1 {
                for m in [64, 512, 2_048, 2_112] {
                    assert!((0.0..=1.0).contains(&expected_fpr(m, k, n)));
                }
            }
        }
        // Some 900 rates.
        assert!(begun.elapsed() < std::time::Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_size_is_the_smallest_that_keeps_the_rate() {
        for n in [1, 2, 10, 1_000, 1_000_000, 1 << 42] {
            for rate in [0.999, 0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9, 1e-15] {
                let (m, k) = size(n, rate);
                assert!(expected_fpr(m, k, n) <= rate, "{n} items at {rate}: {m} bits, {k} probes");
                assert!(
                    m == 64 || expected_fpr(m - 64, k, n) > rate * AIM,
                    "{n} items at {rate}: {m} bits, {k} probes"
                );
                // Never much more than the textbook's 1.44 log2(1/p), except for rounding to whole words.
                let textbook = n as f64 * -rate.log2() * std::f64::consts::LOG2_E;
                assert!(
                    m as f64 <= textbook * 1.12 + 128.0 || rate > 0.9,
                    "{n} items at {rate}: {m} for {textbook}"
                );
            }
        }
    }

    #[test]
    fn the_fill_gives_the_number_of_items() {
        assert_eq!(items_from_fill(1_000, 7, 0), 0);
        assert!((items_from_fill(9_600_000, 7, 4_963_000) as i64 - 1_000_000).abs() < 3_000);
        assert!(items_from_fill(64, 1, 64) > 200, "full: very many");
    }
}
