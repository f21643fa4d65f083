//! Lines dropped on the word of cut fingerprints alone, in a file that is there at the end or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use mayhap::file::FileError;
use tempfile::NamedTempFile;

use crate::error::CliError;

/// The file, under another name until it is finished.
#[derive(Debug)]
pub(super) struct Suspects {
    path: PathBuf,
    out: BufWriter<Place>,
}

/// Where the lines go.
#[derive(Debug)]
enum Place {
    /// A file that takes the place of another, or of none.
    Aside(NamedTempFile),
    /// A pipe or a device, which just takes them.
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
        // A link stays one.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let file = OpenOptions::new().write(true).open(path).map_err(cli_error(path, "open"))?;
            return Ok(Self { path: path.clone(), out: BufWriter::new(Place::Itself(file)) });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As everybody creates files; what the user's mask forbids is taken off.
        let permissions = Permissions::from_mode(0o666);
        let mut aside = tempfile::Builder::new();
        let aside = aside.prefix(".mayhap-suspects-").permissions(permissions).tempfile_in(folder);
        let aside = aside.map_err(cli_error(path, "create"))?;
        Ok(Self { path: path.clone(), out: BufWriter::with_capacity(1 << 16, Place::Aside(aside)) })
    }

    pub(super) fn add(&mut self, line: &[u8]) -> Result<(), CliError> {
        self.out.write_all(line).map_err(cli_error(&self.path, "write"))
    }

    /// Gives it its name.
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
