//! Which part of a record is the item.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::csv;
use super::fields;
use super::json::{self, Path};
use super::lines::Terminator;
use crate::error::CliError;

/// The user's choices.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) terminator: Terminator,
    /// Unpack compressed sources.
    pub(super) unpack: bool,
    pub(super) trim: bool,
    pub(super) column: Column,
    /// The counter of skipped records, if records without an item are skipped.
    pub(super) skipped: Option<Arc<AtomicU64>>,
}

/// Where to look for the item in a record.
#[derive(Clone, Debug)]
pub(super) enum Column {
    /// The same in every source.
    Known(Rule),
    /// In the CSV column with this name or number. The header of each source determines the position.
    InHeader { delimiter: u8, name: String },
}

impl Asked {
    /// Returns `true` if every source has a header.
    pub(super) fn header_comes(&self) -> bool {
        matches!(self.column, Column::InHeader { .. })
    }

    /// Returns `true` if a byte order mark at the start must be dropped.
    pub(super) fn may_have_mark(&self) -> bool {
        !matches!(self.column, Column::Known(Rule::Whole | Rule::Field { .. }))
    }

    /// The delimiter, if the records are CSV.
    pub(super) fn csv_delimiter(&self) -> Option<u8> {
        match self.column {
            Column::Known(Rule::Csv { delimiter, .. }) | Column::InHeader { delimiter, .. } => {
                Some(delimiter)
            }
            Column::Known(_) => None,
        }
    }

    /// How to find items in the source with this name; `None` if that depends on its header.
    pub(super) fn origin(&self, name: &str) -> Option<Origin> {
        match &self.column {
            Column::Known(rule) => Some(self.origin_of(name, rule.clone())),
            Column::InHeader { .. } => None,
        }
    }

    /// How to find items in the source with this name and this header.
    pub(super) fn origin_below(&self, name: &str, header: &[u8]) -> Result<Origin, CliError> {
        let Column::InHeader { delimiter, name: column } = &self.column else {
            return Ok(self.origin_of(name, Rule::Whole));
        };
        match csv::column(header, *delimiter, column) {
            Ok(number) => {
                let rule = Rule::Csv { delimiter: *delimiter, name: column.clone(), number };
                Ok(self.origin_of(name, rule))
            }
            Err(what) => Err(CliError::Input { name: name.to_owned(), what }),
        }
    }

    fn origin_of(&self, name: &str, rule: Rule) -> Origin {
        Origin {
            name: name.to_owned(),
            rule,
            trim: self.trim,
            skipped: self.skipped.clone(),
            are_lines: self.terminator != Terminator::Null,
        }
    }
}

/// Which part of a record is the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The whole record without its terminator.
    Whole,
    /// A field separated by a delimiter or by blanks.
    Field { delimiter: Option<u8>, number: usize },
    /// A CSV field, by its name and its number counted from 1.
    Csv { delimiter: u8, name: String, number: usize },
    /// The value at a path in a JSON line.
    Json(Path),
}

/// The source of records, and how to find their items.
#[derive(Debug)]
pub(super) struct Origin {
    /// The name for messages.
    pub(super) name: String,
    pub(super) rule: Rule,
    pub(super) trim: bool,
    /// The counter of skipped records, if records without an item are skipped.
    pub(super) skipped: Option<Arc<AtomicU64>>,
    /// Whether records are lines or end with a zero byte.
    pub(super) are_lines: bool,
}

/// The result of looking for the item of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The range in the record.
    Read(Range<usize>),
    /// The range in the unescaped bytes.
    Unescaped(Range<usize>),
    /// An empty line, which is not a record in CSV and JSON.
    Blank,
    /// The record has no item, for this reason.
    Missing(String),
    /// The record is invalid, for this reason.
    Bad(String),
}

impl Origin {
    /// Returns `true` if items must be looked for; a whole record is its own item.
    pub(super) fn must_look(&self) -> bool {
        self.trim || self.rule != Rule::Whole
    }

    /// Returns `true` if records without an item are skipped.
    pub(super) fn skips(&self) -> bool {
        self.skipped.is_some()
    }

    /// The word for one record.
    pub(super) fn line_name(&self) -> &'static str {
        if self.are_lines { "line" } else { "record" }
    }

    /// The number of lines of `record`.
    pub(super) fn lines(&self, record: &[u8]) -> u64 {
        if matches!(self.rule, Rule::Csv { .. }) { csv::lines(record) } else { 1 }
    }

    /// Finds the item in `record`, which is given without its terminator.
    #[inline]
    pub(super) fn find(&self, record: &[u8], unescaped: &mut Vec<u8>) -> Found {
        let found = match &self.rule {
            Rule::Whole => Found::Read(0..record.len()),
            Rule::Field { delimiter, number } => match fields::find(record, *delimiter, *number) {
                Ok(range) => Found::Read(range),
                Err(there) => {
                    Found::Missing(format!("no field {number}: the record has {}", fields::counted(there)))
                }
            },
            Rule::Csv { delimiter, name, number } => csv::find(record, *delimiter, *number, unescaped)
                .unwrap_or_else(|there| {
                    Found::Missing(format!("no column {name:?}: the record has {}", fields::counted(there)))
                }),
            Rule::Json(path) => json::find(record, path, unescaped),
        };
        if let (Found::Missing(_), Some(skipped)) = (&found, &self.skipped) {
            skipped.fetch_add(1, Ordering::Relaxed);
        }
        match found {
            Found::Read(range) if self.trim => Found::Read(trimmed(record, range)),
            Found::Unescaped(range) if self.trim => Found::Unescaped(trimmed(unescaped, range)),
            found => found,
        }
    }
}

/// `range` of `bytes` without surrounding white space.
fn trimmed(bytes: &[u8], Range { start, end }: Range<usize>) -> Range<usize> {
    let item = bytes[start..end].trim_ascii_start();
    let start = end - item.len();
    start..start + item.trim_ascii_end().len()
}
