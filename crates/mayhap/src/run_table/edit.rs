//! Changing runs: everything between a run and the next empty slot moves by one.

use std::ops::Range;

use super::find::stored_offset;
use super::{BLOCK, IN_BLOCK, MAX_OFFSET, RunTable, RunTableFull};
use crate::simd::select::{self, Kernel, Plain, Select};

impl RunTable {
    /// Inserts `value` into the run of `home`, before the current content of slot `at`, which is a slot of
    /// the run or its end. `run` is the result of [`run_or_gap`](Self::run_or_gap) for this home.
    ///
    /// # Errors
    /// [`RunTableFull`] if no slot after `at` is empty. Nothing has changed.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        home: u64,
        run: &Range<u64>,
        at: u64,
        value: u64,
    ) -> Result<(), RunTableFull> {
        struct FirstEmpty<'a>(&'a RunTable, u64, u64);
        impl Kernel for FirstEmpty<'_> {
            type Output = Option<u64>;
            #[inline(always)]
            fn run(self, select: impl Select) -> Self::Output {
                self.0.view(select).first_empty(self.1, self.2)
            }
        }
        let empty = select::run(self.bmi2, FirstEmpty(self, home, run.end)).ok_or(RunTableFull)?;
        let (bits, cells_at) = (self.bits, self.cells_at);
        let (blocks, cells) = self.lines.words_mut().split_at_mut(cells_at);
        move_up(cells, at * u64::from(bits), empty * u64::from(bits), bits);
        put(cells, at, bits, value);
        move_ends_up(blocks, at, empty);
        if run.is_empty() {
            blocks[2 * (home / BLOCK) as usize] |= 1 << (home % BLOCK);
            set_end(blocks, at, true);
        } else if at == run.end {
            set_end(blocks, at - 1, false);
            set_end(blocks, at, true);
        }
        // The runs of earlier homes now reach one slot further into each of these blocks, up to the empty
        // slot.
        for block in home / BLOCK + 1..=empty / BLOCK {
            let offset = offset_in(blocks, block);
            set_offset(blocks, block, offset + u64::from(offset < MAX_OFFSET));
        }
        self.used += 1;
        Ok(())
    }

    /// Removes the number in `slot` from the run of `home`. `run` is the result of [`run`](Self::run) for
    /// this home.
    #[inline]
    pub(crate) fn remove(&mut self, home: u64, run: &Range<u64>, slot: u64) {
        struct FirstSettled<'a>(&'a RunTable, u64, u64);
        impl Kernel for FirstSettled<'_> {
            type Output = u64;
            #[inline(always)]
            fn run(self, select: impl Select) -> Self::Output {
                self.0.view(select).first_settled(self.1, self.2)
            }
        }
        // Everything after the run moves back, up to an empty slot or a run that begins at its home.
        let stop = select::run(self.bmi2, FirstSettled(self, home, run.end));
        let (bits, cells_at) = (self.bits, self.cells_at);
        let (blocks, cells) = self.lines.words_mut().split_at_mut(cells_at);
        move_down(cells, (slot + 1) * u64::from(bits), stop * u64::from(bits), bits);
        put(cells, stop - 1, bits, 0);
        if run.end - run.start == 1 {
            blocks[2 * (home / BLOCK) as usize] &= !(1 << (home % BLOCK));
        } else if slot + 1 == run.end {
            set_end(blocks, slot - 1, true);
        }
        move_ends_down(blocks, slot, stop);
        self.used -= 1;
        let reached = home / BLOCK + 1..=(stop - 1) / BLOCK;
        let mut far = false;
        for block in reached.clone() {
            let offset = offset_in(blocks, block);
            far |= offset == MAX_OFFSET;
            set_offset(blocks, block, offset - u64::from((1..MAX_OFFSET).contains(&offset)));
        }
        if far {
            self.lower_far_offsets(home / BLOCK, *reached.end());
        }
    }

    /// Recomputes the offsets of the blocks after `known`, up to and including `last`, which were too large
    /// to be counted down.
    #[cold]
    fn lower_far_offsets(&mut self, known: u64, last: u64) {
        let mut offset = self.view(Plain).offset(known);
        for block in known..last {
            offset = self.view(Plain).next_offset(block, offset);
            set_offset(self.lines.words_mut(), block + 1, offset.min(MAX_OFFSET));
        }
    }
}

/// Writes one slot.
#[inline(always)]
pub(super) fn put(cells: &mut [u64], slot: u64, bits: u32, value: u64) {
    let bit = slot * u64::from(bits);
    let (at, shift) = ((bit / 64) as usize, bit % 64);
    let mask = u64::MAX >> (64 - bits);
    let value = value & mask;
    let cells = &mut cells[at..at + 2];
    cells[0] = cells[0] & !(mask << shift) | value << shift;
    // The part, if any, that does not fit in the first word.
    cells[1] = cells[1] & !(mask >> 1 >> (63 - shift)) | value >> 1 >> (63 - shift);
}

/// Moves the bits from `start` to `end` up by `by`, which is below 64. Overwrites the `by` bits after `end`.
#[inline(always)]
fn move_up(words: &mut [u64], start: u64, end: u64, by: u32) {
    if start == end {
        return;
    }
    let (low, high) = (start + u64::from(by), end + u64::from(by));
    let (first, last) = ((low / 64) as usize, ((high - 1) / 64) as usize);
    let below = if first == 0 { 0 } else { words[first - 1] };
    let words = &mut words[first..=last];
    let keep =
        [words[0] & ((1 << (low % 64)) - 1), words[last - first] & !(u64::MAX >> (63 - (high - 1) % 64))];
    for at in (1..words.len()).rev() {
        words[at] = words[at] << by | words[at - 1] >> (64 - by);
    }
    words[0] = words[0] << by | below >> (64 - by);
    put_back(words, low, high, keep);
}

/// Moves the bits from `start` to `end` down by `by`, which is below 64. Overwrites the `by` bits before
/// `start`.
#[inline(always)]
fn move_down(words: &mut [u64], start: u64, end: u64, by: u32) {
    if start == end {
        return;
    }
    let (low, high) = (start - u64::from(by), end - u64::from(by));
    let (first, last) = ((low / 64) as usize, ((high - 1) / 64) as usize);
    let above = words.get(last + 1).copied().unwrap_or(0);
    let words = &mut words[first..=last];
    let keep =
        [words[0] & ((1 << (low % 64)) - 1), words[last - first] & !(u64::MAX >> (63 - (high - 1) % 64))];
    for at in 0..words.len() - 1 {
        words[at] = words[at] >> by | words[at + 1] << (64 - by);
    }
    let end = words.len() - 1;
    words[end] = words[end] >> by | above << (64 - by);
    put_back(words, low, high, keep);
}

/// Restores the bits before `low` in the first word, and from `high` on in the last.
#[inline(always)]
fn put_back(words: &mut [u64], low: u64, high: u64, [front, back]: [u64; 2]) {
    words[0] = words[0] & (u64::MAX << (low % 64)) | front;
    let last = words.len() - 1;
    words[last] = words[last] & (u64::MAX >> (63 - (high - 1) % 64)) | back;
}

/// Moves the run ends from slot `at` up to slot `empty` one slot up. Slot `at` has none afterwards.
#[inline(always)]
fn move_ends_up(blocks: &mut [u64], at: u64, empty: u64) {
    let (first, last) = (at / BLOCK, empty / BLOCK);
    for block in (first..=last).rev() {
        let low = if block == first { at % BLOCK } else { 0 };
        let high = if block == last { empty % BLOCK } else { BLOCK - 1 };
        let carry = if block == first { 0 } else { blocks[2 * block as usize - 1] >> (BLOCK - 1) & 1 };
        let ends = &mut blocks[2 * block as usize + 1];
        let mask = IN_BLOCK >> (BLOCK - 1 - high) & (u64::MAX << low);
        *ends = *ends & !mask | (((*ends & mask) << 1) | carry << low) & mask;
    }
}

/// Moves the run ends after slot `at`, up to slot `stop`, one slot down. The last of these slots has none
/// afterwards.
#[inline(always)]
fn move_ends_down(blocks: &mut [u64], at: u64, stop: u64) {
    let (first, last) = (at / BLOCK, (stop - 1) / BLOCK);
    for block in first..=last {
        let low = if block == first { at % BLOCK } else { 0 };
        let high = if block == last { (stop - 1) % BLOCK } else { BLOCK - 1 };
        let carry = if block == last { 0 } else { blocks[2 * block as usize + 3] & 1 };
        let ends = &mut blocks[2 * block as usize + 1];
        let mask = IN_BLOCK >> (BLOCK - 1 - high) & (u64::MAX << low);
        *ends = *ends & !mask | (((*ends & mask) >> 1) | carry << high) & mask;
    }
}

/// Sets whether the slot is the last of its run.
#[inline(always)]
pub(super) fn set_end(blocks: &mut [u64], slot: u64, is_end: bool) {
    let (ends, bit) = (&mut blocks[2 * (slot / BLOCK) as usize + 1], slot % BLOCK);
    *ends = *ends & !(1 << bit) | u64::from(is_end) << bit;
}

#[inline(always)]
fn offset_in(blocks: &[u64], block: u64) -> u64 {
    stored_offset(blocks[2 * block as usize], blocks[2 * block as usize + 1])
}

/// Writes the offset of a block, at most [`MAX_OFFSET`].
#[inline(always)]
pub(super) fn set_offset(blocks: &mut [u64], block: u64, offset: u64) {
    let words = &mut blocks[2 * block as usize..2 * block as usize + 2];
    words[0] = words[0] & IN_BLOCK | offset << BLOCK;
    words[1] = words[1] & IN_BLOCK | offset >> 4 << BLOCK;
}
