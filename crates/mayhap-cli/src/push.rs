//! `mayhap push`: copies a filter file into a running server.

pub(crate) mod bitmap;
mod pieces;
pub(crate) mod send;

use std::path::PathBuf;

use clap::Args;
use mayhap::{Filter, say};
use mayhap_formats::Format;
use serde::Serialize;

use self::send::Goal;
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs, Opened};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::{Family, Remote, RemoteArgs};
use crate::remote_filter::{AskedWith, Layout};
use crate::{Verdict, output};

/// Copy a filter into a running server: mayhap's, or a Redis with RedisBloom
#[derive(Args, Debug)]
#[command(after_help = "\
The filter is sent in pieces to a temporary name ({NAME}:loading:…), which is
renamed in one step once the server has confirmed everything. Until then, clients
see the old filter or none, never half of the new one. Ctrl-C removes the temporary
name; if that fails, the name expires.

Filters in RedisBloom's layout (`mayhap build --format redis-bloom` or
redis-cuckoo, or pulled from there) can be sent to any server with BF.LOADCHUNK or
CF.LOADCHUNK. All other kinds need MF.LOAD, which mayhap's server and module have.

A Redis without a module accepts the bitmaps of Java programs: a filter in
Redisson's layout is stored as its bitmap and config, both in one step; a Guava
filter is stored as a plain bitmap with --as guava. The server does not store the
parameters of such a bitmap: keep the flags that push prints. Redisson's layout is
used if the server has no MF.LOAD, or with --as redisson.

An existing name is replaced only with --force, and loses its expiry. Give the
password in the address, in REDISCLI_AUTH or in a file; other users of this machine
can see addresses. The default port is 6379; mayhap's server listens on 6399.

Examples:
  mayhap push seen.mayhap redis://localhost:6399/seen
  mayhap push seen.mayhap redis://localhost:6399/seen --force
  mayhap push seen.bf redis://cache.local/seen --password-file ~/.redis
  mayhap push seen.mayhap 'redis+unix:///run/mayhap.sock?name=seen' --json
  mayhap push words.bloom redis://localhost:6399/words --items-as utf8
  mayhap push words.bloom redis://cache.local/words --items-as utf8 --as guava")]
pub(crate) struct Push {
    /// The filter: a file of mayhap or of another program
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// Destination: redis://[user:password@]host[:port]/NAME
    #[arg(value_name = "ADDRESS")]
    remote: Remote,
    /// Replace an existing value of that name
    #[arg(short, long)]
    force: bool,
    /// Print errors only
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
    /// Store it as a bitmap of this layout, for Java programs
    #[arg(long = "as", value_name = "LAYOUT", value_enum)]
    layout: Option<Layout>,
    /// With --as guava: set the bit after the last one, which marks the bitmap as complete
    #[arg(long, requires = "layout")]
    marker: bool,
}

/// The result. The field names are those of `--json` and must not change.
#[derive(Serialize)]
struct PushReport {
    filter: String,
    from: &'static str,
    to: String,
    kind: &'static str,
    command: &'static str,
    inserted: u64,
    bytes: u64,
    pieces: u64,
    /// Whether a previous value of the name was replaced.
    replaced: bool,
    /// The flags to query a bitmap with Guava's placement.
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
        // Look for the command before sending: Redis echoes unknown commands, and the bytes of a filter are not text.
        if !connection.has_command(family.load_command())? {
            drop(progress);
            return match bitmap::layout_of(&opened.filter) {
                Some(Layout::Redisson) => self.push_bitmap(&opened, Layout::Redisson),
                Some(Layout::Guava) => {
                    let what = "the server has no MF.LOAD; --as guava stores the filter as a bitmap";
                    Err(self.cli_error(what))
                }
                None => Err(send::cannot_take(&connection, family, opened.filter.kind())),
            };
        }
        let there = connection.type_of(self.remote.name())?;
        if there != "none" && !self.force {
            return Err(self.cli_error("exists already; --force replaces it"));
        }
        let goal = Goal { remote: &self.remote, args: &self.server, family, force: self.force };
        let sent = goal.send(&mut connection, (&opened.filter, opened.format), &self.filter, &progress)?;
        drop(progress);
        self.report(&opened, family.load_command(), sent, there != "none", None)
    }

    fn open(&self) -> Result<Opened, CliError> {
        let opened = filter_file::open_to_describe(&self.filter, &self.foreign)?;
        if opened.encoding_unknown {
            // The server answers lookups, so it must know the item encoding.
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
            let report = PushReport {
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
                output::tell(format_args!("{}: query it with {words}", self.remote.shown()));
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
