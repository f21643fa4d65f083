//! The chunks of RedisBloom's dumps, for Bloom and cuckoo filters.

use std::fmt;
use std::ops::Range;

use mayhap::DecodeError;

/// The largest chunk in bytes.
pub const MAX_CHUNK_BYTES: u64 = 16 << 20;

/// Why a chunk was not loaded. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LoadError {
    /// A chunk came before the header, so there is no filter to load it into.
    NoHeader {
        /// The iterator of the chunk; a header has 1.
        iterator: i64,
    },
    /// The header does not describe a valid filter.
    BadHeader(DecodeError),
    /// The iterator is too small for a chunk of this length.
    BadPosition {
        /// The iterator of the chunk.
        iterator: i64,
        /// Its length.
        length: u64,
    },
    /// The chunk begins after the last layer.
    NoLayer {
        /// The offset of the chunk.
        offset: u64,
        /// The length of the filter in bytes.
        bytes: u64,
    },
    /// The chunk extends past the end of the layer it begins in.
    TooBig {
        /// The length of the chunk in bytes.
        chunk: u64,
        /// The number of bytes from its beginning to the end of the layer.
        room: u64,
    },
    /// The loaded chunks leave too many gaps to track.
    Scattered {
        /// The largest number of separate ranges.
        limit: usize,
    },
    /// The target filter is not RedisBloom's.
    OtherPlacement,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader { iterator } => {
                write!(f, "expected the header first, with iterator 1; got iterator {iterator}")
            }
            Self::BadHeader(cause) => write!(f, "the header does not describe a valid filter: {cause}"),
            Self::BadPosition { iterator, length } => {
                write!(f, "iterator {iterator} is too small for a chunk of {length} bytes")
            }
            Self::NoLayer { offset, bytes } => {
                write!(f, "the chunk begins at byte {offset}, but the filter has {bytes} bytes")
            }
            Self::TooBig { chunk, room } => {
                write!(f, "the chunk has {chunk} bytes, but its layer ends after {room}")
            }
            Self::Scattered { limit } => {
                write!(f, "the loaded chunks form more than {limit} separate ranges; send them in order")
            }
            Self::OtherPlacement => f.write_str("the target filter is not a RedisBloom filter"),
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

/// Returns the offset of the chunk with this iterator. The iterator is one more than the offset of the chunk's end.
pub(super) fn offset_of(iterator: i64, chunk: &[u8]) -> Result<u64, LoadError> {
    let length = chunk.len() as u64;
    let end =
        u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1)).filter(|&end| end > 0);
    end.and_then(|end| end.checked_sub(length)).ok_or(LoadError::BadPosition { iterator, length })
}

/// The largest number of ranges that are tracked. A dump has one chunk per layer or per 16 MiB, so its chunks never form this many ranges,
/// in whatever order they come.
const MAX_PIECES: usize = 65_536;

/// The bytes loaded so far: ranges in order that neither overlap nor touch.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    pieces: Vec<Range<u64>>,
}

impl Coverage {
    pub(super) const fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    /// Accepts these ranges if they are in order and neither overlap nor touch.
    pub(super) fn of(pieces: &[Range<u64>]) -> Option<Self> {
        let apart = pieces.is_sorted_by(|one, next| one.end < next.start);
        let fits = pieces.len() <= MAX_PIECES && pieces.iter().all(|piece| piece.start < piece.end);
        (apart && fits).then(|| Self { pieces: pieces.to_vec() })
    }

    pub(super) fn pieces(&self) -> &[Range<u64>] {
        &self.pieces
    }

    /// `Ok` if these bytes can be tracked.
    pub(super) fn check(&self, start: u64, length: u64) -> Result<(), LoadError> {
        let (from, to) = self.touched(start, start.saturating_add(length));
        match length > 0 && from == to && self.pieces.len() >= MAX_PIECES {
            true => Err(LoadError::Scattered { limit: MAX_PIECES }),
            false => Ok(()),
        }
    }

    /// Adds these bytes.
    pub(super) fn add(&mut self, start: u64, length: u64) {
        if length == 0 {
            return;
        }
        let mut piece = start..start.saturating_add(length);
        let (from, to) = self.touched(piece.start, piece.end);
        if let [first, ..] = &self.pieces[from..to] {
            piece.start = piece.start.min(first.start);
            piece.end = piece.end.max(self.pieces[to - 1].end);
        }
        self.pieces.splice(from..to, [piece]);
    }

    /// The ranges that `start..end` overlaps or touches.
    fn touched(&self, start: u64, end: u64) -> (usize, usize) {
        let from = self.pieces.partition_point(|piece| piece.end < start);
        let to = self.pieces.partition_point(|piece| piece.start <= end);
        (from, to)
    }

    /// The number of bytes loaded, each counted once.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.end - piece.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_covered_in_any_order_are_counted_once() {
        let mut random = 1_u64;
        for _ in 0..200 {
            let (mut coverage, mut plain) = (Coverage::new(), [false; 100]);
            for _ in 0..40 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let (start, length) = (random >> 40 & 63, random >> 50 & 7);
                coverage.check(start, length).unwrap();
                coverage.add(start, length);
                plain[start as usize..(start + length) as usize].fill(true);
                assert_eq!(coverage.bytes(), plain.iter().filter(|&&came| came).count() as u64);
                assert!(coverage.pieces.is_sorted_by(|one, next| one.end < next.start));
            }
        }
    }

    #[test]
    fn too_many_ranges_are_rejected_unless_they_join() {
        let mut coverage = Coverage::new();
        (0..MAX_PIECES as u64).for_each(|piece| coverage.add(2 * piece, 1));
        assert_eq!(coverage.check(1 << 30, 1), Err(LoadError::Scattered { limit: MAX_PIECES }));
        assert_eq!(coverage.check(1, 1), Ok(()));
        coverage.add(1, 1);
        assert_eq!(coverage.check(1 << 30, 1), Ok(()));
    }
}
