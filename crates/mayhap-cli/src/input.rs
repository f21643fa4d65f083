//! The input: files or standard input, unpacked, split into records, grouped into blocks, with the item of each record.
//!
//! ```text
//! file, pipe ─▶ unpacked bytes ─▶ whole records ─▶ Block ══ channel ══▶ items ─▶ the command
//!   (source)     (compression)   (lines, csv, reader)       (Blocks)   (item, fields, csv, json)
//! ```
//!
//! A separate thread reads. The command works while the next block arrives, and Ctrl-C works while the input is silent.
//! The thread that receives a block finds the items in it; with several threads these are the threads of
//! [`in_order`](crate::in_order).

mod block;
mod compression;
mod csv;
#[cfg(test)]
mod drip;
mod fields;
mod item;
mod json;
mod lines;
mod reader;
mod source;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use mayhap::say;

pub(crate) use self::block::Block;
pub(crate) use self::lines::Terminator;
pub(crate) use self::reader::{Blocks, Message};

use self::compression::Unpacked;
use self::item::{Asked, Column, Rule};
use self::json::Path;
use crate::error::CliError;
use crate::output;
use crate::progress::Progress;

/// The section of `--help` for these options. It is set on each option: set on the struct, it would also apply to the
/// options that follow in a command.
const HEADING: &str = "Input";

/// Where records come from, and which part of a record is the item.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// Files to read, compressed (gzip, zstd, bzip2, xz) or not; without FILE, or with `-`, standard input
    #[arg(help_heading = HEADING, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Records end with a zero byte, as written by `find -print0`
    #[arg(help_heading = HEADING, short = '0', long)]
    null: bool,
    /// Lines end with CR LF; the CR is not part of the item
    #[arg(help_heading = HEADING, long, conflicts_with = "null")]
    crlf: bool,
    /// Remove white space at both ends of the item
    #[arg(help_heading = HEADING, long)]
    trim: bool,
    /// The item is field N of each line, counted from 1; fields are separated by blanks, or by -t
    #[arg(help_heading = HEADING, short, long, value_name = "N", group = "item_field")]
    key: Option<NonZero<usize>>,
    /// The byte that separates fields for -k (empty fields then count) and --csv: `,`, `;`, `tab` [default for --csv: `,`]
    #[arg(help_heading = HEADING, short = 't', long, value_name = "C", value_parser = delimiter, requires = "item_field", conflicts_with = "jsonl")]
    delimiter: Option<u8>,
    /// The item is this CSV column: its name in the first line, or its number counted from 1
    #[arg(help_heading = HEADING, long, value_name = "COLUMN", group = "item_field", conflicts_with = "null")]
    csv: Option<String>,
    /// The CSV has no header line; COLUMN must be a number
    #[arg(help_heading = HEADING, long, requires = "csv")]
    no_header: bool,
    /// The item is this field of each JSON line: `user.id`, `tags.0`
    #[arg(help_heading = HEADING, long, value_name = "FIELD.PATH", group = "item_field")]
    jsonl: Option<Path>,
    /// Skip records without that field or column and report how many; without this flag they are an error
    #[arg(help_heading = HEADING, long, requires = "item_field")]
    skip_missing: bool,
    /// Read compressed files as they are, without unpacking
    #[arg(help_heading = HEADING, long)]
    no_decompress: bool,
    /// Records that were skipped.
    #[arg(skip)]
    skipped: Arc<AtomicU64>,
}

impl InputArgs {
    /// Begins to read. All files are checked first, so that a wrong file name is reported immediately, not after an hour.
    pub(crate) fn open(&self, progress: &Progress) -> Result<Blocks, CliError> {
        let asked = self.asked()?;
        let sources = source::find_all(&self.files)?;
        self.skipped.store(0, Ordering::Relaxed);
        Ok(reader::start(sources, asked, progress))
    }

    /// The end of a record, in the input and in the output.
    pub(crate) fn terminator(&self) -> Terminator {
        match () {
            () if self.null => Terminator::Null,
            () if self.crlf => Terminator::CrLf,
            () => Terminator::Lf,
        }
    }

    /// The number of records skipped since the input was last opened, because they have no item.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Prints on standard error how many records were skipped, if any.
    pub(crate) fn warn_of_skipped(&self) {
        let (records, what) = match (self.skipped(), &self.key, &self.csv, &self.jsonl) {
            (0, ..) => return,
            (records, Some(key), _, _) => (records, format!("field {key}")),
            (records, _, Some(column), _) => (records, format!("column {column:?}")),
            (records, _, _, Some(path)) => (records, format!("field {path}")),
            (records, None, None, None) => (records, "an item".into()),
        };
        let said = if records == 1 { "1 record".into() } else { format!("{} records", say::count(records)) };
        output::warn(format_args!("skipped {said} without {what}"));
    }

    fn asked(&self) -> Result<Asked, CliError> {
        let comma = || self.delimiter.unwrap_or(b',');
        let column = match (&self.key, &self.csv, &self.jsonl) {
            (Some(number), _, _) => {
                Column::Known(Rule::Field { delimiter: self.delimiter, number: number.get() })
            }
            (_, Some(_), _) if self.delimiter == Some(b'"') => {
                return Err(CliError::Usage("-t: a quote cannot separate CSV fields".into()));
            }
            (_, Some(name), _) if self.no_header => {
                let number = csv::number(name).ok_or_else(|| {
                    CliError::Usage(format!(
                        "--csv: with --no-header a column must be a number, got {name:?}"
                    ))
                })?;
                Column::Known(Rule::Csv { delimiter: comma(), name: name.clone(), number })
            }
            (_, Some(name), _) => Column::InHeader { delimiter: comma(), name: name.clone() },
            (_, _, Some(path)) => Column::Known(Rule::Json(path.clone())),
            (None, None, None) => Column::Known(Rule::Whole),
        };
        Ok(Asked {
            terminator: self.terminator(),
            unpack: !self.no_decompress,
            trim: self.trim,
            column,
            skipped: self.skip_missing.then(|| Arc::clone(&self.skipped)),
        })
    }
}

/// Returns at most `most` unpacked bytes from the start of a file, and the name of its compression, if any. The bytes end
/// early where the file cannot be unpacked.
pub(crate) fn first_bytes(
    path: &std::path::Path,
    most: usize,
) -> io::Result<(Option<&'static str>, Vec<u8>)> {
    let mut unpacked = Unpacked::new(Box::new(File::open(path)?))?;
    let mut first = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match unpacked.read(&mut first[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(read) => filled += read,
        }
    }
    first.truncate(filled);
    Ok((unpacked.packing(), first))
}

/// Parses one byte, or the name of one that is hard to type.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\n" | b"\r" => Err("a line ending cannot separate fields".into()),
        &[byte] => Ok(byte),
        [] => Err("the delimiter is empty; give one byte, for example , or ; or tab".into()),
        _ => Err("the delimiter must be one byte, for example , or ; or tab".into()),
    }
}
