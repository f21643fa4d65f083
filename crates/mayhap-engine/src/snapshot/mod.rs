//! Snapshots: everything on the disk, so that the log need not be replayed from its beginning.
//!
//! ```text
//! MANIFEST ─┬─▶ part-<part>-<sequence>   64 of them: the names with that part of the hash, and their values
//!           ├─▶ part-late-<sequence>     late names: those made from others while it was written; they replace names in parts
//!           ├─▶ value-<sequence>-<number>  the value of one name, from 4 MiB on
//!           └─▶ the number of the log record from which on to replay
//! ```
//!
//! * A snapshot is written in the background. A small value is copied while its name is locked for a moment,
//!   a large one piece by piece: no request waits for longer than a piece takes. Names are not all from the
//!   same moment. Each has the number of the log at which it was written, and the log is replayed from there.
//!   [`replay`](crate::replay) explains why that is right.
//! * Only changes are written: a part without a change keeps its file, and so does an unchanged large value.
//! * The new manifest replaces the old one when everything that it names is safe, and the log as well. Files
//!   that no manifest names are removed.
//!
//! An engine without a log [`save`]s everything in one file, [`FILE`], in the same format. It is read if
//! there is no manifest.
//!
//! ```text
//! file    "mayhapSN" │ version u32 │ part u32 │ made ms u64 │ log position u64 │ xxh3 u64 │ records │ end
//! record  1 u8 │ form u8 │ flags u8 │ 0 u8 │ made secs u32 │ deadline ms u64 │ number u64 │ name length u32 │ name
//!         │ pieces of the value: length u32, bytes; the last has length 0 │ xxh3 u64 of the record
//! end     255 u8 │ records u64 │ xxh3 u64 of the end
//! flags   1 has a deadline, 2 the value is the number, the length and the xxh3 of a file of its own, 4 written piece by piece
//! ```
//!
//! All numbers are little-endian. [`FILE`] has version 1: its records have no number, and in place of the log
//! position it has the parts that lost names.

mod file;
mod load;
mod manifest;
mod single;
mod store;
mod take;

use std::collections::HashMap;
use std::fmt;
use std::io;

use mayhap::DecodeError;
use mayhap_command::stored::StoredError;

use crate::log::Refused;
pub(crate) use load::{load_all, salvage};
pub use manifest::MANIFEST;
pub(crate) use manifest::{Manifest, PartFile};
pub use single::{load, save};
pub(crate) use take::remove_stale;

/// The name of the single file with everything.
pub const FILE: &str = "mayhap.snapshot";
/// Its name while it is written.
pub const UNFINISHED: &str = "mayhap.snapshot.new";

/// The last snapshot: the files that the next one can keep.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    pub(crate) manifest: Manifest,
    /// The files of large values that the parts name, by name.
    pub(crate) large: HashMap<Box<[u8]>, Large>,
    /// The files of large values of late names.
    pub(crate) late: HashMap<Box<[u8]>, Large>,
    /// The files of late names that were written late again. Records still refer to them.
    pub(crate) superseded: Vec<Large>,
    /// The number of snapshots, including failed ones.
    pub(crate) sequence: u64,
}

/// A large value with a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Large {
    /// The number of the snapshot that wrote it, and the number of the file.
    pub(crate) file: (u64, u64),
    pub(crate) bytes: u64,
    /// The xxh3 of all bytes.
    pub(crate) checksum: u64,
    /// The number of the entry when it was written.
    pub(crate) number: u64,
}

impl Large {
    pub(crate) fn file_name(&self) -> String {
        format!("value-{:016}-{:08}", self.file.0, self.file.1)
    }
}

/// What was written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of names with a value; for a snapshot in parts, those that were written.
    pub names: u64,
    /// The number of names that were skipped because they had expired.
    pub skipped: u64,
    /// Size of all files in bytes, including kept ones.
    pub bytes: u64,
    /// Size of the written files in bytes.
    pub written_bytes: u64,
    /// The number of the log record from which on to replay.
    pub play_from: u64,
}

/// Why a snapshot could not be written or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The disk returned an error.
    Disk {
        /// The operation that failed.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The log does not accept changes; or there is no log; or there is one, and [`save`] does not support
    /// that.
    Log(Option<Refused>),
    /// The file is not a snapshot.
    NotASnapshot {
        /// The file.
        file: String,
    },
    /// A newer version of the program wrote it.
    Version {
        /// The file.
        file: String,
        /// Its version.
        got: u32,
        /// The newest supported version.
        newest: u32,
    },
    /// A file that the manifest names is missing.
    Missing {
        /// The file.
        file: String,
    },
    /// The file is damaged.
    Damaged {
        /// The file.
        file: String,
        /// The position of the damage, in bytes from the beginning.
        offset: u64,
        /// The kind of damage.
        what: &'static str,
    },
    /// Large values were renamed and copied faster than they could be written.
    Restless {
        /// The number of values that were written and then moved again.
        values: usize,
    },
    /// A value cannot be decoded, although its checksum is right.
    Value {
        /// The file.
        file: String,
        /// The offset of the record.
        offset: u64,
        /// The reason.
        source: StoredError,
    },
}

impl SnapshotError {
    fn decode(file: &str, offset: u64) -> impl Fn(DecodeError) -> Self {
        move |error| Self::Value { file: file.into(), offset, source: error.into() }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::Log(Some(refused)) => write!(f, "the log accepts no changes: {refused}"),
            Self::Log(None) => f.write_str("the snapshot does not match the log"),
            Self::NotASnapshot { file } => {
                write!(f, "{file} is not a snapshot: wrong magic number at byte 0")
            }
            Self::Version { file, got, newest } => {
                write!(
                    f,
                    "{file} has snapshot format version {got} at byte 8, the newest supported is {newest}"
                )
            }
            Self::Restless { values } => {
                write!(
                    f,
                    "clients rename and copy large values faster than a snapshot can write them ({values} values so far)"
                )
            }
            Self::Missing { file } => write!(f, "{file} is missing; the manifest names it"),
            Self::Damaged { file, offset, what } => write!(f, "{file} is damaged at byte {offset}: {what}"),
            Self::Value { file, offset, source } => {
                write!(f, "{file}: the value in the record at byte {offset} cannot be read: {source}")
            }
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk { source, .. } => Some(source),
            Self::Value { source, .. } => Some(source),
            Self::Log(Some(refused)) => Some(refused),
            _ => None,
        }
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Disk { doing, source }
}
