//! The position of an item's rows: the layers, their blocks, and the parts of an item's key.
//!
//! ```text
//!              ┌─ columns ─────────────────────┬─ thresholds ─┐┌─ columns ─┬─ thresholds ─┐      ┌─ columns ─┐
//!  layers      │ block 0 │ block 1 │ block 2 … │ 2 bits each  ││     …     │      …       │  …   │  the last │
//!              └───┬─────────────────────────────────┬────────┘└───────────┴──────────────┘      └───────────┘
//!  a block      one word per column:             one word for
//!               64 rows of that column           32 buckets of two blocks
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::BuildError;
use crate::hash::reduce;
use crate::simd::ribbon::Probe;
use crate::sizing::ribbon::{
    BLOCK_ROWS, BUCKET_ROWS, COLUMN, MAX_COLUMNS, MAX_LAYERS, THRESHOLD_BITS, narrow_blocks, threshold_words,
};
use crate::sizing::{MAX_BITS, MAX_CAPACITY};

/// The number of rows at the beginning of a bucket whose items are bumped, by the bucket's two bits.
pub(super) const THRESHOLDS: [u8; 4] = [0, 16, 40, BUCKET_ROWS as u8];
/// Buckets whose bits share a word.
const BUCKETS_PER_WORD: u64 = 64 / THRESHOLD_BITS;

/// The most blocks a layer can have.
const MAX_BLOCKS: u64 = 2 * MAX_CAPACITY / BLOCK_ROWS;

/// One banded system of equations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RibbonLayer {
    pub(super) blocks: u64,
    /// The number of rows that can be the first one of an item: those with 64 rows from there on.
    pub(super) starts: u64,
    /// Columns of the first `narrow` blocks. The others have one more.
    pub(super) columns: u64,
    pub(super) narrow: u64,
    /// The first word of its columns.
    pub(super) word: u64,
    /// The first word of its thresholds, and the word after the last.
    pub(super) thresholds: u64,
    pub(super) end: u64,
}

impl RibbonLayer {
    fn new(blocks: u64, columns: u64, word: u64, place: RibbonPlace) -> Self {
        let starts = blocks * BLOCK_ROWS - (BLOCK_ROWS - 1);
        let narrow = narrow_blocks(blocks, starts, columns);
        let columns = columns / COLUMN;
        let thresholds = word + blocks * columns + (blocks - narrow);
        let end = thresholds + if place == RibbonPlace::Last { 0 } else { threshold_words(blocks) };
        Self { blocks, starts, columns, narrow, word, thresholds, end }
    }

    /// Returns the first row of an item.
    #[inline(always)]
    pub(super) fn start(&self, key: u64) -> u64 {
        reduce(key, self.starts)
    }

    /// Returns the number of columns of this block.
    #[inline(always)]
    pub(super) fn columns_of(&self, block: u64) -> u64 {
        self.columns + u64::from(block >= self.narrow)
    }

    /// Returns the first word of this block.
    #[inline(always)]
    pub(super) fn word_of(&self, block: u64) -> u64 {
        self.word + block * self.columns + block.saturating_sub(self.narrow)
    }

    /// Returns the false-positive rate among non-members that are not bumped, if all rows are equally likely.
    pub(super) fn rate(&self) -> f64 {
        let narrow = (self.narrow * BLOCK_ROWS).min(self.starts);
        self.rate_of(narrow, self.starts - narrow)
    }

    /// Returns the false-positive rate among non-members that begin in `narrow` rows of narrow blocks and
    /// `wide` rows of wide ones.
    pub(super) fn rate_of(&self, narrow: u64, wide: u64) -> f64 {
        let all = 0.5_f64.powi(self.columns as i32);
        if narrow + wide == 0 {
            all
        } else {
            all * (narrow as f64 + wide as f64 / 2.0) / (narrow + wide) as f64
        }
    }

    pub(super) fn buckets(&self) -> u64 {
        (self.blocks * BLOCK_ROWS).div_ceil(BUCKET_ROWS)
    }

    /// Returns the word with the threshold of this row's bucket, and its shift.
    #[inline(always)]
    pub(super) fn threshold(&self, row: u64) -> (u64, u64) {
        let bucket = row / BUCKET_ROWS;
        (self.thresholds + bucket / BUCKETS_PER_WORD, bucket % BUCKETS_PER_WORD * THRESHOLD_BITS)
    }

    /// Returns what a lookup reads for an item with the first row `start`.
    #[inline(always)]
    pub(super) fn probe(&self, key: u64, start: u64) -> Probe {
        let (block, row) = (start / BLOCK_ROWS, start % BLOCK_ROWS);
        let coefficients = coefficients(key);
        Probe {
            word: self.word_of(block) as usize,
            // The last possible first row is the first one of the last block, which has no next block.
            next_word: self.word_of((block + 1).min(self.blocks - 1)) as usize,
            columns: self.columns_of(block) as usize,
            coefficients: coefficients << row,
            // In two steps, because a shift by 64 is not defined.
            next_coefficients: coefficients >> 1 >> (BLOCK_ROWS - 1 - row),
            fingerprint: fingerprint(key),
        }
    }
}

/// Whether a layer bumps items to a next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RibbonPlace {
    Before,
    Last,
}

/// All layers, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RibbonLayout {
    /// Columns of a row on average, in units of [`COLUMN`].
    pub(super) columns: u64,
    layers: [RibbonLayer; MAX_LAYERS],
    count: usize,
    /// The number of failed attempts at the last layer.
    pub(super) attempt: u32,
}

impl RibbonLayout {
    pub(super) const fn empty(columns: u64) -> Self {
        let none =
            RibbonLayer { blocks: 0, starts: 0, columns: 0, narrow: 0, word: 0, thresholds: 0, end: 0 };
        Self { columns, layers: [none; MAX_LAYERS], count: 0, attempt: 0 }
    }

    /// Returns the layout with these blocks per layer, zeroes after the last one. The numbers may be
    /// untrusted.
    pub(super) fn of(columns: u64, blocks: [u64; MAX_LAYERS], attempt: u32) -> Result<Self, BuildError> {
        let mut layout = Self { attempt, ..Self::empty(columns) };
        let count = blocks.iter().take_while(|&&blocks| blocks > 0).count();
        for (index, &blocks) in blocks[..count].iter().enumerate() {
            layout.push(blocks, if index + 1 == count { RibbonPlace::Last } else { RibbonPlace::Before })?;
        }
        Ok(layout)
    }

    /// Adds a layer.
    pub(super) fn push(&mut self, blocks: u64, place: RibbonPlace) -> Result<RibbonLayer, BuildError> {
        if self.columns > MAX_COLUMNS * COLUMN || blocks == 0 || blocks > MAX_BLOCKS {
            let bits = blocks.saturating_mul(BLOCK_ROWS).saturating_mul(self.columns / COLUMN + 1);
            return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
        }
        if self.count == MAX_LAYERS {
            return Err(BuildError::LayersOutOfRange { got: self.count + 1, limit: MAX_LAYERS });
        }
        let word = if self.count == 0 { 0 } else { self.words() };
        let layer = RibbonLayer::new(blocks, self.columns, word, place);
        if layer.end > MAX_BITS / 64 {
            return Err(BuildError::BitsOutOfRange { got: layer.end * 64, limit: MAX_BITS });
        }
        self.layers[self.count] = layer;
        self.count += 1;
        Ok(layer)
    }

    #[inline(always)]
    pub(super) fn layers(&self) -> &[RibbonLayer] {
        &self.layers[..self.count]
    }

    /// Returns the number of words of all layers.
    pub(super) fn words(&self) -> u64 {
        self.layers().last().map_or(0, |layer| layer.end)
    }

    /// Returns an error with the first set bit in the threshold of a bucket that does not exist.
    pub(super) fn check_thresholds(&self, words: &[AtomicU64]) -> Result<(), u64> {
        for layer in self.layers() {
            let used = layer.buckets() % BUCKETS_PER_WORD * THRESHOLD_BITS;
            if layer.end == layer.thresholds || used == 0 {
                continue;
            }
            let stray = words[layer.end as usize - 1].load(Ordering::Relaxed) >> used << used;
            if stray != 0 {
                return Err((layer.end - 1) * 64 + u64::from(stray.trailing_zeros()));
            }
        }
        Ok(())
    }

    /// Returns the blocks of all layers, zeroes after the last one.
    pub(super) fn blocks(&self) -> [u64; MAX_LAYERS] {
        self.layers.map(|layer| layer.blocks)
    }

    /// Returns the key of an item in the last layer, which may have taken several attempts.
    #[inline(always)]
    pub(super) fn last_key(&self, key: u64) -> u64 {
        if self.attempt == 0 { key } else { rekeyed(key, u64::from(self.attempt)) }
    }
}

/// Returns a key for another layer or another attempt. Different keys stay different.
#[inline(always)]
pub(super) const fn rekeyed(key: u64, number: u64) -> u64 {
    let mut mixed = key.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Returns the key of an item in the next layer.
#[inline(always)]
pub(super) const fn next_key(key: u64) -> u64 {
    rekeyed(key, 0)
}

/// Returns which of the 64 rows from the first one on count for an item. The first one always does.
#[inline(always)]
pub(super) const fn coefficients(key: u64) -> u64 {
    folded(key, 0xd6e8_feb8_6659_fd93) | 1
}

/// Returns the parity of each column for an item, one bit each.
#[inline(always)]
pub(super) const fn fingerprint(key: u64) -> u64 {
    folded(key ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db)
}

/// Combines both halves of the product. Every bit depends on all bits of `x`, even if the high bits of `x`
/// are equal, as for all items that begin in the same row.
#[inline(always)]
const fn folded(x: u64, multiplier: u64) -> u64 {
    let product = x as u128 * multiplier as u128;
    product as u64 ^ (product >> 64) as u64
}
