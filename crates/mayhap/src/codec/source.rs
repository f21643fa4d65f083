//! Where encoded bytes are read from: a slice, whose bytes are all checked, or a mapped file.

use std::cell::{Cell, RefCell};
use std::io::Read;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::header::{HEADER_BYTES, Header, MAGIC};
use super::{DecodeError, Storable};
use crate::kind::Kind;
use crate::store::{LINE_BYTES, Lines};

/// A source of encoded bytes.
pub(crate) trait Source {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Reads the header at byte `at`.
    fn header_at(&self, at: u64) -> Result<Header, DecodeError>;

    /// Reads the words at byte `at`. The caller has checked that `bytes` bytes are there.
    /// Sources that verify compare the words with `checksum`.
    fn lines_at(&self, at: u64, bytes: u64, checksum: u64) -> Result<Lines, DecodeError>;

    /// Returns whether the headers contain the checksums of the words. They do not if they were written before the words were final; the
    /// owner of the bytes then checks them in another way.
    fn is_sealed(&self) -> bool {
        true
    }
}

/// Bytes in memory: words are copied out of them and checked.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Source for Bytes<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn header_at(&self, at: u64) -> Result<Header, DecodeError> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        // For a short text, the error is that it is not a filter, not that it is too short.
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

/// Bytes that are read in order, straight into the memory of the filter.
pub(crate) struct ByteStream<'a> {
    reader: RefCell<&'a mut dyn Read>,
    bytes: u64,
    /// The number of bytes read so far.
    at: Cell<u64>,
    sealed: bool,
}

impl<'a> ByteStream<'a> {
    pub(crate) fn new(reader: &'a mut dyn Read, bytes: u64, sealed: bool) -> Self {
        Self { reader: RefCell::new(reader), bytes, at: Cell::new(0), sealed }
    }

    /// Reads the bytes at `at`, which must be the current position.
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

impl Source for ByteStream<'_> {
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
    /// The offset of the payload.
    at: u64,
}

impl<'a> Body<'a> {
    /// The only filter in `source`, which it fills completely.
    pub(crate) fn whole(source: &'a dyn Source) -> Result<Self, DecodeError> {
        let body = Self::at(source, 0, source.len())?;
        let end = body.at + body.header.payload_bytes;
        if end != source.len() {
            return Err(DecodeError::TrailingBytes { extra: source.len() - end });
        }
        Ok(body)
    }

    /// The filter whose header is at byte `at`. It must end before byte `end`.
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

    /// `Ok` if the filter is of this kind, or if any kind is accepted.
    pub(crate) fn expect_kind(&self, expected: Option<Kind>) -> Result<(), DecodeError> {
        match expected {
            Some(expected) if expected != self.header.kind => {
                Err(DecodeError::WrongKind { expected, got: self.header.kind })
            }
            _ => Ok(()),
        }
    }

    /// Decodes the filter.
    pub(crate) fn restore<F: Storable>(&self) -> Result<F, DecodeError> {
        self.expect_kind(F::KIND)?;
        F::restore(&self.header, self)
    }

    /// The payload as words. It must be `bytes` bytes long.
    pub(crate) fn lines(&self, bytes: u64) -> Result<Lines, DecodeError> {
        if self.header.payload_bytes != bytes {
            return Err(DecodeError::BadField { field: "payload length", got: self.header.payload_bytes });
        }
        self.source.lines_at(self.at, bytes, self.header.payload_checksum)
    }

    /// The filters in the payload, at most `limit` of them.
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
