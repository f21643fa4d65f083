//! Filters as bytes: our own `.mayhap` format. `docs/format.md` draws every byte.
//!
//! ```text
//! ┌────────────┬───────────────────────────────┐      ┌──────────┬────────┬────────┬───
//! │ header 192 │ words, a multiple of 64 bytes │  or  │ header   │ filter │ filter │ …    (kinds made of filters)
//! └────────────┴───────────────────────────────┘      └──────────┴────────┴────────┴───
//! ```
//!
//! Decoding does not trust its input: every length is checked against the available bytes before anything is allocated.
//!
//! The formats of other programs are in the crate `mayhap-formats`.

mod error;
mod header;
mod payload;
mod pieces;
mod source;

pub use error::DecodeError;
#[doc(hidden)]
pub use header::Header;
pub use header::MAGIC;
#[doc(hidden)]
pub use payload::Payload;
pub use pieces::{Pieces, seal};
#[doc(hidden)]
pub use source::Body;

use std::io::{self, Write};

use xxhash_rust::xxh3::Xxh3;

pub(crate) use self::header::SELF_HASHED;
pub(crate) use self::header::{HEADER_BYTES, MAX_INSERTED};
pub(crate) use self::source::{Bytes, Source};
use crate::kind::Kind;

/// A filter that has an encoded form. Every kind of filter implements it; types outside this crate cannot.
pub trait Storable: Sized + sealed::Sealed {
    /// The kind in the header; `None` for a type that holds any kind.
    const KIND: Option<Kind>;

    /// The header, except for the length and the checksum of the payload.
    #[doc(hidden)]
    fn header(&self) -> Header;

    /// The content after the header.
    #[doc(hidden)]
    fn parts(&self) -> Parts<'_>;

    /// Rebuilds the filter from its encoded parts.
    #[doc(hidden)]
    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError>;
}

pub(crate) mod sealed {
    /// Only this crate's filters are [`Storable`](super::Storable).
    pub trait Sealed {}
}

/// The content of an encoded filter.
#[doc(hidden)]
pub enum Parts<'a> {
    /// Words.
    Words(&'a dyn Payload),
    /// Other filters, one after the other.
    Filters(Vec<Encoding<'a>>),
}

/// A filter ready to be written: its header, and its words by reference.
#[doc(hidden)]
pub struct Encoding<'a> {
    header: Header,
    parts: Parts<'a>,
}

impl<'a> Encoding<'a> {
    /// Creates an encoding that is not [sealed](Self::seal) yet.
    pub(crate) fn of<F: Storable>(filter: &'a F) -> Self {
        Self { header: filter.header(), parts: filter.parts() }
    }

    /// Completes the header with the length and the checksum of the payload.
    fn seal(mut self) -> Self {
        match &mut self.parts {
            Parts::Words(words) => {
                self.header.payload_bytes = words.payload_bytes();
                self.header.payload_checksum = words.checksum();
            }
            // The header of each part covers its payload, so a checksum over those headers is enough.
            Parts::Filters(filters) => {
                let mut checksum = Xxh3::new();
                *filters = std::mem::take(filters).into_iter().map(Encoding::seal).collect();
                for filter in filters {
                    self.header.payload_bytes += filter.total_bytes();
                    checksum.update(&filter.header.to_bytes());
                }
                self.header.payload_checksum = checksum.digest();
            }
        }
        self
    }

    /// The number of bytes that [`write`](Self::write) writes.
    pub(crate) fn total_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.header.payload_bytes
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.header.to_bytes())?;
        match &self.parts {
            Parts::Words(words) => words.write_to(out),
            Parts::Filters(filters) => filters.iter().try_for_each(|filter| filter.write(out)),
        }
    }
}

/// Returns the encoded filter as one vector.
pub(crate) fn encode<F: Storable>(filter: &F) -> Vec<u8> {
    let encoding = Encoding::of(filter).seal();
    let mut bytes = Vec::with_capacity(encoding.total_bytes() as usize);
    // Writing to a vector cannot fail.
    let _ = encoding.write(&mut bytes);
    bytes
}

/// Writes the encoded filter to `out` without copying it first.
///
/// # Errors
/// Any error of `out`.
pub fn encode_into<F: Storable>(filter: &F, out: &mut dyn Write) -> io::Result<()> {
    Encoding::of(filter).seal().write(out)
}

/// Decodes the filter in `bytes`, which must contain nothing else.
pub(crate) fn decode<F: Storable>(bytes: &[u8]) -> Result<F, DecodeError> {
    decode_from(&Bytes(bytes))
}

/// Decodes the filter in the next `bytes` bytes of `reader`. The bytes are read straight into the filter's memory, so there is never a second
/// copy. They may be an unsealed encoding written by [`Pieces`]: the caller must then make sure that they are intact.
///
/// # Errors
/// [`DecodeError`]. A reader that fails is reported as [`DecodeError::TooShort`] as well. Some of the bytes were read by then.
pub fn read<F: Storable>(reader: &mut dyn io::Read, bytes: u64, sealed: bool) -> Result<F, DecodeError> {
    decode_from(&source::ByteStream::new(reader, bytes, sealed))
}

pub(crate) fn decode_from<F: Storable>(source: &dyn Source) -> Result<F, DecodeError> {
    let body = Body::whole(source)?;
    body.restore()
}

/// Returns the kind of the filter at the start of these bytes. Only the header is read.
///
/// # Errors
/// [`DecodeError`] if the bytes do not begin with an intact header.
pub fn kind_of(bytes: &[u8]) -> Result<Kind, DecodeError> {
    Ok(Bytes(bytes).header_at(0)?.kind)
}

/// Returns the length in bytes of the encoded filter at the start of these bytes. Only the header is read.
///
/// # Errors
/// [`DecodeError`] if the bytes do not begin with an intact header.
pub fn length_of(bytes: &[u8]) -> Result<u64, DecodeError> {
    Ok(Bytes(bytes).header_at(0)?.payload_bytes.saturating_add(HEADER_BYTES as u64))
}
