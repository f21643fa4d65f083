//! Cassandra's `Filter.db`, the filter of one SSTable.
//!
//! ```text
//! ┌─────────┬───────────┬──────────────────────────────────────────────┐
//! │ k       │ words W   │ 8·W bytes of bits                            │      k and W big-endian
//! │ 4 bytes │ 4         │                                              │
//! └─────────┴───────────┴──────────────────────────────────────────────┘
//!   since 4.0 (SSTables "na" and later)     bit i: byte i/8, bit i % 8
//!   before (3.0 and 3.11, "ma" to "me")     bit i: word i/64, bit i % 64, each word big-endian
//! ```
//!
//! The file does not contain its version, and either form can be read as the other. The name of the SSTable tells: `na-1-big-Filter.db`.
//! **Filters older than "ma"** (Cassandra 2, and early ScyllaDB) derive other positions from the same hash. They look the same and are not
//! supported: such a filter would answer *no* to its own items.
//!
//! Items are partition keys as Cassandra serializes them. Pass most of them as bytes ([`ItemEncoding::Bytes`]):
//!
//! | partition key | item |
//! |---|---|
//! | `text`, `ascii` | the text itself |
//! | `int`, `bigint` | `&number.to_be_bytes()`, 4 or 8 bytes |
//! | `uuid` | its 16 bytes |
//! | `blob` | the bytes |
//! | several columns | for each: its length in 2 bytes, big-endian; the bytes; a zero byte |
//!
//! How this was verified: the hash was compared with values printed by Cassandra's own class. Positions, layout and sizes follow the
//! description of its code; no `Filter.db` written by Cassandra was available.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::cassandra::{self, BitOrder};
//!
//! let mut keys = cassandra::create(1_000, 0.01, ItemEncoding::Bytes)?;
//! keys.insert("ada");
//! keys.insert(&7_i32.to_be_bytes());
//! let mut file = Vec::new();
//! cassandra::write(&keys, BitOrder::Since40, &mut file)?;
//!
//! let same = cassandra::read(&file, BitOrder::Since40, ItemEncoding::Bytes)?;
//! assert!(same.may_contain("ada") && same.may_contain(&7_i32.to_be_bytes()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::{
    Bloom, BloomPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding, internals,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::{write_words_be, write_words_le};

/// The order of the bits in a `Filter.db`. It depends on the version of the SSTable; the file does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitOrder {
    /// Cassandra 3.0 and 3.11, SSTables "ma" to "me": words, big-endian.
    Before40,
    /// Cassandra 4.0 and later, SSTables "na" and later: bytes, the lowest bit first.
    Since40,
}

const HEADER_BYTES: usize = 8;
/// The numbers of the header are signed.
const MAX_WORDS: u64 = i32::MAX as u64;
/// The number of bits that each filter has in addition to those its items need.
const EXCESS_BITS: u64 = 20;
/// The largest number of bits per item and of probes in Cassandra's table.
const MAX_BITS_PER_ITEM: u32 = 20;
const MAX_K: u32 = 14;
/// From this rate on the table is not used.
const TRIVIAL_RATE: f64 = 0.393;

/// Creates an empty filter as Cassandra does for an SSTable of `keys` partitions and this `bloom_filter_fp_chance`.
///
/// # Errors
/// As [`size`], and [`BuildError`] for more bits than the file format supports.
pub fn create(keys: u64, fp_chance: f64, items: ItemEncoding) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(keys, fp_chance)?;
    let shape = internals::bloom::from_parts(bits, probes, keys.max(1), fp_chance)?;
    internals::bloom::placed(shape, scheme(items), BloomPlacement::Cassandra)
}

/// Returns the number of bits, in whole words, and the number of probes that Cassandra uses: the fewest bits per key, then the fewest
/// probes, whose rate in its table is low enough.
///
/// A chance of 0.393 or more gets one bit per key and two probes. (The table means two bits and one probe; Cassandra swaps the two
/// numbers there.)
///
/// # Errors
/// [`BuildError::RateOutOfRange`] for a chance outside (0, 1); Cassandra writes no filter for 1.
/// [`BuildError::RateTooLow`] below 6.71e-5, where its table ends. [`BuildError::BitsOutOfRange`] for more bits than the file format supports.
pub fn size(keys: u64, fp_chance: f64) -> Result<(u64, u32), BuildError> {
    let fp_chance = check_rate(fp_chance)?;
    internals::check_capacity(keys.max(1))?;
    let (bits_per_key, probes) = if fp_chance >= TRIVIAL_RATE {
        (1, 2)
    } else {
        let mut cells =
            (2..=MAX_BITS_PER_ITEM).flat_map(|bits| (1..=MAX_K).map(move |probes| (bits, probes)));
        cells
            .find(|&(bits, probes)| table(bits, probes) <= fp_chance)
            .ok_or(BuildError::RateTooLow { got: fp_chance, limit: table(MAX_BITS_PER_ITEM, MAX_K) })?
    };
    let bits = keys.saturating_mul(bits_per_key.into()).saturating_add(EXCESS_BITS);
    let limit = MAX_WORDS * 64;
    if bits > limit {
        return Err(BuildError::BitsOutOfRange { got: bits, limit });
    }
    Ok((bits.next_multiple_of(64), probes))
}

/// The rate in Cassandra's table for this number of bits per item and of probes: (1 - e^(-k/b))^k, rounded to three digits.
fn table(bits_per_item: u32, probes: u32) -> f64 {
    // The only entry that was rounded to two digits.
    if (bits_per_item, probes) == (5, 3) {
        return 0.092;
    }
    let (bits, probes) = (f64::from(bits_per_item), f64::from(probes));
    let rate = (1.0 - (-probes / bits).exp()).powf(probes);
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::Cassandra, items)
}

/// Reads the filter in a `Filter.db`.
///
/// # Errors
/// [`DecodeError`] for anything but one whole file.
pub fn read(bytes: &[u8], order: BitOrder, items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let probes = cursor.u32_be()?;
    let words = u64::from(cursor.u32_be()?);
    if words > MAX_WORDS {
        return Err(DecodeError::BadField { field: "number of words", got: words });
    }
    let shape = internals::bloom::of_unknown_capacity(words * 64, probes)?;
    let bits = match order {
        BitOrder::Before40 => cursor.words_be(words)?,
        BitOrder::Since40 => cursor.words_le(words)?,
    };
    cursor.finish()?;
    Ok(internals::bloom::of_placed_bits(shape, scheme(items), BloomPlacement::Cassandra, bits))
}

/// Writes the filter as Cassandra does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Cassandra's, [`WriteError::NoRoom`] for one that does not fit the file format,
/// [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, order: BitOrder, out: &mut dyn Write) -> Result<(), WriteError> {
    let is_cassandras =
        matches!(filter.scheme(), HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::Cassandra);
    if !is_cassandras || filter.placement() != BloomPlacement::Cassandra {
        return Err(WriteError::other_placement("Cassandra's murmur3 and its rule", filter));
    }
    let (bits, words) = (filter.shape().bits(), internals::bloom::words(filter.shape()));
    if bits % 64 != 0 {
        return Err(WriteError::NoRoom { field: "bits after the last whole word", got: bits % 64, limit: 0 });
    }
    let said = u32::try_from(words).ok().filter(|&said| u64::from(said) <= MAX_WORDS);
    let said = said.ok_or(WriteError::NoRoom { field: "number of words", got: words, limit: MAX_WORDS })?;
    out.write_all(&filter.shape().probes().to_be_bytes())?;
    out.write_all(&said.to_be_bytes())?;
    match order {
        BitOrder::Before40 => write_words_be(internals::bloom::bits(filter), words, out)?,
        BitOrder::Since40 => write_words_le(internals::bloom::bits(filter), words, out)?,
    }
    Ok(())
}

/// Returns whether these bytes look like such a file. Its length must match, and the number of probes must be one of Cassandra's.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let (Ok(probes), Ok(words)) = (cursor.u32_be(), cursor.u32_be()) else { return Resemblance::No };
    Resemblance::could(
        (1..=MAX_K).contains(&probes)
            && words > 0
            && bytes.len() as u64 == HEADER_BYTES as u64 + 8 * u64::from(words),
    )
}
