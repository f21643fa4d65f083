//! The sizes and rates of filters: pure functions of `n` items, `m` bits, `k` probes and `p`, the rate.

pub mod blocked;
pub mod classic;
pub mod counted;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub mod fuse;
pub mod gcs;
pub mod growing;
pub mod quotient;
pub mod ribbon;
pub mod scalable;
pub mod window;

use crate::error::BuildError;
use crate::probe::MAX_PROBES;

/// The most items any filter can be sized for: 2^42.
pub const MAX_CAPACITY: u64 = 1 << 42;
/// The most bits any filter can have: 2^49, 64 TiB.
pub const MAX_BITS: u64 = 1 << 49;
/// The lowest rate any filter supports.
pub const MIN_RATE: f64 = 1e-15;

/// Filters aim a little below the rate asked for, so that the observed rate stays under the promise although a single filter
/// is a little better or worse than the average. This costs 0.07 % of the memory.
pub(crate) const AIM: f64 = 0.997;

/// Returns `rate` if a filter can promise it.
pub(crate) fn check_rate(rate: f64) -> Result<f64, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::RateOutOfRange { got: rate });
    }
    if rate < MIN_RATE {
        return Err(BuildError::RateTooLow { got: rate, limit: MIN_RATE });
    }
    Ok(rate)
}

/// Returns `capacity` if a filter can be sized for it.
pub(crate) fn check_capacity(capacity: u64) -> Result<u64, BuildError> {
    if capacity == 0 || capacity > MAX_CAPACITY {
        return Err(BuildError::CapacityOutOfRange { got: capacity, limit: MAX_CAPACITY });
    }
    Ok(capacity)
}

/// Returns `probes` if a classic filter can have this many.
pub(crate) fn check_probes(probes: u32) -> Result<u32, BuildError> {
    if probes == 0 || probes > MAX_PROBES {
        return Err(BuildError::ProbesOutOfRange { got: probes, limit: MAX_PROBES });
    }
    Ok(probes)
}

/// Returns `Ok` if `bytes` fit in `limit_bytes`.
pub(crate) fn check_memory(bytes: u64, limit_bytes: u64) -> Result<(), BuildError> {
    if bytes > limit_bytes {
        return Err(BuildError::TooLarge { bytes, limit: limit_bytes });
    }
    Ok(())
}

/// The smallest `x >= 1` with `enough(x)`, which must be true for all larger values; the search begins at `guess`.
pub(crate) fn fewest(guess: u64, enough: impl Fn(u64) -> bool) -> u64 {
    let guess = guess.max(1);
    let (mut low, mut high) = if enough(guess) { (0, guess) } else { (guess, guess) };
    let mut step = (guess / 256).max(1);
    // Bracket: `low` is too little, `high` is enough.
    if low == 0 {
        low = guess;
        while low > 0 && enough(low) {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
    } else {
        while !enough(high) {
            low = high;
            if high >= MAX_BITS {
                return MAX_BITS;
            }
            high = high.saturating_add(step);
            step *= 2;
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewest_finds_the_boundary_from_any_guess() {
        for boundary in [1, 2, 63, 1000, 123_456_789] {
            for guess in [0, 1, 62, 1000, 5_000_000, 200_000_000] {
                assert_eq!(fewest(guess, |x| x >= boundary), boundary, "from {guess}");
            }
        }
        assert_eq!(fewest(7, |_| false), MAX_BITS);
    }

    #[test]
    fn only_rates_between_0_and_1_pass() {
        for bad in [0.0, 1.0, -0.01, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            assert!(matches!(check_rate(bad), Err(BuildError::RateOutOfRange { .. })), "{bad}");
        }
        assert!(matches!(check_rate(1e-300), Err(BuildError::RateTooLow { .. })));
        assert_eq!(check_rate(0.5), Ok(0.5));
    }
}
