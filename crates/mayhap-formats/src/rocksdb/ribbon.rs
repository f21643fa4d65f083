//! The Ribbon filter: a solved system of linear equations over bits. An item may be a member if its row gives its result.
//!
//! ```text
//! rows     0 … 127        128 … 255                      of a block: one segment of 128 bits for each column
//!        ┌──────────┐    ┌──────────┐
//!        │ column 0 │    │ column 0 │                     an item has 128 coefficients, starting at its first row, so they are in
//!        │ column 1 │    │ column 1 │  …                  one block or two; in every column, the parity of the coefficients whose
//!        │    …     │    │ column 2 │                     row is set there must equal the bit of its result
//!        └──────────┘    └──────────┘                     the first blocks may have one column less: a fraction of a bit per key
//! ```
//!
//! P. C. Dillinger, S. Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021.

use std::io::Write;

use mayhap::{DecodeError, ForeignHash, HashScheme, Item, ItemEncoding, ItemHash, internals};

use super::{RIBBON, TRAILER_BYTES};
use crate::foreign::WriteError;

/// The number of rows in a block, and of bits in a segment.
const ROWS: u64 = 128;
const SEGMENT_BYTES: usize = 16;
/// The result of an item has 32 bits, and a column tests one of them.
const MAX_COLUMNS: u64 = 32;

/// Odd multipliers that rehash an item for this filter's seed, and derive the coefficients and the result.
const REHASH: u64 = 0x6193_d459_236a_3a0d;
const SEED: u64 = 0xc782_19a2_3eea_dd03;
const ROW: u64 = 0xc28f_8282_2b65_0bed;
/// Distinguishes the lower half of the coefficients from the upper.
const LOWER: u64 = 0xc367_844a_6e52_731d;

/// A Ribbon filter of RocksDB. It can be queried, and written as it was read.
///
/// It cannot accept items or be merged, because its bits are the common solution for all its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RibbonFilter {
    segments: Vec<u128>,
    columns: Columns,
    seed: u8,
    scheme: HashScheme,
}

/// The layout of the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    blocks: u64,
    /// Columns of the last block; the first `narrow` blocks have one less.
    most: u64,
    narrow: u64,
}

impl Columns {
    /// Parses the trailer and checks that the segments can be distributed over this number of blocks.
    pub(super) fn new(body: &[u8], blocks: [u8; 3]) -> Result<Self, DecodeError> {
        let [low, middle, high] = blocks;
        let blocks = u64::from(u32::from_le_bytes([low, middle, high, 0]));
        if blocks < 2 {
            return Err(DecodeError::BadField { field: "number of blocks", got: blocks });
        }
        let bad_length = DecodeError::BadField { field: "bytes of all segments", got: body.len() as u64 };
        if body.is_empty() || !body.len().is_multiple_of(SEGMENT_BYTES) {
            return Err(bad_length);
        }
        let segments = (body.len() / SEGMENT_BYTES) as u64;
        let most = segments.div_ceil(blocks);
        if most > MAX_COLUMNS {
            return Err(bad_length);
        }
        Ok(Self { blocks, most, narrow: most * blocks - segments })
    }

    /// Returns the first segment of a block, and the number of its segments.
    const fn of(self, block: u64) -> (u64, u64) {
        if block < self.narrow {
            (block * (self.most - 1), self.most - 1)
        } else {
            (block * self.most - self.narrow, self.most)
        }
    }

    /// The share of blocks that have one column less.
    fn narrow_share(self) -> f64 {
        self.narrow as f64 / self.blocks as f64
    }
}

impl RibbonFilter {
    pub(super) fn parse(
        body: &[u8],
        seed: u8,
        blocks: [u8; 3],
        items: ItemEncoding,
    ) -> Result<Self, DecodeError> {
        let columns = Columns::new(body, blocks)?;
        let (segments, _) = body.as_chunks::<SEGMENT_BYTES>();
        let segments = segments.iter().map(|&segment| u128::from_le_bytes(segment)).collect();
        let scheme = internals::foreign_scheme(ForeignHash::RocksDb64, items);
        Ok(Self { segments, columns, seed, scheme })
    }

    /// Returns `false` if `item` was never inserted, `true` if it may have been.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed by [`hash`](Self::hash).
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        let hash = (internals::low_half(hash) ^ self.mixed_seed()).wrapping_mul(REHASH);
        let starts = self.columns.blocks * ROWS - (ROWS - 1);
        let start = ((u128::from(hash) * u128::from(starts)) >> 64) as u64;
        let row = hash.wrapping_mul(ROW);
        let coefficients = u128::from(row) << 64 | u128::from(row ^ LOWER) | 1;
        let result = row.swap_bytes();

        let (block, shift) = (start / ROWS, (start % ROWS) as u32);
        let (first, columns) = self.columns.of(block);
        (0..columns).all(|column| {
            let mut rows = self.segment(first + column) >> shift;
            if shift > 0 {
                // The next block follows directly, whatever the number of its columns.
                rows |= self.segment(first + columns + column) << (ROWS as u32 - shift);
            }
            u64::from((rows & coefficients).count_ones() % 2) == result >> column & 1
        })
    }

    /// The hash of `item` for [`may_contain_hash`](Self::may_contain_hash).
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// How the filter hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// The number of result bits that are tested, averaged over the blocks.
    #[must_use]
    pub fn columns(&self) -> f64 {
        self.columns.most as f64 - self.columns.narrow_share()
    }

    /// The false-positive rate by the model: for a block of c columns it is 2^-c.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        (1.0 + self.columns.narrow_share()) * (-(self.columns.most as f64)).exp2()
    }

    /// The number of the attempt that found a solution. The hash is seeded from it.
    #[must_use]
    pub const fn seed(&self) -> u8 {
        self.seed
    }

    /// The memory of the segments in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        (self.segments.len() * SEGMENT_BYTES) as u64
    }

    /// Writes the filter as RocksDB does.
    ///
    /// # Errors
    /// [`WriteError::Io`] if `out` fails.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), WriteError> {
        for segment in &self.segments {
            out.write_all(&segment.to_le_bytes())?;
        }
        let [a, b, c, _] = (self.columns.blocks as u32).to_le_bytes();
        let trailer: [u8; TRAILER_BYTES] = [RIBBON, self.seed, a, b, c];
        out.write_all(&trailer)?;
        Ok(())
    }

    /// Returns a segment; a missing one is empty.
    #[inline]
    fn segment(&self, index: u64) -> u128 {
        self.segments.get(index as usize).copied().unwrap_or_default()
    }

    /// The value that is combined with the hash: 32 bits that differ for all seeds, also in each half of every byte.
    const fn mixed_seed(&self) -> u64 {
        let spread = (self.seed as u64).wrapping_mul(SEED);
        (spread ^ (spread & 0xf0f0_f0f0_f0f0_f0f0) >> 4) & 0xffff_ffff
    }
}
