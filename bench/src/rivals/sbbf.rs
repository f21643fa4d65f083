//! `sbbf-rs-safe`: Parquet's split-block filter with run-time SIMD. It accepts hashes, so hashing the item is inside the timed loop here. It also
//! accepts a size; the size used is the smallest that keeps the rate.

use sbbf_rs_safe::Filter;

use crate::{
    contender::{Entry, Kind, OneByOne, Single},
    items::BenchItem,
};

const BLOCK_BITS: u64 = 256;
const LANES: i32 = 8;
const LANE_BITS: f64 = 32.0;

impl<T: BenchItem> Single<T> for Filter {
    #[inline]
    fn insert_one(&mut self, item: &T) {
        self.insert_hash(item.prehash());
    }

    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains_hash(item.prehash())
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::rival("sbbf-rs-safe", Kind::Blocked, |items, fpr| {
        // Its size is a whole number of bits per key times keys: one bit per "key" allows any size.
        Box::new(OneByOne(Filter::new(1, (blocks_for(items, fpr) * BLOCK_BITS) as usize)))
    })
    .layout("split256")
}

/// The smallest number of 256-bit split blocks that hold `items` at a rate of at most `fpr`.
pub(crate) fn blocks_for(items: u64, fpr: f64) -> u64 {
    let (mut too_few, mut enough) = (0u64, 1u64);
    while split_block_fpr(items as f64 / enough as f64) > fpr {
        (too_few, enough) = (enough, enough * 2);
    }
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if split_block_fpr(items as f64 / middle as f64) > fpr {
            too_few = middle;
        } else {
            enough = middle;
        }
    }
    enough
}

/// Rate of a split-block filter whose blocks hold `load` items on average: a block holding j items has a lane
/// bit set with probability 1 - (31/32)^j, eight lanes must agree, and j is Poisson.
fn split_block_fpr(load: f64) -> f64 {
    if load > 500.0 {
        return 1.0; // every lane is full; and exp(-load) would underflow
    }
    let mut share = (-load).exp();
    let mut fpr = 0.0;
    let last = (load + 12.0 * load.sqrt() + 40.0) as u32;
    for held in 0..=last {
        let set = 1.0 - (1.0 - 1.0 / LANE_BITS).powi(held as i32);
        fpr += share * set.powi(LANES);
        share *= load / f64::from(held + 1);
    }
    fpr
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits_per_item(items: u64, fpr: f64) -> f64 {
        (blocks_for(items, fpr) * BLOCK_BITS) as f64 / items as f64
    }

    /// Table 1c of the study: 5.99, 10.53, 16.89 and 26.34 bits.
    #[test]
    fn published_sizes_are_reproduced() {
        for (fpr, bits) in [(0.1, 5.99), (0.01, 10.53), (0.001, 16.89), (0.0001, 26.34)] {
            let got = bits_per_item(1_000_000, fpr);
            assert!((got - bits).abs() < 0.01, "{got} bits at {fpr}, expected {bits}");
        }
    }

    #[test]
    fn one_block_less_would_exceed_the_rate() {
        let blocks = blocks_for(1_000_000, 0.01);
        assert!(split_block_fpr(1e6 / blocks as f64) <= 0.01);
        assert!(split_block_fpr(1e6 / (blocks - 1) as f64) > 0.01);
    }

    #[test]
    fn few_items_and_loose_rates_get_a_block() {
        assert_eq!(blocks_for(1, 0.5), 1);
        assert!(blocks_for(10_000, 0.99) >= 1);
    }

    #[test]
    fn the_rate_is_a_probability_and_grows_with_the_load() {
        let rates: Vec<f64> = (0..600).map(|load| split_block_fpr(f64::from(load))).collect();
        assert!(rates.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
        assert_eq!(rates[0], 0.0);
        assert!(rates[599] <= 1.0);
    }
}
