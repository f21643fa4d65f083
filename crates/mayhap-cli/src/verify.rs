//! `mayhap verify`: checks every byte of a filter.

use std::io;
use std::path::Path;

use clap::Args;
use mayhap::file::FileError;
use mayhap::{DecodeError, Filter, ItemEncoding, file};
use mayhap_formats::Format;
use serde::Serialize;

use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::{Remote, RemoteArgs};
use crate::remote_filter::{LayoutArgs, RemoteFilter};
use crate::{Verdict, interrupt, output};

/// Check every byte of filters
#[derive(Args, Debug)]
#[command(after_help = "\
A mayhap file has checksums of its header and of its contents. verify reads the
whole file and detects a single flipped bit. Other commands, such as `check`, check
only the header of a filter above 16 MiB.

Most files of other programs have no checksum. verify reads them in full and finds
invalid structures, but not a flipped bit in the contents of a filter.

A filter in a server (redis://host:port/NAME) is read in full, as with `mayhap
pull`, and then checked; this needs permission to dump. For a sharded filter,
verify checks that every shard is complete.

Exit codes: 0 all intact, 1 at least one damaged, 2 at least one cannot be read.

Examples:
  mayhap verify seen.mayhap
  mayhap verify *.mayhap && cp *.mayhap /backup/
  mayhap verify --json seen.mayhap
  mayhap verify --progress huge.mayhap            progress every second
  mayhap verify words.bloom                       a filter of another program
  mayhap verify redis://localhost:6399/seen       a filter in a server")]
pub(crate) struct Verify {
    /// Filters of mayhap or of other programs: files, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", required = true, value_parser = place::parser())]
    filters: Vec<Place>,
    /// Print nothing; the exit code is the answer
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// The result for one filter. The field names are those of `--json` and must not change.
#[derive(Debug, Serialize)]
struct Found {
    file: String,
    format: &'static str,
    intact: bool,
    /// The format has a checksum, and it was compared.
    checksum: bool,
    /// The damage, if any.
    damage: Option<String>,
    /// `file` or `filter`, for the text.
    #[serde(skip)]
    what: &'static str,
}

#[derive(Serialize)]
struct VerifyReport {
    files: Vec<Found>,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let progress = Progress::start(self.progress);
        let mut files = Vec::new();
        let mut first_error = None;
        for place in &self.filters {
            let found = match place {
                Place::File(path) => self.check(path, &progress),
                Place::Server(remote) => self.check_there(remote, &progress),
            };
            match found {
                Ok(found) => files.push(found),
                Err(CliError::Interrupted) => return Err(CliError::Interrupted),
                // The others are still checked. The first error is returned; later ones are warnings.
                Err(error) if first_error.is_none() => first_error = Some(error),
                Err(error) => output::warn(error),
            }
        }
        drop(progress);
        let all_intact = files.iter().all(|found| found.intact);
        if self.json {
            output::to_stdout(|out, _| output::json(out, &VerifyReport { files }))?;
        } else if !self.quiet {
            output::to_stdout(|out, _| {
                files.iter().try_for_each(|found| Ok(writeln!(out, "{}", found.described())?))
            })?;
        }
        match first_error {
            Some(error) => Err(error),
            None if all_intact => Ok(Verdict::Yes),
            None => Ok(Verdict::No),
        }
    }

    /// Checks a filter in a server.
    fn check_there(&self, remote: &Remote, progress: &Progress) -> Result<Found, CliError> {
        let found = |format: &'static str, damage: Option<String>| Found {
            file: remote.shown(),
            format,
            intact: damage.is_none(),
            checksum: format == Format::Mayhap.name(),
            damage,
            what: "filter",
        };
        // No item is looked up, so the encoding of items does not matter.
        let items = Some(self.foreign.items_as.unwrap_or(ItemEncoding::Bytes));
        let filter = RemoteFilter::open(remote, &self.server, &LayoutArgs::default(), items)?;
        if !filter.is_named() {
            let (format, missing) = filter.missing()?;
            return Ok(found(format, missing));
        }
        match filter.fetch(remote, &self.server, progress) {
            Ok((_, format)) => Ok(found(format.name(), None)),
            Err(CliError::WrongFormat { format, what, .. }) => Ok(found(format.name(), Some(what))),
            Err(error) => Err(error),
        }
    }

    fn check(&self, path: &Path, progress: &Progress) -> Result<Found, CliError> {
        let found = |format: Format, damage: Option<String>| Found {
            file: path.display().to_string(),
            format: format.name(),
            intact: damage.is_none(),
            checksum: matches!(format, Format::Mayhap | Format::RedisDump | Format::DcsoGzip),
            damage,
            what: "file",
        };
        if matches!(self.foreign.from, None | Some(Format::Mayhap)) {
            let bytes = std::fs::metadata(path).ok().map(|about| about.len());
            progress.phase("checking", bytes);
            let _polite = interrupt::polite();
            let checked = file::verify_watched::<Filter>(path, |bytes| {
                progress.done_bytes(bytes);
                interrupt::check().map_err(|_| io::Error::other("interrupted"))
            });
            interrupt::check()?;
            match checked {
                Ok(()) => return Ok(found(Format::Mayhap, None)),
                Err(FileError::Decode {
                    cause: DecodeError::BadMagic | DecodeError::TooShort { .. },
                    ..
                }) if self.foreign.from.is_none() && !begins_like_ours(path) => {}
                Err(FileError::Decode { cause, .. }) => {
                    return Ok(found(Format::Mayhap, Some(cause.to_string())));
                }
                Err(error) => return Err(error.into()),
            }
        }
        match filter_file::open_to_describe(path, &self.foreign) {
            Ok(opened) => Ok(found(opened.format, None)),
            // If --from names the format, the file is a damaged one of it; otherwise it may be anything.
            Err(CliError::WrongFormat { format, what, .. }) => Ok(found(format, Some(what))),
            Err(error) => Err(error),
        }
    }
}

/// Whether it is a truncated mayhap file, which is damaged rather than unknown.
fn begins_like_ours(path: &Path) -> bool {
    let unknown = |error| !matches!(error, FileError::Decode { cause: DecodeError::BadMagic, .. });
    let long_enough = std::fs::metadata(path).is_ok_and(|about| about.len() >= 8);
    long_enough && file::kind(path).map_or_else(unknown, |_| true)
}

impl Found {
    fn described(&self) -> String {
        match (&self.damage, self.checksum) {
            (Some(damage), _) => format!("{}: damaged: {damage}", self.file),
            (None, true) => format!("{}: intact", self.file),
            (None, false) => {
                format!("{}: readable {} {} (the format has no checksum)", self.file, self.format, self.what)
            }
        }
    }
}
