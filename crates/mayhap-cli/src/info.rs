//! `mayhap info`: what a filter is, what is in it, and how wrong it is by now.

mod abilities;
mod bits;
mod facts;
mod parquet;
mod text;

use std::io::Write;
use std::path::Path;

use clap::Args;
use mayhap::ItemEncoding;
use serde::Serialize;

use self::bits::Counting;
use self::facts::Facts;
use self::parquet::Columns;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::place::{self, Place};
use crate::remote::RemoteArgs;
use crate::remote_filter::{LayoutArgs, RemoteFilter, ServerFacts};
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

Of a filter in a server (redis://host:port/NAME) it is said what it is there, and
what the server says of it; of one in shards, how full they are and which are not
ready.

A secret key is never shown. Of a Parquet file the filters in it are listed; one
of them is described with --column.

Examples:
  mayhap info seen.mayhap
  mayhap info *.mayhap
  mayhap info --fill huge.mayhap                  counts the bits, too
  mayhap info --json seen.mayhap | jq '.filters[0].expected_fpr'
  mayhap info words.bloom                         a filter of another program
  mayhap info orders.parquet                      filters inside of a file
  mayhap info orders.parquet --column customer --row-group 0
  mayhap info redis://localhost:6399/seen         a filter in a server")]
pub(crate) struct Info {
    /// Filters: ours, or those of other programs; files, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", required = true, value_parser = place::parser())]
    filters: Vec<Place>,
    /// Count the bits that are set, however large the filter: reads all of it
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

/// What there is to say about one file.
#[derive(Serialize)]
#[serde(untagged)]
enum Description {
    Filter(Box<Facts>),
    Parquet(Columns),
    Server(Box<ServerFacts>),
}

#[derive(Serialize)]
struct Report {
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
                    // No item is asked about, so nobody needs to say how they become bytes.
                    let items_as = self.foreign.items_as;
                    let items = Some(items_as.unwrap_or(ItemEncoding::Bytes));
                    RemoteFilter::open(remote, &self.server, &self.layout, items)
                        .and_then(|filter| filter.facts(items_as))
                        .map(|facts| Description::Server(Box::new(facts)))
                }
            };
            match described_one {
                Ok(description) => described.push(description),
                // The others are described all the same; one line says what went wrong, and more are warnings.
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
            return output::json(out, &Report { filters });
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
