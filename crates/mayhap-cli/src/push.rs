//! `mayhap push`: a filter file into a running server.

pub(crate) mod bitmap;
mod pieces;
pub(crate) mod send;

use std::path::PathBuf;

use clap::Args;
use mayhap::Filter;
use mayhap::advise::say;
use mayhap::codec::format::Format;
use serde::Serialize;

use self::send::Goal;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs, Opened};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::{Family, Remote, RemoteArgs};
use crate::remote_filter::{AskedWith, Layout};
use crate::{Verdict, output};

/// Put a filter into a running server: mayhap's, or a Redis with RedisBloom
#[derive(Args, Debug)]
#[command(after_help = "\
The filter goes in pieces to a temporary name ({NAME}:loading:…), which takes its
real name in one step once the server has confirmed all of it. Whoever asks
meanwhile gets the old filter, or none, never half of the new one. After Ctrl-C
the temporary name is removed; if even that fails it goes away by itself.

Filters in RedisBloom's layout (`mayhap build --format redis-bloom` or
redis-cuckoo, or pulled from there) go to any server that has BF.LOADCHUNK or
CF.LOADCHUNK. All other kinds go by MF.LOAD, which mayhap's server and module have.

A Redis without a module takes what programs in Java keep there: filters in
Redisson's layout as its bitmap and its config, both in one step; filters of
Guava's as a bitmap by hand, with --as guava (the server does not say what it is:
note the words to ask it with, which are told). Redisson's go so by themselves where there is no
MF.LOAD, or with --as redisson.

A name that is taken is replaced only with --force; its expiry goes with it. The
password may be in the address, in REDISCLI_AUTH or in a file: addresses can be
seen by others on this machine. The port is 6379 unless it is given; mayhap's
server listens on 6399.

Examples:
  mayhap push seen.mayhap redis://localhost:6399/seen
  mayhap push seen.mayhap redis://localhost:6399/seen --force
  mayhap push seen.bf redis://cache.local/seen --password-file ~/.redis
  mayhap push seen.mayhap 'redis+unix:///run/mayhap.sock?name=seen' --json
  mayhap push words.bloom redis://localhost:6399/words --items-as utf8
  mayhap push words.bloom redis://cache.local/words --items-as utf8 --as guava")]
pub(crate) struct Push {
    /// The filter: ours, or one of another program
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// Where to: redis://[user:password@]host[:port]/NAME
    #[arg(value_name = "ADDRESS")]
    remote: Remote,
    /// Replace what has that name
    #[arg(short, long)]
    force: bool,
    /// Do not say how it went
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RemoteArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    /// Put it there as a bitmap of this layout, for programs in Java
    #[arg(long = "as", value_name = "LAYOUT", value_enum)]
    layout: Option<Layout>,
    /// With --as guava: set a bit behind the last one, which says that the bitmap is whole
    #[arg(long, requires = "layout")]
    marker: bool,
}

/// How it went. The field names are those of `--json`, and a promise.
#[derive(Serialize)]
struct Report {
    filter: String,
    from: &'static str,
    to: String,
    kind: &'static str,
    command: &'static str,
    inserted: u64,
    bytes: u64,
    pieces: u64,
    /// What had the name before is gone.
    replaced: bool,
    /// What a bitmap with Guava's placement is asked with.
    #[serde(flatten)]
    asked_with: Option<AskedWith>,
}

impl Push {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let opened = self.open()?;
        if let Some(layout) = self.layout {
            return self.push_bitmap(&opened, layout);
        }
        let progress = Progress::start(self.progress);
        let mut connection = self.remote.connect(&self.server)?;
        let family = Family::of_filter(&opened.filter);
        // Asked, not tried: a Redis repeats what it does not know, and the bytes of a filter are no text.
        if !connection.has_command(family.load_command())? {
            drop(progress);
            return match bitmap::layout_of(&opened.filter) {
                Some(Layout::Redisson) => self.push_bitmap(&opened, Layout::Redisson),
                Some(Layout::Guava) => {
                    let what = "the server has no MF.LOAD; --as guava puts it there as a bitmap by hand";
                    Err(self.cli_error(what))
                }
                None => Err(send::cannot_take(&connection, family, opened.filter.kind())),
            };
        }
        let there = connection.type_of(self.remote.name())?;
        if there != "none" && !self.force {
            return Err(self.cli_error("is there already: --force replaces it"));
        }
        let goal = Goal { remote: &self.remote, args: &self.server, family, force: self.force };
        let sent = goal.send(&mut connection, (&opened.filter, opened.format), &self.filter, &progress)?;
        drop(progress);
        self.report(&opened, family.load_command(), sent, there != "none", None)
    }

    fn open(&self) -> Result<Opened, CliError> {
        let opened = filter_file::open_to_describe(&self.filter, &self.foreign)?;
        if opened.encoding_unknown {
            // The server answers for it, so it must be told how items become bytes.
            filter_file::open(&self.filter, &self.foreign)?;
        }
        opened.check_all()?;
        Ok(opened)
    }

    fn report(
        &self,
        opened: &Opened,
        command: &'static str,
        sent: send::Sent,
        replaced: bool,
        asked_with: Option<AskedWith>,
    ) -> Result<Verdict, CliError> {
        let Opened { filter, format, .. } = opened;
        if self.json {
            let report = Report {
                filter: self.filter.display().to_string(),
                from: Format::name(*format),
                to: self.remote.shown(),
                kind: Filter::kind(filter).name(),
                command,
                inserted: filter.inserted(),
                bytes: sent.bytes,
                pieces: sent.pieces,
                replaced,
                asked_with,
            };
            output::to_stdout(|out, _| output::json(out, &report))?;
        } else if !self.quiet {
            output::tell(format_args!(
                "{}: {} with {} {} there",
                self.remote.shown(),
                a(filter.kind().name()),
                say::items(filter.inserted()),
                if replaced { "is now" } else { "is" },
            ));
            if let Some(words) = asked_with {
                output::tell(format_args!("{}: ask it with {words}", self.remote.shown()));
            }
        }
        Ok(Verdict::Yes)
    }

    fn cli_error(&self, what: &str) -> CliError {
        CliError::Filter { name: self.remote.shown(), what: what.to_owned() }
    }
}

/// `a bloom filter`, `an xor filter`.
fn a(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'x']) { "an" } else { "a" };
    format!("{article} {kind} filter")
}
