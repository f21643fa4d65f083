//! How many lines were dropped wrongly: nobody knows, but the chance of each is known.

/// How sure [`Loss::at_most`] is.
pub(super) const CONFIDENCE: f64 = 0.999;
/// The rates are a model's, which is within a few per cent.
const MODEL_ERROR: f64 = 1.05;

/// The account: for every line that was kept, the chance it had to be dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// Dropped wrongly, by the rates.
    expected: f64,
    /// That part of it that comes from rates a model is to be trusted with.
    modelled: f64,
    /// Lines that were dropped while the rate was higher than that: each of them may have been new.
    beyond: u64,
    /// Lines that were dropped, rightly or not.
    dropped: u64,
    last_rate: f64,
}

/// Where more than so many of the new lines are dropped, whoever was kept tells little about them.
const HIGHEST_RATE: f64 = 0.1;

impl Loss {
    /// So many new lines were kept, and so many dropped, while a new one was dropped at this rate.
    ///
    /// For each kept there were `1 / (1 - rate)` new ones, so `rate / (1 - rate)` that were dropped.
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

    /// How many are expected: not more than were dropped.
    pub(super) fn expected(&self) -> f64 {
        (self.expected + odds(self.last_rate)).min(self.dropped as f64)
    }

    /// No more than so many, with [`CONFIDENCE`].
    ///
    /// The number is a sum of independent chances. Chernoff: `P(sum >= k) <= e^-mean (e mean / k)^k` for `k > mean`.
    pub(super) fn at_most(&self) -> u64 {
        // New lines behind the last one that was kept are dropped, too.
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

/// Dropped lines for each that is kept.
fn odds(rate: f64) -> f64 {
    rate / (1.0 - rate).max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(expected: f64) -> Loss {
        Loss { expected, modelled: expected, dropped: u64::MAX, ..Loss::default() }
    }

    /// `P(Poisson(mean) > most)`, summed.
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
    fn bounds_hold_as_often_as_they_say_and_are_not_far_off() {
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
    fn a_half_lost_means_as_many_lost_as_kept() {
        let mut loss = Loss::default();
        loss.add(1000, 5000, 0.5);
        assert!((loss.expected() - 1001.0).abs() < 1e-9);
    }

    #[test]
    fn no_more_is_lost_than_was_dropped_and_high_rates_bound_nothing() {
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
