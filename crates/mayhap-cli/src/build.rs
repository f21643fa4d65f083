//! `mayhap build`: builds a filter from items, sized for the items that were read.
//!
//! ```text
//! items ──▶ hashes ──┬──────────────────────────────▶ filter        --items given, or a kind that grows
//!                    └─▶ kept + counted ─▶ choice ──▶ filter        otherwise: one pass, sized afterwards
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
use mayhap::{Filter, HashScheme, ItemEncoding};
use mayhap_advise::solve::{Known, complete};
use mayhap_advise::{Needs, Structure};
use mayhap_formats::Format;

use self::choice::{Choice, choose};
use self::report::BuildReport;
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
Each line is an item; the input options select a part of the line instead. A
repeated line changes nothing.

Without --kind, the kind that `mayhap plan` recommends is used, and standard
error says which. Without --items, the items are counted first: each is hashed
once, and the hashes (16 bytes each) are kept until the end of the input. Above
--hash-memory they go to a temporary file next to OUT. The filter is then sized
for the number of distinct items. With --items, items go straight into the
filter and no hashes are kept. Two groups of kinds keep the hashes anyway:
static kinds, and kinds that count copies (kinds with removal, unless --copies).

More items than --items cause a warning with the current false-positive rate, or
an error if the kind rejects them. OUT is written completely or not at all.

OUT may be on a server: redis://host:port/NAME. The items then go into one
filter with that name. All clients of the server can query it: with MF.* on
mayhap's server and module, with BF.* if you use --format redis-bloom or the
server has only BF.*. In a cluster, or with --shards, the filter is split into
shards that are spread over the nodes. The shards use what the server offers
(see --backend; --backend plain uses strings and works on any Redis), and only
mayhap's own programs can query them. `mayhap check`, `add`, `info` and the other
commands recognize both forms by their address. With --force, an existing name
gets a new filter: the old filter answers until the new one is complete, then
they are swapped in one step. --format redisson and --format guava write the
bitmap that Java programs expect.

Examples:
  mayhap build seen.mayhap urls.txt                1% false positives, sized automatically
  mayhap build seen.mayhap logs/*.gz --fpr 0.1%    compressed input
  seq 1e9 | mayhap build ids.mayhap --items 1e9    streamed: only the filter is in memory
  mayhap build block.mayhap list.txt --static      smallest: no items are added later
  mayhap build live.mayhap ids.txt --deletes       items can be removed later
  mayhap build bad.mayhap --csv email users.csv --kind ribbon
  mayhap build phones.mayhap phones.txt --items 1e9 --range 13000000000..19999999999
  mayhap build seen.bloom urls.txt --format guava --items-as utf8
  mayhap build - urls.txt | ssh host 'cat > seen.mayhap'
  mayhap build redis://localhost:6399/seen urls.txt
  mayhap build redis://cache.local/seen urls.txt --format redis-bloom
  mayhap build redis://cache.local/seen urls.txt --shards 64
  mayhap build redis://cache.local/users names.txt --format redisson --items-as kryo5")]
pub(crate) struct Build {
    /// The file to write; `-` for standard output, redis://host[:port]/NAME for a filter on a server
    #[arg(value_name = "OUT", value_parser = place::parser())]
    out: Place,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    asked: NeedsArgs,
    /// The kind of filter: bloom, blocked-bloom, cuckoo, binary-fuse, … [default: as `mayhap plan` recommends]
    #[arg(long, value_name = "KIND", value_parser = kind_name::parse)]
    kind: Option<KindName>,
    /// The seed of the hash; only filters with the same seed can be merged [default: 0]
    #[arg(long, value_name = "N", value_parser = quantity::count, conflicts_with = "untrusted")]
    seed: Option<u64>,
    /// Count duplicates: an item added twice must be removed twice (only kinds that count copies)
    #[arg(long)]
    copies: bool,
    /// Memory for the hashes that are kept; further hashes go to a temporary file next to OUT
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "512MiB")]
    hash_memory: u64,
    /// Write another program's format, sized as that program does: guava, dcso, redis-bloom, …
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["kind", "untrusted", "seed", "copies", "probes", "deletes", "grows", "all_at_once", "window", "range"])]
    format: Option<Format>,
    /// How that program turns items into bytes: utf8, i64le, kryo5, … (never guessed; most formats require it)
    #[arg(long, value_name = "ENCODING", requires = "format")]
    items_as: Option<ItemEncoding>,
    /// Threads that read and hash [default: one per core]; the resulting filter is the same
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
    /// Print the result as one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// On a server: the number of shards, a power of two [default: one filter; in a cluster 64 shards, or more if they would be large]
    #[arg(long, value_name = "N", conflicts_with = "format")]
    shards: Option<u32>,
    /// On a server: where the items are stored [default: as the existing filter, or the best the server supports]
    #[arg(long, value_name = "BACKEND", value_enum, conflicts_with = "format")]
    backend: Option<far::BackendName>,
    #[command(flatten)]
    server: RemoteArgs,
}

/// The false-positive rate if neither `--fpr` nor `--memory` is given.
const DEFAULT_RATE: f64 = 0.01;

/// A filter that was built, with the facts for the report.
#[derive(Debug)]
struct Built {
    filter: Filter,
    format: Format,
    /// Lines read.
    read: u64,
    /// Distinct lines, if they were counted separately from the filter.
    distinct: Option<u64>,
    /// The kind, named as in `--kind`; for another program's format, the name of that format's filter.
    kind: String,
    /// The false-positive rate it was built for.
    target_fpr: f64,
    /// The `--items` it was built for. With more items the rate is no longer guaranteed.
    told: Option<u64>,
    /// Why this kind was chosen.
    why: Option<String>,
    /// Bytes of hashes that were written to the temporary file.
    spilled_bytes: u64,
}

/// The parts that every way of building needs.
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
            return self.build_on_server(remote, started);
        }
        if self.shards.is_some() || self.backend.is_some() {
            let what = "--shards and --backend need a filter on a server: redis://host:port/NAME";
            return Err(CliError::Usage(what.into()));
        }
        let target = Target::new(self.out.file()?, self.force)?;
        if target == Target::Stdout && self.json {
            let what = "--json: standard output is used by the filter; name a file as OUT";
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
        let report = BuildReport::new(&built, target.name(), bytes, started.elapsed());
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

    /// The kind and size to build, if they are known before the input is read.
    fn known_choice(&self) -> Result<Option<Choice>, CliError> {
        let bitmap = self.kind == Some(KindName::Exactly(Structure::Bitmap));
        match self.asked.items {
            _ if self.format.is_some() => Ok(None),
            Some(items) if !bitmap || self.asked.range.is_some() => {
                choose(self.kind, &self.needs(items)?).map(Some)
            }
            None if self.asked.window => {
                Err(CliError::Usage("--window needs --items: the number of latest items to keep".into()))
            }
            // The size of a bitmap depends on its range only, not on the number of items.
            None if bitmap && self.asked.range.is_some() => choose(self.kind, &self.needs(1)?).map(Some),
            _ => Ok(None),
        }
    }

    /// The requirements for this number of items.
    fn needs(&self, items: u64) -> Result<Needs, CliError> {
        let others = self.asked.without_items_and_rate();
        let known = match (self.asked.fpr, self.asked.memory) {
            (Some(target_fpr), _) => Known::ItemsAndRate { items, target_fpr },
            (None, Some(memory_bytes)) => Known::ItemsAndMemory { items, memory_bytes },
            (None, None) => Known::ItemsAndRate { items, target_fpr: DEFAULT_RATE },
        };
        Ok(complete(known, &others)?)
    }

    fn scheme(&self) -> Result<HashScheme, CliError> {
        match (self.asked.untrusted, self.seed) {
            (true, _) => Ok(HashScheme::keyed_random().map_err(mayhap_advise::CreateError::from)?),
            (false, seed) => Ok(HashScheme::fast(seed.unwrap_or(0))),
        }
    }

    /// Checks that all input files exist.
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
