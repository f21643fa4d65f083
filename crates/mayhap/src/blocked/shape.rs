//! The number and layout of the blocks of a blocked filter, and the false-positive rate that follows.

use std::fmt;

use crate::error::BuildError;
use crate::simd::generic::{LINE_WORDS, SPLIT_WORDS};
use crate::sizing::blocked::{
    BlockRates, LINE_BITS, MAX_LINE_PROBES, MAX_REGIONS, SPLIT_BITS, SPLIT_LANES, line_expected_fpr,
    line_size, split_block_fpr, split_expected_fpr, split_size,
};
use crate::sizing::{self, MAX_BITS, counted};
use crate::store::LINE_BYTES;

/// The layout of an item's bits in its block.
///
/// | layout | bits per item at 10 % / 1 % / 0.1 % / 0.01 % / 1e-6 | |
/// |---|---|---|
/// | `Split256` | 6.0 / 10.5 / 16.9 / 26.4 / 65 | fastest: eight bits in eight lanes of a 256-bit block |
/// | `Line512` | 4.9 / 9.9 / 15.5 / 19.9 / 30 | denser: the best number of bits anywhere in a 512-bit line, or in two or three lines for rates below 5e-4 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedLayout {
    /// Eight 32-bit lanes with one bit each.
    Split256,
    /// Any bits of a cache line, or of two or three lines if the rate is low.
    Line512,
}

/// The shape of a [`BlockedBloom`](crate::BlockedBloom): its dimensions and memory, checked before any memory
/// is allocated.
///
/// ```
/// use mayhap::{BlockedLayout, BlockedShape};
///
/// let fast = BlockedShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!(fast.layout(), BlockedLayout::Split256);
/// assert!(fast.bits_per_item() < 10.6);
/// let dense = BlockedShape::with_layout(BlockedLayout::Line512, 1_000_000, 0.01)?;
/// assert!(dense.bits_per_item() < 9.95);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedShape {
    layout: BlockedLayout,
    /// Parts of the array. An item has a block in each.
    regions: u32,
    /// Blocks in one region.
    blocks: u64,
    /// Bits an item sets in each of its blocks.
    probes: u32,
    capacity: u64,
    target_fpr: f64,
}

/// The most probes per line in another program's filter.
const MAX_FOREIGN_LINE_PROBES: u32 = 127;
/// The lowest rate a blocked filter can promise.
const MIN_RATE: f64 = 1e-9;
/// The lowest rate of the fast layout: 32 bits choose positions in a block, and two items may have the same
/// 32 bits.
const MIN_SPLIT_RATE: f64 = 1e-7;
/// Between these rates the fast layout takes at most a tenth more memory than the dense one, and is the
/// default.
const SPLIT_RATES: std::ops::RangeInclusive<f64> = 1e-3..=0.04;

impl BlockedShape {
    /// Returns the shape for `capacity` items at `target_fpr`, in the layout that suits the rate: the fast
    /// one from 0.1 % to 4 %, otherwise the dense one.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1) or below 1e-9 (1e-7 in the fast layout).
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let fast = SPLIT_RATES.contains(&target_fpr);
        let layout = if fast { BlockedLayout::Split256 } else { BlockedLayout::Line512 };
        Self::with_layout(layout, capacity, target_fpr)
    }

    /// Returns the shape for `capacity` items at `target_fpr` in this layout.
    ///
    /// # Errors
    /// As [`for_capacity`](Self::for_capacity).
    pub fn with_layout(layout: BlockedLayout, capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let limit = match layout {
            BlockedLayout::Split256 => MIN_SPLIT_RATE,
            BlockedLayout::Line512 => MIN_RATE,
        };
        if target_fpr < limit {
            return Err(BuildError::RateTooLow { got: target_fpr, limit });
        }
        let (regions, (blocks, probes)) = match layout {
            BlockedLayout::Split256 => (1, (split_size(capacity, target_fpr), SPLIT_LANES)),
            BlockedLayout::Line512 => {
                let regions = regions_for(target_fpr);
                (regions, line_size(capacity, target_fpr, regions))
            }
        };
        Self { layout, regions, blocks, probes, capacity, target_fpr }.checked()
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(crate) fn from_parts(
        layout: BlockedLayout,
        [regions, probes]: [u32; 2],
        blocks: u64,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        sizing::check_capacity(capacity)?;
        sizing::check_rate(target_fpr)?;
        Self { layout, regions, blocks, probes, capacity, target_fpr }.checked()
    }

    /// Returns a shape of `blocks` RocksDB lines: 512 bits each, one line per item.
    pub(crate) fn rocksdb_lines(
        blocks: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        sizing::check_capacity(capacity)?;
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        let limit = u64::from(u32::MAX);
        if blocks > limit {
            let (got, limit) = (blocks.saturating_mul(LINE_BITS), limit * LINE_BITS);
            return Err(BuildError::BitsOutOfRange { got, limit });
        }
        let layout = BlockedLayout::Line512;
        Self { layout, regions: 1, blocks, probes, capacity, target_fpr }
            .checked_up_to(MAX_FOREIGN_LINE_PROBES)
    }

    /// Same as [`rocksdb_lines`](Self::rocksdb_lines), for a filter that does not record its capacity. The
    /// capacity becomes the number of items that sets half of the bits, for which this number of probes is
    /// best.
    pub(crate) fn rocksdb_lines_of_unknown_capacity(blocks: u64, probes: u32) -> Result<Self, BuildError> {
        let bits = blocks.saturating_mul(LINE_BITS) as f64;
        let capacity = (bits * std::f64::consts::LN_2 / f64::from(probes.max(1))).round() as u64;
        let capacity = capacity.clamp(1, sizing::MAX_CAPACITY);
        Self::rocksdb_lines(blocks, probes, capacity, 1.0).map(Self::promising_what_it_keeps)
    }

    /// Returns the same shape with its expected rate at capacity as the promised rate.
    pub(crate) fn promising_what_it_keeps(self) -> Self {
        Self { target_fpr: self.expected_fpr(self.capacity), ..self }
    }

    /// Returns a shape of `blocks` split blocks of another program. `meant_for` is its capacity and rate, if
    /// it recorded them; otherwise the capacity becomes the number of items that sets half of the bits. If
    /// the blocks cannot keep the rate, the promised rate becomes the one they can keep.
    pub(crate) fn of_split_blocks(blocks: u64, meant_for: Option<(u64, f64)>) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = meant_for.unwrap_or_else(|| {
            let half_clear =
                blocks as f64 * SPLIT_BITS as f64 * std::f64::consts::LN_2 / f64::from(SPLIT_LANES);
            ((half_clear as u64).clamp(1, sizing::MAX_CAPACITY), 0.0)
        });
        let capacity = sizing::check_capacity(capacity)?;
        let layout = BlockedLayout::Split256;
        let shape =
            Self { layout, regions: 1, blocks, probes: SPLIT_LANES, capacity, target_fpr }.checked()?;
        Ok(shape.with_kept_rate())
    }

    /// Returns half of the blocks for half of the items.
    pub(super) fn halved(self) -> Result<Self, BuildError> {
        if !self.blocks.is_multiple_of(2) {
            return Err(BuildError::OddBlocks { got: self.blocks });
        }
        let half = Self { blocks: self.blocks / 2, capacity: (self.capacity / 2).max(1), ..self };
        Ok(half.with_kept_rate())
    }

    /// Raises the promised rate to the one that the model predicts at capacity, if that is higher.
    fn with_kept_rate(self) -> Self {
        /// A promised rate is below 1.
        const HIGHEST: f64 = 1.0 - f64::EPSILON;
        let kept = self.expected_fpr(self.capacity).clamp(sizing::MIN_RATE, HIGHEST);
        Self { target_fpr: self.target_fpr.max(kept), ..self }
    }

    /// Returns the shape if our own filters may have it.
    pub(super) fn checked(self) -> Result<Self, BuildError> {
        self.checked_up_to(MAX_LINE_PROBES)
    }

    /// Same as [`checked`](Self::checked), with up to `most` probes per line.
    fn checked_up_to(self, most: u32) -> Result<Self, BuildError> {
        let (regions, probes) = match self.layout {
            BlockedLayout::Split256 => (1..=1, SPLIT_LANES..=SPLIT_LANES),
            BlockedLayout::Line512 => (1..=MAX_REGIONS, 1..=most),
        };
        if !probes.contains(&self.probes) {
            return Err(BuildError::ProbesOutOfRange { got: self.probes, limit: *probes.end() });
        }
        if !regions.contains(&self.regions) {
            return Err(BuildError::RegionsOutOfRange { got: self.regions, limit: *regions.end() });
        }
        let limit = MAX_BITS / LINE_BITS / u64::from(MAX_REGIONS);
        if self.blocks == 0 || self.blocks > limit {
            return Err(BuildError::BitsOutOfRange {
                got: self.blocks.saturating_mul(LINE_BITS),
                limit: MAX_BITS,
            });
        }
        Ok(self)
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the layout of an item's bits.
    #[must_use]
    pub const fn layout(&self) -> BlockedLayout {
        self.layout
    }

    /// Returns the number of cache lines that a lookup touches: one, or two or three for low rates.
    #[must_use]
    pub const fn lines_per_item(&self) -> u32 {
        self.regions
    }

    /// Returns the number of bits that an item sets in each of its blocks.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns the number of blocks in each of the [`lines_per_item`](Self::lines_per_item) regions. An item
    /// uses one of them.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The number of items it is sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate while the filter holds at most `capacity` items.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the false-positive rate that the model predicts for `items` distinct items, accurate within
    /// 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        match self.layout {
            BlockedLayout::Split256 => split_expected_fpr(self.blocks, items),
            BlockedLayout::Line512 => line_expected_fpr(self.blocks, self.regions, self.probes, items),
        }
    }

    /// Returns the false-positive rate that the model predicts after `counted` insertions that changed
    /// something. Past capacity, these are fewer than the inserted items.
    pub(crate) fn expected_fpr_when_counted(&self, counted: u64) -> f64 {
        self.expected_fpr(counted::offered(counted, |items| self.expected_fpr(items)))
    }

    /// Returns how many of `items` distinct items change the filter, by the model. For split blocks each load
    /// is computed only once: a file may hold thousands of small filters, and this is most of the time it
    /// takes to read one.
    pub(super) fn counted(&self, items: u64) -> u64 {
        match self.layout {
            BlockedLayout::Split256 => {
                let rates = BlockRates::new(split_block_fpr);
                counted::counted(items, |items| rates.mixture(items, self.blocks))
            }
            BlockedLayout::Line512 => counted::counted(items, |items| self.expected_fpr(items)),
        }
    }

    /// Returns the number of bits in all blocks.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        let block_bits = match self.layout {
            BlockedLayout::Split256 => SPLIT_BITS,
            BlockedLayout::Line512 => LINE_BITS,
        };
        self.blocks * self.regions as u64 * block_bits
    }

    /// Returns the memory that the blocks take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS) * LINE_BYTES as u64
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns the number of words in a block.
    pub(super) const fn block_words(&self) -> usize {
        match self.layout {
            BlockedLayout::Split256 => SPLIT_WORDS,
            BlockedLayout::Line512 => LINE_WORDS,
        }
    }

    /// Returns whether all bits mean the same in both. Capacity and target may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        (self.layout, self.regions, self.blocks, self.probes)
            == (other.layout, other.regions, other.blocks, other.probes)
    }

    pub(crate) fn lines(&self) -> usize {
        usize::try_from(self.memory_bytes() / LINE_BYTES as u64).unwrap_or(usize::MAX)
    }
}

/// Returns the lines per item in the dense layout: as few as keep it within 8 % of the classic filter's
/// memory.
fn regions_for(rate: f64) -> u32 {
    match rate {
        _ if rate >= 5e-4 => 1,
        _ if rate >= 5e-6 => 2,
        _ => 3,
    }
}

impl fmt::Display for BlockedShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = match self.layout {
            BlockedLayout::Split256 => SPLIT_BITS,
            BlockedLayout::Line512 => LINE_BITS,
        };
        write!(f, "{} x {} blocks of {bits} bits with {} probes", self.regions, self.blocks, self.probes)
    }
}
