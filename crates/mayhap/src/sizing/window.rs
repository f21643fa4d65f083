//! The window: a lookup reads all generations, so their rates add up.

/// The most generations a window has.
pub const MAX_GENERATIONS: u32 = 16;
/// The default number of generations.
///
/// At 1 %, for each item of a window: 2 generations take 24.4 bits and keep items up to a whole window too long, 3 take 19.9
/// bits and half a window, 4 take 18.8 and a third, 5 take 18.4 and a quarter, 8 take 18.5 and a seventh. With four, the blocks
/// of an item are in two neighbouring cache lines.
pub const GENERATIONS: u32 = 4;

/// Items per generation, so that all generations except the newest hold the last `window` items.
#[must_use]
pub const fn generation_items(window: u64, generations: u32) -> u64 {
    window.div_ceil(older(generations))
}

/// The time for which a generation is the newest, so that all generations except the newest hold the last `span`.
#[must_use]
pub const fn generation_span(span: u64, generations: u32) -> u64 {
    span.div_ceil(older(generations))
}

/// The generations that are not the newest: at least one.
const fn older(generations: u32) -> u64 {
    if generations > 2 { generations as u64 - 1 } else { 1 }
}

/// The rate of each generation with which all of them together keep `rate`.
#[must_use]
pub fn generation_rate(rate: f64, generations: u32) -> f64 {
    -((-rate).ln_1p() / f64::from(generations)).exp_m1()
}

/// The rate of all generations together.
#[must_use]
pub fn combined_rate(rates: impl IntoIterator<Item = f64>) -> f64 {
    // In logarithms: `1 - (1 - p)` would lose the precision of a small rate.
    let none: f64 = rates.into_iter().map(|rate| (-rate.min(1.0)).ln_1p()).sum();
    -none.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_all_generations_are_the_promise() {
        for generations in 2..=MAX_GENERATIONS {
            for rate in [0.5, 0.01, 1e-3, 1e-8] {
                let each = generation_rate(rate, generations);
                let all = combined_rate((0..generations).map(|_| each));
                assert!((all / rate - 1.0).abs() < 1e-12, "{generations} at {rate}: {all}");
                assert!(each >= rate / f64::from(generations), "their sum is the worst case");
            }
        }
        assert_eq!(combined_rate([1.0, 0.5]), 1.0);
        assert_eq!(combined_rate([0.0, 0.0]), 0.0);
    }

    #[test]
    fn all_but_the_newest_generation_hold_the_window() {
        for generations in 2..=MAX_GENERATIONS {
            for window in [1, 2, 3, 10, 100, 12_345, u64::MAX] {
                let items = generation_items(window, generations);
                assert!(u128::from(items) * u128::from(generations - 1) >= u128::from(window));
                assert!(
                    items == 1 || u128::from(items - 1) * u128::from(generations - 1) < u128::from(window)
                );
            }
        }
    }
}
