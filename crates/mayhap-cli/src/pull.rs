//! `mayhap pull`: copies a filter from a running server into a file.

pub(crate) mod fetch;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use mayhap::{Filter, say};
use mayhap_formats::Format;
use serde::Serialize;

use crate::error::CliError;
use crate::progress::{Progress, ProgressArgs};
use crate::remote::{Family, Remote, RemoteArgs};
use crate::remote_filter::Server;
use crate::target::Target;
use crate::{Verdict, output};

/// Copy a filter from a running server into a file: mayhap's, or a Redis with RedisBloom
#[derive(Args, Debug)]
#[command(after_help = "\
The filter is read in pieces, checked, and written to FILE in one step; the server
keeps it. If clients write to it during the pull, the file has at least the items
from the beginning of the pull; if the filter grew or moved items, the pull starts
again.

--format redisbloom writes a dump that RedisBloom can load, for BF.* and CF.*
filters; otherwise FILE is a mayhap file. A filter with a secret key is written with
the key, so FILE is readable only by its owner.

FILE is replaced only with --force; - is standard output. Give the password in the
address, in REDISCLI_AUTH or in a file. The default port is 6379; mayhap's server
listens on 6399.

Examples:
  mayhap pull redis://localhost:6399/seen seen.mayhap
  mayhap pull redis://cache.local/seen seen.bf --format redisbloom
  mayhap pull redis://localhost:6399/seen - | gzip > seen.mayhap.gz
  mayhap pull redis://localhost:6399/seen seen.mayhap && mayhap info seen.mayhap")]
pub(crate) struct Pull {
    /// Source: redis://[user:password@]host[:port]/NAME
    #[arg(value_name = "ADDRESS")]
    remote: Remote,
    /// The file to write
    #[arg(value_name = "FILE")]
    out: PathBuf,
    /// The format to write: mayhap, redisbloom, redis-dump, …
    #[arg(long, value_name = "FORMAT", default_value = "mayhap")]
    format: Written,
    /// Replace FILE if it exists
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
}

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// RedisBloom's dump of a Bloom or cuckoo filter.
    RedisBloom,
    /// Another format.
    As(Format),
}

impl FromStr for Written {
    type Err = <Format as FromStr>::Err;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "redisbloom" { Ok(Self::RedisBloom) } else { name.parse().map(Self::As) }
    }
}

/// The result. The field names are those of `--json` and must not change.
#[derive(Serialize)]
struct PullReport {
    from: String,
    out: String,
    format: &'static str,
    kind: &'static str,
    command: &'static str,
    inserted: u64,
    bytes: u64,
}

impl Pull {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let target = Target::new(&self.out, self.force)?;
        if self.json && target == Target::Stdout {
            return Err(CliError::Usage("--json: the filter itself goes to standard output".into()));
        }
        let progress = Progress::start(self.progress);
        let mut connection = self.remote.connect(&self.server)?;
        let there = connection.type_of(self.remote.name())?;
        let family = match (Family::of_type(&there), there.as_str()) {
            (Some(family), _) => family,
            (None, "none") => {
                return Err(self.cli_error(&self.remote.with_ports("there is no filter of this name".into())));
            }
            (None, _) => return Err(self.not_to_be_had(&there)?),
        };
        let is_keyed = Family::is_keyed_type(&there);
        let fetch = if is_keyed { fetch::keyed_filter } else { fetch::filter };
        let filter = fetch(&mut connection, &self.remote, family, &progress)?;
        let format = match (self.format, &filter) {
            (Written::As(format), _) => format,
            (Written::RedisBloom, Filter::ScalableCuckoo(_)) => Format::RedisCuckoo,
            (Written::RedisBloom, _) => Format::RedisBloom,
        };
        let bytes = target.save(&filter, format, &[], &progress)?;
        drop(progress);
        if self.json {
            let report = PullReport {
                from: self.remote.shown(),
                out: target.name(),
                format: format.name(),
                kind: filter.kind().name(),
                command: if is_keyed { "DUMP" } else { family.dump_command() },
                inserted: filter.inserted(),
                bytes,
            };
            output::to_stdout(|out, _| output::json(out, &report))?;
        } else if !self.quiet {
            output::tell(format_args!(
                "{}: {}, {}, format {format}, from {}",
                target.name(),
                say::items(filter.inserted()),
                say::bytes(bytes),
                self.remote.shown()
            ));
        }
        Ok(Verdict::Yes)
    }

    /// The error for a filter that can only be queried in its server.
    fn not_to_be_had(&self, kind: &str) -> Result<CliError, CliError> {
        let server = Server::connect(&self.remote, &self.server)?;
        Ok(self.cli_error(&match kind {
            "string" if server.is_sharded()? => {
                "is a sharded filter, which cannot be pulled: check, add and info accept its address".into()
            }
            "string" if server.has_redisson_config()? => {
                "is a Redisson bitmap, which cannot be pulled: check, add and info accept its address, with --items-as".into()
            }
            "string" => "holds a string, which is not a filter of the server: query a bitmap with Guava's placement with \
                         check --as guava"
                .to_owned(),
            kind => format!("holds a {kind}, which is not a filter"),
        }))
    }

    fn cli_error(&self, what: &str) -> CliError {
        CliError::Filter { name: self.remote.shown(), what: what.to_owned() }
    }
}
