//! A chain of classic layers: the share of the promised rate for each layer.

/// The share of the promised rate that `layer` gets: `(1 - r) · r^layer`. The shares of all possible layers add up to 1.
///
/// Multiplied step by step, so that the result is the same on every machine.
#[must_use]
pub fn share(r: f64, layer: usize) -> f64 {
    (0..layer).fold(1.0 - r, |share, _| share * r)
}

/// The rate of a chain of layers: a non-member is a false positive if it is one in any layer.
#[must_use]
pub fn chain_fpr(rates: impl IntoIterator<Item = f64>) -> f64 {
    -rates.into_iter().map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_promised_rate_and_never_exceed_it() {
        for r in [1e-9, 0.1, 0.5, 0.65, 0.9, 0.999] {
            let sum: f64 = (0..10_000).map(|layer| share(r, layer)).sum();
            assert!(sum <= 1.0 + 1e-12, "{r}: {sum}");
            assert!(r > 0.99 || sum > 1.0 - 1e-12, "{r}: {sum}");
        }
    }

    #[test]
    fn a_chain_has_a_false_positive_if_one_layer_has_one() {
        assert_eq!(chain_fpr([]), 0.0);
        assert_eq!(chain_fpr([0.5, 1.0]), 1.0);
        assert!((chain_fpr([0.5, 0.5]) - 0.75).abs() < 1e-15);
        assert!((chain_fpr([1e-15, 2e-15]) - 3e-15).abs() < 1e-25);
    }
}
