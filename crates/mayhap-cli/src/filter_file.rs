//! Filters in files: mayhap's own through a memory map, others in their programs' formats.

mod foreign;
mod rdb;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use mayhap::file::{Backing, FileError, Readers};
use mayhap::{DecodeError, Filter, ItemEncoding, file};
use mayhap_formats::dcso::{self, Packing};
use mayhap_formats::parquet::ParquetFilters;
use mayhap_formats::{Argument, Format, ReadError, Sniffed, WriteError};

pub(crate) use self::foreign::ForeignArgs;

use crate::error::CliError;
use crate::interrupt;
use crate::progress::Progress;
use crate::whole_file;

/// A filter, and facts about its file.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) filter: Filter,
    pub(crate) format: Format,
    /// The size of the file.
    pub(crate) file_bytes: u64,
    /// The item encoding is unknown: the filter can be described, but not queried.
    pub(crate) encoding_unknown: bool,
    /// The file that the filter is a view of, if it is a mayhap file.
    pub(crate) backing: Option<Backing>,
}

impl Opened {
    /// Reads and checks every byte of a mayhap file, which opening a large one does not. Files of other programs were
    /// read completely.
    pub(crate) fn check_all(&self) -> Result<(), CliError> {
        match &self.backing {
            Some(backing) => Ok(backing.verify::<Filter>()?),
            None => Ok(()),
        }
    }

    /// `Ok` if the file has not changed since it was opened, so the filter's answers so far are correct.
    pub(crate) fn check_unchanged(&self) -> Result<(), CliError> {
        check_unchanged(self.backing.as_slice())
    }
}

/// `Ok` if none of these files has changed since it was opened.
pub(crate) fn check_unchanged(backings: &[Backing]) -> Result<(), CliError> {
    Ok(backings.iter().try_for_each(Backing::check_unchanged)?)
}

/// Whether the filter will be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Asking,
    /// The item encoding does not matter.
    Describing,
}

/// Opens the filter in `path`, of any kind. A mayhap file opens immediately, whatever its size. The answers are valid only if
/// [`Opened::check_unchanged`] returns `Ok` afterwards.
pub(crate) fn open(path: &Path, foreign: &ForeignArgs) -> Result<Opened, CliError> {
    open_for(path, foreign, Purpose::Asking)
}

/// Like [`open`], for callers that write the filter again. Checks every byte first, because damage must not get a new
/// checksum.
pub(crate) fn open_to_change(path: &Path, foreign: &ForeignArgs) -> Result<Opened, CliError> {
    let opened = open_for(path, foreign, Purpose::Asking)?;
    opened.check_all()?;
    Ok(opened)
}

/// Like [`open`], for callers that query no items. The item encoding may be unknown.
pub(crate) fn open_to_describe(path: &Path, foreign: &ForeignArgs) -> Result<Opened, CliError> {
    open_for(path, foreign, Purpose::Describing)
}

fn open_for(path: &Path, foreign: &ForeignArgs, purpose: Purpose) -> Result<Opened, CliError> {
    let name = path.display().to_string();
    let unreadable = |cause| CliError::Read { name: name.clone(), cause };
    let about = fs::metadata(path).map_err(unreadable)?;
    let file_bytes = about.len();
    let known =
        |filter, format| Opened { filter, format, file_bytes, encoding_unknown: false, backing: None };
    if matches!(foreign.from, None | Some(Format::Mayhap)) {
        // A file that is truncated later is detected afterwards, and does not end the program.
        file::survive_truncation().map_err(unreadable)?;
        match file::open_backed::<Filter>(path) {
            Ok((filter, backing)) => {
                return Ok(Opened { backing: Some(backing), ..known(filter, Format::Mayhap) });
            }
            Err(FileError::Decode {
                cause: DecodeError::BadMagic | DecodeError::TooShort { .. }, ..
            }) if foreign.from.is_none() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let told = |error: ReadError, format: Format| {
        let (name, what) = (name.clone(), foreign::said(&error, format, &name));
        match error {
            ReadError::Decode { .. } | ReadError::Parquet(_) => CliError::WrongFormat { name, format, what },
            _ => CliError::Input { name, what },
        }
    };
    if foreign.from == Some(Format::Parquet) || (foreign.from.is_none() && is_parquet(path)) {
        let filter = parquet_column(path, foreign).map_err(|error| match error {
            Wanting::File(cause) => unreadable(cause),
            Wanting::Read(error) => told(error, Format::Parquet),
        })?;
        return Ok(known(filter, Format::Parquet));
    }
    if foreign.from.is_none() && rdb::is_rdb(path) {
        let input = |what| CliError::Input { name: name.clone(), what };
        let payload = rdb::payload(path, foreign.rdb_key.as_deref()).map_err(input)?;
        let filter = Format::RedisDump.read(&payload, &foreign.read_options()?);
        return Ok(known(filter.map_err(|error| told(error, Format::RedisDump))?, Format::RedisDump));
    }
    let bytes = whole_file::read(path)?;
    let file_bytes = bytes.len() as u64;
    let known = |filter, format| Opened { file_bytes, ..known(filter, format) };
    let format = match foreign.from {
        Some(format) => format,
        None => told_apart(&bytes).map_err(|what| CliError::Input { name: name.clone(), what })?,
    };
    let options = foreign.read_options()?;
    match format.read(&bytes, &options) {
        Ok(filter) => Ok(known(filter, format)),
        Err(ReadError::Needs { argument: Argument::Items, .. }) if purpose == Purpose::Describing => {
            let read = format.read(&bytes, &options.items(ItemEncoding::Bytes));
            let filter = read.map_err(|error| told(error, format))?;
            Ok(Opened { encoding_unknown: true, ..known(filter, format) })
        }
        Err(error) => Err(told(error, format)),
    }
}

/// The first bytes of every Parquet file.
const PARQUET: &[u8; 4] = b"PAR1";

/// Returns `true` for a Parquet file. Of such a file only the footer and one filter are read, whatever its size.
pub(crate) fn is_parquet(path: &Path) -> bool {
    begins_with(path, &[PARQUET])
}

/// Returns `true` if a regular file begins with one of these. Pipes are not read, because the next reader would miss the
/// bytes.
fn begins_with<const N: usize>(path: &Path, beginnings: &[&[u8; N]]) -> bool {
    let mut begins = [0; N];
    fs::metadata(path).is_ok_and(|about| about.is_file())
        && File::open(path).and_then(|mut file| file.read_exact(&mut begins)).is_ok()
        && beginnings.contains(&&begins)
}

/// Why a column's filter was not read.
enum Wanting {
    File(io::Error),
    Read(ReadError),
}

/// The filter of the named column.
fn parquet_column(path: &Path, foreign: &ForeignArgs) -> Result<Filter, Wanting> {
    let file = File::open(path).map_err(Wanting::File)?;
    let read = |error| Wanting::Read(ReadError::Parquet(error));
    let mut filters = ParquetFilters::open(file).map_err(read)?;
    let needs = || Wanting::Read(ReadError::Needs { format: Format::Parquet, argument: Argument::Column });
    let column = foreign.column.as_ref().ok_or_else(needs)?;
    let row_group = match (foreign.row_group, filters.row_groups().len()) {
        (Some(row_group), _) => row_group,
        (None, 0 | 1) => 0,
        (None, _) => return Err(needs()),
    };
    let found = filters
        .filters()
        .iter()
        .find(|filter| filter.row_group == row_group && *filter.column == **column)
        .cloned();
    let Some(found) = found else {
        let there = filters.filters().iter().take(20);
        let there = there.map(|filter| format!("{} in {}", filter.column, filter.row_group)).collect();
        let path = column.clone();
        return Err(Wanting::Read(ReadError::NoSuchColumn { row_group, path, there }));
    };
    let filter = match foreign.items_as {
        Some(items) => filters.read_as(&found, items),
        None => filters.read(&found),
    };
    Ok(Filter::BlockedBloom(filter.map_err(read)?))
}

/// The only format that these bytes can be, or the error text if there is not exactly one.
fn told_apart(bytes: &[u8]) -> Result<Format, String> {
    match Format::sniff(bytes) {
        Sniffed::Is(format) => Ok(format),
        Sniffed::CouldBe(formats) => match formats[..] {
            [format] => Ok(format),
            _ => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                Err(format!("could be {}: choose one with --from", names.join(" or ")))
            }
        },
        _ if bytes.is_empty() => Err("an empty file is not a filter".into()),
        _ => Err("not a filter in a known format; try `mayhap sniff`".into()),
    }
}

/// Saves `filter` in `path` in one step, and shows progress. `attached` is the extra data of a DCSO file. `backings` are the
/// files that the filter was made from; they must not change until the last byte is written. After Ctrl-C the old file is
/// unchanged and no temporary file is left.
pub(crate) fn save_as(
    filter: &Filter,
    format: Format,
    attached: &[u8],
    backings: &[Backing],
    path: &Path,
    progress: &Progress,
) -> Result<(), CliError> {
    let _polite = interrupt::polite();
    progress.phase("saving", Some(filter.memory_bytes()));
    let mut changed = None;
    let watch = |written| {
        progress.done_bytes(written);
        if let Err(error) = check_unchanged(backings) {
            changed = Some(error);
            return Err(io::Error::other("changed"));
        }
        interrupt::check().map_err(|_| io::Error::other("interrupted"))
    };
    let mut refused = None;
    let saved = match format {
        Format::Mayhap => file::save_watched(filter, path, watch),
        format => file::replace(path, Readers::AsUsual, watch, |out| {
            write(filter, format, attached, out).map_err(|error| match error {
                WriteError::Io(cause) => cause,
                error => {
                    refused = Some(error.to_string());
                    io::Error::other("refused")
                }
            })
        }),
    };
    // The file is complete: a request to end is ignored from here on.
    if saved.is_err() {
        changed.map_or(Ok(()), Err)?;
        interrupt::check()?;
    }
    match refused {
        Some(what) => Err(CliError::Filter { name: path.display().to_string(), what }),
        None => Ok(saved?),
    }
}

/// Replaces `path` by these bytes in one step. A new file that is `secret` can be read only by its owner.
pub(crate) fn save_bytes(
    bytes: &[u8],
    secret: bool,
    path: &Path,
    progress: &Progress,
) -> Result<(), CliError> {
    let _polite = interrupt::polite();
    progress.phase("saving", Some(bytes.len() as u64));
    let readers = if secret { Readers::Owner } else { Readers::AsUsual };
    let watch = |written| {
        progress.done_bytes(written);
        interrupt::check().map_err(|_| io::Error::other("interrupted"))
    };
    let saved = file::replace(path, readers, watch, |out| out.write_all(bytes));
    if saved.is_err() {
        interrupt::check()?;
    }
    Ok(saved?)
}

/// Writes `filter` in `format`.
pub(crate) fn write(
    filter: &Filter,
    format: Format,
    attached: &[u8],
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    match (format, filter) {
        (Format::Dcso, Filter::Bloom(filter)) => dcso::write(filter, attached, Packing::Plain, out),
        (Format::DcsoGzip, Filter::Bloom(filter)) => dcso::write(filter, attached, Packing::Gzip, out),
        _ => format.write(filter, out),
    }
}
