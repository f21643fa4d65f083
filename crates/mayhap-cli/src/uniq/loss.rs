//! Estimates how many lines were dropped by mistake. The number is unknown, but the probability for each line is known.

/// The confidence of [`Loss::at_most`].
pub(super) const CONFIDENCE: f64 = 0.999;
/// The rates come from a model that is accurate to a few per cent.
const MODEL_ERROR: f64 = 1.05;

/// Sums up, over all lines that were kept, the probability that a new line was dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// The expected number of lines dropped by mistake.
    expected: f64,
    /// The part of it at rates for which the model can be trusted.
    modelled: f64,
    /// Lines that were dropped while the rate was higher than that. Each of them may have been new.
    beyond: u64,
    /// All lines that were dropped, correctly or not.
    dropped: u64,
    last_rate: f64,
}

/// If more than this share of the new lines is dropped, the kept lines say little about the dropped ones.
const HIGHEST_RATE: f64 = 0.1;

impl Loss {
    /// Adds `kept` new lines and `dropped` dropped lines, at a time when a new line was dropped at this rate.
    ///
    /// For each kept line there were `1 / (1 - rate)` new lines, so `rate / (1 - rate)` new lines were dropped.
    pub(super) fn add(&mut self, kept: u64, dropped: u64, rate: f64) {
        let expected = kept as f64 * odds(rate);
        self.expected += expected;
        if rate <= HIGHEST_RATE {
            self.modelled += expected;
        } else {
            self.beyond += dropped;
        }
        self.dropped += dropped;
        self.last_rate = rate;
    }

    /// The expected number, at most the number of dropped lines.
    pub(super) fn expected(&self) -> f64 {
        (self.expected + odds(self.last_rate)).min(self.dropped as f64)
    }

    /// An upper bound for the number, with [`CONFIDENCE`].
    ///
    /// The number is a sum of independent events. Chernoff: `P(sum >= k) <= e^-mean (e mean / k)^k` for `k > mean`.
    pub(super) fn at_most(&self) -> u64 {
        // New lines after the last kept line may have been dropped, too.
        let mean = (self.modelled + odds(self.last_rate.min(HIGHEST_RATE))) * MODEL_ERROR;
        let unlikely = |k: f64| k > mean && k * (1.0 + (mean / k).ln()) - mean <= (1.0 - CONFIDENCE).ln();
        let mut high = 1.0;
        while !unlikely(high) && high < 1e18 {
            high *= 2.0;
        }
        let mut low = 0.0;
        while high - low > 1.0 {
            let middle = ((low + high) / 2.0_f64).floor();
            if unlikely(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        // `high` or more are unlikely.
        (high as u64 - 1).saturating_add(self.beyond).min(self.dropped)
    }
}

/// Dropped new lines per kept line.
fn odds(rate: f64) -> f64 {
    rate / (1.0 - rate).max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(expected: f64) -> Loss {
        Loss { expected, modelled: expected, dropped: u64::MAX, ..Loss::default() }
    }

    /// `P(Poisson(mean) > most)`, as a sum.
    fn tail(mean: f64, most: u64) -> f64 {
        let mut term = (-mean).exp();
        let mut below = term;
        for k in 1..=most {
            term *= mean / k as f64;
            below += term;
        }
        1.0 - below
    }

    #[test]
    fn the_bound_holds_with_its_confidence_and_is_tight() {
        assert_eq!(loss(0.0).at_most(), 0);
        assert_eq!(loss(1e-6).at_most(), 0);
        for mean in [0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 500.0] {
            let most = loss(mean).at_most();
            assert!(tail(mean, most) <= 1.0 - CONFIDENCE, "{mean}: {most}");
            let room = mean * MODEL_ERROR + 5.0 * mean.sqrt() + 5.0;
            assert!((most as f64) < room, "{mean}: {most} is more than {room}");
        }
        assert!((1_050_000..1_060_000).contains(&loss(1e6).at_most()));
    }

    #[test]
    fn at_rate_one_half_as_many_are_lost_as_kept() {
        let mut loss = Loss::default();
        loss.add(1000, 5000, 0.5);
        assert!((loss.expected() - 1001.0).abs() < 1e-9);
    }

    #[test]
    fn the_bound_never_exceeds_the_dropped_lines() {
        let mut loss = Loss::default();
        loss.add(0, 1, 1e-4);
        assert!(loss.expected() > 0.0 && loss.at_most() <= 1, "the one dropped may have been new");
        loss.add(1_000_000, 3, 1e-4);
        assert_eq!((loss.expected(), loss.at_most()), (4.0, 4));
        let mut overfull = Loss::default();
        overfull.add(10, 900, 0.9);
        overfull.add(10, 50, 0.01);
        assert!(overfull.at_most() >= 900);
    }
}
