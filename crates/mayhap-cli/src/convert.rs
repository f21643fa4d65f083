//! `mayhap convert`: the same filter in another format.

mod read_back;

use std::path::PathBuf;

use clap::Args;
use mayhap::codec::dcso;
use mayhap::codec::format::Format;
use mayhap::codec::{WriteError, redisson};
use mayhap::{Filter, HashScheme};
use serde::Serialize;

use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::progress::{Progress, ProgressArgs};
use crate::target::Target;
use crate::whole_file::Bytes;
use crate::{Verdict, output, whole_file};

/// Write a filter in another format
#[derive(Args, Debug)]
#[command(after_help = "\
Any filter that can be read can be written as one of mayhap: from then on it is
opened at once, checked by its checksum, and remembers how its items become
bytes. Back and to other formats it goes where items are hashed and placed alike:
the layouts of binary fuse filters, DCSO plain and packed, bits-and-blooms binary
and JSON, RedisBloom's dumps, a column of a Parquet file and the blob.

Everything else is refused: the bits of a filter do not say which items set them.
Then build it from the items: `mayhap build OUT ITEMS --format FORMAT`.

What was written is read back and compared before it is put in place. OUT is
replaced only with --force; - is the standard output.

Examples:
  mayhap convert users.bloom users.mayhap --to mayhap --items-as utf8
  mayhap convert words.bloom words.bloom.gz --to dcso-gzip
  mayhap convert seen.bf seen.dump --to redis-dump        for RESTORE
  mayhap convert dump.rdb seen.mayhap --to mayhap --rdb-key seen
  mayhap convert fuse.bin fuse.go --from fuse-c --to fuse-go
  mayhap convert orders.parquet customer.sbbf --to sbbf --column customer
  mayhap convert seen.mayhap seen.bf --to redis-bloom     if it came from there
  mayhap convert bits.bin seen.mayhap --to mayhap --from redisson \\
      --redisson-config config.txt --items-as kryo5")]
pub(crate) struct Convert {
    /// The filter: ours, or one of another program
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The format to write: mayhap, guava, redis-bloom, dcso, …
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Replace OUT if it is there
    #[arg(short, long)]
    force: bool,
    /// Do not say how it went
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// How it went. The field names are those of `--json`, and a promise.
#[derive(Serialize)]
struct Report {
    filter: String,
    from: &'static str,
    out: String,
    to: &'static str,
    kind: &'static str,
    bytes: u64,
    /// So many items got the same answer from what was written as from what was read.
    compared_items: u64,
    /// What Redisson keeps beside the bitmap.
    #[serde(skip_serializing_if = "Option::is_none")]
    redisson_config: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Convert {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let target = Target::new(&self.out, self.force)?;
        let progress = Progress::start(self.progress);
        let opened = filter_file::open_to_describe(&self.filter, &self.foreign)?;
        if opened.encoding_unknown && self.to == Format::Mayhap {
            // A file of ours remembers how items become bytes, so it must be told; for others it makes no difference.
            filter_file::open(&self.filter, &self.foreign)?;
        }
        opened.check_all()?;
        let attached = self.attached(opened.format)?;
        let mut written = Bytes::default();
        filter_file::write(&opened.filter, self.to, &attached, &mut written)
            .map_err(|error| self.refusal(&error, opened.format))?;
        let bytes = written.0;
        let compared_items = read_back::compare(&opened.filter, self.to, &attached, &bytes)
            .map_err(|what| self.cli_error(format!("as {} it does not come back: {what}", self.to)))?;
        opened.check_unchanged()?;
        let secret = matches!(opened.filter.scheme(), Some(HashScheme::Keyed { .. }));
        target.save_bytes(&bytes, secret, &progress)?;
        drop(progress);
        self.report(&opened.filter, opened.format, bytes.len() as u64, compared_items, &target)
    }

    fn report(
        &self,
        filter: &Filter,
        from: Format,
        bytes: u64,
        compared_items: u64,
        target: &Target,
    ) -> Result<Verdict, CliError> {
        let config = match (self.to, filter) {
            (Format::Redisson, Filter::Bloom(bloom)) => redisson::config(bloom).ok(),
            _ => None,
        };
        if self.json {
            let redisson_config = config.map(|config| {
                config.fields().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
            });
            let report = Report {
                filter: self.filter.display().to_string(),
                from: from.name(),
                out: target.name(),
                to: self.to.name(),
                kind: filter.kind().name(),
                bytes,
                compared_items,
                redisson_config,
            };
            output::to_stdout(|out, _| output::json(out, &report))?;
        } else if !self.quiet {
            output::tell(format_args!(
                "{}: {} bytes of {}, read back and compared",
                target.name(),
                mayhap::advise::say::count(bytes),
                self.to
            ));
            if let Some(config) = config {
                let fields: Vec<_> =
                    config.fields().iter().map(|(name, value)| format!("{name} {value}")).collect();
                output::tell(format_args!(
                    "beside the bitmap belongs: HSET {{NAME}}:config {}",
                    fields.join(" ")
                ));
            }
        }
        Ok(Verdict::Yes)
    }

    /// What a DCSO file carries besides the filter goes along to another.
    fn attached(&self, from: Format) -> Result<Vec<u8>, CliError> {
        let both = [from, self.to].iter().all(|format| matches!(format, Format::Dcso | Format::DcsoGzip));
        if !both {
            return Ok(Vec::new());
        }
        let bytes = whole_file::read(&self.filter)?;
        let read = dcso::read(&bytes, bytes.len() as u64 * 1_100)
            .map_err(|error| self.cli_error(error.to_string()))?;
        Ok(read.data)
    }

    fn cli_error(&self, what: String) -> CliError {
        CliError::Filter { name: self.filter.display().to_string(), what }
    }

    fn refusal(&self, error: &WriteError, from: Format) -> CliError {
        let to = self.to;
        self.cli_error(match error {
            WriteError::OtherPlacement { needs, got } => format!(
                "cannot become a {to} file: that needs items placed by {needs}, this {from} filter has {got}, and \
                 it cannot be rehashed without its items: build it from them with `mayhap build --format {to}`"
            ),
            WriteError::OtherKind { holds, got } => format!(
                "cannot become a {to} file: those hold {holds}, this is a {got} filter: build one from the items \
                 with `mayhap build --format {to}`"
            ),
            WriteError::ReadOnly { .. } => format!("{to} files are only read, not written"),
            error => format!("cannot become a {to} file: {error}"),
        })
    }
}
