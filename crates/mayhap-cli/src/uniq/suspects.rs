//! `--suspects`: the lines dropped because of shortened fingerprints. The file is written completely or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use mayhap::file::FileError;
use tempfile::NamedTempFile;

use crate::error::CliError;

/// The file, under a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct Suspects {
    path: PathBuf,
    out: BufWriter<Place>,
}

/// The destination of the lines.
#[derive(Debug)]
enum Place {
    /// A temporary file that will replace or create the real one.
    Aside(NamedTempFile),
    /// A pipe or a device, which is written directly.
    Itself(File),
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Aside(file) => file.write(bytes),
            Self::Itself(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Suspects {
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        // A symbolic link is followed, and stays.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let file = OpenOptions::new().write(true).open(path).map_err(cli_error(path, "open"))?;
            return Ok(Self { path: path.clone(), out: BufWriter::new(Place::Itself(file)) });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The usual permissions of new files, minus the user's umask.
        let permissions = Permissions::from_mode(0o666);
        let mut aside = tempfile::Builder::new();
        let aside = aside.prefix(".mayhap-suspects-").permissions(permissions).tempfile_in(folder);
        let aside = aside.map_err(cli_error(path, "create"))?;
        Ok(Self { path: path.clone(), out: BufWriter::with_capacity(1 << 16, Place::Aside(aside)) })
    }

    pub(super) fn add(&mut self, line: &[u8]) -> Result<(), CliError> {
        self.out.write_all(line).map_err(cli_error(&self.path, "write"))
    }

    /// Moves the file to its real name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let path = self.path;
        let out = self.out.into_inner().map_err(|error| cli_error(&path, "write")(error.into_error()))?;
        let Place::Aside(aside) = out else { return Ok(()) };
        aside.as_file().sync_all().map_err(cli_error(&path, "write"))?;
        aside.persist(&path).map_err(|error| cli_error(&path, "replace")(error.error))?;
        Ok(())
    }
}

fn cli_error(path: &Path, action: &'static str) -> impl Fn(std::io::Error) -> CliError {
    move |cause| CliError::File(FileError::Io { action, path: path.to_owned(), cause })
}
