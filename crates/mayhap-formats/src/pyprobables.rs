//! pyprobables' `BloomFilter.export` and `export_hex`: read only.
//!
//! ```text
//! ┌────────────────────────────────────────┬────────────────┬────────────────┬────────────┐
//! │ bits, in whole bytes                   │ estimated      │ elements added │ rate       │     export: little-endian
//! │ bit i: byte i/8, lowest bit first      │ elements, u64  │ u64            │ f32        │     export_hex: hexadecimal digits, these three big-endian
//! └────────────────────────────────────────┴────────────────┴────────────────┴────────────┘
//! ```
//!
//! The number of bits and probes follows from the estimate and the rate, *as the 32-bit number in the file*.
//!
//! | items in Python | [`ItemEncoding`] |
//! |---|---|
//! | `str` | [`Utf32Le`](ItemEncoding::Utf32Le): the default hash uses code points, not UTF-8 |
//! | `bytes` | [`Bytes`](ItemEncoding::Bytes), or [`Utf8`](ItemEncoding::Utf8) if they are UTF-8 text |
//!
//! For ASCII text all of these are equal. A filter made with the user's own hash function cannot be read. The file does not contain the hash
//! function, so the reader cannot detect this: such a filter answers *no* to its own items.
//!
//! Its probes are FNV-1a hashes with starting values that differ by 31, so they are strongly correlated: if one non-member is a false positive,
//! others that differ only in their last characters often are, too. That is a property of the filter, not of this reader.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::pyprobables;
//!
//! // BloomFilter(est_elements=20, false_positive_rate=0.01) with eleven words in it, `export_hex()`.
//! let hex = "060e8c480380124869b81186b30020225506a5f1683069980000000000000014000000000000000b3c23d70a";
//! let seen = pyprobables::read_hex(hex, ItemEncoding::Utf32Le)?;
//! assert!(seen.may_contain("café") && !seen.may_contain("cafè"));
//! assert_eq!(seen.inserted(), 11);
//! # Ok::<(), mayhap::DecodeError>(())
//! ```

use mayhap::internals::{self, Lines};
use mayhap::{BloomShape, BuildError, DecodeError, ItemEncoding, WideBloom, WidePlacement};

use crate::cursor::Cursor;
use crate::foreign::Resemblance;

const TRAILER_BYTES: usize = 20;
/// The divisor that pyprobables uses for the square of ln 2.
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

/// The bytes after the bits.
#[derive(Clone, Copy)]
struct Trailer {
    estimated: u64,
    added: u64,
    rate: f32,
}

/// Reads a filter written by `export`.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let (bits, trailer) = split(bytes)?;
    let (low, high, rate) = fields(trailer);
    let trailer = Trailer {
        estimated: u64::from_le_bytes(low),
        added: u64::from_le_bytes(high),
        rate: f32::from_le_bytes(rate),
    };
    of_parts(bits, trailer, items)
}

/// Reads a filter returned by `export_hex`.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter.
pub fn read_hex(hex: &str, items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let bytes = unhex(hex)?;
    let (bits, trailer) = split(&bytes)?;
    let (low, high, rate) = fields(trailer);
    let trailer = Trailer {
        estimated: u64::from_be_bytes(low),
        added: u64::from_be_bytes(high),
        rate: f32::from_be_bytes(rate),
    };
    of_parts(bits, trailer, items)
}

/// Builds the filter from its bits and its trailer.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8; TRAILER_BYTES]), DecodeError> {
    let need = TRAILER_BYTES as u64 + 1;
    bytes
        .split_last_chunk::<TRAILER_BYTES>()
        .filter(|(bits, _)| !bits.is_empty())
        .ok_or(DecodeError::TooShort { need, got: bytes.len() as u64 })
}

/// The fields of a trailer, in either byte order.
fn fields(trailer: &[u8; TRAILER_BYTES]) -> ([u8; 8], [u8; 8], [u8; 4]) {
    let at = |i: usize| trailer[i];
    (std::array::from_fn(at), std::array::from_fn(|i| at(8 + i)), std::array::from_fn(|i| at(16 + i)))
}

fn unhex(hex: &str) -> Result<Vec<u8>, DecodeError> {
    let malformed = |at: usize| DecodeError::Malformed { what: "pairs of hexadecimal digits", at: at as u64 };
    let digit = |at: usize, byte: u8| {
        char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(|| malformed(at))
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed(hex.len()));
    }
    let byte = |(i, &[high, low]): (usize, &[u8; 2])| Ok(digit(2 * i, high)? << 4 | digit(2 * i + 1, low)?);
    pairs.iter().enumerate().map(byte).collect()
}

fn of_parts(bytes: &[u8], trailer: Trailer, items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let shape = shape(trailer)?;
    let mut cursor = Cursor::new(bytes);
    let bits = cursor.take(shape.bits().div_ceil(8))?;
    cursor.finish()?;
    let lines = Lines::from_le_bytes(bits)?;
    lines.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
    Ok(internals::wide::of_counted_bits(shape, WidePlacement::Pyprobables, items, lines, trailer.added))
}

/// Returns the number of bits and probes as pyprobables computes them when it loads a file.
fn shape(Trailer { estimated, rate, .. }: Trailer) -> Result<BloomShape, BuildError> {
    let rate = super::foreign::check_rate(rate.into())?;
    let n = internals::check_capacity(estimated)? as f64;
    // Another order would round differently.
    let bits = (-n * rate.ln() / LN_2_SQUARED).ceil();
    let probes = (std::f64::consts::LN_2 * bits / n).round_ties_even();
    internals::bloom::from_parts(bits as u64, probes as u32, estimated, rate)
}

/// Returns whether these bytes look like such a file.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Ok((bits, trailer)) = split(bytes) else { return Resemblance::No };
    let (low, high, rate) = fields(trailer);
    let (estimated, added) = (u64::from_le_bytes(low), u64::from_le_bytes(high));
    resembles_parts(bits, Trailer { estimated, added, rate: f32::from_le_bytes(rate) })
}

/// Returns whether this text looks like the result of `export_hex`.
#[must_use]
pub fn resembles_hex(hex: &str) -> Resemblance {
    let Ok(bytes) = unhex(hex) else { return Resemblance::No };
    let Ok((bits, trailer)) = split(&bytes) else { return Resemblance::No };
    let (low, high, rate) = fields(trailer);
    let (estimated, added) = (u64::from_be_bytes(low), u64::from_be_bytes(high));
    resembles_parts(bits, Trailer { estimated, added, rate: f32::from_be_bytes(rate) })
}

fn resembles_parts(bits: &[u8], trailer: Trailer) -> Resemblance {
    Resemblance::could(shape(trailer).is_ok_and(|shape| shape.bits().div_ceil(8) == bits.len() as u64))
}
