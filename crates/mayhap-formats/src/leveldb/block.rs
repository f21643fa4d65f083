//! The filter block of a LevelDB table: its filters, and the offset of each.

use std::io::Write;

use mayhap::{Bloom, DecodeError, Item, ItemEncoding, internals};

use crate::foreign::{Resemblance, WriteError};
use crate::words::write_bytes;

/// LevelDB's own base: one filter for the data blocks that begin in the same 2^11 bytes of the file.
pub const BASE_LG: u8 = 11;

/// Bytes after the offsets: the position of the offsets, and the base.
const TAIL_BYTES: usize = 5;

/// A whole filter block, split into its filters without copying.
///
/// ```text
/// ┌──────────┬──────────┬───┬───────────────────────┬───────────┬──────┐
/// │ filter 0 │ filter 1 │ … │ where each begins     │ where     │ base │     numbers of 4 bytes, little-endian
/// │          │          │   │ 4 bytes a filter      │ those do  │ 1    │
/// └──────────┴──────────┴───┴───────────────────────┴───────────┴──────┘
/// ```
///
/// Filter `i` is for the data blocks that begin at the bytes `i << base` to `(i + 1 << base) - 1` of the table file. If no block begins
/// there, the filter is empty, without even a number of probes, and answers *no* to every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBlock<'a> {
    filters: &'a [u8],
    /// The offset of each filter, followed by the end of the last one.
    offsets: &'a [[u8; 4]],
    base_lg: u8,
}

impl<'a> FilterBlock<'a> {
    /// Splits a block. The filters in it are checked when they are read.
    ///
    /// # Errors
    /// [`DecodeError`] unless the filters are in order and the offsets follow them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let too_short = |need: u64| DecodeError::TooShort { need, got: bytes.len() as u64 };
        let (&base_lg, rest) = bytes.split_last().ok_or(too_short(TAIL_BYTES as u64))?;
        let end = rest.len().checked_sub(4).ok_or(too_short(TAIL_BYTES as u64))?;
        if u32::from(base_lg) >= u64::BITS {
            return Err(DecodeError::BadField { field: "base of the filters", got: base_lg.into() });
        }
        let start = u32::from_le_bytes(std::array::from_fn(|i| rest[end + i]));
        let from = usize::try_from(start).ok().filter(|&from| from <= end);
        let from = from.ok_or(too_short(u64::from(start) + TAIL_BYTES as u64))?;
        // The last filter ends where the offsets begin.
        let (offsets, over) = rest[from..].as_chunks::<4>();
        if !over.is_empty() {
            return Err(DecodeError::TrailingBytes { extra: over.len() as u64 });
        }
        let mut last = 0;
        for &offset in offsets {
            let offset = u32::from_le_bytes(offset);
            if offset < last || offset > start {
                return Err(DecodeError::BadField { field: "offset of a filter", got: offset.into() });
            }
            last = offset;
        }
        // Bytes before the first filter would belong to no filter.
        match offsets.first().map(|&first| u32::from_le_bytes(first)) {
            Some(first) if first > 0 => {
                Err(DecodeError::BadField { field: "offset of a filter", got: first.into() })
            }
            _ => Ok(Self { filters: &rest[..from], offsets, base_lg }),
        }
    }

    /// The number of filters, including empty ones.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns whether the block has no filters.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The base-2 logarithm of the number of bytes of the table file that each filter covers.
    #[must_use]
    pub const fn base_lg(&self) -> u8 {
        self.base_lg
    }

    /// The bytes of filter `index`; `None` past the last one.
    #[must_use]
    pub fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        let begin = u32::from_le_bytes(*self.offsets.get(index)?);
        let end = u32::from_le_bytes(*self.offsets.get(index.checked_add(1)?)?);
        self.filters.get(begin as usize..end as usize)
    }

    /// Reads filter `index`; `None` if it is empty or past the last one.
    ///
    /// # Errors
    /// As [`read`](super::read).
    pub fn filter(&self, index: usize, items: ItemEncoding) -> Result<Option<Bloom>, DecodeError> {
        match self.bytes(index) {
            None | Some([]) => Ok(None),
            Some(bytes) => super::read(bytes, items).map(Some),
        }
    }

    /// Reads the filter for the data block that begins at this byte of the table file; `None` if it is empty or past the last one.
    ///
    /// # Errors
    /// As [`read`](super::read).
    pub fn filter_at(&self, data_offset: u64, items: ItemEncoding) -> Result<Option<Bloom>, DecodeError> {
        self.filter(self.index_at(data_offset), items)
    }

    /// Answers as LevelDB does for a key in the data block that begins at this byte: *no* if the filter is empty, *maybe* if there is no filter
    /// or it cannot be read. Reads the filter on every call; for repeated queries use [`filter_at`](Self::filter_at) once.
    #[must_use]
    pub fn may_contain_at<I: Item + ?Sized>(&self, data_offset: u64, items: ItemEncoding, item: &I) -> bool {
        match self.bytes(self.index_at(data_offset)) {
            None => true,
            Some([] | [_]) => false,
            Some(bytes) => super::read(bytes, items).map_or(true, |filter| filter.may_contain(item)),
        }
    }

    fn index_at(&self, data_offset: u64) -> usize {
        usize::try_from(data_offset >> self.base_lg).unwrap_or(usize::MAX)
    }
}

/// Writes a filter block of these filters, `None` for an empty one.
///
/// # Errors
/// As [`write`](super::write), and [`WriteError::NoRoom`] if they take more than 4 GiB or `base_lg` is 64 or more.
pub fn write_block(filters: &[Option<&Bloom>], base_lg: u8, out: &mut dyn Write) -> Result<(), WriteError> {
    if u32::from(base_lg) >= u64::BITS {
        return Err(WriteError::NoRoom { field: "base of the filters", got: base_lg.into(), limit: 63 });
    }
    // The lengths of all filters are checked before the first byte is written.
    let (mut offsets, mut end) = (Vec::with_capacity(filters.len() + 1), 0_u64);
    for filter in filters {
        offsets.push(end);
        if let Some(filter) = filter {
            end += super::measure(filter)?.0 + 1;
        }
    }
    offsets.push(end);
    let limit = u64::from(u32::MAX);
    if end > limit {
        return Err(WriteError::NoRoom { field: "bytes of all filters", got: end, limit });
    }
    for filter in filters.iter().flatten() {
        let (bytes, probes) = super::measure(filter)?;
        write_bytes(internals::bloom::bits(filter), bytes, out)?;
        out.write_all(&[probes])?;
    }
    for offset in offsets {
        out.write_all(&(offset as u32).to_le_bytes())?;
    }
    out.write_all(&[base_lg])?;
    Ok(())
}

/// Returns whether these bytes look like a filter block: LevelDB's own base, at least one filter, and only filters that look valid.
#[must_use]
pub fn resembles_block(bytes: &[u8]) -> Resemblance {
    let Ok(block) = FilterBlock::parse(bytes) else { return Resemblance::No };
    let filters = (0..block.len()).filter_map(|index| block.bytes(index));
    Resemblance::could(
        block.base_lg == BASE_LG
            && !block.filters.is_empty()
            && filters
                .filter(|filter| !filter.is_empty())
                .all(|filter| super::resembles(filter) != Resemblance::No),
    )
}
