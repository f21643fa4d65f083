//! The blocked Bloom filter: all bits of an item in one small block (or one block in each of two or three regions).
//!
//! Blocks fill unevenly: some get many more items than the average, and those decide the rate. So the rate is an average
//! over the binomial number of items in a block, of the rate of a block with that many. Most libraries size by the classic
//! formula instead, which breaks the promise: with split blocks the rate is 1.5 % where 1 % was asked for.

use super::{AIM, classic, fewest};

/// Bits of a split block. It has one probe in each of its lanes.
pub const SPLIT_BITS: u64 = 256;
/// Lanes of a split block.
pub const SPLIT_LANES: u32 = 8;
/// Bits of a line.
pub const LINE_BITS: u64 = 512;
/// The most probes in one line.
pub const MAX_LINE_PROBES: u32 = 16;
/// The most regions, and so the most lines per item.
pub const MAX_REGIONS: u32 = 3;

/// The rate of a split block that holds `items` items: each of its eight 32-bit lanes has one random bit per item.
#[must_use]
pub fn split_block_fpr(items: u64) -> f64 {
    let clear_in_lane = (items as f64 * (-1.0 / 32.0_f64).ln_1p()).exp();
    (1.0 - clear_in_lane).powi(SPLIT_LANES as i32)
}

/// The rate of `blocks` split blocks with `n` items.
#[must_use]
pub fn split_expected_fpr(blocks: u64, n: u64) -> f64 {
    mixture(n, blocks, split_block_fpr)
}

/// The rate of `regions` regions of `blocks` lines each, with `k` probes in one line of each region and `n` items.
#[must_use]
pub fn line_expected_fpr(blocks: u64, regions: u32, k: u32, n: u64) -> f64 {
    mixture(n, blocks, |items| classic::quickly_expected_fpr(LINE_BITS, k, items)).powi(regions as i32)
}

/// The fewest split blocks that keep `rate` with `n` items.
#[must_use]
pub fn split_size(n: u64, rate: f64) -> u64 {
    let table = BlockRates::new(split_block_fpr);
    // The number for which a block with the average load would be enough. The uneven load needs more.
    let load = (1.0 - rate.powf(0.125)).ln() / (-1.0 / 32.0_f64).ln_1p();
    let guess = (n as f64 / load * 1.1) as u64;
    fewest(guess, |blocks| table.mixture(n, blocks) <= rate * AIM)
}

/// The fewest lines per region, and the probes per line, that keep `rate` with `n` items: `(blocks, k)`.
#[must_use]
pub fn line_size(n: u64, rate: f64, regions: u32) -> (u64, u32) {
    let per_region = (rate * AIM).powf(1.0 / f64::from(regions));
    // The best number of probes is a little below the classic one; try its neighbours.
    let classic_best = -per_region.log2();
    let most = (classic_best.ceil() as u32).clamp(1, MAX_LINE_PROBES);
    let least = most.saturating_sub(most / 4 + 1).max(1);
    let sizes = (least..=most).map(|k| {
        let table = BlockRates::new(|items| classic::expected_fpr(LINE_BITS, k, items));
        let guess = (n as f64 * classic_best * 1.5 / LINE_BITS as f64) as u64;
        (fewest(guess, |blocks| table.mixture(n, blocks) <= per_region), k)
    });
    sizes.min().unwrap_or((1, 1))
}

/// The rates of blocks with 0, 1, 2, … items, each computed on first use.
pub(crate) struct BlockRates<F> {
    rate: F,
    known: std::cell::RefCell<Vec<f64>>,
}

impl<F: Fn(u64) -> f64> BlockRates<F> {
    /// Loads above this are not cached: such a block answers *maybe* to everything anyway.
    const KEPT: u64 = 4096;

    pub(crate) fn new(rate: F) -> Self {
        Self { rate, known: Vec::new().into() }
    }

    fn at(&self, items: u64) -> f64 {
        if items >= Self::KEPT {
            return (self.rate)(items);
        }
        let mut known = self.known.borrow_mut();
        for next in known.len() as u64..=items {
            known.push((self.rate)(next));
        }
        known[items as usize]
    }

    pub(crate) fn mixture(&self, n: u64, blocks: u64) -> f64 {
        mixture(n, blocks, |items| self.at(items))
    }
}

/// The mean of `rate` over the number of items in a block, when `n` items choose among `blocks`: a binomial distribution.
fn mixture(n: u64, blocks: u64, rate: impl Fn(u64) -> f64) -> f64 {
    /// Weights below this share of the largest have no visible effect on any rate we promise.
    const NEGLIGIBLE: f64 = 1e-18;
    /// Ten times the load that fills a line with one probe per item.
    const MOST_LOAD: u64 = 8192;
    if n == 0 {
        return 0.0;
    }
    if blocks <= 1 {
        return rate(n);
    }
    // Every block is so full that it answers *maybe* to everything: the spread about the mean changes nothing.
    if n / blocks > MOST_LOAD {
        return rate(n / blocks);
    }
    let odds = 1.0 / (blocks as f64 - 1.0);
    let likeliest = ((n as f64 + 1.0) / blocks as f64) as u64;
    let likeliest = likeliest.min(n);
    // From the most likely load outwards, by the ratio of neighbouring binomial terms. No term under- or overflows.
    let (mut total, mut mean) = (1.0, rate(likeliest));
    let (mut weight, mut items) = (1.0, likeliest);
    while items < n && weight > NEGLIGIBLE {
        weight *= (n - items) as f64 / (items + 1) as f64 * odds;
        items += 1;
        total += weight;
        mean += weight * rate(items);
    }
    (weight, items) = (1.0, likeliest);
    while items > 0 && weight > NEGLIGIBLE {
        weight *= items as f64 / (n - items + 1) as f64 / odds;
        items -= 1;
        total += weight;
        mean += weight * rate(items);
    }
    mean / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_is_the_binomial_mean() {
        // The mean load of a block is n / blocks, and of its square n/b + n(n-1)/b².
        for (n, blocks) in [(1_u64, 7_u64), (1000, 20), (50_000, 977), (10_000_000, 205_000)] {
            let (n_, b) = (n as f64, blocks as f64);
            let mean = mixture(n, blocks, |items| items as f64);
            let square = mixture(n, blocks, |items| (items * items) as f64);
            assert!((mean / (n_ / b) - 1.0).abs() < 1e-9, "{n} {blocks}: {mean}");
            assert!(
                (square / (n_ / b + n_ * (n_ - 1.0) / (b * b)) - 1.0).abs() < 1e-9,
                "{n} {blocks}: {square}"
            );
        }
    }

    #[test]
    fn sizes_are_close_to_those_in_the_literature() {
        let n = 10_000_000;
        let split = |rate| split_size(n, rate) as f64 * 256.0 / n as f64;
        assert!((split(0.01) - 10.53).abs() < 0.02, "{}", split(0.01));
        assert!((split(0.001) - 16.89).abs() < 0.05, "{}", split(0.001));
        let line = |rate, regions| {
            let (blocks, k) = line_size(n, rate, regions);
            (blocks as f64 * 512.0 * f64::from(regions) / n as f64, k)
        };
        // The literature has 9.90 and 15.49: it assumes a fixed fill for a block of n items, but the fill varies.
        let (bits, k) = line(0.01, 1);
        assert!((9.90..9.94).contains(&bits) && k == 6, "{bits} {k}");
        let (bits, k) = line(0.001, 1);
        assert!((15.49..15.60).contains(&bits) && k == 9, "{bits} {k}");
        // Two lines compensate for the cost of blocking at low rates: one line alone would take 21.9 and 38.5 bits.
        assert!(line(1e-4, 2).0 < 19.9, "{:?}", line(1e-4, 2));
        assert!(line(1e-6, 3).0 < 29.8, "{:?}", line(1e-6, 3));
    }

    #[test]
    fn a_size_is_the_smallest_that_keeps_the_rate() {
        for n in [1, 10, 1000, 123_456] {
            for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6] {
                let blocks = split_size(n, rate);
                assert!(split_expected_fpr(blocks, n) <= rate, "{n} {rate}");
                assert!(blocks == 1 || split_expected_fpr(blocks - 1, n) > rate * AIM, "{n} {rate}");
                for regions in 1..=MAX_REGIONS {
                    let (blocks, k) = line_size(n, rate, regions);
                    assert!(line_expected_fpr(blocks, regions, k, n) <= rate, "{n} {rate} {regions}");
                }
            }
        }
    }
}
