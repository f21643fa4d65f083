//! Everything on the disk, so that the log need not be played from its beginning.
//!
//! ```text
//! MANIFEST ─┬─▶ part-<part>-<sequence>   64 of them: all names whose hash says so, with what they hold
//!           ├─▶ part-late-<sequence>     names that were made of others while it was written; they replace what the parts say of them
//!           ├─▶ value-<sequence>-<number>  what one name holds, from 4 MiB on
//!           └─▶ the number from which on the log is to be played
//! ```
//!
//! * Written in the background. Small values are copied with their name held for a moment, large ones piece by piece: nobody waits for
//!   longer than a piece takes. Names are not all from the same moment: each has the number of the log at which it was written, and the log is
//!   played on from there. [`replay`](crate::replay) tells why that is right.
//! * Only what changed is written: a part in which nothing did keeps its file, and so does a large value.
//! * The new manifest takes the place of the old one when everything that it names is safe, and the log as well. What none names is removed.
//!
//! An engine without a log [`save`]s everything in one file, [`FILE`], in the same form; it is read if there is no manifest.
//!
//! ```text
//! file    "mayhapSN" │ version u32 │ part u32 │ made ms u64 │ log position u64 │ xxh3 u64 │ records │ end
//! record  1 u8 │ form u8 │ flags u8 │ 0 u8 │ made secs u32 │ deadline ms u64 │ number u64 │ name length u32 │ name
//!         │ pieces of the value: length u32, bytes; the last has length 0 │ xxh3 u64 of the record
//! end     255 u8 │ records u64 │ xxh3 u64 of the end
//! flags   1 it has a deadline, 2 the value is the number, the length and the xxh3 of a file of its own, 4 it was written piece by piece
//! ```
//!
//! All numbers are little-endian. [`FILE`] has version 1, in which records have no number, and the parts of which names are lost in the place of
//! the log position.

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

/// What the file of everything is called.
pub const FILE: &str = "mayhap.snapshot";
/// What it is called while it is written.
pub const UNFINISHED: &str = "mayhap.snapshot.new";

/// The last snapshot: what of it the next one can keep.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    pub(crate) manifest: Manifest,
    /// The files of large values that the parts name, by name.
    pub(crate) large: HashMap<Box<[u8]>, Large>,
    /// And those of names that came late.
    pub(crate) late: HashMap<Box<[u8]>, Large>,
    /// And those of names that came late again: records name them still.
    pub(crate) superseded: Vec<Large>,
    /// Counts the snapshots, those that failed included.
    pub(crate) sequence: u64,
}

/// A large value that has a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Large {
    /// The snapshot that wrote it, and which of its files it is.
    pub(crate) file: (u64, u64),
    pub(crate) bytes: u64,
    /// The xxh3 of all of them.
    pub(crate) checksum: u64,
    /// That of the entry when it was written.
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
    /// Names with what they hold; of a snapshot in parts, those that were written.
    pub names: u64,
    /// Names left out: expired when they were read.
    pub skipped: u64,
    /// Bytes of all files, those that were kept included.
    pub bytes: u64,
    /// Bytes of those that were written.
    pub written_bytes: u64,
    /// The log is played from this number on.
    pub play_from: u64,
}

/// Why everything could not be written, or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The disk refused something.
    Disk {
        /// What it was to do.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The log takes nothing now, or there is none, or there is one that [`save`] knows nothing of.
    Log(Option<Refused>),
    /// It is something else.
    NotASnapshot {
        /// The file.
        file: String,
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
    /// A file that the manifest names is not there.
    Missing {
        /// The file.
        file: String,
    },
    /// It is not as it was written.
    Damaged {
        /// The file.
        file: String,
        /// Where that shows, in bytes from the beginning.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Large values were moved around faster than they could be written.
    Restless {
        /// Values that were written, and moved again.
        values: usize,
    },
    /// What a name holds cannot be read, though its bytes are as they were written.
    Value {
        /// The file.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// Why.
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
            Self::Log(Some(refused)) => write!(f, "the log takes nothing now: {refused}"),
            Self::Log(None) => f.write_str("the snapshot and the log do not belong together"),
            Self::NotASnapshot { file } => {
                write!(f, "{file} is not a snapshot: it begins otherwise, at byte 0")
            }
            Self::Version { file, got, newest } => {
                write!(
                    f,
                    "{file} is a snapshot of version {got}, as it says at byte 8, newest known is {newest}"
                )
            }
            Self::Restless { values } => {
                write!(f, "large values are renamed and copied faster than they are written: {values} so far")
            }
            Self::Missing { file } => write!(f, "{file} is not there, which the manifest names"),
            Self::Damaged { file, offset, what } => write!(f, "{file} is damaged at byte {offset}: {what}"),
            Self::Value { file, offset, source } => {
                write!(f, "value in the record at byte {offset} of {file} cannot be read: {source}")
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
