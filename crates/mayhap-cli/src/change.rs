//! `mayhap add` and `mayhap remove`: a filter's file is replaced by one with more items in it, or fewer.

mod far;
mod report;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use mayhap::codec::dcso;
use mayhap::codec::format::Format;
use mayhap::file::Backing;
use mayhap::{Filter, InsertError, ItemHash, Kind, RemoveError};

use self::report::{Changed, Report};
use crate::Verdict;
use crate::error::CliError;
use crate::file_lock::FileLock;
use crate::filling::{self, Prepared, Refused, Taking};
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

/// Put items into a filter that is there
#[derive(Args, Debug)]
#[command(after_help = "\
FILTER is replaced in one step when all items are in: whoever reads it sees the
old one or the new one, and after error or Ctrl-C it is as it was. A second
`mayhap add` waits until the first is done. Filters of other programs are saved
in their own format.

Kinds that count copies (counting-bloom, d-left, cuckoo, quotient, growing)
take every line as one copy more, to be removed once more; with --new-only they
leave out what is mayhap in already. Kinds that are built at once (xor,
binary-fuse, ribbon, gcs) take nothing: build them again.

FILTER may be in a server: redis://host:port/NAME. Then items are added where they
are asked about, some at a time; whatever stops the work, those before are in. A
filter that is not there is never made by adding to it.

Examples:
  mayhap add seen.mayhap new-urls.txt              replace seen.mayhap
  zcat today.gz | mayhap add seen.mayhap           from the standard input
  mayhap add seen.mayhap new.txt -o larger.mayhap  leave seen.mayhap alone
  mayhap add ids.mayhap --jsonl user.id events.jsonl
  mayhap add seen.bloom urls.txt --items-as utf8   a Guava filter stays one
  mayhap add seen.mayhap new.txt --json            how many were new
  mayhap add redis://localhost:6399/seen new-urls.txt
  mayhap add redis://cache.local/users --items-as kryo5 names.txt")]
pub(crate) struct Add {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    server: RemoteArgs,
    /// Leave out what is mayhap in already, in place of another copy of it
    ///
    /// Not for filters that items are removed from: an item left out by mistake is gone when the other one is removed.
    #[arg(long)]
    new_only: bool,
    /// Threads that read and hash; the filter does not depend on it
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// Take items out of a filter
#[derive(Args, Debug)]
#[command(after_help = "\
Remove only items that were put in, and only as often: an item that never was in
but is answered mayhap takes the place of another, which is lost. (A bitmap is
exact and knows better.) What is certainly not in is counted and left alone.

Items come out of counting-bloom, d-left, cuckoo, growable-cuckoo, quotient,
growing, dual-bloom and bitmap; `mayhap build --deletes` chooses one of them.
FILTER is replaced in one step, as with `mayhap add`.

FILTER may be in a server: redis://host:port/NAME, a filter of the server's by MF.*
or CF.*. Then items are taken out there, one by one; whatever stops the work, those
before are out.

Examples:
  mayhap remove coupons.mayhap redeemed.txt
  echo ada@example.org | mayhap remove subscribers.mayhap
  mayhap remove live.mayhap gone.txt -o smaller.mayhap
  mayhap remove live.mayhap --csv id gone.csv
  mayhap remove live.mayhap gone.txt --json        how many were in
  mayhap remove redis://localhost:6399/live gone.txt")]
pub(crate) struct Remove {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// What both have.
#[derive(Args, Debug)]
struct ChangeArgs {
    /// The filter to change: a file, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", value_parser = place::parser())]
    filter: Place,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    /// Write the new filter there, and leave FILTER as it is; - is the standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it is there
    #[arg(short, long, requires = "output")]
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

/// A filter that is being changed.
struct Change {
    filter: Filter,
    format: Format,
    /// The file that the filter is a view of, if it is one of ours.
    backing: Option<Backing>,
    /// What a file of DCSO's carries besides the filter.
    attached: Vec<u8>,
    target: Target,
    lock: Option<FileLock>,
    progress: Progress,
    started: Instant,
}

impl Add {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if let Place::Server(remote) = &self.change.filter {
            return self.add_there(remote);
        }
        let mut change = self.change.begin()?;
        if let Some(what) = takes_nothing(&change.filter) {
            return Err(self.change.cli_error(what));
        }
        let Change { filter, progress, .. } = &mut change;
        let taking = Taking::of(filter);
        let new_only = self.new_only && counts_copies(filter.kind());
        let (mut read, mut new) = (0, 0);
        in_order(
            self.change.input.open(progress)?,
            in_order::threads(self.threads),
            |block| taking.prepare(block),
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
            // What is wrong is the filter, not the line.
            InsertError::Full { .. } | InsertError::CannotGrow { .. } => {
                return self.change.cli_error(format!(
                    "{}; nothing was added ({place}): build a larger one, or one that grows (--grows)",
                    refused.cause
                ));
            }
            InsertError::TooManyCopies { .. } => {
                format!("{}; --new-only leaves out what is mayhap in already", refused.cause)
            }
            _ => refused.cause.to_string(),
        };
        CliError::Input { name: place, what }
    }
}

impl Remove {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if let Place::Server(remote) = &self.change.filter {
            return self.remove_there(remote);
        }
        let mut change = self.change.begin()?;
        if let Some(what) = gives_nothing(&change.filter) {
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
    /// The filter, locked if its file is to be replaced.
    fn begin(&self) -> Result<Change, CliError> {
        let started = Instant::now();
        let path = self.filter.file()?;
        let target = match &self.output {
            Some(out) => Target::new(out, self.force)?,
            None => Target::new(path, true)?,
        };
        // Whatever is replaced, nobody else changes it meanwhile.
        let lock = target.lock(self.quiet)?;
        if target == Target::Stdout && self.json {
            let what = "--json: the filter itself goes to the standard output, name a file for it";
            return Err(CliError::Usage(what.into()));
        }
        let Opened { filter, format, backing, .. } = filter_file::open_to_change(path, &self.foreign)?;
        if !format.writes() {
            let what = format!("{format} files are only read: `mayhap convert` makes a mayhap file of it");
            return Err(self.cli_error(what));
        }
        let attached = self.attached(path, format)?;
        let progress = Progress::start(self.progress);
        Ok(Change { filter, format, backing, attached, target, lock, progress, started })
    }

    /// Saves what became of the filter, and says it.
    fn finish(&self, change: Change, read: u64, changed: Changed) -> Result<Verdict, CliError> {
        let Change { filter, format, backing, attached, target, lock, progress, started } = change;
        if let Some(lock) = &lock {
            lock.check()?;
        }
        // Nothing to change is no reason to write a large file again.
        let bytes = match (&target, read) {
            (Target::File(path), 0) if self.output.is_none() => {
                let about = fs::metadata(path);
                about.map_err(|cause| CliError::Read { name: target.name(), cause })?.len()
            }
            _ => target.save_view(&filter, format, &attached, backing.as_slice(), &progress)?,
        };
        drop(progress);
        let report = Report::new(&filter, target.name(), read, changed, bytes, started.elapsed());
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

    /// What stands in a DCSO file behind the filter, for the new file to have it, too.
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

/// As much as a compressed file may unpack to.
const UNPACKED_LIMIT: u64 = 1 << 40;

/// Puts in what is certainly not in yet.
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

/// Why no item can be put into such a filter.
fn takes_nothing(filter: &Filter) -> Option<String> {
    let kind = filter.kind();
    matches!(kind, Kind::Xor | Kind::BinaryFuse | Kind::Ribbon | Kind::Gcs).then(|| {
        format!(
            "{}; build it again, or build a kind that takes them: bloom, blocked-bloom, cuckoo, …",
            InsertError::NeverChanges { kind }
        )
    })
}

/// Why no item can be taken out of such a filter.
fn gives_nothing(filter: &Filter) -> Option<String> {
    let kind = filter.kind();
    let gives = counts_copies(kind) || matches!(kind, Kind::Bitmap | Kind::DualBloom);
    (!gives).then(|| {
        format!(
            "{}: counting-bloom, d-left, cuckoo, growable-cuckoo, quotient, growing, dual-bloom and bitmap can; \
             `mayhap build --deletes` chooses one",
            RemoveError::CannotRemove { kind }
        )
    })
}

/// Does every copy of an item take room in such a filter?
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
