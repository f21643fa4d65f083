//! Where encoded bytes are read from: a slice, checked to the last byte, or a file, mapped as it is.

use std::cell::{Cell, RefCell};
use std::io::Read;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::header::{HEADER_BYTES, Header, MAGIC};
use super::{DecodeError, Storable};
use crate::kind::Kind;
use crate::store::{LINE_BYTES, Lines};

/// Encoded bytes, wherever they are.
pub(crate) trait Source {
    /// How many there are.
    fn len(&self) -> u64;

    /// The header that begins at byte `at`.
    fn header_at(&self, at: u64) -> Result<Header, DecodeError>;

    /// The words from byte `at` on; the caller knows that `bytes` bytes are there.
    /// `checksum` is what they add up to, for sources that check.
    fn lines_at(&self, at: u64, bytes: u64, checksum: u64) -> Result<Lines, DecodeError>;

    /// Do the headers say what the words add up to? Not if they were written before that was known: whoever has them checks otherwise.
    fn is_sealed(&self) -> bool {
        true
    }
}

/// Bytes in memory: words are copied out of them, and checked.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Source for Bytes<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn header_at(&self, at: u64) -> Result<Header, DecodeError> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        // A short text is told that it is no filter, not that it is too short for one.
        if rest.len() >= MAGIC.len() && !rest.starts_with(&MAGIC) {
            return Err(DecodeError::BadMagic);
        }
        let header = rest.first_chunk::<HEADER_BYTES>();
        let need = at.saturating_add(HEADER_BYTES as u64);
        Header::from_bytes(header.ok_or(DecodeError::TooShort { need, got: self.len() })?)
    }

    fn lines_at(&self, at: u64, bytes: u64, checksum: u64) -> Result<Lines, DecodeError> {
        let too_short = DecodeError::TooShort { need: at.saturating_add(bytes), got: self.len() };
        let range = (|| self.0.get(usize::try_from(at).ok()?..usize::try_from(at + bytes).ok()?))();
        let payload = range.ok_or(too_short)?;
        if xxh3_64(payload) != checksum {
            return Err(DecodeError::PayloadDamaged);
        }
        let mut lines = Lines::zeroed(payload.len() / LINE_BYTES)?;
        let (words, _) = payload.as_chunks::<8>();
        for (to, from) in lines.words_mut().iter_mut().zip(words) {
            *to = u64::from_le_bytes(*from);
        }
        Ok(lines)
    }
}

/// Bytes that are read one behind the other, straight into the memory of the filter.
pub(crate) struct Stream<'a> {
    reader: RefCell<&'a mut dyn Read>,
    bytes: u64,
    /// What was read.
    at: Cell<u64>,
    sealed: bool,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(reader: &'a mut dyn Read, bytes: u64, sealed: bool) -> Self {
        Self { reader: RefCell::new(reader), bytes, at: Cell::new(0), sealed }
    }

    /// Reads what stands at byte `at`, which is where reading has come to.
    fn fill(&self, at: u64, bytes: &mut [u8]) -> Result<(), DecodeError> {
        let too_short =
            DecodeError::TooShort { need: at.saturating_add(bytes.len() as u64), got: self.at.get() };
        if at != self.at.get() || self.reader.borrow_mut().read_exact(bytes).is_err() {
            return Err(too_short);
        }
        self.at.set(at + bytes.len() as u64);
        Ok(())
    }
}

impl Source for Stream<'_> {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn header_at(&self, at: u64) -> Result<Header, DecodeError> {
        let mut header = [0; HEADER_BYTES];
        self.fill(at, &mut header)?;
        Header::from_bytes(&header)
    }

    fn lines_at(&self, at: u64, bytes: u64, checksum: u64) -> Result<Lines, DecodeError> {
        let need = at.saturating_add(bytes);
        let length = usize::try_from(bytes).ok().filter(|_| need <= self.bytes);
        let length = length.ok_or(DecodeError::TooShort { need, got: self.bytes })?;
        let mut lines = Lines::zeroed(length / LINE_BYTES)?;
        let (mut piece, mut from, mut sum) = (vec![0; (64 << 10).min(length)], at, Xxh3::new());
        for words in lines.words_mut().chunks_mut((64 << 10) / 8) {
            let piece = &mut piece[..words.len() * 8];
            self.fill(from, piece)?;
            from += piece.len() as u64;
            if self.sealed {
                sum.update(piece);
            }
            for (to, from) in words.iter_mut().zip(piece.as_chunks::<8>().0) {
                *to = u64::from_le_bytes(*from);
            }
        }
        if self.sealed && sum.digest() != checksum {
            return Err(DecodeError::PayloadDamaged);
        }
        Ok(lines)
    }

    fn is_sealed(&self) -> bool {
        self.sealed
    }
}

/// The payload of one encoded filter inside a source of bytes.
pub struct Body<'a> {
    source: &'a dyn Source,
    header: Header,
    /// Where the payload begins.
    at: u64,
}

impl<'a> Body<'a> {
    /// The one filter that fills all of `source`.
    pub(crate) fn whole(source: &'a dyn Source) -> Result<Self, DecodeError> {
        let body = Self::at(source, 0, source.len())?;
        let end = body.at + body.header.payload_bytes;
        if end != source.len() {
            return Err(DecodeError::TrailingBytes { extra: source.len() - end });
        }
        Ok(body)
    }

    /// The filter whose header is at byte `at`; it ends before byte `end`.
    fn at(source: &'a dyn Source, at: u64, end: u64) -> Result<Self, DecodeError> {
        let header = source.header_at(at)?;
        let payload_at = at + HEADER_BYTES as u64;
        let need = payload_at.saturating_add(header.payload_bytes);
        if need > end {
            return Err(DecodeError::TooShort { need, got: end });
        }
        if header.payload_bytes % LINE_BYTES as u64 != 0 {
            return Err(DecodeError::BadField { field: "payload length", got: header.payload_bytes });
        }
        Ok(Self { source, header, at: payload_at })
    }

    /// `Ok` if it is of this kind, or any kind will do.
    pub(crate) fn expect_kind(&self, expected: Option<Kind>) -> Result<(), DecodeError> {
        match expected {
            Some(expected) if expected != self.header.kind => {
                Err(DecodeError::WrongKind { expected, got: self.header.kind })
            }
            _ => Ok(()),
        }
    }

    /// The filter itself.
    pub(crate) fn restore<F: Storable>(&self) -> Result<F, DecodeError> {
        self.expect_kind(F::KIND)?;
        F::restore(&self.header, self)
    }

    /// The payload as words; `bytes` is how long it must be.
    pub(crate) fn lines(&self, bytes: u64) -> Result<Lines, DecodeError> {
        if self.header.payload_bytes != bytes {
            return Err(DecodeError::BadField { field: "payload length", got: self.header.payload_bytes });
        }
        self.source.lines_at(self.at, bytes, self.header.payload_checksum)
    }

    /// The filters the payload consists of, of which there are at most `limit`.
    pub(crate) fn filters<F: Storable>(&self, limit: usize) -> Result<Vec<F>, DecodeError> {
        let end = self.at + self.header.payload_bytes;
        let (mut filters, mut at, mut checksum) = (Vec::new(), self.at, Xxh3::new());
        while at < end {
            if filters.len() == limit {
                return Err(DecodeError::BadField { field: "number of filters", got: limit as u64 + 1 });
            }
            let part = Self::at(self.source, at, end)?;
            checksum.update(&part.header.to_bytes());
            filters.push(part.restore()?);
            at = part.at + part.header.payload_bytes;
        }
        if self.source.is_sealed() && checksum.digest() != self.header.payload_checksum {
            return Err(DecodeError::PayloadDamaged);
        }
        Ok(filters)
    }
}
