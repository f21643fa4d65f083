//! Spark's `BloomFilter.writeTo` (`org.apache.spark.util.sketch`): everything big-endian.
//!
//! ```text
//! ┌─────────┬───┬─────────┬──────────────────────────────┐
//! │ 1       │ k │ words W │ W words of 64 bits           │     version 1: the seed is 0 and not written
//! ├─────────┼───┼──────┬──┴──────┬───────────────────────┴──────┐
//! │ 2       │ k │ seed │ words W │ W words of 64 bits           │     version 2: what Spark 4.1 and later write
//! └─────────┴───┴──────┴─────────┴──────────────────────────────┘
//!   4 bytes   4   4      4         bit i: word i/64, bit i % 64
//! ```
//!
//! The stream does not say what the items were; whoever reads it does:
//!
//! | put in with | [`ItemEncoding`] |
//! |---|---|
//! | `putString`, a column of strings | [`Utf8`](ItemEncoding::Utf8) |
//! | `putLong`, a column of `LONG`, `INT`, `SHORT` or `BYTE`: all become 64 bits | [`I64Le`](ItemEncoding::I64Le) |
//! | `putBinary`, a column of byte arrays | [`Bytes`](ItemEncoding::Bytes) |
//!
//! Traps: the two versions place items differently, so filters of both cannot be merged, nor can those of two seeds. Version 1 draws positions
//! of 31 bits: in a filter past 2^31 bits (256 MiB) it never reaches the rest. The bytes inside a Java-serialised object are these, but with a frame of
//! Java's around them that is not read here.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap::codec::spark::{self, Version};
//!
//! let mut seen = spark::create(1_000, 0.01, Version::V2 { seed: 0 }, ItemEncoding::I64Le)?;
//! seen.insert(&4_711); // like `putLong(4711)`: every integer is 64 bits wide
//! let mut stream = Vec::new();
//! spark::write(&seen, &mut stream)?; // what `BloomFilter.readFrom` reads
//!
//! let same = spark::read(&stream, ItemEncoding::I64Le)?;
//! assert!(same.may_contain(&4_711_u64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use super::cursor::Cursor;
use super::foreign::{Resemblance, WriteError};
use super::guava::{self, Rounding};
use super::{DecodeError, write_words_be};
use crate::bloom::{Bloom, BloomShape};
use crate::error::BuildError;
use crate::hash::{ForeignHash, ForeignScheme, HashScheme};
use crate::item::ItemEncoding;
use crate::probe::BloomPlacement;
use crate::sizing::{self, classic};

/// Which of the two formats, and rules of placing items. The stream says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The only one up to Spark 4.0.
    V1,
    /// The default since Spark 4.1.
    V2 {
        /// 0 unless somebody chose another.
        seed: i32,
    },
}

impl Version {
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
        ForeignScheme::new(ForeignHash::Spark { seed }, items).into()
    }

    /// That of a filter which is Spark's.
    fn of(filter: &Bloom) -> Option<Self> {
        let HashScheme::Foreign(scheme) = filter.scheme() else { return None };
        match (scheme.function(), filter.placement()) {
            (ForeignHash::Spark { seed: 0 }, BloomPlacement::Guava32) => Some(Self::V1),
            (ForeignHash::Spark { seed }, BloomPlacement::Spark2) => Some(Self::V2 { seed }),
            _ => None,
        }
    }
}

/// What a Java array of `long` can hold.
const MAX_WORDS: u64 = i32::MAX as u64;
/// The most probes read and made here; Spark would take more, to no good.
const MAX_PROBES: u32 = 255;

/// An empty filter as `BloomFilter.create(expectedNumItems, fpp)` makes it.
///
/// # Errors
/// [`BuildError`] where Spark refuses too: no items, a rate outside (0, 1), a filter of no bits or of more than it has an array for. And for
/// more than 255 probes.
pub fn create(
    expected_items: u64,
    fpp: f64,
    version: Version,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(expected_items, fpp)?;
    sized(expected_items, fpp, bits, probes, version, items)
}

/// An empty filter as `BloomFilter.create(expectedNumItems, numBits)` makes it: of `bits` bits, rounded up to whole words.
///
/// # Errors
/// [`BuildError`] as for [`create`].
pub fn create_with_bits(
    expected_items: u64,
    bits: u64,
    version: Version,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    sizing::check_capacity(expected_items)?;
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
    version: Version,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    check_bits(bits)?;
    let shape = BloomShape::from_parts(bits.next_multiple_of(64), probes, expected_items, fpp)?;
    Bloom::placed(shape, version.scheme(items), version.placement())
}

fn check_bits(bits: u64) -> Result<(), BuildError> {
    if bits == 0 || bits > MAX_WORDS * 64 {
        return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_WORDS * 64 });
    }
    Ok(())
}

/// How many bits Spark computes, before it rounds them up to whole words, and how many probes: as Guava did before 33.4.
///
/// # Errors
/// [`BuildError`] for no items, a rate outside (0, 1), no bits, or more than 255 probes.
pub fn size(expected_items: u64, fpp: f64) -> Result<(u64, u32), BuildError> {
    // Guava takes 0 for 1, Spark does not.
    sizing::check_capacity(expected_items)?;
    guava::size(expected_items, fpp, Rounding::Until33)
}

/// The filter in a stream that `writeTo` wrote, whose items were of this kind.
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
        1 => Version::V1,
        _ => Version::V2 { seed: cursor.u32_be()?.cast_signed() },
    };
    let words = u64::from(cursor.u32_be()?);
    if words > MAX_WORDS {
        return Err(DecodeError::BadField { field: "number of words", got: words });
    }
    let shape = BloomShape::of_unknown_capacity(words * 64, probes)?;
    let bits = cursor.words_be(words)?;
    cursor.finish()?;
    Ok(Bloom::of_placed_bits(shape, version.scheme(items), version.placement(), bits))
}

/// Writes the filter as `writeTo` does, in the version it has.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Spark's, [`WriteError::NoRoom`] for more bits than Java has an array for,
/// [`WriteError::Io`] if `out` refuses.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    let version = Version::of(filter).ok_or_else(|| {
        WriteError::other_placement("Spark's murmur3 and the rule of one of its two versions", filter)
    })?;
    let words = filter.shape().words();
    // Only a `.mayhap` file that nobody wrote can say otherwise.
    if words > MAX_WORDS || !filter.shape().bits().is_multiple_of(64) {
        return Err(WriteError::NoRoom {
            field: "whole words of bits",
            got: filter.shape().bits(),
            limit: MAX_WORDS * 64,
        });
    }
    let (number, seed) = match version {
        Version::V1 => (1_u32, None),
        Version::V2 { seed } => (2, Some(seed)),
    };
    out.write_all(&number.to_be_bytes())?;
    out.write_all(&filter.shape().probes().to_be_bytes())?;
    if let Some(seed) = seed {
        out.write_all(&seed.to_be_bytes())?;
    }
    out.write_all(&(words as u32).to_be_bytes())?;
    write_words_be(filter.bits(), words, out)?;
    Ok(())
}

/// Could these bytes be such a stream?
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
