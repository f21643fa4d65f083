//! `mayhap merge`: one filter that holds what several hold.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mayhap::advise::say;
use mayhap::codec::format::Format;
use mayhap::file::Backing;
use mayhap::{Filter, MergeError};
use serde::Serialize;

use crate::Verdict;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs, Opened};
use crate::health;
use crate::interrupt;
use crate::output;
use crate::progress::{self, Progress, ProgressArgs};
use crate::target::Target;

/// Make one filter of several: it holds what any of them holds
#[derive(Args, Debug)]
#[command(after_help = "\
All filters must be of one kind, of one size and with one seed: build them with
the same --kind, --items, --fpr and --seed. The result is as large as each of
them, so choose --items for all items together. Where copies are counted its
count is the sum of theirs; the others count anew, by how full they are.

bloom, blocked-bloom, counting-bloom, d-left, quotient, gcs and bitmap merge;
dual-bloom as long as nothing was removed. The others do not.

Examples:
  mayhap build mon.mayhap mon.txt --kind bloom --items 1e7
  mayhap build tue.mayhap tue.txt --kind bloom --items 1e7
  mayhap merge week.mayhap mon.mayhap tue.mayhap
  mayhap merge all.mayhap shard-*.mayhap --json
  mayhap merge week.mayhap week.mayhap wed.mayhap --force
  mayhap merge both.bloom a.bloom b.bloom --items-as utf8   of Guava, stays so")]
pub(crate) struct Merge {
    /// The file to write; - is the standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Filters to merge
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,
    #[command(flatten)]
    foreign: ForeignArgs,
    /// Replace OUT if it is there
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Write what was done as one JSON object to the standard output
    #[arg(long)]
    json: bool,
}

/// What is said about the merged filter. The names of the fields are a promise.
#[derive(Debug, Serialize)]
struct Report {
    out: String,
    kind: &'static str,
    filters: usize,
    /// Items in all of them, as they count.
    items_in_parts: u64,
    /// Items in the merged filter, as it counts.
    items: u64,
    capacity: u64,
    target_fpr: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    file_bytes: u64,
    seconds: f64,
    over_capacity: bool,
    /// What its users should know, in plain words.
    warnings: Vec<String>,
}

/// All filters as one.
struct Merged {
    filter: Filter,
    format: Format,
    /// The file of the first, which it is a view of where nothing was added.
    backing: Option<Backing>,
    /// How many were in all of them.
    items: u64,
}

impl Merge {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let started = Instant::now();
        let target = Target::new(&self.out, self.force)?;
        if target == Target::Stdout && self.json {
            let what = "--json: the filter itself goes to the standard output, name a file for it";
            return Err(CliError::Usage(what.into()));
        }
        let lock = target.lock(self.quiet)?;
        let progress = Progress::start(self.progress);
        let Merged { filter, format, backing, items: items_in_parts } = self.merged(&progress)?;
        if let Some(lock) = &lock {
            lock.check()?;
        }
        let file_bytes = target.save_view(&filter, format, &[], backing.as_slice(), &progress)?;
        drop(progress);
        let report = Report {
            out: target.name(),
            kind: filter.kind().name(),
            filters: self.filters.len(),
            items_in_parts,
            items: filter.inserted(),
            capacity: filter.capacity(),
            target_fpr: filter.target_fpr(),
            expected_fpr: filter.expected_fpr(),
            memory_bytes: filter.memory_bytes(),
            file_bytes,
            seconds: started.elapsed().as_secs_f64(),
            over_capacity: health::is_over_capacity(&filter),
            warnings: health::warnings(&filter),
        };
        if !self.quiet {
            report.tell();
        }
        if self.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }

    /// All filters as one.
    fn merged(&self, progress: &Progress) -> Result<Merged, CliError> {
        let mut merged: Option<Merged> = None;
        progress.phase("merging", None);
        for path in &self.filters {
            interrupt::check()?;
            let next = filter_file::open_to_change(path, &self.foreign)?;
            let (next_format, items) = (next.format, next.filter.inserted());
            match &mut merged {
                None if !next_format.writes() => {
                    let what = format!(
                        "{next_format} files are only read: `mayhap convert` makes a mayhap file of it"
                    );
                    return Err(self.cli_error(path, what));
                }
                None => {
                    let Opened { filter, format, backing, .. } = next;
                    merged = Some(Merged { filter, format, backing, items });
                }
                Some(Merged { format, .. }) if *format != next_format => {
                    let what = format!("{next_format} format, {} is {format}", self.filters[0].display());
                    return Err(self.cli_error(path, what));
                }
                Some(merged) => {
                    let united = merged.filter.union(&next.filter);
                    next.check_unchanged()?;
                    united.map_err(|error| self.cli_error(path, self.refusal(&error)))?;
                    merged.items += items;
                }
            }
        }
        merged.ok_or_else(|| CliError::Usage("name the filters to merge".into()))
    }

    fn refusal(&self, error: &MergeError) -> String {
        let hint = match error {
            MergeError::ShapeDiffers { .. } => "; build both with the same --items and --fpr",
            MergeError::HashDiffers { .. } => "; build both with the same --seed, and not --untrusted",
            MergeError::NeverMerges { .. } => {
                "; bloom, blocked-bloom, counting-bloom, d-left, quotient, gcs and bitmap can"
            }
            _ => "",
        };
        format!("cannot be merged with {}: {error}{hint}", self.filters[0].display())
    }

    fn cli_error(&self, path: &Path, what: String) -> CliError {
        CliError::Filter { name: path.display().to_string(), what }
    }
}

impl Report {
    fn tell(&self) {
        for warning in &self.warnings {
            output::warn(format_args!("{}: {warning}", self.out));
        }
        let took = progress::duration(Duration::from_secs_f64(self.seconds));
        output::tell(format_args!(
            "{}: {} of {} filters, {}, {}, wrong for {}, {took}",
            self.out,
            self.kind,
            self.filters,
            say::items(self.items),
            say::bytes(self.file_bytes),
            say::rate(self.expected_fpr),
        ));
    }
}
