//! A lock: only one program at a time changes a filter's file.
//!
//! The file is replaced, not written in place, so a lock on it is not enough. A program that waited for the lock may
//! hold it on a file that was replaced, so the file is checked again. Programs that ignore the lock are detected when
//! the new file is about to replace the old one.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::output;

/// While this exists, no other `mayhap` changes the file.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
    found: State,
}

/// The properties of a file that change when it is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    device: u64,
    number: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl State {
    fn of(about: &fs::Metadata) -> Self {
        Self {
            device: about.dev(),
            number: about.ino(),
            bytes: about.len(),
            changed: (about.mtime(), about.mtime_nsec()),
        }
    }
}

impl FileLock {
    /// Waits until no other program holds the lock on `path`. Prints that it waits, unless `quiet`.
    pub(crate) fn wait_for(path: &Path, quiet: bool) -> Result<Self, CliError> {
        let cli_error = |cause| CliError::Read { name: path.display().to_string(), cause };
        let mut said = quiet;
        loop {
            let file = File::open(path).map_err(cli_error)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::Error(cause)) => return Err(cli_error(cause)),
                Err(TryLockError::WouldBlock) => {
                    if !said {
                        output::tell(format_args!(
                            "waiting for another mayhap process to finish with {}",
                            path.display()
                        ));
                        said = true;
                    }
                    file.lock().map_err(cli_error)?;
                }
            }
            let held = State::of(&file.metadata().map_err(cli_error)?);
            let found = State::of(&fs::metadata(path).map_err(cli_error)?);
            if held == found {
                return Ok(Self { path: path.to_owned(), _file: file, found });
            }
            // The previous holder of the lock has replaced the file: lock the new one.
        }
    }

    /// `Ok` if the file is still the one that was locked.
    ///
    /// # Errors
    /// [`CliError::Filter`] if a program changed it without the lock.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let name = || self.path.display().to_string();
        let about = fs::metadata(&self.path).map_err(|cause| CliError::Read { name: name(), cause })?;
        if State::of(&about) == self.found {
            return Ok(());
        }
        let what =
            "was changed by another program during the work; it was not replaced, run the command again"
                .into();
        Err(CliError::Filter { name: name(), what })
    }
}
