//! Checks whether a table is one that insertions and removals can produce.

use super::find::stored_offset;
use super::{BLOCK, IN_BLOCK, MAX_OFFSET, RunTable};
use crate::codec::DecodeError;
use crate::simd::select::Plain;
use crate::store::Lines;

impl RunTable {
    /// Takes over lines from an untrusted source, after checking them. All methods are safe to call on the
    /// result.
    ///
    /// # Errors
    /// [`DecodeError`] if the lines are not a table of this number of homes and bits.
    pub(crate) fn from_lines(lines: Lines, homes: u64, bits: u32) -> Result<Self, DecodeError> {
        let expected = Self::lines_for(homes, bits)?.saturating_mul(64);
        if lines.memory_bytes() != expected {
            return Err(DecodeError::BadField { field: "payload length", got: lines.memory_bytes() });
        }
        let mut table = Self::of_lines(lines, homes, bits);
        table.used = table.check()?;
        Ok(table)
    }

    /// Returns the number of slots in use, if the table is sound: as many runs as occupied homes, no run
    /// before its home, every offset correct, zeroes in empty slots and after the last slot. One pass, in
    /// time linear in the size.
    ///
    /// # Errors
    /// [`DecodeError::BadField`] with the first block that is wrong, [`DecodeError::StrayBit`] for a set bit
    /// outside all runs.
    pub(crate) fn check(&self) -> Result<u64, DecodeError> {
        let view = self.view(Plain);
        let blocks = self.slots() / BLOCK;
        let (mut used, mut end) = (0, 0);
        // The run ends of the blocks read so far, all of which must belong to runs; and the number of runs.
        let (mut ends_seen, mut runs_seen) = (0_u64, 0_u64);
        let mut runs = self.runs();
        let mut next = runs.next();
        for block in 0..blocks {
            let [occupied, ends] = view.words(block);
            let wrong = DecodeError::BadField { field: "block of runs", got: block };
            // `end` is the end of the last run of all earlier blocks.
            if stored_offset(occupied, ends) != u64::saturating_sub(end, block * BLOCK).min(MAX_OFFSET) {
                return Err(wrong);
            }
            let homes_here = self.homes.saturating_sub(block * BLOCK).min(BLOCK);
            let stray = (occupied & IN_BLOCK).checked_shr(homes_here as u32).unwrap_or(0);
            if stray != 0 {
                return Err(wrong);
            }
            ends_seen += u64::from((ends & IN_BLOCK).count_ones());
            for _ in 0..(occupied & IN_BLOCK).count_ones() {
                // Missing only if there are fewer run ends than occupied homes.
                let Some((_, run)) = next.take() else { return Err(wrong) };
                if (end..run.start).any(|slot| view.get(slot) != 0) {
                    return Err(wrong);
                }
                used += run.end - run.start;
                end = run.end;
                runs_seen += 1;
                next = runs.next();
            }
        }
        // A run end between two runs would make these numbers differ: each run takes the first run end from
        // its start on.
        if ends_seen != runs_seen {
            return Err(DecodeError::BadField { field: "run ends", got: ends_seen });
        }
        let cells_at = self.cells_at;
        let words = self.lines.words();
        let load = |word: usize| words[word].load(std::sync::atomic::Ordering::Relaxed);
        if let Some(word) = (2 * blocks as usize..cells_at).find(|&word| load(word) != 0) {
            return Err(DecodeError::StrayBit { bit: word as u64 * 64 });
        }
        if let Some(slot) = (end..self.slots()).find(|&slot| view.get(slot) != 0) {
            return Err(DecodeError::StrayBit { bit: cells_at as u64 * 64 + slot * u64::from(self.bits) });
        }
        let after = cells_at as u64 * 64 + self.slots() * u64::from(self.bits);
        self.lines.check_zero_from(after).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(used)
    }
}
