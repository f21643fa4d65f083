//! `--state FILE`: what earlier runs have seen. One process at a time.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use mayhap::codec::Storable;
use mayhap::file::FileError;
use mayhap::{Filter, Kind, file};

use crate::error::CliError;

/// The file, locked as long as this lives where there is one, and what is in it.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    /// The file that was read. Saving puts another one in its place, so whoever comes later locks that one.
    locked: Option<File>,
    filter: Option<Filter>,
}

impl State {
    /// Reads what is there, if anything is, and keeps other processes from doing the same.
    pub(super) fn claim(path: &Path) -> Result<Self, CliError> {
        let path = path.to_owned();
        let cli_error = |action| {
            let path = path.clone();
            move |cause| CliError::File(FileError::Io { action, path, cause })
        };
        let locked = loop {
            let file = match open_regular(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A folder that is not there is told at once, not after an hour.
                    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                    folder.unwrap_or(Path::new(".")).metadata().map_err(cli_error("create"))?;
                    return Ok(Self { path, locked: None, filter: None });
                }
                file => file.map_err(cli_error("open"))?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let what = "another process is using this state: wait for it, or give each its own";
                    return Err(CliError::Filter { name: path.display().to_string(), what: what.into() });
                }
                Err(TryLockError::Error(error)) => return Err(cli_error("lock")(error)),
            }
            // Whoever had it before may have put another one in its place meanwhile.
            if same(&file.metadata().map_err(cli_error("open"))?, &path) {
                break file;
            }
        };
        // A copy: a run may take days, and nothing that is done to the file meanwhile may change what was seen.
        let filter = file::read::<Filter>(&path)?;
        Ok(Self { path, locked: Some(locked), filter: Some(filter) })
    }

    /// What was in it, once.
    pub(super) fn take(&mut self) -> Option<Filter> {
        self.filter.take()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Saves `filter` in its place, in one step.
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
        // Nobody could lock what was not there. A second name for a file is given only if nobody has that name, in one step.
        let cli_error = |action| {
            let path = self.path.clone();
            move |cause| CliError::File(FileError::Io { action, path, cause })
        };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let aside = tempfile::Builder::new().prefix(".mayhap-").tempdir_in(folder.unwrap_or(Path::new(".")));
        let aside = aside.map_err(cli_error("create"))?;
        let saved = aside.path().join("state");
        file::save(filter, &saved).map_err(|error| match error {
            // Nobody asked for the one aside.
            FileError::Io { action, cause, .. } => cli_error(action)(cause),
            error => error.into(),
        })?;
        match std::fs::hard_link(&saved, &self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(self.overtaken()),
            linked => linked.map_err(cli_error("create")),
        }
    }

    fn overtaken(&self) -> CliError {
        self.cli_error(
            "another process wrote it meanwhile, and what this run has seen was not saved: run it again"
                .into(),
        )
    }

    /// What is wrong with it.
    pub(super) fn cli_error(&self, what: String) -> CliError {
        CliError::Filter { name: self.path.display().to_string(), what }
    }

    /// It is the state of something else.
    pub(super) fn other_kind(&self, got: Kind, wanted: Kind) -> CliError {
        let what = match (got, wanted) {
            (Kind::Window, _) => {
                "it is the state of a run with --window: give the same, or begin a new state".into()
            }
            (Kind::Fingerprints, _) => {
                "it is the state of a run without --window: leave that out, or begin a new state".into()
            }
            (got, _) => format!("it is a {got} filter, not a state of `mayhap uniq`"),
        };
        self.cli_error(what)
    }
}

/// Opens a regular file; anything else, such as a pipe that has no writer yet, is refused at once.
fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// Is this the file that `path` leads to?
fn same(about: &Metadata, path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|other| (about.dev(), about.ino()) == (other.dev(), other.ino()))
}
