//! `mayhap merge`: the union of several filters.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use mayhap::file::Backing;
use mayhap::{Filter, MergeError, say};
use mayhap_formats::Format;
use serde::Serialize;

use crate::Verdict;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs, Opened};
use crate::health;
use crate::interrupt;
use crate::output;
use crate::progress::{self, Progress, ProgressArgs};
use crate::target::Target;

/// Merge filters into one that holds the items of all
#[derive(Args, Debug)]
#[command(after_help = "\
All filters must have the same kind, size and seed: build them with the same
--kind, --items, --fpr and --seed. The result is as large as each input, so choose
--items for the items of all filters. In kinds that count copies, the item count is
the sum of the inputs; in the others it is estimated from the fill.

bloom, blocked-bloom, counting-bloom, d-left, quotient, gcs and bitmap can be
merged; dual-bloom only if nothing was removed. The others cannot.

Examples:
  mayhap build mon.mayhap mon.txt --kind bloom --items 1e7
  mayhap build tue.mayhap tue.txt --kind bloom --items 1e7
  mayhap merge week.mayhap mon.mayhap tue.mayhap
  mayhap merge all.mayhap shard-*.mayhap --json
  mayhap merge week.mayhap week.mayhap wed.mayhap --force
  mayhap merge both.bloom a.bloom b.bloom --items-as utf8   stays a Guava file")]
pub(crate) struct Merge {
    /// The file to write; - is standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Filters to merge
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,
    #[command(flatten)]
    foreign: ForeignArgs,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    json: bool,
}

/// The result. The field names are those of `--json` and must not change.
#[derive(Debug, Serialize)]
struct MergeReport {
    out: String,
    kind: &'static str,
    filters: usize,
    /// The sum of the item counts of all inputs.
    items_in_parts: u64,
    /// The item count of the merged filter.
    items: u64,
    capacity: u64,
    target_fpr: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    file_bytes: u64,
    seconds: f64,
    over_capacity: bool,
    /// Warnings for the users of the filter.
    warnings: Vec<String>,
}

/// The merged filter.
struct Merged {
    filter: Filter,
    format: Format,
    /// The file of the first filter, which the result is a view of if nothing was added.
    backing: Option<Backing>,
    /// The sum of the item counts.
    items: u64,
}

impl Merge {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let started = Instant::now();
        let target = Target::new(&self.out, self.force)?;
        if target == Target::Stdout && self.json {
            let what = "--json: the filter itself goes to standard output; give a file name for it";
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
        let report = MergeReport {
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
            report.print();
        }
        if self.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }

    /// Merges all filters.
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
                        "{next_format} files can only be read: `mayhap convert` turns it into a mayhap file"
                    );
                    return Err(self.cli_error(path, what));
                }
                None => {
                    let Opened { filter, format, backing, .. } = next;
                    merged = Some(Merged { filter, format, backing, items });
                }
                Some(Merged { format, .. }) if *format != next_format => {
                    let what = format!(
                        "is a {next_format} file, but {} is a {format} file",
                        self.filters[0].display()
                    );
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
        merged.ok_or_else(|| CliError::Usage("give the filters to merge".into()))
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

impl MergeReport {
    fn print(&self) {
        for warning in &self.warnings {
            output::warn(format_args!("{}: {warning}", self.out));
        }
        let took = progress::duration(Duration::from_secs_f64(self.seconds));
        output::tell(format_args!(
            "{}: {} from {} filters, {}, {}, FPR {}, {took}",
            self.out,
            self.kind,
            self.filters,
            say::items(self.items),
            say::bytes(self.file_bytes),
            say::rate(self.expected_fpr),
        ));
    }
}
