//! The counting Bloom filter: sized like the classic one, with a counter instead of every bit.

/// Bits of a counter.
pub const COUNTER_BITS: u32 = 4;
/// The highest count, at which a counter sticks.
pub const MAX_COUNT: u64 = (1 << COUNTER_BITS) - 1;
/// The most counters any filter can have.
pub const MAX_COUNTERS: u64 = super::MAX_BITS / COUNTER_BITS as u64;

/// The number of `m` counters that are expected to stick after `n` different items with `k` probes each.
///
/// The probes of a counter are binomial, `n·k` trials at `1/m`; it sticks at 15 or more. At capacity that is three counters
/// in 10^15. Counters stick because of copies of one item, or in a filter far above its capacity.
#[must_use]
pub fn expected_saturated(m: u64, k: u32, n: u64) -> f64 {
    let (m, trials) = (m as f64, n as f64 * f64::from(k));
    if m <= 1.0 || trials < MAX_COUNT as f64 {
        return if trials < MAX_COUNT as f64 { 0.0 } else { m };
    }
    let odds = 1.0 / (m - 1.0);
    let none = trials * (-1.0 / m).ln_1p();
    // Summed from the side that loses no precision: upwards from the first stuck count, or as the complement.
    let mut ln_term = none;
    let mut below = 0.0;
    for count in 0..MAX_COUNT {
        below += ln_term.exp();
        ln_term += ((trials - count as f64) / (count + 1) as f64 * odds).ln();
    }
    if below < 0.5 {
        return m * (1.0 - below);
    }
    let (mut term, mut stuck, mut count) = (ln_term.exp(), 0.0, MAX_COUNT as f64);
    while term > stuck * f64::EPSILON && count <= trials {
        stuck += term;
        term *= (trials - count) / (count + 1.0) * odds;
        count += 1.0;
    }
    m * stuck
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tail of a binomial distribution by the plain formula, for small numbers.
    fn plain_tail(trials: u64, chance: f64) -> f64 {
        let mut counts = vec![0.0; MAX_COUNT as usize + 1];
        counts[0] = 1.0;
        for _ in 0..trials {
            for count in (0..counts.len()).rev() {
                let from_below = if count == 0 { 0.0 } else { counts[count - 1] * chance };
                let last = count == counts.len() - 1;
                counts[count] = counts[count] * if last { 1.0 } else { 1.0 - chance } + from_below;
            }
        }
        counts[MAX_COUNT as usize]
    }

    #[test]
    fn stuck_counters_are_the_tail_of_the_binomial() {
        for (m, k, n) in
            [(2, 1, 15), (64, 3, 200), (64, 3, 600), (128, 7, 100), (1000, 7, 700), (1000, 7, 100)]
        {
            let (model, exact) =
                (expected_saturated(m, k, n), m as f64 * plain_tail(n * u64::from(k), 1.0 / m as f64));
            assert!((model / exact - 1.0).abs() < 1e-9, "{m} {k} {n}: {model} for {exact}");
        }
        assert_eq!(expected_saturated(64, 2, 7), 0.0, "14 probes cannot fill any counter");
        assert_eq!(expected_saturated(1, 1, 15), 1.0);
    }

    #[test]
    fn at_capacity_almost_none_stick() {
        let (n, p) = (1_000_000, 0.01);
        let (m, k) = super::super::classic::size(n, p);
        let share = expected_saturated(m, k, n) / m as f64;
        assert!((1e-15..1e-14).contains(&share), "{share}");
        assert!(expected_saturated(m, k, 10 * n) > 1000.0);
    }
}
