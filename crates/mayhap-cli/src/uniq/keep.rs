//! Writes the kept lines. A run of consecutive lines is written in one piece.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::error::CliError;
use crate::input::Block;
use crate::output;

/// Which lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedLines {
    /// Lines that were not seen before.
    New,
    /// Lines that were seen before.
    Dropped,
    /// Lines that were seen exactly once before.
    Repeated,
}

/// Standard output, and the lines of the current block to write there.
#[derive(Debug)]
pub(super) struct LineWriter {
    selection: WantedLines,
    line_buffered: bool,
    out: BufWriter<File>,
    /// Bit `i` of word `w` is line `64 w + i` of the block.
    lines: Vec<u64>,
    /// Lines noted so far.
    noted: usize,
}

impl LineWriter {
    pub(super) fn new(selection: WantedLines, line_buffered: bool) -> Result<Self, CliError> {
        Ok(Self { selection, line_buffered, out: output::records()?, lines: Vec::new(), noted: 0 })
    }

    pub(super) const fn selection(&self) -> WantedLines {
        self.selection
    }

    pub(super) fn begin(&mut self, block: &Block) {
        self.lines.clear();
        self.lines.resize(block.len().div_ceil(64), 0);
        self.noted = 0;
    }

    /// Notes the next `count` lines; those with a set bit are written. `count` is a multiple of 64, except for the last
    /// lines of a block.
    pub(super) fn note(&mut self, bits: &[u64], count: usize) {
        debug_assert!(self.noted.is_multiple_of(64));
        let first = self.noted / 64;
        self.lines[first..first + bits.len()].copy_from_slice(bits);
        self.noted += count;
    }

    /// Writes the noted lines of the block.
    pub(super) fn end(&mut self, block: &Block) -> Result<(), CliError> {
        let mut at = 0;
        while let Some(start) = next(&self.lines, at, 0).filter(|&start| start < block.len()) {
            let end = next(&self.lines, start, u64::MAX).unwrap_or(block.len()).min(block.len());
            self.out.write_all(block.records(start..end))?;
            at = end;
        }
        // While the input pauses, the lines so far are flushed for the reader.
        if self.line_buffered || block.pause_follows() { self.flush() } else { Ok(()) }
    }

    /// Writes bytes that are not a record.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        Ok(self.out.write_all(bytes)?)
    }

    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.out.flush()?)
    }

    /// Returns `Ok` if the error is a pipe whose reader has left, as `head` does.
    pub(super) fn unless_reader_left(&mut self, error: CliError) -> Result<(), CliError> {
        match error {
            CliError::Write(error) => output::unless_reader_left(Err(error)),
            error => {
                // The lines written until then are correct.
                let _ = self.out.flush();
                Err(error)
            }
        }
    }
}

/// The first line from `at` on whose bit differs from `skipped`.
fn next(lines: &[u64], at: usize, skipped: u64) -> Option<usize> {
    let mut word = at / 64;
    let mut found = (lines.get(word)? ^ skipped) >> (at % 64) << (at % 64);
    while found == 0 {
        word += 1;
        found = lines.get(word)? ^ skipped;
    }
    Some(word * 64 + found.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn runs_match_a_line_by_line_check() {
        let lines = [0, u64::MAX, 0b1011, 1 << 63, u64::MAX, 1, 0];
        let bit = |at: usize| lines[at / 64] >> (at % 64) & 1 == 1;
        for at in 0..64 * lines.len() {
            assert_eq!(next(&lines, at, 0), (at..64 * lines.len()).find(|&at| bit(at)), "{at}");
            assert_eq!(next(&lines, at, u64::MAX), (at..64 * lines.len()).find(|&at| !bit(at)), "{at}");
        }
        assert_eq!(next(&lines, 64 * lines.len(), 0), None);
    }
}
