//! Whole records as they were read, and the item in each.

use std::ops::Range;
use std::sync::Arc;

use mayhap::advise::say;

use super::item::{Found, Origin};
use crate::error::CliError;

/// Some whole records of one source, in their order. Each ends with its terminator, also the last of a file that had none.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Where each record ends, behind its terminator. Records are far shorter than 4 GiB, and so are blocks.
    pub(super) ends: Vec<u32>,
    /// Where each item is, where that is not the whole record without its end.
    pub(super) items: Vec<Span>,
    /// Items that are not in the input as they are: unescaped, unquoted.
    pub(super) unescaped: Vec<u8>,
    /// Bytes at the end of a record that are no part of the item.
    pub(super) terminator_bytes: usize,
    /// Where the records come from and what in them is the item.
    pub(super) origin: Option<Arc<Origin>>,
    /// Lines of the source that come before.
    pub(super) lines_before: u64,
    /// Of each record the number of lines before it in this block, where not every line is a record.
    pub(super) lines: Vec<u32>,
    pub(super) pause_follows: bool,
    /// This block is none: it says what the header is.
    pub(super) is_header: bool,
}

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// In the bytes as they were read.
    Read { start: u32, end: u32 },
    /// Among those that had to be unescaped.
    Unescaped { start: u32, end: u32 },
}

impl Block {
    /// How many records. There may be none, to say that a [pause follows](Self::pause_follows).
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Record `index` with its terminator.
    pub(crate) fn record(&self, index: usize) -> &[u8] {
        &self.bytes[self.range(index)]
    }

    /// Records `range`, which stand one behind the other.
    pub(crate) fn records(&self, range: Range<usize>) -> &[u8] {
        let start = self.start(range.start);
        let end = if range.is_empty() { start } else { self.ends[range.end - 1] as usize };
        &self.bytes[start..end]
    }

    /// What record `index` is about.
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

    /// Where record `index` stands, for messages: `access.log.gz, line 3,812`.
    pub(crate) fn place(&self, index: usize) -> String {
        let (name, line_name) =
            self.origin.as_ref().map_or(("input", "line"), |origin| (&origin.name, origin.line_name()));
        format!("{name}, {line_name} {}", say::count(self.line(index)))
    }

    /// The number of the line of its source that record `index` begins with, counted from 1.
    pub(crate) fn line(&self, index: usize) -> u64 {
        let before = self.lines.get(index).map_or(index as u64, |&lines| u64::from(lines));
        self.lines_before + before + 1
    }

    /// Whoever writes the input has paused, so that nothing was there to read behind these records: what is to be said about
    /// them should be said now.
    pub(crate) fn pause_follows(&self) -> bool {
        self.pause_follows
    }

    /// Bytes of whole records; behind them, while it is filled, are the beginning of another and what is left of earlier ones.
    pub(super) fn whole(&self) -> usize {
        self.start(self.len())
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] as usize }
    }

    fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.ends[index] as usize
    }

    /// Record `index` without its end.
    #[inline]
    fn content(&self, index: usize) -> Range<usize> {
        let Range { start, end } = self.range(index);
        // Of CR LF the CR may be missing.
        match self.terminator_bytes {
            2 if end < start + 2 || self.bytes[end - 2] != b'\r' => start..end - 1,
            terminator => start..end - terminator,
        }
    }

    /// Finds the item in each record, and drops the records that have none.
    ///
    /// # Errors
    /// A record without an item, unless those are to be skipped.
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

    /// Takes records out that have no item; the items are those of the others.
    fn drop_records(&mut self, dropped: &[usize]) {
        let mut dropped = dropped.iter().copied().peekable();
        // What is kept is never ahead of what is looked at.
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

    /// Without records again, with its memory and what is in it.
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
