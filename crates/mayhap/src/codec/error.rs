//! Why bytes are not an encoded filter.

use std::fmt;

use crate::error::BuildError;
use crate::kind::Kind;

/// Why these bytes are not the filter they should be. Nothing larger than the bytes themselves was allocated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the header or the payload does.
    TooShort {
        /// Bytes needed.
        need: u64,
        /// Bytes there are.
        got: u64,
    },
    /// Bytes are left over behind the payload.
    TrailingBytes {
        /// How many.
        extra: u64,
    },
    /// The first eight bytes are not those of a `.mayhap` file.
    BadMagic,
    /// Written by a later version of the format.
    UnknownVersion {
        /// The version in the header.
        got: u16,
        /// The newest version this program reads.
        newest: u16,
    },
    /// The header names a kind that does not exist.
    UnknownKind {
        /// The number in the header.
        got: u16,
    },
    /// The bytes hold another kind of filter.
    WrongKind {
        /// The kind asked for.
        expected: Kind,
        /// The kind in the header.
        got: Kind,
    },
    /// The header names a placement scheme this kind does not have.
    UnknownPlacement {
        /// The number in the header.
        got: u16,
    },
    /// The header names a hash scheme that does not exist, or one where none belongs.
    UnknownHashScheme {
        /// The number in the header.
        got: u16,
    },
    /// The header does not add up to its checksum: it was damaged.
    HeaderDamaged,
    /// The payload does not add up to its checksum: it was damaged.
    PayloadDamaged,
    /// A field of the header has a value it cannot have.
    BadField {
        /// Which one.
        field: &'static str,
        /// What it says.
        got: u64,
    },
    /// A bit is set that no item can have set.
    StrayBit {
        /// Its number.
        bit: u64,
    },
    /// The system would not read the file.
    Unreadable {
        /// From which byte on.
        at: u64,
    },
    /// The system would not map the words.
    Unmappable {
        /// Where in the file they begin.
        at: u64,
        /// How many bytes they take.
        bytes: u64,
    },
    /// The measurements in the header make no filter, or one too large for this machine.
    Unbuildable(BuildError),
    /// Another program may have written these bytes, but this one does not know how to read them.
    Unsupported {
        /// What it cannot read.
        what: &'static str,
    },
    /// A value of a module of Redis that is no Bloom or cuckoo filter.
    OtherModule {
        /// The name of its type, nine letters.
        name: Box<str>,
    },
    /// A value of a module of Redis that a later version of the module wrote.
    NewerModule {
        /// The name of its type, nine letters.
        name: &'static str,
        /// The version of its encoding.
        got: u32,
        /// The newest version this program reads.
        newest: u32,
    },
    /// The compressed bytes are more, unpacked, than the caller allows.
    UnpacksTooLarge {
        /// What is allowed.
        limit: u64,
    },
    /// The compressed bytes were damaged, or cut off.
    BadCompression,
    /// The text is not what it should be.
    Malformed {
        /// What it should be.
        what: &'static str,
        /// The first byte that is not.
        at: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { need, got } => write!(f, "encoded filter needs {need} bytes, got {got}"),
            Self::TrailingBytes { extra } => {
                write!(f, "{extra} bytes are left over behind the encoded filter")
            }
            Self::BadMagic => f.write_str("not a mayhap filter: the first eight bytes differ"),
            Self::UnknownVersion { got, newest } => {
                write!(f, "format version {got} is not known, the newest this program reads is {newest}")
            }
            Self::UnknownKind { got } => write!(f, "filter kind {got} is not known"),
            Self::WrongKind { expected, got } => {
                write!(f, "expected a {expected} filter, got a {got} filter")
            }
            Self::UnknownPlacement { got } => {
                write!(f, "placement scheme {got} is not known for this kind{}", built_without_formats())
            }
            Self::UnknownHashScheme { got } => {
                write!(f, "hash scheme {got} is not known for this kind{}", built_without_formats())
            }
            Self::HeaderDamaged => f.write_str("header is damaged: its checksum differs"),
            Self::PayloadDamaged => f.write_str("payload is damaged: its checksum differs"),
            Self::BadField { field, got } => write!(f, "header field {field} cannot be {got}"),
            Self::StrayBit { bit } => write!(f, "bit {bit} is set, which no item can have set"),
            Self::Unreadable { at } => write!(f, "the system would not read the header at byte {at}"),
            Self::Unmappable { at, bytes } => {
                write!(f, "the system would not map {bytes} bytes from byte {at} on")
            }
            Self::Malformed { what, at } => write!(f, "not {what}: byte {at} is wrong"),
            Self::Unbuildable(cause) => write!(f, "the measurements in the header make no filter: {cause}"),
            Self::Unsupported { what } => write!(f, "{what} cannot be read"),
            Self::OtherModule { name } => match module_content(name) {
                Some(what) => write!(f, "module type {name} is a {what}, not a Bloom or cuckoo filter"),
                None => write!(f, "module type {name} is not a Bloom or cuckoo filter"),
            },
            Self::NewerModule { name, got, newest } => {
                write!(
                    f,
                    "module type {name} has encoding version {got}, the newest this program reads is {newest}"
                )
            }
            Self::UnpacksTooLarge { limit } => {
                write!(f, "unpacked it is more than the limit of {limit} bytes")
            }
            Self::BadCompression => f.write_str("the compressed bytes are damaged or cut off"),
        }
    }
}

/// What the other types of RedisBloom hold.
fn module_content(name: &str) -> Option<&'static str> {
    match name {
        "TDIS-TYPE" => Some("t-digest"),
        "TopK-TYPE" => Some("Top-K list"),
        "CMSk-TYPE" => Some("count-min sketch"),
        _ => None,
    }
}

/// Where the schemes of other programs went that are not known.
const fn built_without_formats() -> &'static str {
    if cfg!(feature = "formats") { "" } else { "; those of other programs need the feature `formats`" }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unbuildable(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<BuildError> for DecodeError {
    fn from(cause: BuildError) -> Self {
        Self::Unbuildable(cause)
    }
}
