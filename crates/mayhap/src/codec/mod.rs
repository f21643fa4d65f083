//! Filters as bytes: the `.mayhap` format. `docs/format.md` draws every byte.
//!
//! ```text
//! ┌────────────┬───────────────────────────────┐      ┌──────────┬────────┬────────┬───
//! │ header 192 │ words, a multiple of 64 bytes │  or  │ header   │ filter │ filter │ …    (kinds made of filters)
//! └────────────┴───────────────────────────────┘      └──────────┴────────┴────────┴───
//! ```
//!
//! Decoding trusts nothing: every length meets the bytes there are before anything is allocated.

mod error;
mod header;
mod source;

pub use error::DecodeError;
#[doc(hidden)]
pub use header::Header;
#[doc(hidden)]
pub use source::Body;

use std::io::{self, Write};

use xxhash_rust::xxh3::Xxh3;

pub(crate) use self::header::HEADER_BYTES;
pub(crate) use self::source::{Bytes, Source};
use crate::kind::Kind;
use crate::store::Lines;

/// A filter that has an encoded form. Every kind does; nothing outside this crate can.
pub trait Storable: Sized + sealed::Sealed {
    /// The kind in the header; none for a type that holds whatever is there.
    const KIND: Option<Kind>;

    /// The header, but for the payload's length and checksum.
    #[doc(hidden)]
    fn header(&self) -> Header;

    /// What follows the header.
    #[doc(hidden)]
    fn parts(&self) -> Parts<'_>;

    /// The filter these came from.
    #[doc(hidden)]
    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError>;
}

pub(crate) mod sealed {
    /// Only this crate's filters are [`Storable`](super::Storable).
    pub trait Sealed {}
}

/// What an encoded filter is made of.
#[doc(hidden)]
pub enum Parts<'a> {
    /// An array of words.
    Words(&'a Lines),
    /// Other filters, one behind the other.
    Filters(Vec<Encoding<'a>>),
}

/// A filter ready to be written: its header complete, its words still where they are.
#[doc(hidden)]
pub struct Encoding<'a> {
    header: Header,
    parts: Parts<'a>,
}

impl<'a> Encoding<'a> {
    pub(crate) fn of<F: Storable>(filter: &'a F) -> Self {
        let (mut header, parts) = (filter.header(), filter.parts());
        match &parts {
            Parts::Words(lines) => {
                header.payload_bytes = lines.memory_bytes();
                header.payload_checksum = lines.checksum();
            }
            // The headers of the parts vouch for their payloads; the checksum over those headers is enough.
            Parts::Filters(filters) => {
                let mut checksum = Xxh3::new();
                for filter in filters {
                    header.payload_bytes += filter.total_bytes();
                    checksum.update(&filter.header.to_bytes());
                }
                header.payload_checksum = checksum.digest();
            }
        }
        Self { header, parts }
    }

    /// Bytes [`write`](Self::write) writes.
    pub(crate) fn total_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.header.payload_bytes
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.header.to_bytes())?;
        match &self.parts {
            Parts::Words(lines) => lines.for_each_le_bytes(|bytes| out.write_all(bytes)),
            Parts::Filters(filters) => filters.iter().try_for_each(|filter| filter.write(out)),
        }
    }
}

/// The encoded filter in one piece of memory.
pub(crate) fn encode<F: Storable>(filter: &F) -> Vec<u8> {
    let encoding = Encoding::of(filter);
    let mut bytes = Vec::with_capacity(encoding.total_bytes() as usize);
    // Writing to a vector cannot fail.
    let _ = encoding.write(&mut bytes);
    bytes
}

/// Writes the encoded filter to `out` without making a copy of it first.
///
/// # Errors
/// Whatever `out` answers.
pub fn encode_into<F: Storable>(filter: &F, out: &mut dyn Write) -> io::Result<()> {
    Encoding::of(filter).write(out)
}

/// The filter in these bytes, and nothing else in them.
pub(crate) fn decode<F: Storable>(bytes: &[u8]) -> Result<F, DecodeError> {
    decode_from(&Bytes(bytes))
}

pub(crate) fn decode_from<F: Storable>(source: &dyn Source) -> Result<F, DecodeError> {
    let body = Body::whole(source)?;
    body.restore()
}

/// `Ok` if the one filter that fills all of `source` is of this kind, judging by the header alone.
#[cfg(feature = "file")]
pub(crate) fn expect_kind(expected: Option<Kind>, source: &dyn Source) -> Result<(), DecodeError> {
    Body::whole(source)?.expect_kind(expected)
}

/// What kind of filter these bytes begin with, judging by the header alone.
///
/// # Errors
/// [`DecodeError`] if they do not begin with an intact header.
pub fn kind_of(bytes: &[u8]) -> Result<Kind, DecodeError> {
    Ok(Bytes(bytes).header_at(0)?.kind)
}
