//! Parquet's split-block Bloom filter as a blob: a header in Thrift's compact protocol, and the blocks.
//!
//! ```text
//! ┌────────────────────────────────────────────────────┬────────────────────────────────────┐
//! │ 15 numBytes  1c1c0000  1c1c0000  1c1c0000  00      │ numBytes / 32 blocks               │   a block: eight 32-bit lanes, little-endian
//! │    zigzag    BLOCK     XXHASH    UNCOMPRESSED      │ of 256 bits                        │
//! └────────────────────────────────────────────────────┴────────────────────────────────────┘
//! ```
//!
//! A Parquet file contains one such blob per row group for each column with a filter; [`parquet`](super::parquet) finds and reads them there.
//! The hash is XXH64 of the value in Parquet's `PLAIN` encoding, without the length in front of strings:
//!
//! | physical type | [`ItemEncoding`] | |
//! |---|---|---|
//! | `INT32` | [`I32Le`](ItemEncoding::I32Le) | also dates, and small integers and decimals |
//! | `INT64` | [`I64Le`](ItemEncoding::I64Le), unsigned [`U64Le`](ItemEncoding::U64Le) | also times, in the column's own unit |
//! | `FLOAT`, `DOUBLE` | [`F32Le`](ItemEncoding::F32Le), [`F64Le`](ItemEncoding::F64Le) | `0.0` and `-0.0` are two items |
//! | `BYTE_ARRAY` | [`Utf8`](ItemEncoding::Utf8) for strings, else [`Bytes`](ItemEncoding::Bytes) | |
//! | `FIXED_LEN_BYTE_ARRAY`, `INT96` | [`Bytes`](ItemEncoding::Bytes) | pass the bytes as the column has them |
//!
//! Some writers fold a filter that turned out too large before they write it ([`folded`]), others do not. The blob contains neither the
//! type of the items nor the capacity. All known writers use a power of two of blocks; the reader accepts any number.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::sbbf::{self, Sizing};
//!
//! let mut seen = sbbf::create(1_000, 0.01, Sizing::Arrow, ItemEncoding::I64Le)?;
//! seen.insert(&7_i64);
//! let mut blob = Vec::new();
//! sbbf::write(&seen, &mut blob)?;
//!
//! let same = sbbf::read(&blob, ItemEncoding::I64Le)?;
//! assert!(same.may_contain(&7_i64));
//! assert!(same.may_contain("7")); // text is parsed as a number
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::internals::blocked::MAX_PARQUET_BLOCKS;
use mayhap::internals::{self, Lines};
use mayhap::{
    BlockedBloom, BlockedPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::thrift::{Thrift, push_integer};
use crate::words::write_words_le;

/// The writer whose sizing a new filter copies. All use the same formula and round its result differently; reading does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sizing {
    /// parquet-java, used by Spark, Hive and Trino. Because of a slip in its rounding, some filters are twice as large as they need to be.
    /// Its files contain no filter larger than `parquet.bloom.filter.max.bytes`, 1 MiB by default; that limit is not applied here.
    ParquetJava,
    /// Arrow C++, used by pyarrow.
    Arrow,
    /// The Rust crate and DuckDB.
    Rust,
}

const BLOCK_BYTES: u64 = 32;
/// The smallest and the largest filter that the writers make.
const WRITERS_BYTES: [u64; 2] = [BLOCK_BYTES, 128 << 20];
/// The largest length a header can hold.
const MAX_BYTES: u64 = i32::MAX as u64;
/// The fields after the length: algorithm split blocks, hash XXH64, no compression; each a union of empty structures.
const REST_OF_HEADER: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];

/// Creates an empty filter as this writer makes it for `ndv` distinct values.
///
/// Filters are at most 128 MiB, so some do not reach `fpp`; [`target_fpr`](BlockedBloom::target_fpr) is then the rate they do reach.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1), too many values, or an allocation that fails.
pub fn create(ndv: u64, fpp: f64, like: Sizing, items: ItemEncoding) -> Result<BlockedBloom, BuildError> {
    let (_, bytes) = size(ndv, fpp, like)?;
    let shape = internals::blocked::of_split_blocks(bytes / BLOCK_BYTES, Some((ndv.max(1), fpp)))?;
    internals::blocked::placed(shape, scheme(items), BlockedPlacement::Parquet)
}

/// Creates an empty filter of exactly `blocks` blocks.
///
/// # Errors
/// [`BuildError::BitsOutOfRange`] unless `blocks` is 1 to 2^31 - 1.
pub fn with_blocks(blocks: u64, items: ItemEncoding) -> Result<BlockedBloom, BuildError> {
    if blocks == 0 || blocks > MAX_PARQUET_BLOCKS {
        let [got, limit] = [blocks, MAX_PARQUET_BLOCKS].map(|blocks| blocks.saturating_mul(BLOCK_BYTES * 8));
        return Err(BuildError::BitsOutOfRange { got, limit });
    }
    let shape = internals::blocked::of_split_blocks(blocks, None)?;
    internals::blocked::placed(shape, scheme(items), BlockedPlacement::Parquet)
}

/// Returns the number of bits that this writer computes for `ndv` distinct values, and the number of bytes it then uses.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1) or too many values.
pub fn size(ndv: u64, fpp: f64, like: Sizing) -> Result<(u64, u64), BuildError> {
    let fpp = check_rate(fpp)?;
    let ndv = internals::check_capacity(ndv.max(1))? as f64;
    let [least, most] = WRITERS_BYTES;
    let computed = ((-8.0 * ndv / (1.0 - fpp.powf(0.125)).ln()) as u64).min(most * 8);
    Ok(match like {
        Sizing::ParquetJava => {
            // The authors meant `& !255`. This clears one bit, which leaves a multiple of 256 in about half of the cases.
            let bits = ((computed + 255) & !256).max(least * 8);
            (bits, (bits / 8).next_power_of_two().min(most))
        }
        Sizing::Arrow => {
            let bits = computed.max(least * 8).next_power_of_two();
            (bits, bits / 8)
        }
        Sizing::Rust => (computed, (computed / 8).max(least).next_power_of_two()),
    })
}

/// Folds the filter to the smallest size whose estimated rate does not exceed `fpp`. The estimate is the one that the Rust crate and
/// pyarrow 26 use before they write a filter, so the folded filter has the bytes they write, whatever its original size.
///
/// The estimate assumes that all blocks are equally full. They are not: the actual rate is up to 1.4 times `fpp` at 1 %, 1.9 times at 0.1 %
/// and 9 times at 1e-6. [`expected_fpr`](BlockedBloom::expected_fpr) is more accurate.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1) or an allocation that fails.
pub fn folded(filter: &BlockedBloom, fpp: f64) -> Result<BlockedBloom, BuildError> {
    let fpp = check_rate(fpp)?;
    let (mut folded, mut clear) = (filter.try_clone()?, 1.0 - filter.fill());
    while folded.shape().blocks().is_multiple_of(2) {
        // The share of bits that are clear in both of two blocks.
        clear *= clear;
        if (1.0 - clear).powi(8) > fpp {
            break;
        }
        folded = folded.halved()?;
    }
    Ok(folded)
}

pub(super) fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::Parquet, items)
}

/// Reads the filter in this blob, whose items have this encoding.
///
/// # Errors
/// [`DecodeError`] for anything else: another algorithm, hash or compression, truncated blocks, trailing bytes, and the murmur3 form that
/// was dropped before Parquet 2.7.
pub fn read(blob: &[u8], items: ItemEncoding) -> Result<BlockedBloom, DecodeError> {
    if is_deprecated(blob) {
        return Err(DecodeError::Unsupported {
            what: "Parquet's deprecated Bloom filter form (murmur3, no Thrift header)",
        });
    }
    let header = BlobHeader::read(blob)?;
    let mut cursor = Cursor::new(blob);
    cursor.take(header.length)?;
    let words = cursor.words_le(header.bitset_bytes / 8)?;
    cursor.finish()?;
    of_words(header.bitset_bytes, words, items)
}

/// Builds the filter from these blocks: whole lines, zero after the last block.
pub(super) fn of_words(
    bitset_bytes: u64,
    words: Lines,
    items: ItemEncoding,
) -> Result<BlockedBloom, DecodeError> {
    let shape = internals::blocked::of_split_blocks(bitset_bytes / BLOCK_BYTES, None)?;
    Ok(internals::blocked::of_placed_blocks(shape, scheme(items), BlockedPlacement::Parquet, words))
}

/// Writes the filter as a blob, with the same bytes that all known writers produce for these blocks.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Parquet's, [`WriteError::NoRoom`] for one of 2 GiB or more, [`WriteError::Io`]
/// if `out` fails.
pub fn write(filter: &BlockedBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    if filter.placement() != BlockedPlacement::Parquet {
        return Err(WriteError::OtherPlacement {
            needs: "Parquet's XXH64 and its choice of a split block",
            got: format!("{:?}, {:?}", filter.scheme(), filter.placement()),
        });
    }
    let bytes = filter.shape().blocks() * BLOCK_BYTES;
    if bytes > MAX_BYTES {
        return Err(WriteError::NoRoom { field: "bytes of blocks", got: bytes, limit: MAX_BYTES });
    }
    let mut header = vec![0x15];
    push_integer(bytes as i64, &mut header);
    header.extend(REST_OF_HEADER);
    out.write_all(&header)?;
    write_words_le(internals::blocked::words(filter), bytes / 8, out)?;
    Ok(())
}

/// Returns whether these bytes look like such a blob. Its header has 13 fixed bytes and a length that must match.
#[must_use]
pub fn resembles(blob: &[u8]) -> Resemblance {
    match BlobHeader::read(blob) {
        Ok(header) if header.length + header.bitset_bytes == blob.len() as u64 => Resemblance::Surely,
        _ => Resemblance::No,
    }
}

/// The decoded header in front of the blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlobHeader {
    /// The length of the header.
    pub(super) length: u64,
    /// The length of the blocks in bytes: a multiple of 32, not 0.
    pub(super) bitset_bytes: u64,
}

impl BlobHeader {
    /// Reads the header at the start of these bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        const LENGTH: &str = "number of bytes";
        const ALGORITHM: &str = "algorithm (1 is split blocks)";
        const HASH: &str = "hash function (1 is XXH64)";
        const COMPRESSION: &str = "compression (1 is none)";
        let mut thrift = Thrift::new(bytes);
        let (mut length, mut algorithm, mut hash, mut compression) = (0, 0, 0, 0);
        thrift.structure(|inside, field| {
            match field.id {
                1 => length = inside.i32(field)?,
                2 => algorithm = inside.union_of(field, ALGORITHM, Thrift::skip)?,
                3 => hash = inside.union_of(field, HASH, Thrift::skip)?,
                4 => compression = inside.union_of(field, COMPRESSION, Thrift::skip)?,
                _ => inside.skip(field)?,
            }
            Ok(())
        })?;
        for (field, got) in [(ALGORITHM, algorithm), (HASH, hash), (COMPRESSION, compression)] {
            if got != 1 {
                return Err(DecodeError::BadField { field, got: got as u64 });
            }
        }
        let bitset_bytes = u64::try_from(length).unwrap_or(0);
        if bitset_bytes == 0 || !bitset_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(DecodeError::BadField { field: LENGTH, got: length as u64 });
        }
        Ok(Self { length: thrift.position() as u64, bitset_bytes })
    }
}

/// Returns whether these bytes begin with three little-endian numbers (length, hash strategy 0, algorithm 0), followed by the blocks.
fn is_deprecated(blob: &[u8]) -> bool {
    let Some((head, blocks)) = blob.split_first_chunk::<12>() else { return false };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    head[4..] == [0; 8] && length > 0 && blocks.len() as u64 == u64::from(length)
}
