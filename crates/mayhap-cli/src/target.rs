//! The destination of a filter: a file, which is written completely or not at all, or standard output.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use mayhap::Filter;
use mayhap::file::Backing;
use mayhap_formats::{Format, WriteError};

use crate::error::CliError;
use crate::file_lock::FileLock;
use crate::filter_file;
use crate::output;
use crate::progress::Progress;

/// A destination for a filter. It is checked before the work begins, which may take hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
    /// A filter on a server, with this address. The builder sends the items itself.
    Server(String),
}

impl Target {
    /// `out`, or standard output if it is `-`. An existing file is replaced only with `force`.
    pub(crate) fn new(out: &Path, force: bool) -> Result<Self, CliError> {
        if out == Path::new("-") {
            return if io::stdout().is_terminal() {
                Err(CliError::Usage(
                    "cannot write a filter to a terminal: name a file, or pipe the output".into(),
                ))
            } else {
                Ok(Self::Stdout)
            };
        }
        let cli_error = |what: &str| CliError::Filter { name: out.display().to_string(), what: what.into() };
        let cannot = |cause| CliError::CannotWrite { path: out.to_owned(), cause };
        match fs::metadata(out) {
            Ok(about) if about.is_dir() => return Err(cli_error("is a directory: name a file in it")),
            Ok(about) if !about.is_file() => return Err(cli_error("is not a regular file")),
            Ok(_) if !force => return Err(cli_error("exists already; --force replaces it")),
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(cannot(cause)),
        }
        let target = Self::File(out.to_owned());
        // Checks now, before the work, that the directory exists and can be written.
        tempfile::tempfile_in(target.folder()).map_err(cannot)?;
        Ok(target)
    }

    /// Locks the existing file, if there is one, so that no other process changes it.
    pub(crate) fn lock(&self, quiet: bool) -> Result<Option<FileLock>, CliError> {
        match self {
            Self::File(path) if path.exists() => FileLock::wait_for(path, quiet).map(Some),
            _ => Ok(None),
        }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".into(),
            Self::Server(address) => address.clone(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The directory for temporary data that does not fit in memory. It is the directory of the file, which needs
    /// free space anyway.
    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Self::Stdout | Self::Server(_) => env::temp_dir(),
            Self::File(path) => {
                // A symbolic link is followed, as when the file is replaced.
                let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
                    _ => PathBuf::from("."),
                }
            }
        }
    }

    /// Writes `filter` and returns the number of bytes. `attached` is the extra data of a DCSO file.
    pub(crate) fn save(
        &self,
        filter: &Filter,
        format: Format,
        attached: &[u8],
        progress: &Progress,
    ) -> Result<u64, CliError> {
        self.save_view(filter, format, attached, &[], progress)
    }

    /// Like [`save`](Self::save), for a filter that is a view of the files `backings`. They must not have changed.
    pub(crate) fn save_view(
        &self,
        filter: &Filter,
        format: Format,
        attached: &[u8],
        backings: &[Backing],
        progress: &Progress,
    ) -> Result<u64, CliError> {
        match self {
            Self::Stdout => {
                progress.phase("writing", Some(filter.memory_bytes()));
                let mut out = Counted { out: output::records()?, bytes: 0, progress };
                filter_file::write(filter, format, attached, &mut out).map_err(|error| match error {
                    WriteError::Io(cause) => CliError::Write(cause),
                    error => CliError::Filter { name: self.name(), what: error.to_string() },
                })?;
                out.flush()?;
                filter_file::check_unchanged(backings)?;
                Ok(out.bytes)
            }
            Self::Server(address) => Err(not_a_file(address)),
            Self::File(path) => {
                filter_file::save_as(filter, format, attached, backings, path, progress)?;
                let about = fs::metadata(path);
                Ok(about.map_err(|cause| CliError::Read { name: self.name(), cause })?.len())
            }
        }
    }

    /// Writes an encoded filter; `secret` if the bytes contain a key.
    pub(crate) fn save_bytes(&self, bytes: &[u8], secret: bool, progress: &Progress) -> Result<(), CliError> {
        match self {
            Self::Stdout => {
                let mut out = output::records()?;
                out.write_all(bytes)?;
                Ok(out.flush()?)
            }
            Self::File(path) => filter_file::save_bytes(bytes, secret, path, progress),
            Self::Server(address) => Err(not_a_file(address)),
        }
    }
}

fn not_a_file(address: &str) -> CliError {
    CliError::Filter { name: address.to_owned(), what: "is on a server, not in a file".into() }
}

/// Counts the bytes written.
struct Counted<'a, W> {
    out: W,
    bytes: u64,
    progress: &'a Progress,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        self.progress.done_bytes(self.bytes);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
