//! The file that an opened filter is a view of: is it still as it was?

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use std::{fmt, fs};

use super::FileError;
use super::source::{FileSource, Words};
use crate::codec::{self, Storable};

/// What happened to a file while a filter was a view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It became shorter.
    Cut {
        /// Bytes it had.
        from: u64,
        /// Bytes it has.
        to: u64,
    },
    /// It was written to.
    Overwritten,
    /// The system could no longer read it, and sent SIGBUS.
    Unreadable,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { from, to } => {
                write!(f, "file was cut to {to} bytes while it was in use, it had {from}")
            }
            Self::Overwritten => f.write_str("file was overwritten while it was in use"),
            Self::Unreadable => f.write_str("file could not be read any more while it was in use"),
        }
    }
}

/// The file of a filter from [`open_backed`](super::open_backed), as it was when it was opened.
///
/// A filter that was copied into memory ([`is_mapped`](Self::is_mapped) is false) does not depend on its file any more. One that is
/// mapped does: a program that writes to the file in place changes the answers, a *no* for a member included. Ask a batch, then
/// [`check_unchanged`](Self::check_unchanged), then use the answers:
///
/// ```
/// use mayhap::{Bloom, file};
///
/// # let folder = std::env::temp_dir().join(format!("mayhap-doc-backing-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.mayhap");
/// # file::save(&Bloom::for_capacity(1_000, 0.01, 0)?, &path)?;
/// file::survive_truncation()?; // a file that is cut is an error, and does not end the process
/// let (seen, backing) = file::open_backed::<Bloom>(&path)?;
/// let answer = seen.may_contain("a");
/// backing.check_unchanged()?; // the answer is that of the file as it was opened
/// assert!(!answer);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A file that another takes the place of by renaming, as [`save`](super::save) does, is not changed by that: the old one stays mapped.
///
/// # What is promised
/// Answers that were given before a check that succeeds are those of the file as it was opened. The check compares its length and the time
/// of its last change, which systems set before they change a byte. It does not see
///
/// * a change within the same tick of the file system's clock as the last change before the opening: some milliseconds where the kernel
///   has no finer one (Linux has since 6.13, on ext4, XFS, Btrfs and tmpfs),
/// * a time of change that was set back on purpose (`touch -d`), with as many bytes,
/// * writes through a memory map of another process to pages that it had changed before,
/// * on a network file system, changes by another machine that this one has not heard of.
///
/// Where that is not enough, [`read`](super::read) copies the filter and checks every byte.
#[derive(Clone, Debug)]
pub struct Backing {
    path: PathBuf,
    /// None if nothing of it is mapped.
    mapped: Option<Mapped>,
}

#[derive(Clone, Debug)]
struct Mapped {
    file: Arc<File>,
    opened: Stamp,
    lost: Arc<AtomicBool>,
}

/// What tells a file from the same one after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    changed: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(about: &fs::Metadata) -> Self {
        Self { bytes: about.len(), changed: about.modified().ok() }
    }

    /// What happened since.
    fn compare(self, now: Self) -> Option<Change> {
        match now {
            _ if now == self => None,
            _ if now.bytes < self.bytes => Some(Change::Cut { from: self.bytes, to: now.bytes }),
            _ => Some(Change::Overwritten),
        }
    }
}

impl Backing {
    pub(super) fn of(source: &FileSource<'_>, path: &Path) -> Self {
        let mapped = source.maps().then(|| Mapped {
            file: Arc::clone(&source.file),
            opened: source.stamp,
            lost: Arc::clone(&source.lost),
        });
        Self { path: path.to_owned(), mapped }
    }

    /// Is the filter a view of its file? If not, it is a copy, every byte of which was checked.
    #[must_use]
    pub const fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// `Ok` if the file is as it was when it was opened, or does not matter any more. Takes one call to the system.
    ///
    /// # Errors
    /// [`FileError::Changed`]; what the filter answered since the last check may be wrong. [`FileError::Io`] if the system does not say.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        let Some(mapped) = &self.mapped else { return Ok(()) };
        let about = mapped.file.metadata().map_err(FileError::io("look at", &self.path))?;
        let lost = || mapped.lost.load(Ordering::SeqCst).then_some(Change::Unreadable);
        match mapped.opened.compare(Stamp::of(&about)).or_else(lost) {
            Some(change) => Err(FileError::Changed { path: self.path.clone(), change }),
            None => Ok(()),
        }
    }

    /// Checks every byte of the file that was opened, whatever has its name by now. A copy was checked when it was made.
    ///
    /// # Errors
    /// [`FileError`] if it cannot be read, is not an intact `F`, or was changed.
    pub fn verify<F: Storable>(&self) -> Result<(), FileError> {
        self.verify_watched::<F>(&|_| Ok(()))
    }

    pub(super) fn verify_watched<F: Storable>(
        &self,
        watch: &dyn Fn(u64) -> Result<(), codec::DecodeError>,
    ) -> Result<(), FileError> {
        let Some(Mapped { file, opened, lost }) = &self.mapped else { return Ok(()) };
        let source = FileSource {
            file: Arc::clone(file),
            stamp: *opened,
            lost: Arc::clone(lost),
            words: Words::Checked(watch),
        };
        let decoded = codec::decode_from::<F>(&source);
        // A file that was cut is damaged as well; what was done to it says more.
        self.check_unchanged()?;
        decoded.map(drop).map_err(FileError::decode(&self.path))
    }
}

/// From now on no map of a filter's file ends the process by SIGBUS, which a load from a file that was cut does otherwise: the filter answers
/// anything, and [`Backing::check_unchanged`] fails. For the whole process: it puts a handler for that signal in the place of the one before,
/// which gets what is not about such maps. Where there are no signals it does nothing.
///
/// # Errors
/// If the system refuses the handler.
pub fn survive_truncation() -> io::Result<()> {
    #[cfg(unix)]
    crate::store::survive()?;
    Ok(())
}
