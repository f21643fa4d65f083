//! A chain of classic layers: how the promise is shared out.

/// The share of the promised rate that `layer` gets: `(1 - r) · r^layer`. All shares of all layers ever add up to 1.
///
/// Multiplied out step by step, so that every machine comes to the same bits.
#[must_use]
pub fn share(r: f64, layer: usize) -> f64 {
    (0..layer).fold(1.0 - r, |share, _| share * r)
}

/// The rate of layers that are asked one after the other: wrong as soon as one of them is.
#[must_use]
pub fn chain_fpr(rates: impl IntoIterator<Item = f64>) -> f64 {
    -rates.into_iter().map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_promise_and_never_past_it() {
        for r in [1e-9, 0.1, 0.5, 0.65, 0.9, 0.999] {
            let sum: f64 = (0..10_000).map(|layer| share(r, layer)).sum();
            assert!(sum <= 1.0 + 1e-12, "{r}: {sum}");
            assert!(r > 0.99 || sum > 1.0 - 1e-12, "{r}: {sum}");
        }
    }

    #[test]
    fn a_chain_is_wrong_as_soon_as_one_layer_is() {
        assert_eq!(chain_fpr([]), 0.0);
        assert_eq!(chain_fpr([0.5, 1.0]), 1.0);
        assert!((chain_fpr([0.5, 0.5]) - 0.75).abs() < 1e-15);
        assert!((chain_fpr([1e-15, 2e-15]) - 3e-15).abs() < 1e-25);
    }
}
