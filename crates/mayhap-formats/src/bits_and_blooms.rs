//! Go's `bits-and-blooms/bloom`: `WriteTo` and `MarshalBinary`, everything big-endian, and its JSON.
//!
//! ```text
//! ┌────────┬───┬───────────────────┬──────────────────────────────┐
//! │ bits m │ k │ bits of the bitset│ words of 64 bits             │     both lengths are the same
//! │ 8      │ 8 │ 8                 │ bit i: word i/64, bit i % 64 │
//! └────────┴───┴───────────────────┴──────────────────────────────┘
//! {"m":192,"k":7,"b":"AAAAAAAAAMDFhMWQ…"}                               b: the bitset, from its length on, as base64url
//! ```
//!
//! Neither form contains the capacity or the number of items. Go hashes the bytes it is given, so the encoding is the one that the caller of
//! `Add` used:
//!
//! | in Go | [`ItemEncoding`] |
//! |---|---|
//! | `AddString(s)`, `Add([]byte(s))` | [`Utf8`](ItemEncoding::Utf8) |
//! | `Add(raw)` | [`Bytes`](ItemEncoding::Bytes) |
//! | `binary.LittleEndian.PutUint64(b, id); Add(b)` | [`U64Le`](ItemEncoding::U64Le) |
//! | the same with `BigEndian`, as its readme does with 32 bits | [`Bytes`](ItemEncoding::Bytes), and `id.to_be_bytes()` here |
//!
//! A filter made by `FromWithM` from a slice longer than its bits has a bitset longer than `m`. It is rejected, because it could not be
//! written back unchanged.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::bits_and_blooms;
//!
//! let mut seen = bits_and_blooms::create(1_000, 0.01, ItemEncoding::Utf8)?; // bloom.NewWithEstimates(1000, 0.01)
//! seen.insert("ada");
//! let mut binary = Vec::new();
//! bits_and_blooms::write(&seen, &mut binary)?; // what `ReadFrom` and `UnmarshalBinary` read
//! assert!(bits_and_blooms::read(&binary, ItemEncoding::Utf8)?.may_contain("ada"));
//!
//! let mut json = Vec::new();
//! bits_and_blooms::write_json(&seen, &mut json)?;
//! assert!(bits_and_blooms::read_json(&json, ItemEncoding::Utf8)?.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::io::Write;

use base64::engine::general_purpose::{GeneralPurpose, URL_SAFE};
use base64::write::EncoderWriter;
use base64::{DecodeError as Base64Error, Engine as _};
use serde::Deserialize;

use mayhap::{BuildError, DecodeError, ItemEncoding, WideBloom, WidePlacement, internals};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::write_words_be;

/// Creates an empty filter like `NewWithEstimates` for `capacity` items.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1), for no items, and for more than 255 probes, which Go would accept.
pub fn create(capacity: u64, rate: f64, items: ItemEncoding) -> Result<WideBloom, BuildError> {
    let (bits, probes) = size(capacity, rate)?;
    let shape = internals::bloom::from_parts(bits, probes, capacity, rate)?;
    internals::wide::placed(shape, WidePlacement::BitsAndBlooms, items)
}

/// Creates an empty filter like `New(bits, probes)`.
///
/// ```
/// use mayhap::{ItemEncoding, WideBloom};
/// use mayhap_formats::bits_and_blooms;
///
/// let mut seen = bits_and_blooms::create_exactly(9_586, 7, ItemEncoding::Utf8)?;
/// assert!(seen.insert("ada") && seen.may_contain("ada"));
/// assert_eq!(seen.inserted(), 1);
/// let same = WideBloom::decode(&seen.encode())?; // a `.mayhap` file remembers all of it
/// assert!(same.may_contain("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BuildError`] for more than 2^49 bits or more than 255 probes. For both, 0 means 1, as in Go.
pub fn create_exactly(bits: u64, probes: u32, items: ItemEncoding) -> Result<WideBloom, BuildError> {
    let shape = internals::bloom::of_unknown_capacity(bits.max(1), probes.max(1))?;
    internals::wide::placed(shape, WidePlacement::BitsAndBlooms, items)
}

/// Returns the number of bits and probes that `EstimateParameters` computes.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1), for no items, and for more than 255 probes.
pub fn size(capacity: u64, rate: f64) -> Result<(u64, u32), BuildError> {
    let rate = check_rate(rate)?;
    let n = internals::check_capacity(capacity)? as f64;
    let ln_2 = std::f64::consts::LN_2;
    // Another order would round differently.
    let bits = (-n * rate.ln() / (ln_2 * ln_2)).ceil().max(1.0);
    let probes = (ln_2 * bits / n).ceil().max(1.0);
    if probes > 255.0 {
        return Err(BuildError::ProbesOutOfRange { got: probes as u32, limit: 255 });
    }
    Ok((bits as u64, probes as u32))
}

/// Reads a filter written by `WriteTo` or `MarshalBinary`. `items` is how its items were encoded.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let (bits, probes) = (cursor.u64_be()?, cursor.u64_be()?);
    read_bitset(cursor, bits, probes, items)
}

/// Reads the bytes after `m` and `k`, which are the same in both forms.
fn read_bitset(
    mut cursor: Cursor<'_>,
    bits: u64,
    probes: u64,
    items: ItemEncoding,
) -> Result<WideBloom, DecodeError> {
    let length = cursor.u64_be()?;
    if length != bits {
        return Err(DecodeError::BadField { field: "length of the bitset", got: length });
    }
    let probes = u32::try_from(probes).map_err(|_| DecodeError::BadField { field: "k", got: probes })?;
    let shape = internals::bloom::of_unknown_capacity(bits, probes)?;
    let words = cursor.words_be(internals::bloom::words(&shape))?;
    cursor.finish()?;
    words.check_zero_from(bits).map_err(|bit| DecodeError::StrayBit { bit })?;
    Ok(internals::wide::of_bits(shape, WidePlacement::BitsAndBlooms, items, words))
}

/// Writes the filter as `WriteTo` does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not of bits-and-blooms, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &WideBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    check_placement(filter)?;
    out.write_all(&filter.shape().bits().to_be_bytes())?;
    out.write_all(&u64::from(filter.shape().probes()).to_be_bytes())?;
    write_bitset(filter, out)
}

fn check_placement(filter: &WideBloom) -> Result<(), WriteError> {
    match filter.placement() {
        WidePlacement::BitsAndBlooms => Ok(()),
        _ => Err(WriteError::OtherPlacement {
            needs: "the 256 bits of murmur3 of bits-and-blooms",
            got: internals::wide::hashing(filter),
        }),
    }
}

fn write_bitset(filter: &WideBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    out.write_all(&filter.shape().bits().to_be_bytes())?;
    write_words_be(internals::wide::bits(filter), internals::bloom::words(filter.shape()), out)?;
    Ok(())
}

/// Returns whether these bytes look like such a filter.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Some(&[bits, probes, length]) = bytes.as_chunks::<8>().0.first_chunk::<3>() else {
        return Resemblance::No;
    };
    let [bits, probes, length] = [bits, probes, length].map(u64::from_be_bytes);
    let whole = bits.div_ceil(64).checked_mul(8).and_then(|bytes| bytes.checked_add(24));
    Resemblance::could(
        bits > 0 && (1..=255).contains(&probes) && length == bits && whole == Some(bytes.len() as u64),
    )
}

/// The object that Go's `MarshalJSON` writes. Other fields are ignored.
#[derive(Deserialize)]
struct Json<'a> {
    m: u64,
    k: u64,
    #[serde(borrow)]
    b: Cow<'a, str>,
}

/// base64url with padding.
const BASE64: &GeneralPurpose = &URL_SAFE;

/// Reads a filter written by `MarshalJSON`. `items` is how its items were encoded.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter.
pub fn read_json(json: &[u8], items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let Json { m, k, b } = serde_json::from_slice(json)
        .map_err(|cause| DecodeError::Malformed { what: "JSON with m, k and b", at: at(json, &cause) })?;
    let bitset = BASE64
        .decode(b.as_bytes())
        .map_err(|cause| DecodeError::Malformed { what: "base64url", at: wrong_digit(&cause, b.len()) })?;
    read_bitset(Cursor::new(&bitset), m, k, items)
}

/// Returns the offset of an error in the JSON text.
pub(super) fn at(json: &[u8], cause: &serde_json::Error) -> u64 {
    let lines = json.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.take(cause.line().saturating_sub(1)).map(<[u8]>::len).sum();
    (before + cause.column().saturating_sub(1)) as u64
}

fn wrong_digit(cause: &Base64Error, len: usize) -> u64 {
    match *cause {
        Base64Error::InvalidByte(at, _) | Base64Error::InvalidLastSymbol(at, _) => at as u64,
        Base64Error::InvalidLength(_) | Base64Error::InvalidPadding => len as u64,
    }
}

/// Writes the same bytes as `MarshalJSON`.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not of bits-and-blooms, [`WriteError::Io`] if `out` fails.
pub fn write_json(filter: &WideBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    check_placement(filter)?;
    write!(out, "{{\"m\":{},\"k\":{},\"b\":\"", filter.shape().bits(), filter.shape().probes())?;
    let mut base64 = EncoderWriter::new(&mut *out, BASE64);
    write_bitset(filter, &mut base64)?;
    base64.finish()?;
    drop(base64);
    out.write_all(b"\"}")?;
    Ok(())
}

/// Returns whether this text looks like such a filter in JSON: it must have `m`, `k` and `b` and nothing else.
#[must_use]
pub fn resembles_json(json: &[u8]) -> Resemblance {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Exactly<'a> {
        m: u64,
        k: u64,
        #[serde(borrow)]
        b: Cow<'a, str>,
    }
    let Ok(Exactly { m, k, b }) = serde_json::from_slice(json) else { return Resemblance::No };
    let bitset = m.div_ceil(64).checked_mul(8).and_then(|bytes| bytes.checked_add(8));
    let base64 = bitset.and_then(|bytes| bytes.div_ceil(3).checked_mul(4));
    Resemblance::could(m > 0 && (1..=255).contains(&k) && base64 == Some(b.len() as u64))
}
