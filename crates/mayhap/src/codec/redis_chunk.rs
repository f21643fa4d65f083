//! The chunks of RedisBloom's dumps, of both families.

use std::fmt;
use std::ops::Range;

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
    /// The chunks that came leave too many gaps to remember.
    Scattered {
        /// The most pieces there may be.
        limit: usize,
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
            Self::Scattered { limit } => {
                write!(f, "the chunks that came lie in more than {limit} pieces; send them in order")
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

/// The most pieces that are remembered. A dump has a chunk for every layer or every 16 MiB, so that no order of its chunks makes as many.
const MAX_PIECES: usize = 65_536;

/// Which bytes came: ranges that neither overlap nor touch, in order.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    pieces: Vec<Range<u64>>,
}

impl Coverage {
    pub(super) const fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    /// These pieces, if they neither overlap nor touch, and are in order.
    pub(super) fn of(pieces: &[Range<u64>]) -> Option<Self> {
        let apart = pieces.is_sorted_by(|one, next| one.end < next.start);
        let fits = pieces.len() <= MAX_PIECES && pieces.iter().all(|piece| piece.start < piece.end);
        (apart && fits).then(|| Self { pieces: pieces.to_vec() })
    }

    pub(super) fn pieces(&self) -> &[Range<u64>] {
        &self.pieces
    }

    /// `Ok` if these bytes can be remembered.
    pub(super) fn check(&self, start: u64, length: u64) -> Result<(), LoadError> {
        let (from, to) = self.touched(start, start.saturating_add(length));
        match length > 0 && from == to && self.pieces.len() >= MAX_PIECES {
            true => Err(LoadError::Scattered { limit: MAX_PIECES }),
            false => Ok(()),
        }
    }

    /// Remembers these bytes.
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

    /// The pieces that `start..end` overlaps or touches.
    fn touched(&self, start: u64, end: u64) -> (usize, usize) {
        let from = self.pieces.partition_point(|piece| piece.end < start);
        let to = self.pieces.partition_point(|piece| piece.start <= end);
        (from, to)
    }

    /// How many bytes came, each counted once.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.end - piece.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_covered_in_any_order_and_counted_once() {
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
    fn too_many_pieces_are_refused_and_joining_ones_are_not() {
        let mut coverage = Coverage::new();
        (0..MAX_PIECES as u64).for_each(|piece| coverage.add(2 * piece, 1));
        assert_eq!(coverage.check(1 << 30, 1), Err(LoadError::Scattered { limit: MAX_PIECES }));
        assert_eq!(coverage.check(1, 1), Ok(()));
        coverage.add(1, 1);
        assert_eq!(coverage.check(1 << 30, 1), Ok(()));
    }
}
