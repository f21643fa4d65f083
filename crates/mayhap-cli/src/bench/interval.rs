//! The confidence interval of a measured rate.

/// 95 of 100 intervals of this many standard errors contain the true rate.
const Z: f64 = 1.959_964;

/// The 95 % confidence interval of the rate, after `wrong` false positives in `asked` lookups. It is Wilson's interval, which also holds for
/// small numbers: with 0 of 1,000, the rate may still be up to 0.4 %.
pub(super) fn interval(wrong: u64, asked: u64) -> (f64, f64) {
    if asked == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (asked as f64, Z * Z);
    let rate = wrong as f64 / n;
    let middle = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    let low = if wrong == 0 { 0.0 } else { (middle - half).max(0.0) };
    (low, (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_intervals() {
        // 10 of 100, and 0 of 1,000, computed by hand.
        let (low, high) = interval(10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let (low, high) = interval(0, 1000);
        assert!(low == 0.0 && (high - 0.003827).abs() < 1e-5, "{low} {high}");
        assert_eq!(interval(0, 0), (0.0, 1.0));
        assert_eq!(interval(5, 5).1, 1.0);
    }

    /// Counted exactly: over all outcomes of 200 lookups at 5 %, about 95 % of the intervals contain 5 %.
    #[test]
    fn the_interval_contains_the_true_rate_95_percent_of_the_time() {
        let (asked, rate) = (200_u64, 0.05_f64);
        let mut chance = (1.0 - rate).powi(asked as i32);
        let mut held = 0.0;
        for wrong in 0..=asked {
            let (low, high) = interval(wrong, asked);
            held += if (low..=high).contains(&rate) { chance } else { 0.0 };
            chance *= (asked - wrong) as f64 / (wrong + 1) as f64 * rate / (1.0 - rate);
        }
        assert!((0.93..0.98).contains(&held), "{held}");
    }
}
