//! The chunks of RedisBloom's dumps, of both families.

use std::fmt;

use super::DecodeError;

/// The most bytes a chunk has.
pub const MAX_CHUNK_BYTES: u64 = 16 << 20;

/// Why a chunk was not loaded. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LoadError {
    /// A chunk came before the header: there is no filter to put it in.
    NoHeader {
        /// The iterator it came with; a header has 1.
        iterator: i64,
    },
    /// The header announces no filter.
    BadHeader(DecodeError),
    /// No chunk of this length ends there.
    BadPosition {
        /// The iterator it came with.
        iterator: i64,
        /// Its length.
        length: u64,
    },
    /// The chunk begins behind the last layer.
    NoLayer {
        /// Where it begins.
        offset: u64,
        /// Bytes there are.
        bytes: u64,
    },
    /// The chunk reaches past the end of the layer it begins in.
    TooBig {
        /// Its bytes.
        chunk: u64,
        /// Bytes from its beginning to the end of the layer.
        room: u64,
    },
    /// The filter it should go into is not RedisBloom's.
    OtherPlacement,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader { iterator } => {
                write!(f, "the header comes first, with the iterator 1; this chunk has {iterator}")
            }
            Self::BadHeader(cause) => write!(f, "the header announces no filter: {cause}"),
            Self::BadPosition { iterator, length } => {
                write!(f, "no chunk of {length} bytes has the iterator {iterator}")
            }
            Self::NoLayer { offset, bytes } => {
                write!(f, "the chunk begins at byte {offset}, and the filter has {bytes}")
            }
            Self::TooBig { chunk, room } => {
                write!(f, "the chunk has {chunk} bytes, and its layer ends after {room}")
            }
            Self::OtherPlacement => f.write_str("the filter the chunk is for is not RedisBloom's"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::BadHeader(cause) => Some(cause),
            _ => None,
        }
    }
}

/// Where a chunk begins that came with this iterator: it is one more than where the chunk ends.
pub(super) fn offset_of(iterator: i64, chunk: &[u8]) -> Result<u64, LoadError> {
    let length = chunk.len() as u64;
    let end =
        u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1)).filter(|&end| end > 0);
    end.and_then(|end| end.checked_sub(length)).ok_or(LoadError::BadPosition { iterator, length })
}
