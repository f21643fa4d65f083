//! `mayhap info`: what a filter is, what is in it, and how wrong it is by now.

mod abilities;
mod bits;
mod facts;
mod parquet;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use self::bits::Counting;
use self::facts::Facts;
use self::parquet::Columns;
use crate::filter_file::{self, ForeignArgs};
use crate::trouble::Trouble;
use crate::{Verdict, output};

/// Say what a filter is, what is in it, and how often it is wrong by now
#[derive(Args, Debug)]
#[command(after_help = "\
`wrong now` is the rate by the model for what is in the filter; beside it stands
the rate it was made for. A filter that holds more than it was made for is told
so, and one whose bits do not agree with its count.

Bits are counted in filters of up to 64 MiB; in larger ones with --fill, which
reads all of the file. Without it a filter of any size is described at once. (A
quotient, growing or d-left filter is read when it is opened, whatever is asked.)

A secret key is never shown. Of a Parquet file the filters in it are listed; one
of them is described with --column.

Examples:
  mayhap info seen.mayhap
  mayhap info *.mayhap
  mayhap info --fill huge.mayhap                  counts the bits, too
  mayhap info --json seen.mayhap | jq '.filters[0].expected_fpr'
  mayhap info words.bloom                         a filter of another program
  mayhap info orders.parquet                      filters inside of a file
  mayhap info orders.parquet --column customer --row-group 0")]
pub(crate) struct Info {
    /// Filters: ours, or those of other programs
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,
    /// Count the bits that are set, however large the filter: reads all of it
    #[arg(long)]
    fill: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// What there is to say about one file.
#[derive(Serialize)]
#[serde(untagged)]
enum Description {
    Filter(Box<Facts>),
    Parquet(Columns),
}

#[derive(Serialize)]
struct Report {
    filters: Vec<Description>,
}

impl Info {
    pub(crate) fn run(&self) -> Result<Verdict, Trouble> {
        let mut described = Vec::new();
        let mut first_trouble = None;
        for path in &self.filters {
            match self.describe(path) {
                Ok(description) => described.push(description),
                // The others are described all the same; one line says what went wrong, and more are warnings.
                Err(trouble) if first_trouble.is_none() => first_trouble = Some(trouble),
                Err(trouble) => output::warn(trouble),
            }
        }
        if !described.is_empty() {
            output::to_stdout(|out, width| self.write(described, out, width))?;
        }
        first_trouble.map_or(Ok(Verdict::Yes), Err)
    }

    fn describe(&self, path: &Path) -> Result<Description, Trouble> {
        if self.foreign.column.is_none() && self.foreign.from.is_none() && filter_file::is_parquet(path) {
            return parquet::columns(path).map(Description::Parquet);
        }
        let opened = filter_file::open_to_describe(path, &self.foreign)?;
        let counting = if self.fill { Counting::Always } else { Counting::IfSmall };
        Ok(Description::Filter(Box::new(Facts::of(path, &opened, counting))))
    }

    fn write(&self, filters: Vec<Description>, out: &mut dyn Write, width: usize) -> Result<(), Trouble> {
        if self.json {
            return output::json(out, &Report { filters });
        }
        for (index, description) in filters.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            match description {
                Description::Filter(facts) => text::write(out, facts, width)?,
                Description::Parquet(columns) => text::write_columns(out, columns)?,
            }
        }
        Ok(())
    }
}
