//! The file that an opened filter is a view of, and checks that it has not changed.

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

/// What happened to a file while a filter had it mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It was truncated.
    Cut {
        /// The bytes it had.
        from: u64,
        /// The bytes it has now.
        to: u64,
    },
    /// It was written to.
    Overwritten,
    /// The system could not read it and sent SIGBUS.
    Unreadable,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { from, to } => {
                write!(f, "file was truncated from {from} to {to} bytes while it was in use")
            }
            Self::Overwritten => f.write_str("file was overwritten while it was in use"),
            Self::Unreadable => f.write_str("file became unreadable while it was in use"),
        }
    }
}

/// The file of a filter from [`open_backed`](super::open_backed), as it was when it was opened.
///
/// A filter that was copied into memory ([`is_mapped`](Self::is_mapped) is false) no longer depends on its file. A mapped
/// filter does: a program that writes to the file in place changes the answers, and a member may get a *no*. Look up a
/// batch, then call [`check_unchanged`](Self::check_unchanged), then use the answers:
///
/// ```
/// use mayhap::{Bloom, file};
///
/// # let folder = std::env::temp_dir().join(format!("mayhap-doc-backing-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.mayhap");
/// # file::save(&Bloom::new(1_000, 0.01)?, &path)?;
/// file::survive_truncation()?; // a truncated file is an error, and does not end the process
/// let (seen, backing) = file::open_backed::<Bloom>(&path)?;
/// let answer = seen.may_contain("a");
/// backing.check_unchanged()?; // the answer is that of the file as it was opened
/// assert!(!answer);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Renaming another file over this one, as [`save`](super::save) does, is not a change: the old file stays mapped.
///
/// # What is promised
/// Answers given before a successful check are those of the file as it was opened. The check compares the length of the
/// file and the time of its last change, which systems set before they change a byte. It does not detect
///
/// * a change within the same tick of the file system's clock as the last change before the opening: some milliseconds if
///   the kernel has no finer clock (Linux has one since 6.13, on ext4, XFS, Btrfs and tmpfs),
/// * a modification time that was set back on purpose (`touch -d`), with the same number of bytes,
/// * writes through a memory map of another process to pages that it had changed before,
/// * on a network file system, changes by another machine that have not reached this one.
///
/// If that is not enough, use [`read`](super::read): it copies the filter and checks every byte.
#[derive(Clone, Debug)]
pub struct Backing {
    path: PathBuf,
    /// `None` if the filter was copied.
    mapped: Option<Mapped>,
}

#[derive(Clone, Debug)]
struct Mapped {
    file: Arc<File>,
    opened: Stamp,
    lost: Arc<AtomicBool>,
}

/// The length and modification time of a file, to detect a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) bytes: u64,
    changed: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(about: &fs::Metadata) -> Self {
        Self { bytes: about.len(), changed: about.modified().ok() }
    }

    /// The change between two stamps.
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

    /// Is the filter a view of its file? If not, it is a copy, and every byte was checked.
    #[must_use]
    pub const fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    /// Returns `Ok` if the file is as it was when it was opened, or if the filter is a copy. Takes one system call.
    ///
    /// # Errors
    /// [`FileError::Changed`]: answers since the last check may be wrong. [`FileError::Io`] if the system call fails.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        let Some(mapped) = &self.mapped else { return Ok(()) };
        let about = mapped.file.metadata().map_err(FileError::io("look at", &self.path))?;
        let lost = || mapped.lost.load(Ordering::SeqCst).then_some(Change::Unreadable);
        match mapped.opened.compare(Stamp::of(&about)).or_else(lost) {
            Some(change) => Err(FileError::Changed { path: self.path.clone(), change }),
            None => Ok(()),
        }
    }

    /// Checks every byte of the file that was opened, even if another file has its name now. A copy was checked when it
    /// was made.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read, is not an intact `F`, or was changed.
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
        // A truncated file is also damaged; the change is the more useful error.
        self.check_unchanged()?;
        decoded.map(drop).map_err(FileError::decode(&self.path))
    }
}

/// Keeps a truncated file from ending the process by SIGBUS when a mapped filter reads it. Afterwards such a filter may give
/// any answer, and [`Backing::check_unchanged`] fails.
///
/// This is for the whole process: it installs a signal handler in place of the previous one, and forwards every SIGBUS
/// that is not about such maps to that one. On systems without signals it does nothing.
///
/// # Errors
/// If the system refuses the handler.
pub fn survive_truncation() -> io::Result<()> {
    #[cfg(unix)]
    crate::store::survive()?;
    Ok(())
}
