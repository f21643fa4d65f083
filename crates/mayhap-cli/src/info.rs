//! `mayhap info`: describes a filter, its contents and its current false-positive rate.

mod abilities;
mod bits;
mod facts;
pub(crate) mod lines;
mod parquet;
mod text;

use std::io::Write;
use std::path::Path;

use clap::Args;
use mayhap::ItemEncoding;
use serde::Serialize;

use self::bits::Counting;
use self::facts::Facts;
use self::parquet::ParquetColumns;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::place::{self, Place};
use crate::remote::RemoteArgs;
use crate::remote_filter::{LayoutArgs, RemoteFilter, ServerFacts};
use crate::{Verdict, output};

/// Describe a filter: kind, capacity, contents and current false-positive rate
#[derive(Args, Debug)]
#[command(after_help = "\
`FPR now` is the false-positive rate that the model gives for the current
contents; `capacity` shows the target rate. A warning is printed for a filter over
its capacity, and for one whose bits do not agree with its item count.

Bits are counted in filters of up to 64 MiB; larger ones need --fill, which reads
the whole file. Without --fill, info is fast at any size.
(A quotient, growing or d-left filter is always read in full.)

For a filter in a server (redis://host:port/NAME), info shows its type and what the
server reports about it. For a sharded filter it also shows how full the shards are
and which of them are not ready.

Secret keys are never shown. For a Parquet file, info lists the filters in it; use
--column to describe one.

Examples:
  mayhap info seen.mayhap
  mayhap info *.mayhap
  mayhap info --fill huge.mayhap                  also count the bits
  mayhap info --json seen.mayhap | jq '.filters[0].expected_fpr'
  mayhap info words.bloom                         a filter of another program
  mayhap info orders.parquet                      filters in a Parquet file
  mayhap info orders.parquet --column customer --row-group 0
  mayhap info redis://localhost:6399/seen         a filter in a server")]
pub(crate) struct Info {
    /// Filters of mayhap or of other programs: files, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", required = true, value_parser = place::parser())]
    filters: Vec<Place>,
    /// Count the set bits even in a large filter (reads the whole file)
    #[arg(long)]
    fill: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// The description of one filter or file.
#[derive(Serialize)]
#[serde(untagged)]
enum Description {
    Filter(Box<Facts>),
    Parquet(ParquetColumns),
    Server(Box<ServerFacts>),
}

#[derive(Serialize)]
struct InfoReport {
    filters: Vec<Description>,
}

impl Info {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let mut described = Vec::new();
        let mut first_error = None;
        for place in &self.filters {
            let described_one = match place {
                Place::File(path) => self.describe(path),
                Place::Server(remote) => {
                    // No item is looked up, so the encoding of items does not matter.
                    let items_as = self.foreign.items_as;
                    let items = Some(items_as.unwrap_or(ItemEncoding::Bytes));
                    RemoteFilter::open(remote, &self.server, &self.layout, items)
                        .and_then(|filter| filter.facts(items_as))
                        .map(|facts| Description::Server(Box::new(facts)))
                }
            };
            match described_one {
                Ok(description) => described.push(description),
                // The others are still described. The first error is returned; later ones are warnings.
                Err(error) if first_error.is_none() => first_error = Some(error),
                Err(error) => output::warn(error),
            }
        }
        if !described.is_empty() {
            output::to_stdout(|out, width| self.write(described, out, width))?;
        }
        first_error.map_or(Ok(Verdict::Yes), Err)
    }

    fn describe(&self, path: &Path) -> Result<Description, CliError> {
        if self.foreign.column.is_none() && self.foreign.from.is_none() && filter_file::is_parquet(path) {
            return parquet::columns(path).map(Description::Parquet);
        }
        let opened = filter_file::open_to_describe(path, &self.foreign)?;
        let counting = if self.fill { Counting::Always } else { Counting::IfSmall };
        let facts = Facts::of(path, &opened, counting);
        opened.check_unchanged()?;
        Ok(Description::Filter(Box::new(facts)))
    }

    fn write(&self, filters: Vec<Description>, out: &mut dyn Write, width: usize) -> Result<(), CliError> {
        if self.json {
            return output::json(out, &InfoReport { filters });
        }
        for (index, description) in filters.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            match description {
                Description::Filter(facts) => text::write(out, facts, width)?,
                Description::Parquet(columns) => text::write_columns(out, columns)?,
                Description::Server(facts) => facts.write(out, width)?,
            }
        }
        Ok(())
    }
}
