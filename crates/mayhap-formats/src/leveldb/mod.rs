//! LevelDB's filters (`NewBloomFilterPolicy`), and the filter block of a table file that holds them.
//!
//! ```text
//! ┌─────────────────────────────────────┬───┐
//! │ bits, at least 64 of them           │ k │      one filter, for the keys of about 2 KiB of data
//! │ bit i: byte i/8, bit i % 8          │ 1 │
//! └─────────────────────────────────────┴───┘
//! ```
//!
//! A filter does not describe its items. They are the user's keys, without the eight bytes that LevelDB appends to each in its tables. Use
//! [`ItemEncoding::Bytes`] unless the program that wrote the table encoded something into its keys.
//!
//! * A number of probes above 30 is reserved for future encodings; LevelDB then answers *maybe* for every key. [`read`] rejects such bytes:
//!   treat that error as the answer *maybe*.
//! * The hash has 32 bits. In filters of many millions of keys this alone causes false positives, which
//!   [`expected_fpr`](Bloom::expected_fpr) does not include.
//! * In a table file a block is followed by a byte for its compression and four for its checksum. They are not part of the filter.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::leveldb::{self, FilterBlock};
//!
//! let mut keys = leveldb::create(10, 100, ItemEncoding::Bytes)?;
//! keys.insert("ada");
//! let mut bytes = Vec::new();
//! leveldb::write(&keys, &mut bytes)?; // what `FilterPolicy::KeyMayMatch` reads
//! assert!(leveldb::read(&bytes, ItemEncoding::Bytes)?.may_contain("ada"));
//!
//! let mut block = Vec::new();
//! leveldb::write_block(&[Some(&keys), None], leveldb::BASE_LG, &mut block)?;
//! let block = FilterBlock::parse(&block)?;
//! let first = block.filter_at(0, ItemEncoding::Bytes)?; // of the data block that begins at byte 0
//! assert!(first.is_some_and(|keys| keys.may_contain("ada")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;

pub use block::{BASE_LG, FilterBlock, resembles_block, write_block};

use std::io::Write;

use mayhap::internals::{self, Lines};
use mayhap::sizing::MAX_BITS;
use mayhap::{
    Bloom, BloomPlacement, BloomShape, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding,
};

use crate::foreign::{Resemblance, WriteError};
use crate::words::write_bytes;

/// The smallest number of bits: with fewer, filters of a few keys would have a high false-positive rate.
const MIN_BITS: u64 = 64;
/// Larger values are not a number of probes.
const MAX_K: u8 = 30;

/// Creates an empty filter as LevelDB does for `keys` keys.
///
/// # Errors
/// [`BuildError`] for more bits than a filter can have.
pub fn create(bits_per_key: u32, keys: u64, items: ItemEncoding) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(bits_per_key, keys)?;
    internals::bloom::placed(
        BloomShape::exactly(bits, probes, keys.max(1))?,
        scheme(items),
        BloomPlacement::LevelDb,
    )
}

/// Returns the number of bits, in whole bytes, and the number of probes that LevelDB uses for `keys` keys.
///
/// # Errors
/// [`BuildError::BitsOutOfRange`] for more bits than a filter can have.
pub fn size(bits_per_key: u32, keys: u64) -> Result<(u64, u32), BuildError> {
    let got = keys.saturating_mul(bits_per_key.into()).max(MIN_BITS);
    if got > MAX_BITS {
        return Err(BuildError::BitsOutOfRange { got, limit: MAX_BITS });
    }
    // A little less than ln 2, rounded down: fewer probes than optimal, because each probe takes time.
    let probes = (f64::from(bits_per_key) * 0.69) as u32;
    Ok((got.next_multiple_of(8), probes.clamp(1, MAX_K.into())))
}

fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::LevelDb, items)
}

/// Reads the filter in these bytes. The last byte is the number of probes, all others are bits.
///
/// # Errors
/// [`DecodeError`] for fewer than two bytes (LevelDB then answers *no* for every key) and for no probes (*maybe*);
/// [`DecodeError::Unsupported`] for more than 30 probes (*maybe*).
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let (bits, probes) = match bytes {
        [bits @ .., probes] if !bits.is_empty() => (bits, *probes),
        _ => return Err(DecodeError::TooShort { need: 2, got: bytes.len() as u64 }),
    };
    match probes {
        0 => return Err(DecodeError::BadField { field: "number of probes", got: 0 }),
        1..=MAX_K => {}
        _ => return Err(DecodeError::Unsupported { what: "a LevelDB filter of more than 30 probes" }),
    }
    let shape = internals::bloom::of_unknown_capacity(bits.len() as u64 * 8, probes.into())?;
    let bits = Lines::from_le_bytes(bits)?;
    Ok(internals::bloom::of_placed_bits(shape, scheme(items), BloomPlacement::LevelDb, bits))
}

/// Writes the filter as LevelDB does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not LevelDB's, [`WriteError::NoRoom`] for one that LevelDB could not have made,
/// [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    let (bytes, probes) = measure(filter)?;
    write_bytes(internals::bloom::bits(filter), bytes, out)?;
    out.write_all(&[probes])?;
    Ok(())
}

/// Returns the number of bytes of bits and the number of probes, if LevelDB could read such a filter.
fn measure(filter: &Bloom) -> Result<(u64, u8), WriteError> {
    let is_leveldbs =
        matches!(filter.scheme(), HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::LevelDb);
    if !is_leveldbs || filter.placement() != BloomPlacement::LevelDb {
        return Err(WriteError::other_placement("LevelDB's hash and its rule", filter));
    }
    let (bits, probes) = (filter.shape().bits(), filter.shape().probes());
    if bits % 8 != 0 {
        return Err(WriteError::NoRoom { field: "bits after the last whole byte", got: bits % 8, limit: 0 });
    }
    match u8::try_from(probes) {
        Ok(probes) if probes <= MAX_K => Ok((bits / 8, probes)),
        _ => Err(WriteError::NoRoom { field: "number of probes", got: probes.into(), limit: MAX_K.into() }),
    }
}

/// Returns whether these bytes look like such a filter. There is little to recognize it by: at least 64 bits, 1 to 30 probes, and not a text, which
/// ends with a byte of that range too.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let enough = bytes.len() as u64 > MIN_BITS / 8;
    let probes = bytes.last().is_some_and(|probes| (1..=MAX_K).contains(probes));
    Resemblance::could(enough && probes && !is_text(bytes))
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|text| text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()))
}
