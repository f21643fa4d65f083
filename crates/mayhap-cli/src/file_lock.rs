//! One program at a time changes a filter's file.
//!
//! The file is replaced, not written into, so a lock on it alone is not enough: who waited for it may hold a lock on a file that is no
//! longer there. And programs that know nothing of locks are found out when the new file is to take the old one's place.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::output;

/// While it lives, no other `mayhap` changes the file.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
    found: State,
}

/// What changes when somebody replaces a file, or writes into it.
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
    /// Waits until nobody else changes `path`, and says so unless `quiet`.
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
                            "waiting for another mayhap to be done with {}",
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
            // Whoever had the lock has replaced the file.
        }
    }

    /// `Ok` if the file is still the one that was locked.
    ///
    /// # Errors
    /// [`CliError::Filter`] if somebody changed it who does not care for locks.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let name = || self.path.display().to_string();
        let about = fs::metadata(&self.path).map_err(|cause| CliError::Read { name: name(), cause })?;
        if State::of(&about) == self.found {
            return Ok(());
        }
        let what = "was changed by another program meanwhile, and is left as it is: run this again".into();
        Err(CliError::Filter { name: name(), what })
    }
}
