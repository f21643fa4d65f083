//! How many false positives a correct filter has: exact binomial tails, so that a failed test means a wrong filter and not bad luck.
//!
//! ```text
//!           alpha ◀─┐        ┌─▶ alpha
//!   ................ band band ................   false positives out of `trials`
//!                   └ trials × rate ┘
//! ```
//!
//! The probability of one count is Loader's saddle-point form, which avoids the cancellation of huge logarithms; a tail is that probability times a sum
//! of ratios. It is accurate to about ten digits for any number of trials up to [`MAX_TRIALS`].

use std::fmt;
use std::ops::RangeInclusive;

/// The smallest number of expected false positives; [`binomial_band`] rejects fewer, because they prove nothing.
pub const MIN_EXPECTED: f64 = 300.0;

/// The largest number of trials that was checked against other arithmetic.
pub const MAX_TRIALS: u64 = 1_000_000_000_000;

/// The range of the probability of being outside the band on one side.
const ALPHAS: RangeInclusive<f64> = 1e-100..=0.25;

/// Why no band could be given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BandError {
    /// A rate lies strictly between 0 and 1.
    RateOutOfRange {
        /// The given rate.
        got: f64,
    },
    /// The chance of a false alarm lies between 1e-100 and 0.25.
    AlphaOutOfRange {
        /// The given probability.
        got: f64,
    },
    /// The relative error of a model lies between 0 and 1, and 1 is excluded.
    ModelErrorOutOfRange {
        /// The given error.
        got: f64,
    },
    /// More trials than [`MAX_TRIALS`].
    TooManyTrials {
        /// The given number of trials.
        got: u64,
    },
    /// Fewer expected false positives than [`MIN_EXPECTED`]: query more non-members, or judge a higher rate of the same code.
    TooFewExpected {
        /// `trials × rate`.
        expected: f64,
    },
}

impl fmt::Display for BandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateOutOfRange { got } => write!(f, "rate must be between 0 and 1, got {got}"),
            Self::AlphaOutOfRange { got } => {
                write!(f, "alpha must be between {:e} and {}, got {got}", ALPHAS.start(), ALPHAS.end())
            }
            Self::ModelErrorOutOfRange { got } => {
                write!(f, "model error must be at least 0 and below 1, got {got}")
            }
            Self::TooManyTrials { got } => write!(f, "{got} trials are more than the limit of {MAX_TRIALS}"),
            Self::TooFewExpected { expected } => {
                write!(f, "{expected} false positives expected, at least {MIN_EXPECTED} are needed to judge")
            }
        }
    }
}

impl std::error::Error for BandError {}

/// Returns the range of false positives out of `trials` for a filter of true rate `rate`. The probability of a count below the band is at most
/// `alpha`, and so is that of a count above it. No narrower band has that property.
///
/// ```
/// use mayhap_testkit::binomial::binomial_band;
/// let promised = binomial_band(400_000, 0.01, 1e-6);
/// assert!(promised.contains(&4_000));
/// assert!(!promised.contains(&4_400), "a tenth too many is detected");
/// ```
///
/// # Panics
///
/// With the text of the [`BandError`] that [`try_binomial_band`] returns: fewer than [`MIN_EXPECTED`] false positives expected, or an argument out of
/// range.
#[must_use]
pub fn binomial_band(trials: u64, rate: f64, alpha: f64) -> RangeInclusive<u64> {
    try_binomial_band(trials, rate, alpha).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`binomial_band`], but returns an error instead of panicking.
///
/// # Errors
///
/// If fewer than [`MIN_EXPECTED`] false positives are expected, or an argument is out of range.
pub fn try_binomial_band(trials: u64, rate: f64, alpha: f64) -> Result<RangeInclusive<u64>, BandError> {
    let law = Law::new(trials, rate)?;
    if !ALPHAS.contains(&alpha) {
        return Err(BandError::AlphaOutOfRange { got: alpha });
    }
    if law.mean() < MIN_EXPECTED {
        return Err(BandError::TooFewExpected { expected: law.mean() });
    }
    // Above: the smallest count whose upper tail is at most alpha, and everything after it.
    // Below: the same computation for the complement.
    let above = law.first_above(alpha);
    let below = law.mirrored().first_above(alpha);
    Ok(trials + 1 - below..=above - 1)
}

/// Returns the band for a model with a relative error: from the lower end of the band at `rate × (1 - model_error)` to the upper end of the band at
/// `rate × (1 + model_error)`.
///
/// ```
/// use mayhap_testkit::binomial::{band_with_model_error, binomial_band};
/// let widened = band_with_model_error(400_000, 0.01, 1e-6, 0.02);
/// let exact = binomial_band(400_000, 0.01, 1e-6);
/// assert!(widened.start() < exact.start() && exact.end() < widened.end());
/// ```
///
/// # Panics
///
/// Like [`binomial_band`], of either band, and if `model_error` is negative or not below 1.
#[must_use]
pub fn band_with_model_error(trials: u64, rate: f64, alpha: f64, model_error: f64) -> RangeInclusive<u64> {
    try_band_with_model_error(trials, rate, alpha, model_error).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`band_with_model_error`], but returns an error instead of panicking.
///
/// # Errors
///
/// Like [`try_binomial_band`], of either band, and if `model_error` is negative or not below 1.
pub fn try_band_with_model_error(
    trials: u64,
    rate: f64,
    alpha: f64,
    model_error: f64,
) -> Result<RangeInclusive<u64>, BandError> {
    if !(0.0..1.0).contains(&model_error) {
        return Err(BandError::ModelErrorOutOfRange { got: model_error });
    }
    let low = try_binomial_band(trials, rate * (1.0 - model_error), alpha)?;
    let high = try_binomial_band(trials, rate * (1.0 + model_error), alpha)?;
    Ok(*low.start()..=*high.end())
}

/// Returns the probability that a filter of true rate `rate` has `observed` or fewer false positives out of `trials`.
///
/// ```
/// use mayhap_testkit::binomial::lower_tail;
/// assert_eq!(lower_tail(2, 0.5, 0), 0.25);
/// ```
///
/// # Panics
///
/// If `rate` is not between 0 and 1, or `trials` is above [`MAX_TRIALS`]. Any expected number is accepted here.
#[must_use]
pub fn lower_tail(trials: u64, rate: f64, observed: u64) -> f64 {
    let law = Law::new(trials, rate).unwrap_or_else(|error| panic!("{error}"));
    if observed >= trials { 1.0 } else { law.mirrored().upper_tail(trials - observed) }
}

/// Returns the probability that a filter of true rate `rate` has `observed` or more false positives out of `trials`.
///
/// ```
/// use mayhap_testkit::binomial::upper_tail;
/// assert_eq!(upper_tail(2, 0.5, 1), 0.75);
/// ```
///
/// # Panics
///
/// Like [`lower_tail`].
#[must_use]
pub fn upper_tail(trials: u64, rate: f64, observed: u64) -> f64 {
    Law::new(trials, rate).unwrap_or_else(|error| panic!("{error}")).upper_tail(observed)
}

/// Returns how many standard deviations `observed` is above (or, if negative, below) the expected number; for tables.
///
/// ```
/// use mayhap_testkit::binomial::deviations;
/// assert_eq!(deviations(400, 0.5, 210), 1.0);
/// ```
///
/// # Panics
///
/// Like [`lower_tail`].
#[must_use]
pub fn deviations(trials: u64, rate: f64, observed: u64) -> f64 {
    let law = Law::new(trials, rate).unwrap_or_else(|error| panic!("{error}"));
    (observed as f64 - law.mean()) / law.deviation()
}

/// The binomial distribution of `n` trials, each a hit with probability `p` and a miss with probability `q`.
#[derive(Clone, Copy)]
struct Law {
    n: u64,
    p: f64,
    q: f64,
}

impl Law {
    fn new(trials: u64, rate: f64) -> Result<Self, BandError> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(BandError::RateOutOfRange { got: rate });
        }
        if trials > MAX_TRIALS {
            return Err(BandError::TooManyTrials { got: trials });
        }
        Ok(Self { n: trials, p: rate, q: 1.0 - rate })
    }

    /// The same trials, counting misses.
    const fn mirrored(self) -> Self {
        Self { n: self.n, p: self.q, q: self.p }
    }

    fn mean(self) -> f64 {
        self.n as f64 * self.p
    }

    fn deviation(self) -> f64 {
        (self.mean() * self.q).sqrt()
    }

    /// P(at least `count` hits).
    fn upper_tail(self, count: u64) -> f64 {
        if count == 0 {
            1.0
        } else if count > self.n {
            0.0
        } else if count as f64 > self.mean() {
            (self.ln_exactly(count) + self.sum_from(count).ln()).exp()
        } else {
            // At or below the mean, sum the other tail: the first terms here would grow.
            let mirrored = self.mirrored();
            let others = self.n + 1 - count;
            1.0 - (mirrored.ln_exactly(others) + mirrored.sum_from(others).ln()).exp()
        }
    }

    /// The smallest count above the mean whose upper tail is at most `alpha`; `n + 1` if there is none.
    fn first_above(self, alpha: f64) -> u64 {
        let ln_tail = |count: u64| {
            if count > self.n {
                return (f64::NEG_INFINITY, 0.0);
            }
            let sum = self.sum_from(count);
            (self.ln_exactly(count) + sum.ln(), sum)
        };
        // The median is the mean rounded up or down, so the tail of any smaller count is about a half or more.
        let lowest = self.mean() as u64 + 1;
        let clamped = |count: f64| (count as u64).clamp(lowest.min(self.n), self.n);
        let mut count = clamped(self.mean() + (-2.0 * alpha.ln()).sqrt() * self.deviation());
        // Newton's method on the logarithm, which is concave with slope -1/sum, takes a few steps.
        for _ in 0..64 {
            let (tail, sum) = ln_tail(count);
            let next = clamped(count as f64 + (tail - alpha.ln()) * sum);
            if next == count {
                break;
            }
            count = next;
        }
        // The logarithm is not linear, so the last steps are linear search.
        while ln_tail(count).0 > alpha.ln() {
            count += 1;
        }
        while count > lowest && ln_tail(count - 1).0 <= alpha.ln() {
            count -= 1;
        }
        count
    }

    /// P(at least `count`) / P(exactly `count`), for a count above the mean, where the terms decrease.
    fn sum_from(self, count: u64) -> f64 {
        let odds = self.p / self.q;
        let (mut term, mut sum) = (1.0, 1.0);
        for hits in count..self.n {
            term *= (self.n - hits) as f64 / (hits + 1) as f64 * odds;
            sum += term;
            if term < sum * 1e-18 {
                break;
            }
        }
        sum
    }

    /// ln P(exactly `count` hits). C. Loader, "Fast and Accurate Computation of Binomial Probabilities".
    fn ln_exactly(self, count: u64) -> f64 {
        let (n, hits, misses) = (self.n as f64, count as f64, (self.n - count) as f64);
        if count == 0 {
            return n * (-self.p).ln_1p();
        }
        if count == self.n {
            return n * (-self.q).ln_1p();
        }
        stirling_error(self.n)
            - stirling_error(count)
            - stirling_error(self.n - count)
            - deviance(hits, n * self.p)
            - deviance(misses, n * self.q)
            + 0.5 * (n / (std::f64::consts::TAU * hits * misses)).ln()
    }
}

/// ln(n!) minus Stirling's approximation of it.
fn stirling_error(n: u64) -> f64 {
    if n < 16 {
        let factorial: u64 = (1..=n).product();
        let x = n as f64;
        let ln_x = if n == 0 { 0.0 } else { x.ln() };
        return (factorial as f64).ln() - (x + 0.5) * ln_x + x - 0.5 * std::f64::consts::TAU.ln();
    }
    let x = n as f64;
    let xx = x * x;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / xx) / xx) / xx) / xx) / x
}

/// `x ln(x / mean) + mean - x`, without cancellation if the two are close.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - difference;
    }
    let v = difference / (x + mean);
    let mut sum = difference * v;
    let mut term = 2.0 * x * v;
    for odd in (3..).step_by(2) {
        term *= v * v;
        let next = sum + term / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, relative: f64) -> bool {
        (got - want).abs() <= want.abs() * relative
    }

    /// Pascal's triangle in integers: P(k hits) = C(n, k) × a^k × (4 - a)^(n - k) / 4^n for a rate of a/4.
    fn exact_tails(n: u32, quarters: u128) -> Vec<(f64, f64)> {
        let mut weights = vec![1_u128];
        for _ in 0..n {
            let mut next = vec![0; weights.len() + 1];
            for (k, weight) in weights.iter().enumerate() {
                next[k] += weight * (4 - quarters);
                next[k + 1] += weight * quarters;
            }
            weights = next;
        }
        let whole = (4_u128.pow(n)) as f64;
        (0..weights.len())
            .map(|k| {
                let lower: u128 = weights[..=k].iter().sum();
                let upper: u128 = weights[k..].iter().sum();
                (lower as f64 / whole, upper as f64 / whole)
            })
            .collect()
    }

    #[test]
    fn small_tails_are_exact() {
        for n in (1..=20).chain([37, 60]) {
            for quarters in 1..=3 {
                let rate = quarters as f64 / 4.0;
                for (k, &(lower, upper)) in exact_tails(n, quarters).iter().enumerate() {
                    let (got_lower, got_upper) =
                        (lower_tail(n.into(), rate, k as u64), upper_tail(n.into(), rate, k as u64));
                    assert!(
                        close(got_lower, lower, 1e-12),
                        "P(X <= {k}) of {n} at {rate}: {got_lower} {lower}"
                    );
                    assert!(
                        close(got_upper, upper, 1e-12),
                        "P(X >= {k}) of {n} at {rate}: {got_upper} {upper}"
                    );
                }
            }
        }
    }

    /// Computed with 60-digit arithmetic, summed term by term: (trials, rate, count, P(X <= count), P(X >= count)).
    const KNOWN: &[(u64, f64, u64, f64, f64)] = &[
        (1000, 0.3, 213, 3.59843858201701e-10, 9.99999999775229e-1),
        (1000, 0.3, 285, 1.58502496457709e-1, 8.57762142134972e-1),
        (1000, 0.3, 300, 5.1559351981412e-1, 5.11927484007148e-1),
        (1000, 0.3, 343, 9.98501681066315e-1, 1.86142005973615e-3),
        (1000, 0.3, 372, 9.99999538276115e-1, 6.46474558130912e-7),
        (30000, 0.01, 196, 7.83214331819011e-11, 9.99999999949475e-1),
        (30000, 0.01, 282, 1.54840025796029e-1, 8.58836765220385e-1),
        (30000, 0.01, 300, 5.15348951087847e-1, 5.07793597897556e-1),
        (30000, 0.01, 351, 9.98241213237221e-1, 2.09565678284299e-3),
        (30000, 0.01, 386, 9.99999261792638e-1, 9.6292535237003e-7),
        (400000, 0.01, 3622, 5.52275156406096e-10, 9.99999999501648e-1),
        (400000, 0.01, 3937, 1.60314826281888e-1, 8.43546043918599e-1),
        (400000, 0.01, 4000, 5.04205139634369e-1, 5.0213433727233e-1),
        (400000, 0.01, 4188, 9.98535984951541e-1, 1.54047945522115e-3),
        (400000, 0.01, 4314, 9.99999604359491e-1, 4.28305257901945e-7),
        (10000000, 0.9, 8994307, 1.01421214425926e-9, 9.99999998992335e-1),
        (10000000, 0.9, 8999051, 1.58701990057503e-1, 8.41552912692372e-1),
        (10000000, 0.9, 9000000, 5.0015419143039e-1, 5.00266330621181e-1),
        (10000000, 0.9, 9002846, 9.98657179000981e-1, 1.34748149381562e-3),
        (10000000, 0.9, 9004743, 9.99999718460413e-1, 2.83086025874107e-7),
        (1000000000, 1e-06, 810, 2.95038468929791e-10, 9.99999999762215e-1),
        (1000000000, 1e-06, 968, 1.5959634190106e-1, 8.4804493067588e-1),
        (1000000000, 1e-06, 1000, 5.08409367168508e-1, 5.04205250487524e-1),
        (1000000000, 1e-06, 1094, 9.98402058080713e-1, 1.76393793949694e-3),
        (1000000000, 1e-06, 1158, 9.99999503434592e-1, 5.7841862087441e-7),
        (10000000000, 0.003, 29967185, 9.79634967694229e-10, 9.99999999021468e-1),
        (10000000000, 0.003, 29994530, 1.58633289006855e-1, 8.41410949636129e-1),
        (10000000000, 0.003, 30000000, 5.00048557762566e-1, 5.00024388300554e-1),
        (10000000000, 0.003, 30016407, 9.9864942452093e-1, 1.35138628323981e-3),
        (10000000000, 0.003, 30027345, 9.99999712397513e-1, 2.87875242536523e-7),
        (1000000000000, 1e-09, 810, 2.95043902577919e-10, 9.9999999976221e-1),
        (1000000000000, 1e-09, 968, 1.59596464039223e-1, 8.4804480875146e-1),
        (1000000000000, 1e-09, 1000, 5.08409367168505e-1, 5.04205244186524e-1),
        (1000000000000, 1e-09, 1094, 9.98402050286683e-1, 1.76394637545694e-3),
        (1000000000000, 1e-09, 1158, 9.99999503428132e-1, 5.78426054184609e-7),
        (1000000000000, 1e-05, 9981026, 9.75567926322696e-10, 9.99999999026332e-1),
        (1000000000000, 1e-05, 9996837, 1.58637028772097e-1, 8.41439479675663e-1),
        (1000000000000, 1e-05, 10000000, 5.00084104416224e-1, 5.00042052839614e-1),
        (1000000000000, 1e-05, 10009486, 9.98647832356076e-1, 1.35357149931691e-3),
        (1000000000000, 1e-05, 10015811, 9.99999711553397e-1, 2.88919709960457e-7),
    ];

    #[test]
    fn large_tails_match_60_digit_arithmetic() {
        for &(trials, rate, count, lower, upper) in KNOWN {
            let got = (lower_tail(trials, rate, count), upper_tail(trials, rate, count));
            // A rate is already rounded: at 10^12 trials its last bit alone moves a tail by 1e-9.
            let relative = if trials > 100_000_000_000 { 1e-8 } else { 1e-9 };
            assert!(
                close(got.0, lower, relative),
                "lower tail of {trials} {rate} {count}: {got:?} {lower:e}"
            );
            assert!(
                close(got.1, upper, relative),
                "upper tail of {trials} {rate} {count}: {got:?} {upper:e}"
            );
        }
    }

    #[test]
    fn a_band_is_the_narrowest_with_its_alpha() {
        for (trials, rate) in [
            (400, 0.9),
            (1_000, 0.5),
            (30_000, 0.01),
            (400_000, 0.01),
            (1_000_000_000_000, 1e-9),
            (1_000_000_000, 0.003),
            (100_000_000, 0.6),
            (303, 0.999),
        ] {
            for alpha in [0.25, 0.01, 1e-6, 1e-9, 1e-30] {
                let band = binomial_band(trials, rate, alpha);
                let (low, high) = (*band.start(), *band.end());
                let what = format!("{trials} trials at {rate}, alpha {alpha}: {band:?}");
                let near = alpha * (1.0 + 1e-9);
                assert!(
                    low == 0 || lower_tail(trials, rate, low - 1) <= near,
                    "below the band: tail too large: {what}"
                );
                assert!(
                    lower_tail(trials, rate, low) >= alpha / (1.0 + 1e-9),
                    "below the band: wider than needed: {what}"
                );
                assert!(high == trials || upper_tail(trials, rate, high + 1) <= near, "tail above: {what}");
                assert!(upper_tail(trials, rate, high) >= alpha / (1.0 + 1e-9), "too wide above: {what}");
            }
        }
    }

    #[test]
    fn the_largest_number_of_trials_is_exact_too() {
        let band = binomial_band(MAX_TRIALS, 0.5, 1e-6);
        let half = MAX_TRIALS / 2;
        assert_eq!(band.end() - half, half - band.start(), "symmetric at one half");
        let width = (band.end() - half) as f64 / 500_000.0;
        assert!((4.753..4.754).contains(&width), "one in a million is 4.7534 deviations, got {width}");
    }

    #[test]
    fn the_widened_band_consists_of_its_two_ends() {
        let band = |rate| binomial_band(400_000, rate, 1e-6);
        let widened = band_with_model_error(400_000, 0.01, 1e-6, 0.02);
        assert_eq!(widened, *band(0.01 * 0.98).start()..=*band(0.01 * 1.02).end());
        assert_eq!(band_with_model_error(400_000, 0.01, 1e-6, 0.0), band(0.01));
    }

    #[test]
    fn arguments_out_of_range_are_rejected() {
        let refusal = |trials, rate, alpha| try_binomial_band(trials, rate, alpha).unwrap_err();
        assert_eq!(refusal(29_900, 0.01, 1e-6), BandError::TooFewExpected { expected: 299.0 });
        assert!(try_binomial_band(30_000, 0.01, 1e-6).is_ok());
        for rate in [0.0, 1.0, -0.5, 1.5, f64::INFINITY] {
            assert_eq!(refusal(1_000_000, rate, 1e-6), BandError::RateOutOfRange { got: rate });
        }
        assert!(matches!(refusal(1_000_000, f64::NAN, 1e-6), BandError::RateOutOfRange { .. }));
        for alpha in [0.0, 1e-101, 0.3, 1.0] {
            assert_eq!(refusal(1_000_000, 0.5, alpha), BandError::AlphaOutOfRange { got: alpha });
        }
        assert!(matches!(refusal(1_000_000, 0.5, f64::NAN), BandError::AlphaOutOfRange { .. }));
        assert_eq!(refusal(MAX_TRIALS + 1, 0.5, 0.1), BandError::TooManyTrials { got: MAX_TRIALS + 1 });
        assert_eq!(
            try_band_with_model_error(1_000_000, 0.5, 0.1, 1.0),
            Err(BandError::ModelErrorOutOfRange { got: 1.0 })
        );
        assert_eq!(
            try_band_with_model_error(1_000_000, 0.7, 0.1, 0.5),
            Err(BandError::RateOutOfRange { got: 0.7 * 1.5 })
        );
    }

    #[test]
    #[should_panic(expected = "299 false positives expected, at least 300 are needed to judge")]
    fn the_panicking_form_gives_the_reason() {
        let _ = binomial_band(29_900, 0.01, 1e-6);
    }

    #[test]
    fn deviations_have_a_sign() {
        assert_eq!(deviations(400, 0.5, 190), -1.0);
    }
}
