//! The shape of a plain filter, and its false-positive rate.

use mayhap::sizing::classic;

use crate::plan::PlanError;
use crate::route::ItemRoute;

/// Bits of a small block, for rates of 0.1 % and above.
const SMALL_BITS: u32 = 512;
/// Bits of a large block.
const LARGE_BITS: u32 = 4096;
/// The lowest rate for small blocks.
const SMALL_FROM: f64 = 1e-3;
/// The lowest rate. Below it, no number of probes in one block keeps the rate at a reasonable size.
pub(crate) const MIN_RATE: f64 = 1e-9;
/// The highest rate.
pub(crate) const MAX_RATE: f64 = 0.5;
/// The maximum number of probes.
const MOST_PROBES: u32 = 40;
/// The maximum size of a Redis string, in bytes.
pub(crate) const MOST_BYTES: u64 = 512 << 20;

/// The shape of a plain filter: the number of blocks, their size, and the probes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainShape {
    block_bits: u32,
    blocks: u64,
    probes: u32,
}

impl PlainShape {
    /// The number of this layout, which decides the positions of bits.
    pub const LAYOUT: u32 = 1;

    /// The smallest shape that keeps `target_fpr` with `capacity` items.
    ///
    /// # Errors
    /// A rate outside 1e-9 to 0.5, a capacity of 0, or more bytes than a string can have.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, PlanError> {
        if !(MIN_RATE..=MAX_RATE).contains(&target_fpr) {
            return Err(PlanError::Rate { got: target_fpr, least: MIN_RATE, most: MAX_RATE });
        }
        if capacity == 0 {
            return Err(PlanError::Capacity { got: capacity, most: mayhap::sizing::MAX_CAPACITY });
        }
        let block_bits = if target_fpr >= SMALL_FROM { SMALL_BITS } else { LARGE_BITS };
        // Above this, an estimate is enough to reject it without a search.
        let least_bytes = capacity as f64 * -target_fpr.log2() * 1.44 / 8.0;
        if least_bytes > MOST_BYTES as f64 {
            return Err(PlanError::ShardTooLarge { bytes: least_bytes as u64, limit: MOST_BYTES });
        }
        let best = -target_fpr.log2();
        let most = (best.ceil() as u32 + 1).min(MOST_PROBES);
        let least = (best * 0.6).floor().max(1.0) as u32;
        let sized = (least..=most).filter_map(|probes| {
            let blocks = fewest_blocks(capacity, target_fpr, block_bits, probes)?;
            Some((blocks, probes))
        });
        let (blocks, probes) =
            sized.min().ok_or(PlanError::ShardTooLarge { bytes: least_bytes as u64, limit: MOST_BYTES })?;
        Self::given(block_bits, blocks, probes).ok_or(PlanError::ShardTooLarge {
            bytes: blocks.saturating_mul(u64::from(block_bits / 8)),
            limit: MOST_BYTES,
        })
    }

    /// A shape with these numbers. `None` if they are invalid.
    pub(crate) fn given(block_bits: u32, blocks: u64, probes: u32) -> Option<Self> {
        let is_size = block_bits == SMALL_BITS || block_bits == LARGE_BITS;
        let fits = blocks >= 1 && blocks <= MOST_BYTES / u64::from(block_bits.max(8) / 8);
        let can_probe = (1..=MOST_PROBES).contains(&probes);
        (is_size && fits && can_probe).then_some(Self { block_bits, blocks, probes })
    }

    /// The number of bits of a block, including the ready bit.
    #[must_use]
    pub const fn block_bits(&self) -> u32 {
        self.block_bits
    }

    /// Blocks.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The number of bits that an item sets. Some of them may coincide.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// The number of bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> usize {
        self.block_bits as usize / 8
    }

    /// The number of bytes of the string.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes() as u64
    }

    /// The false-positive rate with `items` items: the mean over the binomial number of items in a block.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        Model::new(self.block_bits, self.probes).mean(items, self.blocks)
    }

    /// The estimated number of items, from the number of bits that are set, including the ready bits.
    #[must_use]
    pub fn items_from_ones(&self, ones: u64) -> u64 {
        let bits = self.blocks * u64::from(self.block_bits - 1);
        classic::items_from_fill(bits, self.probes, ones.saturating_sub(self.blocks).min(bits))
    }

    /// The false-positive rate if all blocks had the mean fill, given the [estimated
    /// items](Self::items_from_ones). Never more than the true rate.
    pub(crate) fn fill_fpr(&self, items: u64) -> f64 {
        let bits = (self.blocks * u64::from(self.block_bits - 1)) as f64;
        let clear = (-f64::from(self.probes) * items as f64 / bits).exp();
        (1.0 - clear).powi(self.probes as i32)
    }

    /// The first bit of an item's block, and the positions in the block. None of them is 0, which is the
    /// ready bit.
    pub(crate) fn bits_of(&self, route: ItemRoute) -> (u64, impl Iterator<Item = u64>) {
        let positions = route.positions(u64::from(self.block_bits - 1)).take(self.probes as usize);
        (route.block(self.blocks) * u64::from(self.block_bits), positions.map(|position| position + 1))
    }

    /// Does this block have all bits of an item? `None`: it is not a block of a ready filter.
    pub(crate) fn covers(&self, block: &[u8], route: ItemRoute) -> Option<bool> {
        if block.len() != self.block_bytes() || block[0] & READY == 0 {
            return None;
        }
        let (_, mut positions) = self.bits_of(route);
        Some(positions.all(|bit| block[bit as usize / 8] & mask(bit) != 0))
    }
}

/// The ready bit, in the first byte of a block.
pub(super) const READY: u8 = 0x80;

/// A bit in its byte, as Redis counts: the top one is the first.
pub(super) const fn mask(bit: u64) -> u8 {
    READY >> (bit % 8)
}

/// The smallest number of blocks that keeps `rate`, if a string can have that many.
fn fewest_blocks(capacity: u64, rate: f64, block_bits: u32, probes: u32) -> Option<u64> {
    let model = Model::new(block_bits, probes);
    let keeps = |blocks| model.mean(capacity, blocks) <= rate;
    let most = MOST_BYTES / u64::from(block_bits / 8);
    let mut enough = 1;
    while !keeps(enough) {
        if enough >= most {
            return None;
        }
        enough = (enough * 2).min(most);
    }
    let mut short = enough / 2;
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if keeps(middle) { enough = middle } else { short = middle }
    }
    Some(enough)
}

/// The false-positive rates of blocks by the number of items in them, each computed once.
struct Model {
    bits: u64,
    probes: u32,
    rates: std::cell::RefCell<Vec<f64>>,
}

impl Model {
    fn new(block_bits: u32, probes: u32) -> Self {
        Self { bits: u64::from(block_bits - 1), probes, rates: std::cell::RefCell::default() }
    }

    /// The rate of a block with `items` items.
    fn rate(&self, items: u64) -> f64 {
        /// More items than bits. Such a block answers *maybe* to nearly every item, and so do fuller ones.
        const KEPT: u64 = 1 << 13;
        let items = items.min(KEPT);
        let mut rates = self.rates.borrow_mut();
        for next in rates.len() as u64..=items {
            rates.push(classic::expected_fpr(self.bits, self.probes, next));
        }
        rates[items as usize]
    }

    /// The mean over the blocks, each of which gets a binomial number of the items.
    fn mean(&self, items: u64, blocks: u64) -> f64 {
        /// Above this mean number of items, all blocks are full.
        const ALL_FULL: u64 = 1 << 14;
        /// Terms that are smaller than the largest by this factor are too small to matter.
        const NEGLIGIBLE: f64 = 1e-17;
        if items == 0 || blocks <= 1 || items / blocks > ALL_FULL {
            return self.rate(items / blocks.max(1));
        }
        let others = blocks as f64 - 1.0;
        let middle = items / blocks;
        // Relative to the term in the middle. The ratio of two neighbours is exact.
        let (mut weights, mut sum) = (1.0, self.rate(middle));
        let mut weight = 1.0;
        for load in middle..items {
            weight *= (items - load) as f64 / ((load + 1) as f64 * others);
            weights += weight;
            sum += weight * self.rate(load + 1);
            if weight < NEGLIGIBLE {
                break;
            }
        }
        weight = 1.0;
        for load in (1..=middle).rev() {
            weight *= load as f64 * others / (items - load + 1) as f64;
            weights += weight;
            sum += weight * self.rate(load - 1);
            if weight < NEGLIGIBLE {
                break;
            }
        }
        sum / weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_keeps_its_rate_and_is_the_smallest_that_does() {
        for capacity in [1, 100, 10_000, 1_000_000] {
            for rate in [0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-9] {
                let shape = PlainShape::for_capacity(capacity, rate).unwrap();
                assert!(shape.expected_fpr(capacity) <= rate, "{capacity} {rate} {shape:?}");
                assert_eq!(shape.block_bits(), if rate >= 0.001 { 512 } else { 4096 });
                if shape.blocks() > 1 {
                    let smaller = PlainShape { blocks: shape.blocks() - 1, ..shape };
                    assert!(smaller.expected_fpr(capacity) > rate, "{capacity} {rate} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_cost_little_more_than_one_large_filter() {
        let bits = |rate| {
            let shape = PlainShape::for_capacity(1_000_000, rate).unwrap();
            shape.bytes() as f64 * 8.0 / 1e6
        };
        // Without blocks: 9.59, 14.38, 19.17.
        assert!((9.8..10.0).contains(&bits(0.01)), "{}", bits(0.01));
        assert!((15.3..15.8).contains(&bits(0.001)), "{}", bits(0.001));
        assert!((19.2..20.0).contains(&bits(1e-4)), "{}", bits(1e-4));
    }

    #[test]
    fn invalid_shapes_are_rejected_with_the_numbers() {
        let refused = |capacity, rate| PlainShape::for_capacity(capacity, rate).unwrap_err();
        assert!(matches!(refused(10, 0.0), PlanError::Rate { .. }));
        assert!(matches!(refused(10, f64::NAN), PlanError::Rate { .. }));
        assert!(matches!(refused(0, 0.01), PlanError::Capacity { .. }));
        let large = refused(1 << 40, 0.01);
        assert!(matches!(large, PlanError::ShardTooLarge { limit: MOST_BYTES, .. }), "{large:?}");
        assert!(matches!(refused(440_000_000, 0.01), PlanError::ShardTooLarge { .. }), "just above");
        for (bits, blocks, probes) in
            [(512, 0, 5), (513, 1, 5), (0, 1, 5), (512, 1 << 24, 5), (512, 1, 0), (4096, 1, 41)]
        {
            assert_eq!(PlainShape::given(bits, blocks, probes), None);
        }
    }

    #[test]
    fn the_mean_is_the_binomial_one() {
        // With blocks of one bit and one probe, a block gives a false positive if it has any item.
        let model = Model { bits: 1, probes: 1, rates: std::cell::RefCell::default() };
        for (items, blocks) in [(1_u64, 7_u64), (100, 10), (5000, 977)] {
            let empty = (1.0 - 1.0 / blocks as f64).powf(items as f64);
            let mean = model.mean(items, blocks);
            assert!((mean - (1.0 - empty)).abs() < 1e-9, "{items} {blocks}: {mean}");
        }
    }
}
