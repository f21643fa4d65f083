//! Apache DataSketches' `BloomFilter`, one image for its libraries in Java, C++ and others: everything little-endian.
//!
//! ```text
//! ┌───┬───┬────┬───┬───┬───┬──────┬─────────┬───┐
//! │ 3 │ 1 │ 21 │ 4 │ k │ 0 │ seed │ words W │ 0 │                                        empty
//! ├───┼───┼────┼───┼───┼───┼──────┼─────────┼───┼──────┬──────────────────────────────┐
//! │ 4 │ 1 │ 21 │ 0 │ k │ 0 │ seed │ words W │ 0 │ ones │ W words of 64 bits           │
//! └───┴───┴────┴───┴───┴───┴──────┴─────────┴───┴──────┴──────────────────────────────┘
//!   │   │   │    │  2   2    8      4         4   8      bit i: word i/64, bit i % 64
//!   │   │   │    flags: 4 is empty
//!   │   │   family 21: a Bloom filter
//!   │   version
//!   8-byte words before the bits
//! ```
//!
//! The image does not contain the type of its items; the reader must name it:
//!
//! | inserted by `update` with | [`ItemEncoding`] |
//! |---|---|
//! | `String`, `std::string` | [`Utf8`](ItemEncoding::Utf8) |
//! | `long`; in C++ every signed integer | [`I64Le`](ItemEncoding::I64Le) |
//! | an unsigned integer, in C++ | [`U64Le`](ItemEncoding::U64Le) |
//! | `double`, in C++ also `float` | [`F64Le`](ItemEncoding::F64Le), as text: `"1.5"`, `"NaN"` |
//! | `byte[]`, pointer and length | [`Bytes`](ItemEncoding::Bytes) |
//!
//! **Empty text** is ignored, as in the original: [`insert`](Bloom::insert) changes nothing and returns `false`, and
//! [`may_contain`](Bloom::may_contain) always returns `false`. An empty byte string is an item like any other, as in Java; C++ ignores it too.
//!
//! **The count of ones** is all ones ("count them") after `update` was called. An image made by a union or by `queryAndUpdate` contains the
//! number. C++ may leave an outdated number there, so this reader does not trust it. [`write()`] writes all ones, the same bytes as Java;
//! [`write_counted`] writes the number.
//!
//! Traps:
//! * Filters with different seeds cannot be merged, and Java uses a random seed unless it is given one.
//! * `-0.0` and `0.0` are two items in Java and one in C++; here they are two.
//! * Neither library handles bits above 2^32 correctly, and they fail in different ways. Larger filters (over 512 MiB) are rejected.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::datasketches::{self, Library};
//!
//! let mut seen = datasketches::create(1_000, 0.01, Library::Java, 9001, ItemEncoding::Utf8)?;
//! seen.insert("ada");
//! let mut image = Vec::new();
//! datasketches::write(&seen, &mut image)?; // what `BloomFilter.heapify` reads
//!
//! let same = datasketches::read(&image, ItemEncoding::Utf8)?;
//! assert!(same.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::{
    Bloom, BloomPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding, internals,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::write_words_le;

/// The library whose number of probes a new filter copies. They differ if the rate is (nearly) a power of two. Reading does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// datasketches-java: from the number of bits.
    Java,
    /// datasketches-cpp: from the rate.
    Cpp,
}

/// The default seed of everything in DataSketches, and a good choice.
pub const DEFAULT_SEED: u64 = 9001;
/// The memory limit of [`read`] for an empty filter, whose image contains its size but no bits.
pub const EMPTY_LIMIT_BYTES: u64 = 64 << 20;

const VERSION: u8 = 1;
const FAMILY: u8 = 21;
const EMPTY_FLAG: u8 = 4;
/// Preambles in words of 8 bytes.
const EMPTY_PREAMBLE: u8 = 3;
const PREAMBLE: u8 = 4;
/// Neither library can address bits above this.
const MAX_WORDS: u64 = 1 << 26;
/// Stored instead of the number of ones: "count them".
const UNCOUNTED: u64 = u64::MAX;

/// Creates an empty filter like `createByAccuracy` for `expected_items` items.
///
/// # Errors
/// [`BuildError`] for no items, a rate outside (0, 1), more than 2^32 bits or more than 255 probes.
pub fn create(
    expected_items: u64,
    fpp: f64,
    library: Library,
    seed: u64,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(expected_items, fpp, library)?;
    check_bits(bits)?;
    let shape = internals::bloom::from_parts(bits.next_multiple_of(64), probes, expected_items, fpp)?;
    internals::bloom::placed(shape, scheme(seed, items), BloomPlacement::DataSketches)
}

/// Creates an empty filter like `createBySize`: `bits` bits, rounded up to whole words, and `probes` probes.
///
/// # Errors
/// [`BuildError`] for no bits or more than 2^32, no probes or more than 255.
pub fn create_with_bits(bits: u64, probes: u32, seed: u64, items: ItemEncoding) -> Result<Bloom, BuildError> {
    check_bits(bits)?;
    let shape = internals::bloom::of_unknown_capacity(bits.next_multiple_of(64), probes)?;
    internals::bloom::placed(shape, scheme(seed, items), BloomPlacement::DataSketches)
}

/// Returns the number of bits that the library computes, before it rounds them up to whole words, and the number of probes.
///
/// # Errors
/// [`BuildError`] for no items, a rate outside (0, 1), or more than 255 probes.
pub fn size(expected_items: u64, fpp: f64, library: Library) -> Result<(u64, u32), BuildError> {
    let fpp = check_rate(fpp)?;
    let items = internals::check_capacity(expected_items)? as f64;
    let ln_2 = std::f64::consts::LN_2;
    let bits = (-items * fpp.ln() / (ln_2 * ln_2)).ceil();
    let probes = match library {
        Library::Java => bits / items * ln_2,
        Library::Cpp => -fpp.ln() / ln_2,
    };
    let probes = probes.ceil().max(1.0);
    if probes > 255.0 {
        return Err(BuildError::ProbesOutOfRange { got: probes as u32, limit: 255 });
    }
    Ok((bits as u64, probes as u32))
}

fn check_bits(bits: u64) -> Result<(), BuildError> {
    if bits == 0 || bits > MAX_WORDS * 64 {
        return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_WORDS * 64 });
    }
    Ok(())
}

fn scheme(seed: u64, items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::DataSketches { seed }, items)
}

/// Reads a filter from an image of one of the libraries. `items` is how its items were encoded.
///
/// # Errors
/// [`DecodeError`] for anything but one whole image, and for an empty filter of more than [`EMPTY_LIMIT_BYTES`].
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<Bloom, DecodeError> {
    read_within(bytes, EMPTY_LIMIT_BYTES, items)
}

/// Like [`read`], with another limit for the image of an empty filter. All other images take no more memory than their length, plus at most a
/// cache line.
///
/// # Errors
/// [`DecodeError`] for anything but one whole image, and for an empty filter of more than `empty_limit_bytes`.
pub fn read_within(bytes: &[u8], empty_limit_bytes: u64, items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let [preamble, version, family, flags] = cursor.array()?;
    let bad = |field, got: u64| Err(DecodeError::BadField { field, got });
    if version != VERSION {
        return bad("version", version.into());
    }
    if family != FAMILY {
        return bad("family", family.into());
    }
    let is_empty = match flags {
        0 => false,
        EMPTY_FLAG => true,
        got => return bad("flags", got.into()),
    };
    if preamble != if is_empty { EMPTY_PREAMBLE } else { PREAMBLE } {
        return bad("preamble", preamble.into());
    }
    let (probes, unused) = (cursor.u16_le()?, cursor.u16_le()?);
    if unused != 0 {
        return bad("unused bytes after the number of hashes", unused.into());
    }
    let seed = cursor.u64_le()?;
    let (words, unused) = (u64::from(cursor.u32_le()?), cursor.u32_le()?);
    if unused != 0 {
        return bad("unused bytes after the number of words", unused.into());
    }
    if words > MAX_WORDS {
        return bad("number of words", words);
    }
    let shape = internals::bloom::of_unknown_capacity(words * 64, probes.into())?;
    if is_empty {
        cursor.finish()?;
        let shape = shape.within(empty_limit_bytes)?;
        return Ok(internals::bloom::placed(shape, scheme(seed, items), BloomPlacement::DataSketches)?);
    }
    let ones = cursor.u64_le()?;
    if ones != UNCOUNTED && ones > shape.bits() {
        return bad("number of ones", ones);
    }
    let bits = cursor.words_le(words)?;
    cursor.finish()?;
    Ok(internals::bloom::of_placed_bits(shape, scheme(seed, items), BloomPlacement::DataSketches, bits))
}

/// Writes the filter like Java's `toByteArray` after `update`: the reader must count the ones.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not DataSketches', [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    write_image(filter, UNCOUNTED, out)
}

/// Like [`write()`], with the number of ones, as the libraries write a union.
///
/// # Errors
/// As for [`write()`].
pub fn write_counted(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    write_image(filter, filter.ones(), out)
}

fn write_image(filter: &Bloom, ones: u64, out: &mut dyn Write) -> Result<(), WriteError> {
    let seed = match filter.scheme() {
        HashScheme::Foreign(scheme) if filter.placement() == BloomPlacement::DataSketches => {
            match scheme.function() {
                ForeignHash::DataSketches { seed } => Some(seed),
                _ => None,
            }
        }
        _ => None,
    };
    let seed = seed.ok_or_else(|| WriteError::other_placement("DataSketches' XXH64 and its rule", filter))?;
    let words = internals::bloom::words(filter.shape());
    // Only a forged `.mayhap` file can have partial words.
    if words > MAX_WORDS || !filter.shape().bits().is_multiple_of(64) {
        return Err(WriteError::NoRoom {
            field: "whole words of bits",
            got: filter.shape().bits(),
            limit: MAX_WORDS * 64,
        });
    }
    let is_empty = filter.ones() == 0;
    let (preamble, flags) = if is_empty { (EMPTY_PREAMBLE, EMPTY_FLAG) } else { (PREAMBLE, 0) };
    out.write_all(&[preamble, VERSION, FAMILY, flags])?;
    out.write_all(&filter.shape().probes().to_le_bytes())?; // includes the two unused bytes
    out.write_all(&seed.to_le_bytes())?;
    out.write_all(&words.to_le_bytes())?; // includes the four unused bytes
    if !is_empty {
        out.write_all(&ones.to_le_bytes())?;
        write_words_le(internals::bloom::bits(filter), words, out)?;
    }
    Ok(())
}

/// Returns whether these bytes look like such an image.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let Ok([preamble, VERSION, FAMILY, flags]) = cursor.array() else { return Resemblance::No };
    let (Ok(probes), Ok(_), Ok(words)) = (cursor.u32_le(), cursor.u64_le(), cursor.u64_le()) else {
        return Resemblance::No;
    };
    let expected = match (preamble, flags) {
        (EMPTY_PREAMBLE, EMPTY_FLAG) => Some(24),
        (PREAMBLE, 0) => words.checked_mul(8).and_then(|bits| bits.checked_add(32)),
        _ => None,
    };
    Resemblance::could(
        expected == Some(bytes.len() as u64)
            && (1..=MAX_WORDS).contains(&words)
            && (1..=u32::from(u16::MAX)).contains(&probes),
    )
}
