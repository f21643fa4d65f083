//! pybloom_live's `tofile`: read only. Little-endian.
//!
//! ```text
//! ┌────────────┬──────────┬────────────────┬──────────┬───────┬────────────────────────────────────────┐
//! │ error rate │ slices k │ bits per slice │ capacity │ count │ k · bits per slice, in whole bytes     │
//! │ f64        │ u64      │ u64            │ u64      │ u64   │ bit i: byte i/8, lowest bit first      │
//! └────────────┴──────────┴────────────────┴──────────┴───────┴────────────────────────────────────────┘
//!
//! ScalableBloomFilter:
//! ┌────────┬───────┬──────────────────┬────────────┬───────────┬───────────────┬────────────────────────┐
//! │ growth │ ratio │ initial capacity │ error rate │ filters n │ n lengths     │ n filters, oldest first│
//! │ i32    │ f64   │ u64              │ f64        │ i32       │ u64 each      │ each as above          │
//! └────────┴───────┴──────────────────┴────────────┴───────────┴───────────────┴────────────────────────┘
//! ```
//!
//! | missing from the file | the reader must pass |
//! |---|---|
//! | which version wrote it: 4.0 hashes with XXH3 where older ones use MD5 | [`PybloomVersion`] |
//! | the item encoding | usually [`Utf8`](ItemEncoding::Utf8) |
//!
//! The version matters only for filters whose positions fit into 128 bits: up to 8 slices of less than 32 768 bits each, 4 slices of less than
//! 2^31, or 2 of more. Both versions hash larger filters with SHA.
//!
//! Text and other printable objects are hashed as `str(x)` in UTF-8, so the number 7 and the text `"7"` are one item, in Python and here.
//! **Up to 3.x that applies to `bytes`, too**: `b'ada'` was inserted as the six characters `b'ada'`; query it as that text. Later versions hash
//! the bytes unchanged, as this library does with byte strings.
//!
//! The count is Python's. In 3.x `copy`, `|` and `&` set it to 0; [`estimated_items`](WideBloom::estimated_items) is computed from the bits
//! instead.
//!
//! Bits after the last one are rejected; in Python's files they are clear.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::pybloom_live::{self, PybloomVersion};
//!
//! // BloomFilter(capacity=2, error_rate=0.5), nothing added: one slice of three bits.
//! let mut file = 0.5_f64.to_le_bytes().to_vec();
//! [1_u64, 3, 2, 0].iter().for_each(|field| file.extend_from_slice(&field.to_le_bytes()));
//! file.push(0);
//! let mut seen = pybloom_live::read(&file, PybloomVersion::V4, ItemEncoding::Utf8)?;
//! assert!(!seen.may_contain("ada"));
//! assert!(seen.insert("ada") && seen.may_contain("ada")); // a filter like any other; it can be saved as a `.mayhap` file
//! # Ok::<(), mayhap::DecodeError>(())
//! ```

use mayhap::internals::{self, Lines};
use mayhap::{Answers, DecodeError, Item, ItemEncoding, WideBloom, WidePlacement};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, check_rate};

/// The version of pybloom_live that wrote a file. The file does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PybloomVersion {
    /// Up to 3.x: MD5 in small filters.
    V3,
    /// 4.x: XXH3-128 in small filters.
    V4,
}

impl PybloomVersion {
    const fn placement(self) -> WidePlacement {
        match self {
            Self::V3 => WidePlacement::PybloomLive3,
            Self::V4 => WidePlacement::PybloomLive4,
        }
    }
}

const SCALABLE_HEADER_BYTES: usize = 32;

/// The five fields in front of the bits.
struct Fields {
    error_rate: f64,
    slices: u64,
    slice_bits: u64,
    capacity: u64,
    count: u64,
}

impl Fields {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            error_rate: cursor.f64_le()?,
            slices: cursor.u64_le()?,
            slice_bits: cursor.u64_le()?,
            capacity: cursor.u64_le()?,
            count: cursor.u64_le()?,
        })
    }

    /// The number of bits in all slices; `None` if it overflows.
    fn bits(&self) -> Option<u64> {
        self.slices.checked_mul(self.slice_bits)
    }
}

/// Reads a filter written by `BloomFilter.tofile`.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter; [`DecodeError::Unbuildable`] for one of more than 255 slices.
pub fn read(bytes: &[u8], version: PybloomVersion, items: ItemEncoding) -> Result<WideBloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let fields = Fields::read(&mut cursor)?;
    check_rate(fields.error_rate)?;
    let slices = u32::try_from(fields.slices)
        .map_err(|_| DecodeError::BadField { field: "number of slices", got: fields.slices })?;
    let bits =
        fields.bits().ok_or(DecodeError::BadField { field: "bits per slice", got: fields.slice_bits })?;
    let shape = internals::bloom::from_parts(bits, slices, fields.capacity, fields.error_rate)?;
    let payload = cursor.take(bits.div_ceil(8))?;
    cursor.finish()?;
    let lines = Lines::from_le_bytes(payload)?;
    lines.check_zero_from(bits).map_err(|bit| DecodeError::StrayBit { bit })?;
    Ok(internals::wide::of_counted_bits(shape, version.placement(), items, lines, fields.count))
}

/// Returns whether these bytes look like such a file.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let Ok(fields) = Fields::read(&mut cursor) else { return Resemblance::No };
    let length = fields.bits().filter(|&bits| bits > 0).map(|bits| bits.div_ceil(8));
    Resemblance::could(
        fields.error_rate > 0.0
            && fields.error_rate < 1.0
            && (1..=255).contains(&fields.slices)
            && fields.capacity > 0
            && length == Some(cursor.left() as u64),
    )
}

/// The filters written by `ScalableBloomFilter.tofile`. Each is larger than the one before; in Python, the last accepts new items.
///
/// It can be queried and does not grow. Insert more items into a separate [`ScalableBloom`](mayhap::ScalableBloom), and query both.
#[derive(Debug)]
pub struct PybloomScalable {
    /// The growth factor between consecutive filters: 2 or 4.
    pub growth: u32,
    /// The factor by which the rate decreases from one filter to the next.
    pub ratio: f64,
    /// The capacity of the first filter.
    pub initial_capacity: u64,
    /// The requested rate. (The rates of all filters add up to more.)
    pub error_rate: f64,
    /// The filters, oldest first; empty if no item was ever added.
    pub layers: Vec<WideBloom>,
}

impl PybloomScalable {
    /// Returns `false` if `item` is in no filter, `true` if it may be in one.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        // Newest first, because most items are there.
        self.layers.iter().rev().any(|layer| layer.may_contain(item))
    }

    /// Queries all `items`.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        internals::reset_answers(answers, items.len());
        for (index, item) in items.iter().enumerate() {
            if self.may_contain(item) {
                internals::answer_maybe(answers, index);
            }
        }
    }

    /// The number of items in all filters, as Python counted them.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.layers.iter().map(WideBloom::inserted).fold(0, u64::saturating_add)
    }

    /// The total capacity of all filters.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layers.iter().map(WideBloom::capacity).fold(0, u64::saturating_add)
    }

    /// The expected false-positive rate for the items counted so far: the probability that not all filters answer *no*.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        1.0 - self.layers.iter().map(|layer| 1.0 - layer.expected_fpr()).product::<f64>()
    }

    /// The memory of the bits in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(WideBloom::memory_bytes).sum()
    }
}

/// Reads the filters in a file written by `ScalableBloomFilter.tofile`.
///
/// # Errors
/// [`DecodeError`] for anything but one whole file; [`DecodeError::Unbuildable`] for a filter of more than 255 slices.
pub fn read_scalable(
    bytes: &[u8],
    version: PybloomVersion,
    items: ItemEncoding,
) -> Result<PybloomScalable, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let growth = cursor.u32_le()?;
    let (ratio, initial_capacity, error_rate) = (cursor.f64_le()?, cursor.u64_le()?, cursor.f64_le()?);
    let count = u64::from(cursor.u32_le()?);
    for (field, rate) in [("ratio", ratio), ("error rate", error_rate)] {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(DecodeError::BadField { field, got: rate.to_bits() });
        }
    }
    if growth == 0 || growth > i32::MAX as u32 {
        return Err(DecodeError::BadField { field: "growth", got: growth.into() });
    }
    let lengths = cursor.take(count * 8)?;
    let mut layers = Vec::new();
    for length in lengths.as_chunks::<8>().0 {
        layers.push(read(cursor.take(u64::from_le_bytes(*length))?, version, items)?);
    }
    cursor.finish()?;
    Ok(PybloomScalable { growth, ratio, initial_capacity, error_rate, layers })
}

/// Returns whether these bytes look like such a file of several filters.
#[must_use]
pub fn resembles_scalable(bytes: &[u8]) -> Resemblance {
    let Some((header, rest)) = bytes.split_first_chunk::<SCALABLE_HEADER_BYTES>() else {
        return Resemblance::No;
    };
    let rate_at = |at: usize| f64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    let count = u32::from_le_bytes(std::array::from_fn(|i| header[28 + i])) as usize;
    let rates = [rate_at(4), rate_at(20)].iter().all(|&rate| rate > 0.0 && rate < 1.0);
    let Some(lengths) = rest.as_chunks::<8>().0.get(..count).filter(|_| rates) else {
        return Resemblance::No;
    };
    let mut left = &rest[count * 8..];
    for length in lengths {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        match left.split_at_checked(length) {
            Some((layer, behind)) if resembles(layer) == Resemblance::Could => left = behind,
            _ => return Resemblance::No,
        }
    }
    Resemblance::could(left.is_empty())
}
