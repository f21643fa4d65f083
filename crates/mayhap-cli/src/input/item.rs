//! What in a record is the item.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::csv;
use super::fields;
use super::json::{self, Path};
use super::lines::Terminator;
use crate::error::CliError;

/// What the user asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) terminator: Terminator,
    /// Compressed sources are unpacked.
    pub(super) unpack: bool,
    pub(super) trim: bool,
    pub(super) column: Column,
    /// Where records without the item are counted, if they are to be skipped.
    pub(super) skipped: Option<Arc<AtomicU64>>,
}

/// Where in a record the item is to be looked for.
#[derive(Clone, Debug)]
pub(super) enum Column {
    /// As it is in every source.
    Known(Rule),
    /// In the column of CSV with this name, or this number; the header of each source knows where that is.
    InHeader { delimiter: u8, name: String },
}

impl Asked {
    /// Whether every source has a header.
    pub(super) fn header_comes(&self) -> bool {
        matches!(self.column, Column::InHeader { .. })
    }

    /// Whether a byte order mark may come first, which would be in the way.
    pub(super) fn may_have_mark(&self) -> bool {
        !matches!(self.column, Column::Known(Rule::Whole | Rule::Field { .. }))
    }

    /// What is between fields of CSV, where records are such.
    pub(super) fn csv_delimiter(&self) -> Option<u8> {
        match self.column {
            Column::Known(Rule::Csv { delimiter, .. }) | Column::InHeader { delimiter, .. } => {
                Some(delimiter)
            }
            Column::Known(_) => None,
        }
    }

    /// How items are found in the source of this name; `None` if that is in its header.
    pub(super) fn origin(&self, name: &str) -> Option<Origin> {
        match &self.column {
            Column::Known(rule) => Some(self.origin_of(name, rule.clone())),
            Column::InHeader { .. } => None,
        }
    }

    /// How items are found in the source of this name, which has this header.
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

/// What in a record is the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// All of it, without its end.
    Whole,
    /// A field between delimiters, or between blanks.
    Field { delimiter: Option<u8>, number: usize },
    /// A field of CSV, as it is called and counted from 1.
    Csv { delimiter: u8, name: String, number: usize },
    /// What stands in a line of JSON.
    Json(Path),
}

/// Where records come from, and how the items in them are found.
#[derive(Debug)]
pub(super) struct Origin {
    /// As messages call it.
    pub(super) name: String,
    pub(super) rule: Rule,
    pub(super) trim: bool,
    /// Where records without the item are counted, if they are to be skipped.
    pub(super) skipped: Option<Arc<AtomicU64>>,
    /// Records are lines, or such as end with a zero byte.
    pub(super) are_lines: bool,
}

/// What was found in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Here in the record.
    Read(Range<usize>),
    /// Here among what was unescaped.
    Unescaped(Range<usize>),
    /// The record is none: CSV and JSON know no empty lines.
    Blank,
    /// The item is not there; this is what to say.
    Missing(String),
    /// The record makes no sense.
    Bad(String),
}

impl Origin {
    /// Whether there is anything to find: whole records are their own items.
    pub(super) fn must_look(&self) -> bool {
        self.trim || self.rule != Rule::Whole
    }

    /// Whether records without the item are skipped.
    pub(super) fn skips(&self) -> bool {
        self.skipped.is_some()
    }

    /// What one record is called.
    pub(super) fn line_name(&self) -> &'static str {
        if self.are_lines { "line" } else { "record" }
    }

    /// The lines that `record` takes up.
    pub(super) fn lines(&self, record: &[u8]) -> u64 {
        if matches!(self.rule, Rule::Csv { .. }) { csv::lines(record) } else { 1 }
    }

    /// The item in `record`, which is without its end.
    #[inline]
    pub(super) fn find(&self, record: &[u8], unescaped: &mut Vec<u8>) -> Found {
        let found = match &self.rule {
            Rule::Whole => Found::Read(0..record.len()),
            Rule::Field { delimiter, number } => match fields::find(record, *delimiter, *number) {
                Ok(range) => Found::Read(range),
                Err(there) => Found::Missing(format!("no field {number}, there {}", fields::are(there))),
            },
            Rule::Csv { delimiter, name, number } => csv::find(record, *delimiter, *number, unescaped)
                .unwrap_or_else(|there| {
                    Found::Missing(format!("no column {name:?}, there {}", fields::are(there)))
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

/// `range` of `bytes` without white space around it.
fn trimmed(bytes: &[u8], Range { start, end }: Range<usize>) -> Range<usize> {
    let item = bytes[start..end].trim_ascii_start();
    let start = end - item.len();
    start..start + item.trim_ascii_end().len()
}
