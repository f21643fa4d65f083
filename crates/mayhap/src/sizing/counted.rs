//! The classic filter by its own count: it counts only items that changed a bit, and those are not average items.

use super::{AIM, classic};
use crate::probe::MAX_PROBES;

/// The rate of `m` bits and `k` probes after `n` items were *counted*, that is, changed a bit.
///
/// A filter does not count items for which it already answers *maybe*. The items it counts set more bits than the average
/// item. A filter sized for `n` items at 1 % has a rate 0.9 % higher than that after it counted `n`, and one sized for 30 %
/// has 37 %.
#[must_use]
pub fn expected_fpr(m: u64, k: u32, n: u64) -> f64 {
    classic::expected_fpr(m, k, offered_when_counted(m, k, n))
}

/// [`expected_fpr`] for callers that need it many times: see [`classic::quickly_expected_fpr`].
pub(crate) fn quickly_expected_fpr(m: u64, k: u32, n: u64) -> f64 {
    classic::quickly_expected_fpr(m, k, offered_when_counted(m, k, n))
}

/// The number of items, counted or not, that fill the filter as far as `n` counted ones. The classic model needs this number.
fn offered_when_counted(m: u64, k: u32, n: u64) -> u64 {
    let fill = fill_when_counted(k, n as f64 * f64::from(k) / m as f64);
    (-(-fill).ln_1p() * m as f64 / f64::from(k)).round() as u64
}

/// The number of items offered when `counted` of them changed a bit, for any filter whose rate with `n` items is `rate(n)`.
///
/// The next item is counted with probability `1 - rate`; the function adds this up until it reaches the count. A filter that
/// answers *maybe* to (almost) everything counts nothing more; the result is then a lower bound.
pub(crate) fn offered(counted: u64, rate: impl Fn(u64) -> f64) -> u64 {
    /// Steps of a 64th of the count are exact to a thousandth. Later they grow, because fewer items are counted.
    const STEPS: f64 = 64.0;
    let (mut offered, mut so_far, mut step) = (0.0, 0.0, counted as f64 / STEPS);
    loop {
        let share = 1.0 - rate((offered + step / 2.0) as u64);
        if share < 1e-6 {
            return offered as u64;
        }
        if so_far + share * step >= counted as f64 {
            return (offered + (counted as f64 - so_far) / share).round() as u64;
        }
        offered += step;
        so_far += share * step;
        if so_far > counted as f64 / 2.0 {
            step *= 1.05;
        }
    }
}

/// The number of `offered` items that changed a bit, for any filter whose rate with `n` items is `rate(n)`: the inverse of
/// [`offered`].
pub(crate) fn counted(offered: u64, rate: impl Fn(u64) -> f64) -> u64 {
    const STEPS: u64 = 64;
    let step = offered as f64 / STEPS as f64;
    let shares = (0..STEPS).map(|i| 1.0 - rate(((i as f64 + 0.5) * step) as u64));
    (shares.sum::<f64>() * step).round() as u64
}

/// The number of items counted when `ones` of `m` bits are set, with `k` probes per item.
///
/// The same as [`counted`] for [`classic::items_from_fill`], but without computing rates. They would take too long for a
/// small file that announces many probes.
pub(crate) fn from_fill(m: u64, k: u32, ones: u64) -> u64 {
    let fill = (ones as f64 / m as f64).min(1.0);
    (counted_load(k, fill) * m as f64 / f64::from(k)).round() as u64
}

/// The fewest bits, and the probes, that keep `rate` with `n` items counted: `(m, k)`. `m` is a multiple of 64.
#[must_use]
pub fn size(n: u64, rate: f64) -> (u64, u32) {
    let best = -rate.log2();
    let around = [best.floor(), best.ceil()].map(|k| (k as u32).clamp(1, MAX_PROBES));
    let sized = around.map(|k| {
        let fill = (rate * AIM).powf(1.0 / f64::from(k));
        let offered_per_counted = -(-fill).ln_1p() / counted_load(k, fill);
        (classic::bits_for((n as f64 * offered_per_counted).ceil() as u64, rate, k), k)
    });
    sized.into_iter().min().unwrap_or((64, 1))
}

/// The number of items counted, times `k / m`, when a share `fill` of the bits is set: `Σ fill^j / j` up to `k`.
///
/// With `x = kn/m` items offered the fill is `u = 1 - e^-x`, and one more item is counted with probability `1 - u^k`;
/// `∫ (1 - u^k) dx` is this sum. (The infinite sum would be the series of `-ln(1 - u) = x`, all items offered.)
fn counted_load(k: u32, fill: f64) -> f64 {
    let (mut power, mut sum) = (1.0, 0.0);
    for j in 1..=k {
        power *= fill;
        sum += power / f64::from(j);
        // All further terms together do not change the sum.
        if power < (1.0 - fill) * sum * f64::EPSILON {
            break;
        }
    }
    sum
}

/// The inverse of [`counted_load`]: the fill at which this load was counted.
fn fill_when_counted(k: u32, load: f64) -> f64 {
    /// A filter this full answers *maybe* to everything, whatever the formula gives.
    const FULL: f64 = 1.0 - 1e-12;
    // Newton's method on a convex sum: after the first step it approaches the root from above.
    if load >= counted_load(k, FULL) {
        return FULL;
    }
    let mut fill = (1.0 - (-load).exp()).min(FULL);
    for _ in 0..50 {
        let slope = (1.0 - fill.powi(k as i32)) / (1.0 - fill);
        let step = (counted_load(k, fill) - load) / slope;
        fill = (fill - step).clamp(0.0, FULL);
        if step.abs() <= 1e-14 {
            break;
        }
    }
    fill
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fill_is_the_inverse_of_the_count() {
        for k in [1, 2, 3, 7, 20, 50] {
            for fill in [0.0, 1e-9, 0.1, 0.5, 0.7, 0.95] {
                let found = fill_when_counted(k, counted_load(k, fill));
                assert!((found - fill).abs() < 1e-9, "k {k}: {found} for {fill}");
            }
        }
    }

    #[test]
    fn the_count_from_the_fill_agrees_with_that_from_the_rates() {
        for (m, k) in [(192, 2), (960, 7), (9_586, 7), (19_171, 14), (1_000_000, 3), (1_000_000, 30)] {
            for percent in [0, 1, 10, 50, 70, 90] {
                let ones = m * percent / 100;
                let offered = classic::items_from_fill(m, k, ones);
                let slowly = counted(offered, |items| classic::expected_fpr(m, k, items));
                let off = from_fill(m, k, ones).abs_diff(slowly) as f64;
                assert!(
                    off <= 1.0 + 0.02 * slowly as f64,
                    "{m} bits, {k} probes, {percent} %: {off} of {slowly}"
                );
            }
            // All bits are set, and the result is still finite.
            assert!(from_fill(m, k, m) <= m);
        }
        assert_eq!(from_fill(2_048, 255, 0), 0);
    }

    #[test]
    fn a_size_keeps_its_rate_and_is_the_smallest() {
        for rate in [0.9, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-6, 1e-12] {
            for n in [1, 2, 10, 100, 1_000, 1_000_000, 1 << 40] {
                let (m, k) = size(n, rate);
                assert!(expected_fpr(m, k, n) <= rate, "{n} items at {rate}: {}", expected_fpr(m, k, n));
                if n >= 1_000_000 {
                    assert!(
                        expected_fpr(m - m / 64, k, n) > rate,
                        "{n} items at {rate} take less than {m} bits"
                    );
                }
            }
        }
    }

    #[test]
    fn a_counted_item_sets_more_bits_than_the_average_item() {
        for (rate, counted_rate) in [(0.01, 0.01008), (0.3, 0.37)] {
            let (m, k) = classic::size(1_000_000, rate / AIM);
            let found = expected_fpr(m, k, 1_000_000);
            assert!((found / counted_rate - 1.0).abs() < 2e-3, "{found} for {counted_rate}");
        }
    }

    #[test]
    fn stepwise_and_closed_form_agree() {
        for (k, n) in [(1, 20_000), (4, 15_000), (7, 9_000), (7, 20_000)] {
            let closed = expected_fpr(1 << 16, k, n);
            let steps = classic::expected_fpr(
                1 << 16,
                k,
                offered(n, |items| classic::expected_fpr(1 << 16, k, items)),
            );
            assert!((steps / closed - 1.0).abs() < 5e-3, "k {k}, {n} counted: {steps} for {closed}");
        }
        assert_eq!(offered(0, |_| 0.0), 0);
        assert_eq!(offered(100, |_| 0.0), 100);
        assert_eq!(offered(100, |_| 1.0), 0);
        for n in [1_000, 5_000, 20_000] {
            let rate = |items| classic::expected_fpr(1 << 16, 4, items);
            let there_and_back = offered(counted(n, rate), rate);
            assert!((there_and_back as f64 / n as f64 - 1.0).abs() < 5e-3, "{there_and_back} for {n}");
        }
        assert!(expected_fpr(64, 7, 1 << 62) > 0.999, "far above capacity");
    }

    /// The model against a simulation: one bit per probe, only changes counted.
    #[test]
    fn counting_only_changes_fills_as_the_model_predicts() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for (k, n) in [(1, 40_000), (2, 30_000), (4, 20_000)] {
            let mut bits = vec![false; 1 << 16];
            let mut counted = 0;
            while counted < n {
                let positions: Vec<usize> = (0..k).map(|_| random() % bits.len()).collect();
                counted += u64::from(positions.iter().any(|&position| !bits[position]));
                positions.into_iter().for_each(|position| bits[position] = true);
            }
            let fill = bits.iter().filter(|&&bit| bit).count() as f64 / bits.len() as f64;
            let (model, naive) = (expected_fpr(1 << 16, k, n), classic::expected_fpr(1 << 16, k, n));
            let simulated = fill.powi(k as i32);
            assert!((model / simulated - 1.0).abs() < 0.02, "k {k}: {model} for {simulated}");
            assert!(naive / simulated < 0.95, "k {k}: the plain model, {naive}, would be good enough");
        }
    }
}
