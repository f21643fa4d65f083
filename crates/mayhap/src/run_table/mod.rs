//! Sorted runs of small numbers in a table of slots: the storage of the quotient and the growing filter.
//!
//! A number belongs to a *home*, one of `homes` places. The numbers of one home are a *run*: neighbouring
//! slots, in an order that the table's owner chooses. Runs are in the order of their homes. Each begins in
//! the slot of its home, or right after the previous runs if they reach that far. Two bits per slot are
//! enough to find every run again:
//!
//! ```text
//! home        0 1 2 3 4 5 6 7 8          runs: 1 ─▶ a b c, 2 ─▶ d, 4 ─▶ e f, 8 ─▶ g
//! occupied    0 1 1 0 1 0 0 0 1          has this home a run?
//! slot        · a b c d e f · g
//! run end     0 0 0 1 1 0 1 0 1          is this slot the last of its run?
//! ```
//!
//! The n-th occupied home has the n-th run end. To avoid counting from the beginning, every block of 60 homes
//! stores its *offset*: how many of its slots belong to runs of earlier blocks. From there, one popcount and
//! one select find the run. The occupied bits, run ends and offset of a block are two words, 2.13 bits per
//! slot:
//!
//! ```text
//! word 0  60 occupied bits │ offset, low 4 bits          an offset of 255 means 255 or more, and is then
//! word 1  60 run ends      │ offset, high 4 bits         computed from the nearest earlier block that stores its own
//! ```
//!
//! The slots are an array of their own after the blocks. There are a few more slots than homes, for the runs
//! of the last homes to move into, so nothing ever wraps around.
//!
//! P. Pandey, M. Bender, R. Johnson, R. Patro, *A General-Purpose Counting Filter: Making Every Bit Count*, SIGMOD 2017.

mod check;
mod edit;
mod explain;
mod find;
mod runs;
#[cfg(test)]
mod tests;

pub(crate) use find::View;
pub(crate) use runs::{Appender, Runs};

use std::ops::Range;

use crate::error::BuildError;
use crate::simd;
use crate::simd::select::{self, Bmi2, Kernel, Select};
use crate::sizing::MAX_BITS;
use crate::store::{Lines, WORDS_PER_LINE};

/// The number of homes, and of slots, in a block.
const BLOCK: u64 = 60;
/// The bits of a word that belong to the slots of a block; the four bits above them are half an offset.
const IN_BLOCK: u64 = (1 << BLOCK) - 1;
/// The offset that means "this or more".
const MAX_OFFSET: u64 = 255;
/// The largest number of bits in a slot.
pub(crate) const MAX_SLOT_BITS: u32 = 58;

/// No slot is left to move a number into. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunTableFull;

/// Runs of `bits`-bit numbers.
#[derive(Debug)]
pub(crate) struct RunTable {
    lines: Lines,
    homes: u64,
    bits: u32,
    /// Slots in use.
    used: u64,
    /// The word where the slots begin, at the start of a line; computed from `homes`.
    cells_at: usize,
    /// The words of the blocks, two each; computed from `homes`.
    block_words: usize,
    bmi2: Option<Bmi2>,
}

impl RunTable {
    /// Creates an empty table with `homes` homes and slots of `bits` bits.
    ///
    /// # Errors
    /// As [`lines_for`](Self::lines_for), and [`BuildError::OutOfMemory`].
    pub(crate) fn with_homes(homes: u64, bits: u32) -> Result<Self, BuildError> {
        let lines = usize::try_from(Self::lines_for(homes, bits)?).unwrap_or(usize::MAX);
        Ok(Self::of_lines(Lines::zeroed(lines)?, homes, bits))
    }

    /// Builds a table from these lines. Their number must be that of [`lines_for`](Self::lines_for).
    fn of_lines(lines: Lines, homes: u64, bits: u32) -> Self {
        let cells_at = block_lines(homes) as usize * WORDS_PER_LINE;
        let block_words = 2 * blocks_for(homes) as usize;
        Self { lines, homes, bits, used: 0, cells_at, block_words, bmi2: Bmi2::detect() }
    }

    /// Returns the memory of such a table, in 64-byte lines.
    ///
    /// # Errors
    /// [`BuildError::FingerprintOutOfRange`] for slots of 0 or more than [`MAX_SLOT_BITS`] bits,
    /// [`BuildError::BitsOutOfRange`] for no homes, or more than fit in [`MAX_BITS`].
    pub(crate) fn lines_for(homes: u64, bits: u32) -> Result<u64, BuildError> {
        if bits == 0 || bits > MAX_SLOT_BITS {
            return Err(BuildError::FingerprintOutOfRange { got: bits, least: 1, limit: MAX_SLOT_BITS });
        }
        let out_of_range = |got| BuildError::BitsOutOfRange { got, limit: MAX_BITS };
        if homes == 0 || homes > MAX_BITS {
            return Err(out_of_range(homes));
        }
        let lines = block_lines(homes) + cell_lines(homes, bits);
        if lines > MAX_BITS / 512 {
            return Err(out_of_range(lines.saturating_mul(512)));
        }
        Ok(lines)
    }

    /// Starts loading the lines that [`run`](Self::run) reads for this home, and the lines that most likely
    /// contain the run.
    #[inline(always)]
    pub(crate) fn prefetch(&self, home: u64) {
        simd::prefetch(self.lines.words(), 2 * (home / BLOCK) as usize);
        self.prefetch_slot(home);
    }

    /// Starts loading the line that most likely contains the run of this home.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, home: u64) {
        let word = self.cells_at + (home * u64::from(self.bits) / 64) as usize;
        simd::prefetch(self.lines.words(), word);
    }

    /// Returns the slots of the run of this home, if it has one.
    #[inline]
    pub(crate) fn run(&self, home: u64) -> Option<Range<u64>> {
        struct Run<'a>(&'a RunTable, u64);
        impl Kernel for Run<'_> {
            type Output = Option<Range<u64>>;
            #[inline(always)]
            fn run(self, select: impl Select) -> Self::Output {
                self.0.view(select).run(self.1)
            }
        }
        select::run(self.bmi2, Run(self, home))
    }

    /// Returns the slots of the run of this home; if it has none, an empty range where it would begin.
    #[inline]
    pub(crate) fn run_or_gap(&self, home: u64) -> Range<u64> {
        struct RunOrGap<'a>(&'a RunTable, u64);
        impl Kernel for RunOrGap<'_> {
            type Output = Range<u64>;
            #[inline(always)]
            fn run(self, select: impl Select) -> Self::Output {
                self.0.view(select).run_or_gap(self.1)
            }
        }
        select::run(self.bmi2, RunOrGap(self, home))
    }

    /// Returns the content of the slot.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u64) -> u64 {
        self.view(select::Plain).get(slot)
    }

    /// Replaces the content of a used slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: u64, value: u64) {
        let (at, bits) = (self.cells_at, self.bits);
        edit::put(&mut self.lines.words_mut()[at..], slot, bits, value);
    }

    /// Returns the table in the form that lookups use. Code that runs in a [`Kernel`] should make its own
    /// view once.
    #[inline(always)]
    pub(crate) fn view<S: Select>(&self, select: S) -> View<'_, S> {
        let (blocks, cells) = self.lines.words().split_at(self.cells_at);
        View::new(&blocks[..self.block_words], cells, self.bits, select)
    }

    /// Proof of BMI2, for kernels over [`view`](Self::view).
    #[inline(always)]
    pub(crate) const fn bmi2(&self) -> Option<Bmi2> {
        self.bmi2
    }

    /// Returns all runs in the order of their homes.
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs::new(self)
    }

    /// Returns all numbers with their homes, in the order of the slots.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs().flat_map(move |(home, run)| run.map(move |slot| (home, self.get(slot))))
    }

    /// The number of slots in use.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    pub(crate) const fn homes(&self) -> u64 {
        self.homes
    }

    /// The number of slots.
    #[inline(always)]
    pub(crate) const fn slots(&self) -> u64 {
        self.block_words as u64 / 2 * BLOCK
    }

    /// The number of bits in a slot.
    pub(crate) const fn bits(&self) -> u32 {
        self.bits
    }

    /// Empties all slots.
    pub(crate) fn clear(&mut self) {
        self.lines.words_mut().fill(0);
        self.used = 0;
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// The table's memory, for encoding.
    pub(crate) const fn lines(&self) -> &Lines {
        &self.lines
    }
}

/// Returns the number of slots for `homes` homes: whole blocks, with some spare slots after the last home.
///
/// How far runs reach past the last home is a random walk. At 95 % load, the probability that they reach `x`
/// slots past it is about `e^(-x/10)`. In a short table they reach at most about seven times the square root
/// of its length: they exceed that once in 10^11 tables.
const fn slots_for(homes: u64) -> u64 {
    const FAR: u64 = 256;
    let walk = 7 * homes.isqrt() + 8;
    let spare = if walk < FAR { walk } else { FAR };
    (homes + spare).div_ceil(BLOCK) * BLOCK
}

const fn blocks_for(homes: u64) -> u64 {
    slots_for(homes) / BLOCK
}

const fn block_lines(homes: u64) -> u64 {
    (2 * blocks_for(homes)).div_ceil(WORDS_PER_LINE as u64)
}

/// Includes one word more than the slots fill: a slot is read as two words, and so is the last slot.
const fn cell_lines(homes: u64, bits: u32) -> u64 {
    ((slots_for(homes) as u128 * bits as u128).div_ceil(64) as u64 + 1).div_ceil(WORDS_PER_LINE as u64)
}
