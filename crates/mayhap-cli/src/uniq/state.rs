//! `--state FILE`: the lines that earlier runs have seen. Only one process at a time may use it.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use mayhap::codec::Storable;
use mayhap::file::FileError;
use mayhap::{Filter, Kind, file};

use crate::error::CliError;

/// The file and its content. If the file exists, it is locked while this lives.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    /// The file that was read. Saving replaces it, so later processes lock the new file.
    locked: Option<File>,
    filter: Option<Filter>,
}

impl State {
    /// Reads the file, if it exists, and locks it against other processes.
    pub(super) fn claim(path: &Path) -> Result<Self, CliError> {
        let path = path.to_owned();
        let cli_error = |action| {
            let path = path.clone();
            move |cause| CliError::File(FileError::Io { action, path, cause })
        };
        let locked = loop {
            let file = match open_regular(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A missing directory is reported now, not after an hour.
                    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                    folder.unwrap_or(Path::new(".")).metadata().map_err(cli_error("create"))?;
                    return Ok(Self { path, locked: None, filter: None });
                }
                file => file.map_err(cli_error("open"))?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let what =
                        "another process is using this state; wait for it, or use one state per process";
                    return Err(CliError::Filter { name: path.display().to_string(), what: what.into() });
                }
                Err(TryLockError::Error(error)) => return Err(cli_error("lock")(error)),
            }
            // The previous holder of the lock may have replaced the file.
            if same(&file.metadata().map_err(cli_error("open"))?, &path) {
                break file;
            }
        };
        // Reads a copy, because a run may take days and later changes to the file must not affect it.
        let filter = file::read::<Filter>(&path)?;
        Ok(Self { path, locked: Some(locked), filter: Some(filter) })
    }

    /// Takes the content out; `None` after the first call.
    pub(super) fn take(&mut self) -> Option<Filter> {
        self.filter.take()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file by `filter`, in one step.
    pub(super) fn save<F: Storable>(&self, filter: &F) -> Result<(), CliError> {
        let unchanged = match &self.locked {
            Some(file) => file.metadata().is_ok_and(|about| same(&about, &self.path)),
            None => !self.path.exists(),
        };
        if !unchanged {
            return Err(self.overtaken());
        }
        if self.locked.is_some() {
            return Ok(file::save(filter, &self.path)?);
        }
        // A file that did not exist could not be locked.
        match file::save_new(filter, &self.path) {
            Err(FileError::Io { cause, .. }) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Err(self.overtaken())
            }
            saved => Ok(saved?),
        }
    }

    fn overtaken(&self) -> CliError {
        self.cli_error(
            "another process wrote this state during the run, so the lines of this run were not saved: run it again"
                .into(),
        )
    }

    /// An error about this state.
    pub(super) fn cli_error(&self, what: String) -> CliError {
        CliError::Filter { name: self.path.display().to_string(), what }
    }

    /// The error for a state of another kind.
    pub(super) fn other_kind(&self, got: Kind, wanted: Kind) -> CliError {
        let what = match (got, wanted) {
            (Kind::Window, _) => {
                "this state was written by a run with --window: give the same --window, or begin a new state"
                    .into()
            }
            (Kind::Fingerprints, _) => {
                "this state was written by a run without --window: omit --window, or begin a new state".into()
            }
            (got, _) => format!("this is a {got} filter, not a state of `mayhap uniq`"),
        };
        self.cli_error(what)
    }
}

/// Opens a regular file. Everything else is rejected immediately, such as a pipe without a writer.
fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// Returns `true` if `path` leads to this file.
fn same(about: &Metadata, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|other| (about.dev(), about.ino()) == (other.dev(), other.ino()))
}
