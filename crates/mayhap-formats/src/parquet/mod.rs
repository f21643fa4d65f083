//! The Bloom filters inside Parquet files: which columns have one, and what it answers. Reading only.
//!
//! ```text
//! ┌──────┬───────────────────────┬───────────────────────────┬──────────────────┬────────┬──────┐
//! │ PAR1 │ pages of all columns  │ filters, each a blob      │ footer (Thrift)  │ length │ PAR1 │   in some files a row group's filters
//! │      │                       │ as in `sbbf`              │ says where       │ 4 LE   │      │   follow its own pages
//! └──────┴───────────────────────┴───────────────────────────┴──────────────────┴────────┴──────┘
//! ```
//!
//! A filter belongs to one column of one row group. Its answer tells whether that row group can be skipped. Whatever the size of the file,
//! only the footer and the requested filters are read; [`may_contain`](ParquetFilters::may_contain) reads a header and one block of 32 bytes
//! per filter.
//!
//! The footer contains the type of each column, so the caller need not name the encoding of its items;
//! [`read_as`](ParquetFilters::read_as) overrides it. Values are those that the file stores: a date is a number of days, a time a number of
//! the column's own unit, a decimal its unscaled number (as an `INT32` or `INT64`) or big-endian bytes, a UUID its 16 bytes. Pass numbers
//! from 2^31 on in an unsigned 32-bit column as their 4 bytes.
//!
//! ```no_run
//! use mayhap_formats::parquet::{InRowGroup, ParquetFilters};
//!
//! let mut orders = ParquetFilters::open(std::fs::File::open("orders.parquet")?)?;
//! for filter in orders.filters() {
//!     println!("row group {}, column {}: {} items", filter.row_group, filter.column, filter.items);
//! }
//! let answers = orders.may_contain("customer", "ada")?;
//! let worth_reading = answers.iter().filter(|answer| **answer != InRowGroup::No).count();
//! # let _ = worth_reading;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/decisions/0008-parquet-footer.md` explains, with figures, why the footer is read by our own code and not by the `parquet` crate.

mod error;
mod footer;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use mayhap::internals::{self, Lines};
use mayhap::{BlockedBloom, BuildError, DecodeError, Item, ItemEncoding, ItemHash};

pub use self::error::ParquetError;
use self::footer::Footer;
use crate::foreign::Resemblance;
use crate::sbbf::{self, BlobHeader};

/// The filters of one Parquet file.
#[derive(Debug)]
pub struct ParquetFilters<R> {
    source: R,
    /// The offset of the footer, which comes after everything else.
    footer_at: u64,
    footer: Footer,
}

/// One Bloom filter of a Parquet file: the filter of one column in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnFilter {
    /// The row group, counted from 0.
    pub row_group: usize,
    /// The path of the column: its name and the names of the groups around it, outermost first, joined by dots.
    pub column: Arc<str>,
    /// The type of the values in the column.
    pub physical_type: PhysicalType,
    /// The encoding of the values, derived from their type.
    pub items: ItemEncoding,
    /// The offset of the filter in the file.
    pub offset: u64,
    /// The length of the filter with its header. Older files do not contain it.
    pub length: Option<u32>,
    /// Whether the filter can be read from this file.
    pub home: FilterHome,
}

/// Where the filter of a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterHome {
    /// In this file, not encrypted.
    Here,
    /// In this file, encrypted with its column.
    Encrypted,
    /// In another file; this file is a summary of several.
    OtherFile,
}

/// The type of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "these are Parquet's names")]
pub enum PhysicalType {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    FixedLenByteArray,
}

/// Whether a row group may contain an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InRowGroup {
    /// No: the filter rules it out.
    No,
    /// Maybe: the filter does not rule it out.
    Mayhap,
    /// Unknown: the column has no filter there, or one that cannot be read from this file.
    NoFilter,
}

/// The default limit for the length of a footer.
pub const FOOTER_LIMIT: u64 = 256 << 20;

const MAGIC: &[u8; 4] = b"PAR1";
const MAGIC_ENCRYPTED: &[u8; 4] = b"PARE";
/// The length of the footer, and the magic number after it.
const TAIL_BYTES: u64 = 8;
/// The header of a filter is 15 to 18 bytes; this leaves room for fields of later versions.
const MAX_HEADER_BYTES: u64 = 1024;
const BLOCK_BYTES: u64 = 32;

impl<R: Read + Seek> ParquetFilters<R> {
    /// Reads the footer of a Parquet file, if it is not longer than [`FOOTER_LIMIT`].
    ///
    /// # Errors
    /// [`ParquetError`] for a source that is not a Parquet file, or is encrypted or damaged.
    pub fn open(source: R) -> Result<Self, ParquetError> {
        Self::open_within(source, FOOTER_LIMIT)
    }

    /// Reads the footer of a Parquet file, if it is not longer than `limit_bytes`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(mut source: R, limit_bytes: u64) -> Result<Self, ParquetError> {
        let end = source.seek(SeekFrom::End(0))?;
        let footer_end = end.checked_sub(TAIL_BYTES).ok_or(ParquetError::NotParquet)?;
        let tail = read_at(&mut source, footer_end, TAIL_BYTES)?;
        let (length, magic) = tail.split_first_chunk().ok_or(ParquetError::NotParquet)?;
        if magic == MAGIC_ENCRYPTED {
            let what = "a Parquet file with an encrypted footer";
            return Err(ParquetError::Footer(DecodeError::Unsupported { what }));
        }
        if magic != MAGIC {
            return Err(ParquetError::NotParquet);
        }
        let bytes = u64::from(u32::from_le_bytes(*length));
        if bytes > limit_bytes {
            return Err(ParquetError::FooterTooLarge { bytes, limit: limit_bytes });
        }
        let footer_at = footer_end
            .checked_sub(bytes)
            .filter(|&at| at >= MAGIC.len() as u64)
            .ok_or(DecodeError::BadField { field: "footer length", got: bytes })?;
        let footer = Footer::read(&read_at(&mut source, footer_at, bytes)?)?;
        Ok(Self { source, footer_at, footer })
    }

    /// All filters in the file, row group by row group.
    #[must_use]
    pub fn filters(&self) -> &[ColumnFilter] {
        &self.footer.filters
    }

    /// The number of rows in each row group.
    #[must_use]
    pub fn row_groups(&self) -> &[u64] {
        &self.footer.rows
    }

    /// Returns the source it reads from.
    #[must_use]
    pub const fn source(&self) -> &R {
        &self.source
    }

    /// Reads a whole filter. The result accepts items and can be saved and written like any other filter; the file never changes.
    ///
    /// # Errors
    /// [`ParquetError`] if the source cannot be read, or the filter in it is invalid.
    pub fn read(&mut self, filter: &ColumnFilter) -> Result<BlockedBloom, ParquetError> {
        self.read_as(filter, filter.items)
    }

    /// Reads a whole filter, with another item encoding than the type of the column suggests.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_as(
        &mut self,
        filter: &ColumnFilter,
        items: ItemEncoding,
    ) -> Result<BlockedBloom, ParquetError> {
        let (at, bytes) = self.blocks_of(filter)?;
        let words = self.words_at(at, bytes)?;
        sbbf::of_words(bytes, words, items).map_err(ParquetError::filter(filter))
    }

    /// Returns, for each row group in order, whether it may contain `item` in `column`. Reads the header and one block of each filter.
    ///
    /// # Errors
    /// [`ParquetError::UnknownColumn`], [`ParquetError::Item`] for an item the column cannot hold (the text `ada` in a column of
    /// numbers), and as [`read`](Self::read).
    pub fn may_contain<I: Item + ?Sized>(
        &mut self,
        column: &str,
        item: &I,
    ) -> Result<Vec<InRowGroup>, ParquetError> {
        let column = self.footer.column(column)?;
        let items = column.items;
        let of_column = |filter: &&ColumnFilter| {
            filter.home == FilterHome::Here && Arc::ptr_eq(&filter.column, &column.path)
        };
        let asked: Vec<ColumnFilter> = self.footer.filters.iter().filter(of_column).cloned().collect();
        item.with_value(|value| items.encode(value).map(drop))?;
        let hash = sbbf::scheme(items).hash(item);
        let mut answers = vec![InRowGroup::NoFilter; self.footer.rows.len()];
        for filter in &asked {
            let answer = self.block_may_contain(filter, hash)?;
            answers[filter.row_group] = if answer { InRowGroup::Mayhap } else { InRowGroup::No };
        }
        Ok(answers)
    }

    /// Returns whether the bits of the item are set in its block. Only that block is read.
    fn block_may_contain(&mut self, filter: &ColumnFilter, hash: ItemHash) -> Result<bool, ParquetError> {
        let (at, bytes) = self.blocks_of(filter)?;
        let word = internals::blocked::parquet_word(hash, bytes / BLOCK_BYTES);
        let block = self.words_at(at + word as u64 * 8, BLOCK_BYTES)?;
        Ok(internals::blocked::parquet_block_covers(hash, &block))
    }

    /// Returns the offset of the blocks of a filter and their length in bytes. All of them are checked to lie before the footer.
    fn blocks_of(&mut self, filter: &ColumnFilter) -> Result<(u64, u64), ParquetError> {
        let refused = ParquetError::filter(filter);
        match filter.home {
            FilterHome::Here => {}
            FilterHome::Encrypted => {
                return Err(refused(DecodeError::Unsupported { what: "the filter of an encrypted column" }));
            }
            FilterHome::OtherFile => {
                return Err(refused(DecodeError::Unsupported { what: "a filter stored in another file" }));
            }
        }
        let room = self.footer_at.saturating_sub(filter.offset);
        if room == 0 || filter.offset < MAGIC.len() as u64 {
            return Err(refused(DecodeError::BadField { field: "filter offset", got: filter.offset }));
        }
        let head = read_at(&mut self.source, filter.offset, room.min(MAX_HEADER_BYTES))?;
        let header = BlobHeader::read(&head).map_err(ParquetError::filter(filter))?;
        let length = header.length + header.bitset_bytes;
        if let Some(got) = filter.length.map(u64::from).filter(|&said| said != length) {
            return Err(refused(DecodeError::BadField { field: "filter length", got }));
        }
        if length > room {
            return Err(refused(DecodeError::TooShort { need: length, got: room }));
        }
        Ok((filter.offset + header.length, header.bitset_bytes))
    }

    /// Reads the words at these bytes of the file. The caller has checked that they are there.
    fn words_at(&mut self, at: u64, bytes: u64) -> Result<Lines, ParquetError> {
        /// Words converted at a time.
        const CHUNK: usize = 8192;
        let count = usize::try_from(bytes / 8).map_err(|_| BuildError::OutOfMemory { bytes })?;
        let mut lines = Lines::zeroed(count.div_ceil(internals::WORDS_PER_LINE))?;
        self.source.seek(SeekFrom::Start(at))?;
        let mut buffer = vec![0; CHUNK.min(count) * 8];
        for words in lines.words_mut()[..count].chunks_mut(CHUNK) {
            let bytes = &mut buffer[..words.len() * 8];
            self.source.read_exact(bytes)?;
            for (to, from) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *to = u64::from_le_bytes(*from);
            }
        }
        Ok(lines)
    }
}

/// Reads `bytes` bytes of the file at `at`. The caller has checked their number against the file or a limit.
fn read_at(source: &mut (impl Read + Seek), at: u64, bytes: u64) -> Result<Vec<u8>, ParquetError> {
    let length = usize::try_from(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
    let mut read = Vec::new();
    read.try_reserve_exact(length).map_err(|_| BuildError::OutOfMemory { bytes })?;
    source.seek(SeekFrom::Start(at))?;
    source.take(bytes).read_to_end(&mut read)?;
    if read.len() != length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(read)
}

/// Returns whether these are the bytes of a Parquet file, encrypted or not.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let marked = |magic: &[u8; 4]| bytes.len() >= 12 && bytes.starts_with(magic) && bytes.ends_with(magic);
    if marked(MAGIC) || marked(MAGIC_ENCRYPTED) { Resemblance::Surely } else { Resemblance::No }
}
