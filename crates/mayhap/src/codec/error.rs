//! Why bytes are not an encoded filter.

use std::fmt;

use crate::error::BuildError;
use crate::kind::Kind;

/// Why these bytes are not the expected filter. Nothing larger than the bytes themselves was allocated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the header or the payload does.
    TooShort {
        /// Bytes needed.
        need: u64,
        /// Bytes available.
        got: u64,
    },
    /// Bytes are left over after the payload.
    TrailingBytes {
        /// The number of extra bytes.
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
    /// The header names a hash scheme that does not exist, or names one for a kind that does not hash.
    UnknownHashScheme {
        /// The number in the header.
        got: u16,
    },
    /// The filter hashes its items with a function that is compiled in only with the feature `named-hashes`.
    NotCompiledIn {
        /// The hash function.
        function: &'static str,
    },
    /// The header does not match its checksum: it is damaged.
    HeaderDamaged,
    /// The payload does not match its checksum: it is damaged.
    PayloadDamaged,
    /// A field of the header has an invalid value.
    BadField {
        /// The name of the field.
        field: &'static str,
        /// The value found.
        got: u64,
    },
    /// A bit is set that no item can set.
    StrayBit {
        /// The index of the bit.
        bit: u64,
    },
    /// The file could not be read.
    Unreadable {
        /// The offset of the first byte that was to be read.
        at: u64,
    },
    /// The words could not be mapped into memory.
    Unmappable {
        /// The offset of the words in the file.
        at: u64,
        /// The length of the words in bytes.
        bytes: u64,
    },
    /// The numbers in the header do not describe a valid filter, or the filter is too large for this machine.
    Unbuildable(BuildError),
    /// Another program may have written these bytes, but this library cannot read them.
    Unsupported {
        /// What is not supported.
        what: &'static str,
    },
    /// A Redis module value that is not a Bloom or cuckoo filter.
    OtherModule {
        /// The name of its type, nine letters.
        name: Box<str>,
    },
    /// A Redis module value that a later version of the module wrote.
    NewerModule {
        /// The name of its type, nine letters.
        name: &'static str,
        /// The version of its encoding.
        got: u32,
        /// The newest version this program reads.
        newest: u32,
    },
    /// The uncompressed data is larger than the caller allows.
    UnpacksTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The compressed bytes are damaged or truncated.
    BadCompression,
    /// The text is malformed.
    Malformed {
        /// The expected form.
        what: &'static str,
        /// The offset of the first invalid byte.
        at: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { need, got } => write!(f, "encoded filter needs {need} bytes, got {got}"),
            Self::TrailingBytes { extra } => {
                write!(f, "{extra} bytes left over after the encoded filter")
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
                write!(f, "placement scheme {got} is not known for this kind")
            }
            Self::UnknownHashScheme { got } => {
                write!(f, "hash scheme {got} is not known for this kind")
            }
            Self::NotCompiledIn { function } => write!(
                f,
                "the filter needs {function}, which this program was built without (mayhap's feature `named-hashes`)"
            ),
            Self::HeaderDamaged => f.write_str("header is damaged: its checksum differs"),
            Self::PayloadDamaged => f.write_str("payload is damaged: its checksum differs"),
            Self::BadField { field, got } => write!(f, "header field {field} cannot be {got}"),
            Self::StrayBit { bit } => write!(f, "bit {bit} is set, but no item can set it"),
            Self::Unreadable { at } => write!(f, "could not read the header at byte {at}"),
            Self::Unmappable { at, bytes } => {
                write!(f, "could not map {bytes} bytes of the file, starting at byte {at}")
            }
            Self::Malformed { what, at } => write!(f, "not {what}: byte {at} is wrong"),
            Self::Unbuildable(cause) => write!(f, "the header does not describe a valid filter: {cause}"),
            Self::Unsupported { what } => write!(f, "unsupported: {what}"),
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
                write!(f, "the uncompressed data exceeds the limit of {limit} bytes")
            }
            Self::BadCompression => f.write_str("the compressed bytes are damaged or truncated"),
        }
    }
}

/// The structure that another RedisBloom type holds.
fn module_content(name: &str) -> Option<&'static str> {
    match name {
        "TDIS-TYPE" => Some("t-digest"),
        "TopK-TYPE" => Some("Top-K list"),
        "CMSk-TYPE" => Some("count-min sketch"),
        _ => None,
    }
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
