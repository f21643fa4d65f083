//! Everything in one file, written beside the old one and put in its place when it is safe.
//!
//! ```text
//! file    "mayhapSN" │ version u32 │ 0 u32 │ made ms u64 │ log position u64 │ xxh3 u64 │ records │ end
//! record  1 u8 │ form u8 │ expires u8 │ 0 u8 │ made secs u32 │ deadline ms u64 │ name length u32 │ name
//!         │ pieces of the value: length u32, bytes; the last has length 0 │ xxh3 u64 of the record
//! end     255 u8 │ records u64 │ xxh3 u64 of the end
//! ```
//!
//! All numbers are little-endian. Names are not all from the same moment: each is as it was when its turn came, and nobody waits for
//! longer than the encoding of the one name that is wanted just then. The log position is the place from which a log is to be played
//! again; there is none yet, and it is 0.

mod read;
mod write;

use std::fmt;
use std::io;

use mayhap_command::stored::StoredError;

pub use read::load;
pub use write::save;

/// What the file is called.
pub const FILE: &str = "mayhap.snapshot";
/// What it is called while it is written.
pub const UNFINISHED: &str = "mayhap.snapshot.new";

const MAGIC: &[u8; 8] = b"mayhapSN";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 40;
const RECORD: u8 = 1;
const END: u8 = 255;
/// Fields of a record in front of the name, its first byte included.
const RECORD_BYTES: usize = 20;
/// Bytes of a value that stand together.
const PIECE_BYTES: usize = 1 << 20;
/// As Redis has it.
const MAX_NAME_BYTES: usize = 512 << 20;

/// What was written or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Names with what they hold.
    pub names: u64,
    /// Names left out: half-loaded when it was written, expired when it was read.
    pub skipped: u64,
    /// Bytes of the file.
    pub bytes: u64,
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
    /// It is something else.
    NotASnapshot,
    /// A newer program wrote it.
    Version {
        /// Its version.
        got: u32,
        /// The newest that is read.
        newest: u32,
    },
    /// It is not as it was written.
    Damaged {
        /// Where that shows, in bytes from the beginning.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// What a name holds cannot be read, though its bytes are as they were written.
    Value {
        /// Where the record begins.
        offset: u64,
        /// Why.
        source: StoredError,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::NotASnapshot => f.write_str("not a snapshot"),
            Self::Version { got, newest } => write!(f, "snapshot of version {got}, newest known is {newest}"),
            Self::Damaged { offset, what } => write!(f, "snapshot is damaged at byte {offset}: {what}"),
            Self::Value { offset, source } => {
                write!(f, "value in the record at byte {offset} cannot be read: {source}")
            }
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk { source, .. } => Some(source),
            Self::Value { source, .. } => Some(source),
            _ => None,
        }
    }
}
