//! What can be wrong with a log.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a log could not be read, or be written to.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The disk refused something.
    Disk {
        /// What it was to do.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A newer program wrote it.
    Version {
        /// The file.
        file: String,
        /// Its version.
        got: u32,
        /// The newest that is read.
        newest: u32,
    },
    /// Something that was safe is not as it was written.
    Damaged {
        /// The file.
        file: String,
        /// Where that shows, in bytes from the beginning.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There is no file with records that should be there.
    Missing {
        /// The first of them.
        number: u64,
    },
    /// The newest file is not there.
    NewestMissing {
        /// What it is called.
        file: String,
    },
    /// Whoever plays the records could not play one.
    Play {
        /// Which.
        number: u64,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The log takes nothing now.
    Refused(Refused),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::Version { file, got, newest } => {
                write!(f, "{file} is a log of version {got}, newest known is {newest}")
            }
            Self::Damaged { file, offset, what } => write!(f, "{file} is damaged at byte {offset}: {what}"),
            Self::Missing { number } => write!(f, "the log has no record {number}, which should be there"),
            Self::NewestMissing { file } => {
                write!(f, "{file} is not there, and was the newest file of the log")
            }
            Self::Play { number, source } => {
                write!(f, "record {number} of the log cannot be played: {source}")
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

/// Why a change cannot be made now, or was made and is not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// The disk is full. Changes go on by themselves when there is room.
    NoSpace,
    /// The disk failed; what was written last may be lost. Nothing goes on before a restart.
    Failed,
    /// The log was closed.
    Closed,
    /// No new file can be begun. Changes go on in the old one.
    NoNewFile,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSpace => "no space is left for the log",
            Self::Failed => "the log's disk failed",
            Self::Closed => "the log is closed",
            Self::NoNewFile => "no new file of the log can be begun",
        })
    }
}

impl Error for Refused {}
