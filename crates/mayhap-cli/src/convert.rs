//! `mayhap convert`: writes a filter in another format.

mod read_back;

use std::path::PathBuf;

use clap::Args;
use mayhap::{Filter, HashScheme};
use mayhap_formats::{Format, WriteError, dcso, redisson};
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
Any filter that can be read can be written as a mayhap file, which opens fast, has a
checksum and stores the encoding of the items. It can be written in its own or
another format if both hash and place items the same way: the layouts of binary
fuse filters, DCSO plain and gzipped, bits-and-blooms binary and JSON, RedisBloom's
dumps, a column of a Parquet file and the blob.

All other conversions are rejected, because a filter cannot be rehashed without its
items. Build it from the items: `mayhap build OUT ITEMS --format FORMAT`.

The output is read back and compared before it is put in place. OUT is replaced
only with --force; - is standard output.

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
    /// The filter: a file of mayhap or of another program
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The format to write: mayhap, guava, redis-bloom, dcso, …
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
    /// Print errors only
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

/// The result. The field names are those of `--json` and must not change.
#[derive(Serialize)]
struct ConvertReport {
    filter: String,
    from: &'static str,
    out: String,
    to: &'static str,
    kind: &'static str,
    bytes: u64,
    /// The number of items for which the written filter was compared with the original.
    compared_items: u64,
    /// The config that Redisson stores next to the bitmap.
    #[serde(skip_serializing_if = "Option::is_none")]
    redisson_config: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Convert {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let target = Target::new(&self.out, self.force)?;
        let progress = Progress::start(self.progress);
        let opened = filter_file::open_to_describe(&self.filter, &self.foreign)?;
        if opened.encoding_unknown && self.to == Format::Mayhap {
            // A mayhap file stores the item encoding, so it must be known; for other formats it makes no difference.
            filter_file::open(&self.filter, &self.foreign)?;
        }
        opened.check_all()?;
        let attached = self.attached(opened.format)?;
        let mut written = Bytes::default();
        filter_file::write(&opened.filter, self.to, &attached, &mut written)
            .map_err(|error| self.refusal(&error, opened.format))?;
        let bytes = written.0;
        let compared_items =
            read_back::compare(&opened.filter, self.to, &attached, &bytes).map_err(|what| {
                self.cli_error(format!("the {} output does not match the input: {what}", self.to))
            })?;
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
            let report = ConvertReport {
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
                "{}: {} bytes, format {}, read back and compared",
                target.name(),
                mayhap::say::count(bytes),
                self.to
            ));
            if let Some(config) = config {
                let fields: Vec<_> =
                    config.fields().iter().map(|(name, value)| format!("{name} {value}")).collect();
                output::tell(format_args!(
                    "store this next to the bitmap: HSET {{NAME}}:config {}",
                    fields.join(" ")
                ));
            }
        }
        Ok(Verdict::Yes)
    }

    /// Returns the data that a DCSO file carries besides the filter, if both formats can carry it.
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
                "cannot be written as {to}: that format needs placement {needs}, this {from} filter has {got}, and \
                 it cannot be rehashed without its items: build it from them with `mayhap build --format {to}`"
            ),
            WriteError::OtherKind { holds, got } => format!(
                "cannot be written as {to}: that format holds {holds}, this is a {got} filter: build one from the items \
                 with `mayhap build --format {to}`"
            ),
            WriteError::ReadOnly { .. } => format!("{to} files can be read but not written"),
            error => format!("cannot be written as {to}: {error}"),
        })
    }
}
