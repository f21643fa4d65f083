//! Guava's `BloomFilter.writeTo`: everything big-endian.
//!
//! ```text
//! ┌──────────┬───┬───────────┬──────────────────────────────┐
//! │ strategy │ k │ words W   │ W words of 64 bits           │     strategy 0: MURMUR128_MITZ_32, 1: MURMUR128_MITZ_64
//! │ 1 byte   │ 1 │ 4         │ bit i: word i/64, bit i % 64 │
//! └──────────┴───┴───────────┴──────────────────────────────┘
//! ```
//!
//! The stream contains neither its capacity nor how its items were encoded. The encoding was the *funnel*, and the reader must name it:
//!
//! | funnel | [`ItemEncoding`] |
//! |---|---|
//! | `stringFunnel(UTF_8)` | [`Utf8`](ItemEncoding::Utf8) |
//! | `stringFunnel(UTF_16LE)`, `unencodedCharsFunnel()` | [`Utf16Le`](ItemEncoding::Utf16Le) |
//! | `integerFunnel()` | [`I32Le`](ItemEncoding::I32Le) |
//! | `longFunnel()` | [`I64Le`](ItemEncoding::I64Le) |
//! | `byteArrayFunnel()` | [`Bytes`](ItemEncoding::Bytes) |
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::guava::{self, Rounding, Strategy};
//!
//! let mut seen = guava::create(1_000, 0.01, Rounding::Since33, Strategy::Mitz64, ItemEncoding::Utf8)?;
//! seen.insert("ada");
//! let mut stream = Vec::new();
//! guava::write(&seen, &mut stream)?; // what `BloomFilter.readFrom` reads
//!
//! let same = guava::read(&stream, ItemEncoding::Utf8)?;
//! assert!(same.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::{
    Bloom, BloomPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding, ItemHash,
    internals,
};

use crate::cursor::Cursor;
pub use crate::foreign::Positions;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::write_words_be;

/// How Guava derives positions from its 128 bits of murmur3. The stream contains the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`: the default up to Guava 16. Cannot reach bits above 2^31.
    Mitz32,
    /// `MURMUR128_MITZ_64`: the default since Guava 17.
    Mitz64,
}

/// The version of Guava whose sizing a new filter copies; very small filters differ in their number of probes. Reading does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Guava 18 to 33.3.
    Until33,
    /// Guava 33.4 and later.
    Since33,
}

impl Strategy {
    const fn placement(self) -> BloomPlacement {
        match self {
            Self::Mitz32 => BloomPlacement::Guava32,
            Self::Mitz64 => BloomPlacement::Guava64,
        }
    }
}

const HEADER_BYTES: usize = 6;
/// The largest Java array of `long`.
const MAX_WORDS: u64 = i32::MAX as u64;

/// Creates an empty filter like `BloomFilter.create` for `expected_insertions` items.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1), and for numbers that Guava rejects too: no bits, or more bits than a Java array holds.
pub fn create(
    expected_insertions: u64,
    fpp: f64,
    rounding: Rounding,
    strategy: Strategy,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(expected_insertions, fpp, rounding)?;
    if bits > MAX_WORDS * 64 {
        return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_WORDS * 64 });
    }
    let capacity = expected_insertions.max(1);
    let shape = internals::bloom::from_parts(bits.next_multiple_of(64), probes, capacity, fpp)?;
    internals::bloom::placed(shape, scheme(items), strategy.placement())
}

/// Returns the number of bits that Guava computes, before it rounds them up to whole words, and the number of probes.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1), no bits, or more than 255 probes.
pub fn size(expected_insertions: u64, fpp: f64, rounding: Rounding) -> Result<(u64, u32), BuildError> {
    let fpp = check_rate(fpp)?;
    let items = internals::check_capacity(expected_insertions.max(1))? as f64;
    let ln_2 = std::f64::consts::LN_2;
    // Another order would round differently.
    let bits = (-items * fpp.ln() / (ln_2 * ln_2)) as u64;
    if bits == 0 {
        return Err(BuildError::BitsOutOfRange { got: 0, limit: MAX_WORDS * 64 });
    }
    let probes = match rounding {
        Rounding::Until33 => bits as f64 / items * ln_2,
        Rounding::Since33 => -fpp.ln() / ln_2,
    };
    let probes = (probes + 0.5).floor().max(1.0);
    if probes > 255.0 {
        return Err(BuildError::ProbesOutOfRange { got: probes as u32, limit: 255 });
    }
    Ok((bits, probes as u32))
}

/// Returns how Guava hashes items that its funnel encodes in this way.
#[must_use]
pub fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::Guava, items)
}

/// Returns the positions of `probes` bits of an item among `bits` bits, at least one, in the order in which Guava sets them. Use it for
/// bitmaps that a program maintains itself, as the offsets of SETBIT and GETBIT; [`scheme`] has the hash.
#[must_use]
pub fn positions(strategy: Strategy, hash: ItemHash, bits: u64, probes: u32) -> Positions {
    internals::bloom::positions(strategy.placement(), hash, bits, probes)
}

/// Reads a filter from a stream written by `writeTo`. `items` is how the funnel encoded its items.
///
/// # Errors
/// [`DecodeError`] for anything but one whole stream.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let strategy = match cursor.u8()? {
        0 => Strategy::Mitz32,
        1 => Strategy::Mitz64,
        got => return Err(DecodeError::BadField { field: "strategy", got: got.into() }),
    };
    let probes = cursor.u8()?;
    let words = u64::from(cursor.u32_be()?);
    if words > MAX_WORDS {
        return Err(DecodeError::BadField { field: "number of words", got: words });
    }
    let shape = internals::bloom::of_unknown_capacity(words * 64, probes.into())?;
    let bits = cursor.words_be(words)?;
    cursor.finish()?;
    Ok(internals::bloom::of_placed_bits(shape, scheme(items), strategy.placement(), bits))
}

/// Writes the filter as `writeTo` does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Guava's, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    let is_guavas =
        matches!(filter.scheme(), HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::Guava);
    let strategy = match filter.placement() {
        BloomPlacement::Guava32 if is_guavas => 0,
        BloomPlacement::Guava64 if is_guavas => 1,
        _ => {
            return Err(WriteError::other_placement("Guava's murmur3 and one of its two strategies", filter));
        }
    };
    let (bits, words) = (filter.shape().bits(), internals::bloom::words(filter.shape()));
    // Only a forged `.mayhap` file can have partial words.
    if words > MAX_WORDS || !bits.is_multiple_of(64) {
        return Err(WriteError::NoRoom { field: "whole words of bits", got: bits, limit: MAX_WORDS * 64 });
    }
    // No foreign filter has more than 255 probes.
    let (words, probes) = (words as u32, filter.shape().probes() as u8);
    out.write_all(&[strategy, probes])?;
    out.write_all(&words.to_be_bytes())?;
    write_words_be(internals::bloom::bits(filter), words.into(), out)?;
    Ok(())
}

/// Returns whether these bytes look like such a stream.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Some(&[strategy, probes, words @ ..]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Resemblance::No;
    };
    let words = u64::from(u32::from_be_bytes(words));
    Resemblance::could(
        strategy <= 1 && probes > 0 && words > 0 && bytes.len() as u64 == HEADER_BYTES as u64 + 8 * words,
    )
}
