//! Spark's `BloomFilter.writeTo` (`org.apache.spark.util.sketch`): everything big-endian.
//!
//! ```text
//! ┌─────────┬───┬─────────┬──────────────────────────────┐
//! │ 1       │ k │ words W │ W words of 64 bits           │     version 1: the seed is 0 and not written
//! ├─────────┼───┼──────┬──┴──────┬───────────────────────┴──────┐
//! │ 2       │ k │ seed │ words W │ W words of 64 bits           │     version 2: written by Spark 4.1 and later
//! └─────────┴───┴──────┴─────────┴──────────────────────────────┘
//!   4 bytes   4   4      4         bit i: word i/64, bit i % 64
//! ```
//!
//! The stream does not contain the type of its items; the reader must name it:
//!
//! | inserted with | [`ItemEncoding`] |
//! |---|---|
//! | `putString`, a column of strings | [`Utf8`](ItemEncoding::Utf8) |
//! | `putLong`, a column of `LONG`, `INT`, `SHORT` or `BYTE`: all become 64 bits | [`I64Le`](ItemEncoding::I64Le) |
//! | `putBinary`, a column of byte arrays | [`Bytes`](ItemEncoding::Bytes) |
//!
//! Traps:
//! * The two versions place items differently, so filters of different versions or seeds cannot be merged.
//! * Version 1 uses positions of 31 bits: in a filter of more than 2^31 bits (256 MiB) it never uses the rest.
//! * A Java-serialised object contains these bytes inside Java's own framing, which is not read here.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::spark::{self, SparkVersion};
//!
//! let mut seen = spark::create(1_000, 0.01, SparkVersion::V2 { seed: 0 }, ItemEncoding::I64Le)?;
//! seen.insert(&4_711); // like `putLong(4711)`: every integer is 64 bits wide
//! let mut stream = Vec::new();
//! spark::write(&seen, &mut stream)?; // what `BloomFilter.readFrom` reads
//!
//! let same = spark::read(&stream, ItemEncoding::I64Le)?;
//! assert!(same.may_contain(&4_711_u64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::sizing::classic;
use mayhap::{
    Bloom, BloomPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding, internals,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError};
use crate::guava::{self, Rounding};
use crate::words::write_words_be;

/// The two formats and their rules of placing items. The stream contains the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SparkVersion {
    /// The only version up to Spark 4.0.
    V1,
    /// The default since Spark 4.1.
    V2 {
        /// 0 unless the user chose another seed.
        seed: i32,
    },
}

impl SparkVersion {
    const fn placement(self) -> BloomPlacement {
        match self {
            Self::V1 => BloomPlacement::Guava32,
            Self::V2 { .. } => BloomPlacement::Spark2,
        }
    }

    fn scheme(self, items: ItemEncoding) -> HashScheme {
        let seed = match self {
            Self::V1 => 0,
            Self::V2 { seed } => seed,
        };
        internals::foreign_scheme(ForeignHash::Spark { seed }, items)
    }

    /// The version of a Spark filter.
    fn of(filter: &Bloom) -> Option<Self> {
        let HashScheme::Foreign(scheme) = filter.scheme() else { return None };
        match (scheme.function(), filter.placement()) {
            (ForeignHash::Spark { seed: 0 }, BloomPlacement::Guava32) => Some(Self::V1),
            (ForeignHash::Spark { seed }, BloomPlacement::Spark2) => Some(Self::V2 { seed }),
            _ => None,
        }
    }
}

/// The largest Java array of `long`.
const MAX_WORDS: u64 = i32::MAX as u64;
/// The largest number of probes supported here; Spark accepts more, which is of no use.
const MAX_PROBES: u32 = 255;

/// Creates an empty filter like `BloomFilter.create(expectedNumItems, fpp)`.
///
/// # Errors
/// [`BuildError`] for numbers that Spark rejects too: no items, a rate outside (0, 1), no bits, or more bits than a Java array holds. Also for
/// more than 255 probes.
pub fn create(
    expected_items: u64,
    fpp: f64,
    version: SparkVersion,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(expected_items, fpp)?;
    sized(expected_items, fpp, bits, probes, version, items)
}

/// Creates an empty filter like `BloomFilter.create(expectedNumItems, numBits)`: `bits` bits, rounded up to whole words.
///
/// # Errors
/// [`BuildError`] as for [`create`].
pub fn create_with_bits(
    expected_items: u64,
    bits: u64,
    version: SparkVersion,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    internals::check_capacity(expected_items)?;
    let probes = (bits as f64 / expected_items as f64 * std::f64::consts::LN_2 + 0.5).floor().max(1.0);
    if probes > f64::from(MAX_PROBES) {
        return Err(BuildError::ProbesOutOfRange { got: probes as u32, limit: MAX_PROBES });
    }
    check_bits(bits)?;
    let fpp = classic::expected_fpr(bits.next_multiple_of(64), probes as u32, expected_items);
    sized(expected_items, fpp, bits, probes as u32, version, items)
}

fn sized(
    expected_items: u64,
    fpp: f64,
    bits: u64,
    probes: u32,
    version: SparkVersion,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    check_bits(bits)?;
    let shape = internals::bloom::from_parts(bits.next_multiple_of(64), probes, expected_items, fpp)?;
    internals::bloom::placed(shape, version.scheme(items), version.placement())
}

fn check_bits(bits: u64) -> Result<(), BuildError> {
    if bits == 0 || bits > MAX_WORDS * 64 {
        return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_WORDS * 64 });
    }
    Ok(())
}

/// Returns the number of bits that Spark computes, before it rounds them up to whole words, and the number of probes, as Guava did before 33.4.
///
/// # Errors
/// [`BuildError`] for no items, a rate outside (0, 1), no bits, or more than 255 probes.
pub fn size(expected_items: u64, fpp: f64) -> Result<(u64, u32), BuildError> {
    // Guava replaces 0 by 1, Spark does not.
    internals::check_capacity(expected_items)?;
    guava::size(expected_items, fpp, Rounding::Until33)
}

/// Reads a filter from a stream written by `writeTo`. `items` is how its items were encoded.
///
/// # Errors
/// [`DecodeError`] for anything but one whole stream of either version, and for more than 255 probes.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let version = cursor.u32_be()?;
    if !(1..=2).contains(&version) {
        return Err(DecodeError::BadField { field: "version", got: version.into() });
    }
    let probes = cursor.u32_be()?;
    let version = match version {
        1 => SparkVersion::V1,
        _ => SparkVersion::V2 { seed: cursor.u32_be()?.cast_signed() },
    };
    let words = u64::from(cursor.u32_be()?);
    if words > MAX_WORDS {
        return Err(DecodeError::BadField { field: "number of words", got: words });
    }
    let shape = internals::bloom::of_unknown_capacity(words * 64, probes)?;
    let bits = cursor.words_be(words)?;
    cursor.finish()?;
    Ok(internals::bloom::of_placed_bits(shape, version.scheme(items), version.placement(), bits))
}

/// Writes the filter as `writeTo` does, in its own version.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Spark's, [`WriteError::NoRoom`] for more bits than a Java array holds,
/// [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    let version = SparkVersion::of(filter).ok_or_else(|| {
        WriteError::other_placement("Spark's murmur3 and the rule of one of its two versions", filter)
    })?;
    let words = internals::bloom::words(filter.shape());
    // Only a forged `.mayhap` file can have partial words.
    if words > MAX_WORDS || !filter.shape().bits().is_multiple_of(64) {
        return Err(WriteError::NoRoom {
            field: "whole words of bits",
            got: filter.shape().bits(),
            limit: MAX_WORDS * 64,
        });
    }
    let (number, seed) = match version {
        SparkVersion::V1 => (1_u32, None),
        SparkVersion::V2 { seed } => (2, Some(seed)),
    };
    out.write_all(&number.to_be_bytes())?;
    out.write_all(&filter.shape().probes().to_be_bytes())?;
    if let Some(seed) = seed {
        out.write_all(&seed.to_be_bytes())?;
    }
    out.write_all(&(words as u32).to_be_bytes())?;
    write_words_be(internals::bloom::bits(filter), words, out)?;
    Ok(())
}

/// Returns whether these bytes look like such a stream.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let field = |at: usize| {
        let field = bytes.get(at * 4..at * 4 + 4)?;
        Some(field.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let probes_fit = field(1).is_some_and(|probes| (1..=u64::from(MAX_PROBES)).contains(&probes));
    let words_fit = |at: usize| {
        let expected = |words: u64| (words > 0).then_some(4 * (at as u64 + 1) + 8 * words);
        field(at).and_then(expected) == Some(bytes.len() as u64)
    };
    Resemblance::could(match field(0) {
        Some(1) => probes_fit && words_fit(2),
        Some(2) => probes_fit && words_fit(3),
        _ => false,
    })
}
