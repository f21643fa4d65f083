//! Whole records as they were read, and the item in each.

use std::ops::Range;
use std::sync::Arc;

use mayhap::say;

use super::item::{Found, Origin};
use crate::error::CliError;

/// Whole records of one source, in order. Each ends with its terminator, even the last record of a file without one.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(super) bytes: Vec<u8>,
    /// The end of each record, after its terminator. Blocks are smaller than 4 GiB.
    pub(super) ends: Vec<u32>,
    /// The position of each item, if it is not the whole record without its terminator.
    pub(super) items: Vec<Span>,
    /// Items that differ from their bytes in the input: unescaped, unquoted.
    pub(super) unescaped: Vec<u8>,
    /// Bytes at the end of a record that are not part of the item.
    pub(super) terminator_bytes: usize,
    /// The source of the records, and how their items are found.
    pub(super) origin: Option<Arc<Origin>>,
    /// Lines of the source before this block.
    pub(super) lines_before: u64,
    /// For each record, the lines of this block before it, if not every line is a record.
    pub(super) lines: Vec<u32>,
    pub(super) pause_follows: bool,
    /// The block is a marker: it has no records and carries the CSV header.
    pub(super) is_header: bool,
}

/// The position of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// In the bytes that were read.
    Read { start: u32, end: u32 },
    /// In the unescaped bytes.
    Unescaped { start: u32, end: u32 },
}

impl Block {
    /// The number of records. It may be 0, if the block only announces that a [pause follows](Self::pause_follows).
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Record `index` with its terminator.
    pub(crate) fn record(&self, index: usize) -> &[u8] {
        &self.bytes[self.range(index)]
    }

    /// The consecutive records `range`.
    pub(crate) fn records(&self, range: Range<usize>) -> &[u8] {
        let start = self.start(range.start);
        let end = if range.is_empty() { start } else { self.ends[range.end - 1] as usize };
        &self.bytes[start..end]
    }

    /// The item of record `index`.
    #[inline]
    pub(crate) fn item(&self, index: usize) -> &[u8] {
        match self.items.get(index) {
            None => &self.bytes[self.content(index)],
            Some(&Span::Read { start, end }) => &self.bytes[start as usize..end as usize],
            Some(&Span::Unescaped { start, end }) => &self.unescaped[start as usize..end as usize],
        }
    }

    /// All items, in order.
    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.item(index))
    }

    /// The position of record `index`, for messages: `access.log.gz, line 3,812`.
    pub(crate) fn place(&self, index: usize) -> String {
        let (name, line_name) =
            self.origin.as_ref().map_or(("input", "line"), |origin| (&origin.name, origin.line_name()));
        format!("{name}, {line_name} {}", say::count(self.line(index)))
    }

    /// The line number in its source where record `index` begins, counted from 1.
    pub(crate) fn line(&self, index: usize) -> u64 {
        let before = self.lines.get(index).map_or(index as u64, |&lines| u64::from(lines));
        self.lines_before + before + 1
    }

    /// Returns `true` if the writer of the input paused after these records. Output about them should be written now.
    pub(crate) fn pause_follows(&self) -> bool {
        self.pause_follows
    }

    /// The bytes of whole records. While the block is filled, the start of the next record and old bytes follow them.
    pub(super) fn whole(&self) -> usize {
        self.start(self.len())
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] as usize }
    }

    fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.ends[index] as usize
    }

    /// Record `index` without its terminator.
    #[inline]
    fn content(&self, index: usize) -> Range<usize> {
        let Range { start, end } = self.range(index);
        // The CR of CR LF may be missing.
        match self.terminator_bytes {
            2 if end < start + 2 || self.bytes[end - 2] != b'\r' => start..end - 1,
            terminator => start..end - terminator,
        }
    }

    /// Finds the item in each record, and drops records without an item.
    ///
    /// # Errors
    /// A record without an item, unless such records are skipped.
    pub(crate) fn find_items(&mut self) -> Result<(), CliError> {
        let Some(origin) = self.origin.clone().filter(|origin| origin.must_look()) else { return Ok(()) };
        let mut dropped = Vec::new();
        let mut lines = 0;
        for index in 0..self.len() {
            self.lines.push(lines as u32);
            lines += origin.lines(self.record(index));
            let content = self.content(index);
            let start = content.start;
            match origin.find(&self.bytes[content], &mut self.unescaped) {
                Found::Read(Range { start: from, end }) => {
                    self.items.push(Span::Read { start: (start + from) as u32, end: (start + end) as u32 });
                }
                Found::Unescaped(Range { start, end }) => {
                    self.items.push(Span::Unescaped { start: start as u32, end: end as u32 });
                }
                Found::Blank => dropped.push(index),
                Found::Missing(_) if origin.skips() => dropped.push(index),
                Found::Missing(what) | Found::Bad(what) => {
                    return Err(CliError::Input { name: self.place(index), what });
                }
            }
        }
        if !dropped.is_empty() {
            self.drop_records(&dropped);
        }
        Ok(())
    }

    /// Drops the records without an item. The list of items has no entries for them.
    fn drop_records(&mut self, dropped: &[usize]) {
        let mut dropped = dropped.iter().copied().peekable();
        // A kept record is never moved past one that was not examined yet.
        let (mut start, mut kept, mut kept_bytes) = (0, 0, 0);
        for index in 0..self.len() {
            let end = self.ends[index] as usize;
            if dropped.next_if_eq(&index).is_none() {
                if let Span::Read { start: from, end: to } = &mut self.items[kept] {
                    let moved = (start - kept_bytes) as u32;
                    (*from, *to) = (*from - moved, *to - moved);
                }
                self.bytes.copy_within(start..end, kept_bytes);
                kept_bytes += end - start;
                self.ends[kept] = kept_bytes as u32;
                self.lines[kept] = self.lines[index];
                kept += 1;
            }
            start = end;
        }
        self.ends.truncate(kept);
        self.lines.truncate(kept);
        self.bytes.truncate(kept_bytes);
    }

    /// Empties the block but keeps its memory and its bytes.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.items.clear();
        self.unescaped.clear();
        self.lines.clear();
        self.origin = None;
        self.lines_before = 0;
        (self.pause_follows, self.is_header) = (false, false);
    }
}
