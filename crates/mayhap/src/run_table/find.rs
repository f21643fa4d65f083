//! Finding runs: rank and select.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BLOCK, IN_BLOCK, MAX_OFFSET};
use crate::simd::select::Select;

/// A table in the form that lookups use.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, S> {
    /// Two words per block.
    blocks: &'a [[AtomicU64; 2]],
    /// The slots, and one word after them.
    cells: &'a [AtomicU64],
    bits: u32,
    select: S,
}

impl<'a, S: Select> View<'a, S> {
    #[inline(always)]
    pub(super) fn new(blocks: &'a [AtomicU64], cells: &'a [AtomicU64], bits: u32, select: S) -> Self {
        Self { blocks: blocks.as_chunks().0, cells, bits, select }
    }

    /// Returns the content of the slot.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u64) -> u64 {
        self.window(slot) & (u64::MAX >> (64 - self.bits))
    }

    /// Returns the 64 bits from the slot on: its content in the lowest bits, then the contents of the slots
    /// after it.
    #[inline(always)]
    pub(crate) fn window(&self, slot: u64) -> u64 {
        let bit = slot * u64::from(self.bits);
        let (at, shift) = ((bit / 64) as usize, bit % 64);
        let cells = &self.cells[at..at + 2];
        let (low, high) = (cells[0].load(Ordering::Relaxed), cells[1].load(Ordering::Relaxed));
        low >> shift | high << 1 << (63 - shift)
    }

    /// Returns the slots of the run of this home, if it has one.
    #[inline(always)]
    pub(crate) fn run(&self, home: u64) -> Option<Range<u64>> {
        let (block, within) = (home / BLOCK, home % BLOCK);
        let [occupied, ends] = &self.blocks[block as usize];
        let occupied = occupied.load(Ordering::Relaxed);
        if occupied >> within & 1 == 0 {
            return None;
        }
        let offset = self.offset_of(block, occupied, ends.load(Ordering::Relaxed));
        let rank = (occupied << (63 - within)).count_ones();
        let (before, end) = self.nth_end(block * BLOCK + offset, rank);
        Some(before.max(home)..end)
    }

    /// Returns the slots of the run of this home; if it has none, an empty range where it would begin.
    #[inline(always)]
    pub(crate) fn run_or_gap(&self, home: u64) -> Range<u64> {
        let (block, within) = (home / BLOCK, home % BLOCK);
        let [occupied, ends] = self.words(block);
        let from = block * BLOCK + self.offset_of(block, occupied, ends);
        // The bits of homes up to and including this one.
        let occupied = occupied << (63 - within);
        let rank = occupied.count_ones();
        let (before, end) = if rank == 0 { (from, from) } else { self.nth_end(from, rank) };
        if occupied >> 63 == 1 {
            return before.max(home)..end;
        }
        let gap = end.max(home);
        gap..gap
    }

    /// Returns the first empty slot from `end` on. The runs of all homes up to `home` end before `end`.
    #[inline(always)]
    pub(super) fn first_empty(&self, mut home: u64, mut end: u64) -> Option<u64> {
        while end < self.slots() {
            // Runs whose home is this slot or an earlier one, and which have no slot yet, lie after this
            // slot.
            let displaced = self.occupied_between(home + 1, end + 1);
            if displaced == 0 {
                return Some(end);
            }
            home = end;
            end = self.nth_end(end, displaced).1;
        }
        None
    }

    /// Returns the first slot from `end` on that is empty or has a run that begins at its home. The runs of
    /// all homes up to `home` end before `end`.
    #[inline(always)]
    pub(super) fn first_settled(&self, mut home: u64, mut end: u64) -> u64 {
        while end < self.slots() {
            let displaced = self.occupied_between(home + 1, end);
            if displaced == 0 {
                return end;
            }
            home = end - 1;
            end = self.nth_end(end, displaced).1;
        }
        self.slots()
    }

    /// Returns how many homes from `start` up to `end` have a run; both are at most the number of slots.
    #[inline(always)]
    fn occupied_between(&self, start: u64, end: u64) -> u32 {
        if start >= end {
            return 0;
        }
        let (first, last) = (start / BLOCK, (end - 1) / BLOCK);
        let (above, below) = (IN_BLOCK << (start % BLOCK), IN_BLOCK >> (BLOCK - 1 - (end - 1) % BLOCK));
        if first == last {
            return (self.words(first)[0] & IN_BLOCK & above & below).count_ones();
        }
        let between = (first + 1..last).map(|block| (self.words(block)[0] & IN_BLOCK).count_ones());
        let edges = (self.words(first)[0] & IN_BLOCK & above).count_ones()
            + (self.words(last)[0] & below).count_ones();
        edges + between.sum::<u32>()
    }

    /// Finds the `rank`-th run from slot `from` on, counting from 1. Returns the end of its predecessor (or
    /// `from`) and its own end. In a damaged table it may be missing: then its end is the end of the table.
    #[inline(always)]
    fn nth_end(&self, from: u64, mut rank: u32) -> (u64, u64) {
        let mut before = from;
        let (mut block, mut mask) = (from / BLOCK, IN_BLOCK << (from % BLOCK));
        while let Some([_, ends]) = self.blocks.get(block as usize) {
            let ends = ends.load(Ordering::Relaxed) & mask & IN_BLOCK;
            let count = ends.count_ones();
            if rank <= count {
                let at = self.select.select(ends, rank - 1);
                let below = ends & ((1 << at) - 1);
                if below != 0 {
                    before = block * BLOCK + u64::from(64 - below.leading_zeros());
                }
                return (before, block * BLOCK + u64::from(at) + 1);
            }
            if ends != 0 {
                before = block * BLOCK + u64::from(64 - ends.leading_zeros());
            }
            rank -= count;
            mask = IN_BLOCK;
            block += 1;
        }
        (before.min(self.slots()), self.slots())
    }

    /// Returns the offset in the two words of a block, computed if it is too large for them.
    #[inline(always)]
    fn offset_of(&self, block: u64, occupied: u64, ends: u64) -> u64 {
        match stored_offset(occupied, ends) {
            MAX_OFFSET => self.far_offset(block),
            offset => offset,
        }
    }

    /// Returns how many slots of the block, and after it, belong to runs of earlier blocks.
    pub(super) fn offset(&self, block: u64) -> u64 {
        let [occupied, ends] = self.words(block);
        self.offset_of(block, occupied, ends)
    }

    /// Computes the offset of a block from the nearest earlier block that stores its own.
    #[cold]
    #[inline(never)]
    fn far_offset(&self, block: u64) -> u64 {
        let stored = |block| {
            let [occupied, ends] = self.words(block);
            stored_offset(occupied, ends)
        };
        let known = (0..block).rev().find(|&block| stored(block) < MAX_OFFSET).unwrap_or(0);
        let first = stored(known) % MAX_OFFSET;
        (known..block).fold(first, |offset, block| self.next_offset(block, offset))
    }

    /// Returns the offset of the next block, from `offset`, that of this block.
    #[inline(always)]
    pub(super) fn next_offset(&self, block: u64, offset: u64) -> u64 {
        let rank = (self.words(block)[0] & IN_BLOCK).count_ones();
        let reached = block * BLOCK + offset;
        let end = if rank == 0 { reached } else { self.nth_end(reached, rank).1 };
        end.saturating_sub((block + 1) * BLOCK)
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) const fn slots(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }

    /// The number of blocks.
    pub(super) const fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns both words of a block.
    #[inline(always)]
    pub(super) fn words(&self, block: u64) -> [u64; 2] {
        let [occupied, ends] = &self.blocks[block as usize];
        [occupied.load(Ordering::Relaxed), ends.load(Ordering::Relaxed)]
    }
}

/// Returns the offset stored in the two words of a block.
#[inline(always)]
pub(super) const fn stored_offset(occupied: u64, ends: u64) -> u64 {
    occupied >> BLOCK | ends >> BLOCK << 4
}
