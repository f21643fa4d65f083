//! All runs in order: reading them, and writing a table from start to end.

use std::ops::Range;

use super::edit::{put, set_end, set_offset};
use super::{BLOCK, IN_BLOCK, MAX_OFFSET, RunTable, RunTableFull, View};
use crate::error::BuildError;
use crate::simd::select::Plain;

/// All runs of a table with their homes, in the order of the homes.
pub(crate) struct Runs<'a> {
    view: View<'a, Plain>,
    /// The block of the next home, and its homes not yet returned.
    block: u64,
    homes: u64,
    /// The end of the last run.
    end: u64,
}

impl<'a> Runs<'a> {
    pub(super) fn new(table: &'a RunTable) -> Self {
        let view = table.view(Plain);
        Self { view, block: 0, homes: view.words(0)[0] & IN_BLOCK, end: 0 }
    }

    /// Returns the first run end from `slot` on.
    fn next_end(&self, slot: u64) -> Option<u64> {
        let (mut block, mut mask) = (slot / BLOCK, u64::MAX << (slot % BLOCK));
        while block < self.view.block_count() {
            let ends = self.view.words(block)[1] & IN_BLOCK & mask;
            if ends != 0 {
                return Some(block * BLOCK + u64::from(ends.trailing_zeros()));
            }
            mask = u64::MAX;
            block += 1;
        }
        None
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, Range<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.homes == 0 {
            self.block += 1;
            if self.block >= self.view.block_count() {
                return None;
            }
            self.homes = self.view.words(self.block)[0] & IN_BLOCK;
        }
        let home = self.block * BLOCK + u64::from(self.homes.trailing_zeros());
        self.homes &= self.homes - 1;
        let start = self.end.max(home);
        self.end = self.next_end(start)? + 1;
        Some((home, start..self.end))
    }
}

/// Writes a table from start to end, in time linear in its size.
#[derive(Debug)]
pub(crate) struct Appender {
    table: RunTable,
    /// The last home that has a run.
    home: Option<u64>,
    /// The end of that home's run.
    end: u64,
}

impl Appender {
    /// Same as [`RunTable::with_homes`].
    pub(crate) fn with_homes(homes: u64, bits: u32) -> Result<Self, BuildError> {
        Ok(Self { table: RunTable::with_homes(homes, bits)?, home: None, end: 0 })
    }

    /// Slots written so far.
    pub(crate) const fn used(&self) -> u64 {
        self.table.used
    }

    /// Adds `value` at the end of the run of `home`, which must not be before the home of the last call.
    ///
    /// # Errors
    /// [`RunTableFull`] if the last slot is taken.
    ///
    /// # Panics
    /// For a home that is not in the table.
    #[inline]
    pub(crate) fn push(&mut self, home: u64, value: u64) -> Result<(), RunTableFull> {
        debug_assert!(self.home.is_none_or(|last| last <= home) && home < self.table.homes);
        let table = &mut self.table;
        let slot = self.end.max(home);
        if slot >= table.slots() {
            return Err(RunTableFull);
        }
        let (bits, cells_at) = (table.bits, table.cells_at);
        let (blocks, cells) = table.lines.words_mut().split_at_mut(cells_at);
        if self.home == Some(home) {
            set_end(blocks, slot - 1, false);
        } else {
            let last = self.home.map_or(0, |last| last / BLOCK);
            for block in last + 1..=home / BLOCK {
                set_offset(blocks, block, self.end.saturating_sub(block * BLOCK).min(MAX_OFFSET));
            }
            blocks[2 * (home / BLOCK) as usize] |= 1 << (home % BLOCK);
            self.home = Some(home);
        }
        set_end(blocks, slot, true);
        put(cells, slot, bits, value);
        self.end = slot + 1;
        table.used += 1;
        Ok(())
    }

    /// Returns the table.
    pub(crate) fn finish(mut self) -> RunTable {
        let last = self.home.map_or(0, |last| last / BLOCK);
        let blocks = self.table.lines.words_mut();
        for block in last + 1..self.end.div_ceil(BLOCK) {
            set_offset(blocks, block, (self.end - block * BLOCK).min(MAX_OFFSET));
        }
        self.table
    }
}
