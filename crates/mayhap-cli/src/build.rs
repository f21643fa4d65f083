//! `mayhap build`: a filter from items, sized by what they turn out to be.
//!
//! ```text
//! items ──▶ hashes ──┬──────────────────────────────▶ filter        told how many, or it grows
//!                    └─▶ kept + counted ─▶ choice ──▶ filter        not told: one pass, sized afterwards
//! ```

mod choice;
mod distinct;
mod estimate;
mod far;
mod foreign;
mod kept;
mod numbers;
mod one;
mod own;
mod report;

use std::num::NonZero;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use mayhap::advise::solve::{Known, complete};
use mayhap::advise::{Needs, Structure};
use mayhap::codec::format::Format;
use mayhap::{Filter, HashScheme, ItemEncoding};

use self::choice::{Choice, choose};
use self::report::Report;
use crate::Verdict;
use crate::error::CliError;
use crate::in_order;
use crate::input::InputArgs;
use crate::kind_name::{self, KindName};
use crate::needs_args::NeedsArgs;
use crate::output;
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::quantity;
use crate::remote::RemoteArgs;
use crate::target::Target;

/// Build a filter from items and save it
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is an item, or the part of it that the input options name. A line that
comes again changes nothing.

Without --kind it is the kind that `mayhap plan` advises, told on the standard
error. Without --items the items are counted: every item is hashed once, the
hashes (16 bytes each) are kept until the end, beyond --hash-memory in a
temporary file beside OUT, and the filter is made for as many different items
as there were. With --items they go straight into the filter, and nothing is
kept; kinds that are built of all items at once, and kinds that count copies
(those that can remove, unless --copies), keep the hashes anyway.

The filter keeps its promise or says so: more items than were told are a
warning with the rate as it is now, or error for kinds that refuse them.
OUT appears when it is complete, or not at all.

OUT may be in a server: redis://host:port/NAME. Then the items go into one filter
of that name, which every client of the server can ask: by MF.* in mayhap's server
and module, by BF.* with --format redis-bloom or where the server has only that.
In a cluster, or with --shards, it is one filter in many parts, spread over the
nodes, in whatever the server has (--backend; plain strings of any Redis with
--backend plain), which mayhap's own programs ask. `mayhap check`, `add`, `info` and
the other verbs know both by their address. With --force a name that is there gets
a new filter: the old one answers until the new one is complete, then they change
places in one step. --format redisson or guava makes the bitmap that programs in
Java expect there.

Examples:
  mayhap build seen.mayhap urls.txt                at most 1% wrong, sized by itself
  mayhap build seen.mayhap logs/*.gz --fpr 0.1%    compressed or not
  seq 1e9 | mayhap build ids.mayhap --items 1e9    streamed, in the filter's memory
  mayhap build block.mayhap list.txt --static      smallest: nothing is added later
  mayhap build live.mayhap ids.txt --deletes       items can be removed again
  mayhap build bad.mayhap --csv email users.csv --kind ribbon
  mayhap build phones.mayhap phones.txt --items 1e9 --range 13000000000..19999999999
  mayhap build seen.bloom urls.txt --format guava --items-as utf8
  mayhap build - urls.txt | ssh host 'cat > seen.mayhap'
  mayhap build redis://localhost:6399/seen urls.txt
  mayhap build redis://cache.local/seen urls.txt --format redis-bloom
  mayhap build redis://cache.local/seen urls.txt --shards 64
  mayhap build redis://cache.local/users names.txt --format redisson --items-as kryo5")]
pub(crate) struct Build {
    /// The file to write; - is the standard output, redis://host[:port]/NAME a filter in a server
    #[arg(value_name = "OUT", value_parser = place::parser())]
    out: Place,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    asked: NeedsArgs,
    /// The kind of filter, in place of the advised one: bloom, blocked-bloom, cuckoo, binary-fuse, …
    #[arg(long, value_name = "KIND", value_parser = kind_name::parse)]
    kind: Option<KindName>,
    /// The seed of the hash: filters to be merged need the same, and have it unless told otherwise
    #[arg(long, value_name = "N", value_parser = quantity::count, conflicts_with = "untrusted")]
    seed: Option<u64>,
    /// An item that comes twice is in twice, and to be removed twice (kinds that count copies)
    #[arg(long)]
    copies: bool,
    /// Memory for hashes that are kept; more of them wait in a temporary file beside OUT
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "512MiB")]
    hash_memory: u64,
    /// Another program's format, sized as that program does: guava, dcso, redis-bloom, …
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["kind", "untrusted", "seed", "copies", "probes", "deletes", "grows", "all_at_once", "window", "range"])]
    format: Option<Format>,
    /// How that program makes bytes of items: utf8, i64le, kryo5, … (never guessed)
    #[arg(long, value_name = "ENCODING", requires = "format")]
    items_as: Option<ItemEncoding>,
    /// Threads that read and hash; the filter does not depend on it
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Replace OUT if it is there
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Write what was built as one JSON object to the standard output
    #[arg(long)]
    json: bool,
    /// In a server: the number of parts, a power of two [default: one filter; in a cluster 64 parts, or more if they would be large]
    #[arg(long, value_name = "N", conflicts_with = "format")]
    shards: Option<u32>,
    /// In a server: what keeps the items [default: what has the name, or the best that the server has]
    #[arg(long, value_name = "BACKEND", value_enum, conflicts_with = "format")]
    backend: Option<far::BackendName>,
    #[command(flatten)]
    server: RemoteArgs,
}

/// Wrong answers nobody asked for otherwise.
const DEFAULT_RATE: f64 = 0.01;

/// A filter that was built, and what is to be said about it.
#[derive(Debug)]
struct Built {
    filter: Filter,
    format: Format,
    /// Lines read.
    read: u64,
    /// Of them different ones, where that was counted apart from the filter.
    distinct: Option<u64>,
    /// The kind, as `--kind` has it; the format's own where there is one.
    kind: String,
    /// The rate it was built for.
    target_fpr: f64,
    /// Items it was told to be for, and may not keep its promise beyond.
    told: Option<u64>,
    /// Why this kind.
    why: Option<String>,
    /// Bytes that did not fit in memory meanwhile.
    spilled_bytes: u64,
}

/// What all ways of building work with.
struct Work<'a> {
    args: &'a Build,
    target: &'a Target,
    progress: &'a Progress,
    threads: usize,
}

impl Build {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let started = Instant::now();
        if let Place::Server(remote) = &self.out {
            return self.build_there(remote, started);
        }
        if self.shards.is_some() || self.backend.is_some() {
            let what = "--shards and --backend are for filters in a server: redis://host:port/NAME";
            return Err(CliError::Usage(what.into()));
        }
        let target = Target::new(self.out.file()?, self.force)?;
        if target == Target::Stdout && self.json {
            let what = "--json: the filter itself goes to the standard output, name a file for it";
            return Err(CliError::Usage(what.into()));
        }
        let known = self.known_choice()?;
        if let Some(why) = known.as_ref().and_then(|choice| choice.why.as_deref()) {
            self.say(why);
        }
        let progress = Progress::start(self.progress);
        if let Some(items) = self.asked.items {
            progress.expect_items(items);
        }
        let threads = in_order::threads(self.threads);
        let work = Work { args: self, target: &target, progress: &progress, threads };
        let built = match (self.format, &known) {
            (Some(format), _) => work.foreign(format)?,
            (None, Some(choice)) => work.known(choice)?,
            (None, None) => work.counted()?,
        };
        let bytes = target.save(&built.filter, built.format, &[], &progress)?;
        drop(progress);
        let report = Report::new(&built, target.name(), bytes, started.elapsed());
        if !self.quiet {
            if let Some(why) = built.why.as_deref().filter(|_| known.is_none()) {
                self.say(why);
            }
            self.input.warn_of_skipped();
            if let Some(warning) = report.warning() {
                output::warn(warning);
            }
            output::tell(report.text());
        }
        if self.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }

    fn say(&self, why: &str) {
        if !self.quiet {
            output::tell(format_args!("kind: {why}"));
        }
    }

    /// What is built, where that is known before anything is read.
    fn known_choice(&self) -> Result<Option<Choice>, CliError> {
        let bitmap = self.kind == Some(KindName::Exactly(Structure::Bitmap));
        match self.asked.items {
            _ if self.format.is_some() => Ok(None),
            Some(items) if !bitmap || self.asked.range.is_some() => {
                choose(self.kind, &self.needs(items)?).map(Some)
            }
            None if self.asked.window => {
                Err(CliError::Usage("--window: say with --items how many of the last items count".into()))
            }
            // A bitmap is as large as its range, however many items there are.
            None if bitmap && self.asked.range.is_some() => choose(self.kind, &self.needs(1)?).map(Some),
            _ => Ok(None),
        }
    }

    /// What is asked for, if there are so many items.
    fn needs(&self, items: u64) -> Result<Needs, CliError> {
        let others = self.asked.but_for_items_and_rate();
        let known = match (self.asked.fpr, self.asked.memory) {
            (Some(target_fpr), _) => Known::ItemsAndRate { items, target_fpr },
            (None, Some(memory_bytes)) => Known::ItemsAndMemory { items, memory_bytes },
            (None, None) => Known::ItemsAndRate { items, target_fpr: DEFAULT_RATE },
        };
        Ok(complete(known, &others)?)
    }

    fn scheme(&self) -> Result<HashScheme, CliError> {
        match (self.asked.untrusted, self.seed) {
            (true, _) => Ok(HashScheme::keyed_random().map_err(mayhap::advise::CreateError::from)?),
            (false, seed) => Ok(HashScheme::fast(seed.unwrap_or(0))),
        }
    }

    /// Are the files of the input there?
    fn check_files(&self) -> Result<(), CliError> {
        let named = self.input.files.iter().filter(|file| *file != Path::new("-"));
        named.into_iter().try_for_each(|file| {
            let there = std::fs::metadata(file);
            there.map(drop).map_err(|cause| CliError::Read { name: file.display().to_string(), cause })
        })
    }

    /// Can the input be read a second time?
    fn reads_twice(&self) -> bool {
        !self.input.files.is_empty() && self.input.files.iter().all(|file| Path::new(file).is_file())
    }
}
