//! The fill of an array, from its beginning to its end.

use std::sync::atomic::{AtomicU64, Ordering};

/// The fill of an array, part by part.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Density {
    /// The name of the array in the filter; empty if there is only one.
    pub name: String,
    /// The unit that is counted: `bits set`, `slots taken`.
    pub what: &'static str,
    /// The share in every part, from the beginning of the array to its end.
    pub shares: Vec<f64>,
    /// The share in the whole array.
    pub share: f64,
    /// Was the whole array counted? If not, the shares are those of a sample.
    pub exact: bool,
}

/// Units counted in a part: enough words for a share with an error of a third of a per cent.
const MOST_COUNTED: u64 = 2048;

impl Density {
    /// Counts an array of `units` units. For each, the function returns how much is taken and out of how much.
    pub(crate) fn of(
        name: String,
        what: &'static str,
        units: u64,
        parts: usize,
        count: impl Fn(u64) -> (u64, u64),
    ) -> Self {
        let parts = (parts as u64).clamp(1, units.max(1));
        let bound = |part: u64| (u128::from(part) * u128::from(units) / u128::from(parts)) as u64;
        let share = |(taken, all): (u64, u64)| if all == 0 { 0.0 } else { taken as f64 / all as f64 };
        let (mut shares, mut total, mut exact) = (Vec::new(), (0, 0), true);
        for part in 0..parts {
            let (start, end) = (bound(part), bound(part + 1));
            exact &= end - start <= MOST_COUNTED;
            let counted = (start..end.min(start + MOST_COUNTED)).map(&count);
            let sum = counted.fold((0, 0), |(taken, all), (some, of)| (taken + some, all + of));
            shares.push(share(sum));
            total = (total.0 + sum.0, total.1 + sum.1);
        }
        Self { name, what, shares, share: share(total), exact }
    }

    /// The set bits among the first `bits` of `words`.
    pub(crate) fn of_bits(name: String, words: &[AtomicU64], bits: u64, parts: usize) -> Self {
        Self::of(name, "bits set", bits.div_ceil(64), parts, |word| {
            let ones = words[word as usize].load(Ordering::Relaxed).count_ones();
            (ones.into(), (bits - 64 * word).min(64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_separately_and_in_total() {
        let words: Vec<AtomicU64> =
            (0..10).map(|i| AtomicU64::new(if i < 5 { u64::MAX } else { 0 })).collect();
        let density = Density::of_bits(String::new(), &words, 640, 2);
        assert_eq!((density.shares, density.share, density.exact), (vec![1.0, 0.0], 0.5, true));
        // The last word only counts the bits it has.
        let density = Density::of_bits(String::new(), &words[..5], 4 * 64 + 1, 5);
        assert_eq!(density.shares[..4], [1.0; 4]);
        let few = Density::of_bits(String::new(), &words[..1], 64, 100);
        assert_eq!(few.shares, [1.0]);
        assert!(Density::of_bits(String::new(), &[], 0, 7).shares.iter().all(|share| *share == 0.0));
    }

    #[test]
    fn long_arrays_are_sampled() {
        let half = |unit: u64| (unit % 2, 1);
        let density = Density::of(String::new(), "", 1 << 40, 10, half);
        assert!(!density.exact && density.shares.len() == 10);
        assert!((density.share - 0.5).abs() < 1e-9);
    }
}
