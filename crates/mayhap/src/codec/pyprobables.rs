//! pyprobables' `BloomFilter.export` and `export_hex`: read only.
//!
//! ```text
//! ┌────────────────────────────────────────┬────────────────┬────────────────┬────────────┐
//! │ bits, in whole bytes                   │ estimated      │ elements added │ rate       │     export: little-endian
//! │ bit i: byte i/8, lowest bit first      │ elements, u64  │ u64            │ f32        │     export_hex: hexadecimal digits, these three big-endian
//! └────────────────────────────────────────┴────────────────┴────────────────┴────────────┘
//! ```
//!
//! How many bits and probes it has follows from the estimate and from the rate, *as the 32-bit number in the file*.
//!
//! | items in Python | [`ItemEncoding`] |
//! |---|---|
//! | `str` | [`Utf32Le`](ItemEncoding::Utf32Le): the default hash takes code points, not UTF-8 |
//! | `bytes` | [`Bytes`](ItemEncoding::Bytes), or [`Utf8`](ItemEncoding::Utf8) if they are text encoded so |
//!
//! For text in ASCII all of these are one. A filter made with a hash function of the user's cannot be read: nothing in the file says so, and it
//! answers *no* to its own items.
//!
//! Its probes are FNV-1a hashes whose starting values differ by 31, so they are much alike: non-members that differ only in their last characters are often
//! taken for members together. That is a property of the filter, not of this reader.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap::codec::pyprobables;
//!
//! // BloomFilter(est_elements=20, false_positive_rate=0.01) with eleven words in it, `export_hex()`.
//! let hex = "060e8c480380124869b81186b30020225506a5f1683069980000000000000014000000000000000b3c23d70a";
//! let seen = pyprobables::read_hex(hex, ItemEncoding::Utf32Le)?;
//! assert!(seen.may_contain("café") && !seen.may_contain("cafè"));
//! assert_eq!(seen.inserted(), 11);
//! # Ok::<(), mayhap::DecodeError>(())
//! ```

use super::DecodeError;
use super::cursor::{Cursor, lines_of_lsb_first};
use super::foreign::Resemblance;
use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::item::ItemEncoding;
use crate::sizing;
use crate::wide::{WideBloom, WidePlacement};

const TRAILER_BYTES: usize = 20;
/// What it divides by for the square of ln 2.
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

/// What is behind the bits.
#[derive(Clone, Copy)]
struct Trailer {
    estimated: u64,
    added: u64,
    rate: f32,
}

/// The filter that `export` wrote.
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

/// The filter that `export_hex` returned.
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

/// The bits and the trailer.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8; TRAILER_BYTES]), DecodeError> {
    let need = TRAILER_BYTES as u64 + 1;
    bytes
        .split_last_chunk::<TRAILER_BYTES>()
        .filter(|(bits, _)| !bits.is_empty())
        .ok_or(DecodeError::TooShort { need, got: bytes.len() as u64 })
}

/// The fields of a trailer, in whatever order their bytes are.
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
    let lines = lines_of_lsb_first(bits)?;
    lines.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
    Ok(WideBloom::of_counted_bits(shape, WidePlacement::Pyprobables, items, lines, trailer.added))
}

/// Bits and probes as pyprobables computes them when it loads a file.
fn shape(Trailer { estimated, rate, .. }: Trailer) -> Result<BloomShape, BuildError> {
    let rate = super::foreign::check_rate(rate.into())?;
    let n = sizing::check_capacity(estimated)? as f64;
    // In this order: another rounds differently.
    let bits = (-n * rate.ln() / LN_2_SQUARED).ceil();
    let probes = (std::f64::consts::LN_2 * bits / n).round_ties_even();
    BloomShape::from_parts(bits as u64, probes as u32, estimated, rate)
}

/// Could these bytes be such a file?
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Ok((bits, trailer)) = split(bytes) else { return Resemblance::No };
    let (low, high, rate) = fields(trailer);
    let (estimated, added) = (u64::from_le_bytes(low), u64::from_le_bytes(high));
    resembles_parts(bits, Trailer { estimated, added, rate: f32::from_le_bytes(rate) })
}

/// Could this text be one that `export_hex` returned?
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
