//! Errors of the log.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a log could not be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The disk returned an error.
    Disk {
        /// The operation that failed.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
    /// A newer version of the program wrote the file.
    Version {
        /// The file.
        file: String,
        /// Its version.
        got: u32,
        /// The newest supported version.
        newest: u32,
    },
    /// Data that was safe on the disk is damaged.
    Damaged {
        /// The file.
        file: String,
        /// The position of the damage, in bytes from the beginning.
        offset: u64,
        /// The kind of damage.
        what: &'static str,
    },
    /// A file with required records is missing.
    Missing {
        /// The number of the first missing record.
        number: u64,
    },
    /// The newest file is missing.
    NewestMissing {
        /// Its name.
        file: String,
    },
    /// A record could not be replayed.
    Play {
        /// The number of the record.
        number: u64,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The log does not accept records now.
    Refused(Refused),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::Version { file, got, newest } => {
                write!(f, "{file} has log format version {got}, the newest supported is {newest}")
            }
            Self::Damaged { file, offset, what } => write!(f, "{file} is damaged at byte {offset}: {what}"),
            Self::Missing { number } => write!(f, "record {number} of the log is missing"),
            Self::NewestMissing { file } => {
                write!(f, "{file} is missing; it was the newest file of the log")
            }
            Self::Play { number, source } => {
                write!(f, "record {number} of the log cannot be replayed: {source}")
            }
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Disk { source, .. } => Some(source),
            Self::Play { source, .. } => Some(&**source),
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }
}

impl From<Refused> for LogError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Why a change cannot be made now, or was made but is not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// The disk is full. Changes are accepted again when there is space.
    NoSpace,
    /// The disk failed. The last writes may be lost. No change is accepted before a restart.
    Failed,
    /// The log was closed.
    Closed,
    /// A new log file could not be created. The log continues in the old one.
    NoNewFile,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSpace => "no space left on the disk of the log",
            Self::Failed => "the disk of the log failed",
            Self::Closed => "the log is closed",
            Self::NoNewFile => "a new log file cannot be created",
        })
    }
}

impl Error for Refused {}
