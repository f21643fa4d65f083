//! RocksDB's full filters: both of its Bloom filters, and its Ribbon filter. A trailer of five bytes identifies the filter.
//!
//! ```text
//! ┌───────────────────────────┬────┬───────────────────┐
//! │ L lines of 64 bytes       │ k  │ L                 │     legacy Bloom, before format version 5; k is 1 to 127
//! ├───────────────────────────┼────┼────┬────┬─────────┤
//! │ lines of 64 bytes         │ ff │ 00 │ k  │ 00   00 │     FastLocalBloom, since format version 5 (RocksDB 6.6)
//! ├───────────────────────────┼────┼────┼────┴─────────┤
//! │ segments of 16 bytes      │ fe │seed│ blocks       │     Standard128Ribbon, NewRibbonFilterPolicy
//! └───────────────────────────┴────┴────┴──────────────┘     numbers are little-endian
//! ```
//!
//! A filter does not describe its items. They are the user's keys: whole keys, prefixes or both, depending on the options of the table. A filter of
//! prefixes answers *no* to a whole key. Use [`ItemEncoding::Bytes`] unless a program encoded something into its keys.
//!
//! * A Bloom filter is read as a [`BlockedBloom`], which accepts items, merges, and is saved like any other. A Ribbon filter can only be
//!   queried, because changing it requires all its items.
//! * `NewRibbonFilterPolicy` makes a Bloom filter for few keys, and for the first levels of a database if it is configured to.
//! * A filter of no keys is a trailer without a filter, or nothing at all: [`RocksdbFilter::Empty`].
//! * A filter that RocksDB does not understand answers *maybe* to every key there. Here it is an error with the reason.
//! * Machines with longer cache lines (128 bytes on ARM and POWER, 256 on s390x) wrote legacy filters with lines of that length. Those are
//!   rejected.
//! * With partitioned filters, each partition is such a filter. Block-based filters, removed in RocksDB 7, had another format.
//! * In a table file a block is followed by a byte for its compression and four for its checksum. They are not part of the filter.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::rocksdb::{self, BloomStyle, RocksdbFilter};
//!
//! let mut keys = rocksdb::create(BloomStyle::FastLocal, 10.0, 1_000, ItemEncoding::Bytes)?;
//! keys.insert("ada");
//! let mut bytes = Vec::new();
//! rocksdb::write(&keys, &mut bytes)?;
//!
//! match rocksdb::read(&bytes, ItemEncoding::Bytes)? {
//!     RocksdbFilter::Bloom(same) => assert!(same.may_contain("ada")),
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bloom;
mod ribbon;

pub use bloom::{BloomStyle, create, empty, size, write};
pub use ribbon::RibbonFilter;

use mayhap::{BlockedBloom, DecodeError, Item, ItemEncoding};

use crate::foreign::Resemblance;

/// The length of the trailer in bytes.
const TRAILER_BYTES: usize = 5;
/// The first byte of the trailer of a filter that is not a legacy filter.
const NEW_BLOOM: u8 = 0xff;
const RIBBON: u8 = 0xfe;

/// The content of a filter block.
#[derive(Debug)]
#[non_exhaustive]
pub enum RocksdbFilter {
    /// A filter of no keys, which answers *no* to every item.
    Empty,
    /// One of the Bloom filters; its [`placement`](BlockedBloom::placement) tells which.
    Bloom(BlockedBloom),
    /// A Ribbon filter.
    Ribbon(RibbonFilter),
}

impl RocksdbFilter {
    /// Returns `false` if `item` was never inserted, `true` if it may have been.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        match self {
            Self::Empty => false,
            Self::Bloom(filter) => filter.may_contain(item),
            Self::Ribbon(filter) => filter.may_contain(item),
        }
    }

    /// Returns the Bloom filter, if it is one.
    #[must_use]
    pub fn into_bloom(self) -> Option<BlockedBloom> {
        match self {
            Self::Bloom(filter) => Some(filter),
            _ => None,
        }
    }
}

/// Reads the filter in these bytes.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter; [`DecodeError::Unsupported`] for bytes that may be valid in other versions of RocksDB or
/// on other machines.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<RocksdbFilter, DecodeError> {
    if bytes.is_empty() {
        return Ok(RocksdbFilter::Empty);
    }
    let Some((body, &trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        return Err(DecodeError::TooShort { need: TRAILER_BYTES as u64, got: bytes.len() as u64 });
    };
    match trailer {
        [RIBBON, seed, blocks @ ..] => {
            RibbonFilter::parse(body, seed, blocks, items).map(RocksdbFilter::Ribbon)
        }
        _ => bloom::read(body, trailer, items),
    }
}

/// Returns whether these bytes look like such a filter. The trailer must be one that RocksDB writes, and the length must match it.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Some((body, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else { return Resemblance::No };
    let could = match *trailer {
        [RIBBON, _, blocks @ ..] => ribbon::Columns::new(body, blocks).is_ok(),
        _ => !body.is_empty() && bloom::Trailer::new(body, *trailer).is_ok(),
    };
    Resemblance::could(could)
}
