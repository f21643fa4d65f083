//! `mayhap add` and `mayhap remove`: replace a filter's file by one with more or fewer items.

mod far;
mod report;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use mayhap::file::Backing;
use mayhap::{Filter, InsertError, ItemHash, Kind, RemoveError};
use mayhap_formats::{Format, dcso};

use self::report::{ChangeReport, Changed};
use crate::Verdict;
use crate::error::CliError;
use crate::file_lock::FileLock;
use crate::filling::{self, InsertForm, Prepared, Refused};
use crate::filter_file::{self, ForeignArgs, Opened};
use crate::in_order::{self, in_order};
use crate::input::InputArgs;
use crate::item_form::ItemForm;
use crate::output;
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::RemoteArgs;
use crate::remote_filter::LayoutArgs;
use crate::target::Target;
use crate::whole_file;

/// Add items to an existing filter
#[derive(Args, Debug)]
#[command(after_help = "\
FILTER is replaced in one step after all items were inserted. A reader sees the
old filter or the new one; after an error or Ctrl-C the file is unchanged. A
second `mayhap add` waits until the first is done. Filters of other programs are
saved in their own format.

Kinds that count copies (counting-bloom, d-left, cuckoo, quotient, growing)
store every line as one more copy, which must be removed separately. With
--new-only they skip lines that are maybe in the filter already. Static kinds
(xor, binary-fuse, ribbon, gcs) accept no new items: build them again.

FILTER may be on a server: redis://host:port/NAME. Items are then added there in
batches. If the command stops early, the batches before that point were added.
`add` never creates a filter: a missing name is an error.

Examples:
  mayhap add seen.mayhap new-urls.txt              replace seen.mayhap
  zcat today.gz | mayhap add seen.mayhap           read standard input
  mayhap add seen.mayhap new.txt -o larger.mayhap  leave seen.mayhap unchanged
  mayhap add ids.mayhap --jsonl user.id events.jsonl
  mayhap add seen.bloom urls.txt --items-as utf8   a Guava filter keeps its format
  mayhap add seen.mayhap new.txt --json            report how many were new
  mayhap add redis://localhost:6399/seen new-urls.txt
  mayhap add redis://cache.local/users --items-as kryo5 names.txt")]
pub(crate) struct Add {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    server: RemoteArgs,
    /// Skip items that are maybe in the filter already, instead of storing another copy
    ///
    /// Do not use it if items are removed later: an item skipped because of a false positive was never stored, and is
    /// lost when the other item is removed.
    #[arg(long)]
    new_only: bool,
    /// Threads that read and hash [default: one per core]; the resulting filter is the same
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// Remove items from a filter
#[derive(Args, Debug)]
#[command(after_help = "\
Remove only items that were inserted, and only as many times as they were
inserted. Removing a false positive deletes the entry of another item, which
then gets a false `no`. (A bitmap is exact: it does not have this problem.)
Items that are certainly not in the filter are counted and skipped.

These kinds support removal: counting-bloom, d-left, cuckoo, growable-cuckoo,
quotient, growing, dual-bloom and bitmap. `mayhap build --deletes` chooses one
of them. FILTER is replaced in one step, as with `mayhap add`.

FILTER may be on a server: redis://host:port/NAME, if the server supports MF.* or
CF.* for it. Items are then removed there one by one. If the command stops early,
the items before that point were removed.

Examples:
  mayhap remove coupons.mayhap redeemed.txt
  echo ada@example.org | mayhap remove subscribers.mayhap
  mayhap remove live.mayhap gone.txt -o smaller.mayhap
  mayhap remove live.mayhap --csv id gone.csv
  mayhap remove live.mayhap gone.txt --json        report how many were removed
  mayhap remove redis://localhost:6399/live gone.txt")]
pub(crate) struct Remove {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// The arguments that `add` and `remove` share.
#[derive(Args, Debug)]
struct ChangeArgs {
    /// The filter to change: a file, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", value_parser = place::parser())]
    filter: Place,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    /// Write the new filter to OUT and leave FILTER unchanged; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(short, long, requires = "output")]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Print the result as one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// A filter that is being changed.
struct Change {
    filter: Filter,
    format: Format,
    /// The file that the filter is a view of, if it is a mapped mayhap file.
    backing: Option<Backing>,
    /// The extra data that a DCSO file stores after the filter.
    attached: Vec<u8>,
    target: Target,
    lock: Option<FileLock>,
    progress: Progress,
    started: Instant,
}

impl Add {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if let Place::Server(remote) = &self.change.filter {
            return self.add_on_server(remote);
        }
        let mut change = self.change.begin()?;
        if let Some(what) = why_immutable(&change.filter) {
            return Err(self.change.cli_error(what));
        }
        let Change { filter, progress, .. } = &mut change;
        let insert_form = InsertForm::of(filter);
        let new_only = self.new_only && counts_copies(filter.kind());
        let (mut read, mut new) = (0, 0);
        in_order(
            self.change.input.open(progress)?,
            in_order::threads(self.threads),
            |block| insert_form.prepare(block),
            |block, prepared| {
                let taken = match &prepared {
                    Prepared::Hashes(hashes) if new_only => insert_new(filter, hashes),
                    prepared => filling::insert(filter, block, prepared),
                };
                new += taken.map_err(|refused| self.refused(&refused, block.place(refused.index)))?;
                read += block.len() as u64;
                progress.add_items(block.len() as u64);
                Ok(())
            },
        )?;
        self.change.finish(change, read, Changed::Added { items_new: new, items_there_before: read - new })
    }

    fn refused(&self, refused: &Refused, place: String) -> CliError {
        let what = match refused.cause {
            // The filter is the cause, not the line.
            InsertError::Full { .. } | InsertError::CannotGrow { .. } => {
                return self.change.cli_error(format!(
                    "{}; nothing was added (stopped at {place}): build a larger filter, or one that grows (--grows)",
                    refused.cause
                ));
            }
            InsertError::TooManyCopies { .. } => {
                format!("{}; --new-only skips items that are maybe in the filter already", refused.cause)
            }
            _ => refused.cause.to_string(),
        };
        CliError::Input { name: place, what }
    }
}

impl Remove {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if let Place::Server(remote) = &self.change.filter {
            return self.remove_on_server(remote);
        }
        let mut change = self.change.begin()?;
        if let Some(what) = why_not_removable(&change.filter) {
            return Err(self.change.cli_error(what));
        }
        let Change { filter, progress, .. } = &mut change;
        let form = ItemForm::of(filter);
        let (mut read, mut removed) = (0, 0);
        let mut blocks = self.change.input.open(progress)?;
        while let Some(block) = blocks.next()? {
            for (index, line) in block.items().enumerate() {
                let item = filling::item(form, &block, index, line)?;
                let out = filter.remove(&item).map_err(|cause| self.change.cli_error(cause.to_string()))?;
                removed += u64::from(out);
            }
            read += block.len() as u64;
            progress.add_items(block.len() as u64);
            blocks.reuse(block);
        }
        let changed = Changed::Removed { items_removed: removed, items_not_in: read - removed };
        self.change.finish(change, read, changed)
    }
}

impl ChangeArgs {
    /// Opens the filter, and locks its file if it will be replaced.
    fn begin(&self) -> Result<Change, CliError> {
        let started = Instant::now();
        let path = self.filter.file()?;
        let target = match &self.output {
            Some(out) => Target::new(out, self.force)?,
            None => Target::new(path, true)?,
        };
        // No other process may change the file while its replacement is built.
        let lock = target.lock(self.quiet)?;
        if target == Target::Stdout && self.json {
            let what = "--json: standard output is used by the filter; name a file as OUT";
            return Err(CliError::Usage(what.into()));
        }
        let Opened { filter, format, backing, .. } = filter_file::open_to_change(path, &self.foreign)?;
        if !format.writes() {
            let what = format!("{format} files cannot be written; convert it with `mayhap convert` first");
            return Err(self.cli_error(what));
        }
        let attached = self.attached(path, format)?;
        let progress = Progress::start(self.progress);
        Ok(Change { filter, format, backing, attached, target, lock, progress, started })
    }

    /// Saves the changed filter and prints the report.
    fn finish(&self, change: Change, read: u64, changed: Changed) -> Result<Verdict, CliError> {
        let Change { filter, format, backing, attached, target, lock, progress, started } = change;
        if let Some(lock) = &lock {
            lock.check()?;
        }
        // If the input was empty, a large file is not written again.
        let bytes = match (&target, read) {
            (Target::File(path), 0) if self.output.is_none() => {
                let about = fs::metadata(path);
                about.map_err(|cause| CliError::Read { name: target.name(), cause })?.len()
            }
            _ => target.save_view(&filter, format, &attached, backing.as_slice(), &progress)?,
        };
        drop(progress);
        let report = ChangeReport::new(&filter, target.name(), read, changed, bytes, started.elapsed());
        if !self.quiet {
            self.input.warn_of_skipped();
            report.warnings().for_each(output::warn);
            output::tell(report.text());
        }
        if self.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }

    /// The extra data that a DCSO file stores after the filter, to be copied to the new file.
    fn attached(&self, path: &Path, format: Format) -> Result<Vec<u8>, CliError> {
        if !matches!(format, Format::Dcso | Format::DcsoGzip) {
            return Ok(Vec::new());
        }
        let name = || self.filter.to_string();
        let bytes = whole_file::read(path)?;
        let read = dcso::read(&bytes, UNPACKED_LIMIT);
        read.map(|read| read.data).map_err(|error| CliError::Input { name: name(), what: error.to_string() })
    }

    fn cli_error(&self, what: String) -> CliError {
        CliError::Filter { name: self.filter.to_string(), what }
    }
}

/// The most bytes a compressed file may unpack to.
const UNPACKED_LIMIT: u64 = 1 << 40;

/// Inserts the items that are certainly not in the filter yet. Returns how many.
fn insert_new(filter: &mut Filter, hashes: &[ItemHash]) -> Result<u64, Refused> {
    let mut new = 0;
    for (index, &hash) in hashes.iter().enumerate() {
        if !filter.may_contain_hash(hash) {
            new += 1;
            filling::insert_hashes(filter, &[hash]).map_err(|refused| Refused { index, ..refused })?;
        }
    }
    Ok(new)
}

/// Why the filter accepts no new items, if it does not.
fn why_immutable(filter: &Filter) -> Option<String> {
    let kind = filter.kind();
    matches!(kind, Kind::Xor | Kind::BinaryFuse | Kind::Ribbon | Kind::Gcs).then(|| {
        format!(
            "{}; build it again, or use a kind that accepts new items: bloom, blocked-bloom, cuckoo, …",
            InsertError::NeverChanges { kind }
        )
    })
}

/// Why items cannot be removed from the filter, if they cannot.
fn why_not_removable(filter: &Filter) -> Option<String> {
    let kind = filter.kind();
    let gives = counts_copies(kind) || matches!(kind, Kind::Bitmap | Kind::DualBloom);
    (!gives).then(|| {
        format!(
            "{}; these kinds support it: counting-bloom, d-left, cuckoo, growable-cuckoo, quotient, growing, \
             dual-bloom, bitmap (`mayhap build --deletes` chooses one)",
            RemoveError::CannotRemove { kind }
        )
    })
}

/// Returns `true` if the kind stores every copy of an item separately.
pub(crate) const fn counts_copies(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CountingBloom
            | Kind::DLeft
            | Kind::Cuckoo
            | Kind::GrowableCuckoo
            | Kind::Quotient
            | Kind::Growing
            | Kind::ScalableCuckoo
    )
}
