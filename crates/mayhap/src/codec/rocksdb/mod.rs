//! RocksDB's full filters: both of its Bloom filters, and its Ribbon filter. Five bytes behind the filter say which it is.
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
//! A filter says nothing of its items. They are the user's keys, whole or their prefixes or both, as the table's options were: a filter of
//! prefixes says *no* to a whole key. [`ItemEncoding::Bytes`] is right unless a program encoded something into its keys.
//!
//! * A Bloom filter is read as a [`BlockedBloom`], which takes items, merges, and is saved as any other; a Ribbon filter answers only,
//!   for that is all one can do without its items.
//! * `NewRibbonFilterPolicy` makes a Bloom filter of few keys, and for the first levels of a database if it is told to.
//! * A filter of no keys is a trailer without a filter, or nothing at all: [`Filter::Empty`].
//! * What RocksDB does not understand it takes for a filter that says *mayhap* to everything. Here it is an error with the reason.
//! * Machines with longer cache lines (128 bytes on ARM and POWER, 256 on s390x) wrote legacy filters with lines that long. Those are
//!   refused.
//! * With partitioned filters, each partition is such a filter of its own. Block-based filters, gone since RocksDB 7, were another format.
//! * In a table file a block is followed by a byte for its compression and four for its checksum. They are not part of it.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap::codec::rocksdb::{self, BloomStyle, Filter};
//!
//! let mut keys = rocksdb::create(BloomStyle::FastLocal, 10.0, 1_000, ItemEncoding::Bytes)?;
//! keys.insert("ada");
//! let mut bytes = Vec::new();
//! rocksdb::write(&keys, &mut bytes)?;
//!
//! match rocksdb::read(&bytes, ItemEncoding::Bytes)? {
//!     Filter::Bloom(same) => assert!(same.may_contain("ada")),
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bloom;
mod ribbon;

pub use bloom::{BloomStyle, create, empty, size, write};
pub use ribbon::RibbonFilter;

use super::DecodeError;
use super::foreign::Resemblance;
use crate::blocked::BlockedBloom;
use crate::item::{Item, ItemEncoding};

/// Bytes behind the filter.
const TRAILER_BYTES: usize = 5;
/// The first byte of the trailer of what is no legacy filter.
const NEW_BLOOM: u8 = 0xff;
const RIBBON: u8 = 0xfe;

/// What a filter block can hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum Filter {
    /// A filter of no keys: *no* to every item.
    Empty,
    /// Either of the Bloom filters; its [`placement`](BlockedBloom::placement) says which.
    Bloom(BlockedBloom),
    /// A Ribbon filter.
    Ribbon(RibbonFilter),
}

impl Filter {
    /// `false`: never inserted. `true`: mayhap.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        match self {
            Self::Empty => false,
            Self::Bloom(filter) => filter.may_contain(item),
            Self::Ribbon(filter) => filter.may_contain(item),
        }
    }

    /// The Bloom filter, if it is one.
    #[must_use]
    pub fn into_bloom(self) -> Option<BlockedBloom> {
        match self {
            Self::Bloom(filter) => Some(filter),
            _ => None,
        }
    }
}

/// The filter in these bytes.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter; [`DecodeError::Unsupported`] for what other versions of RocksDB, or other machines,
/// may have meant something by.
pub fn read(bytes: &[u8], items: ItemEncoding) -> Result<Filter, DecodeError> {
    if bytes.is_empty() {
        return Ok(Filter::Empty);
    }
    let Some((body, &trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        return Err(DecodeError::TooShort { need: TRAILER_BYTES as u64, got: bytes.len() as u64 });
    };
    match trailer {
        [RIBBON, seed, blocks @ ..] => RibbonFilter::parse(body, seed, blocks, items).map(Filter::Ribbon),
        _ => bloom::read(body, trailer, items),
    }
}

/// Could these bytes be such a filter? The trailer must be one RocksDB writes, and the length fit it.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Some((body, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else { return Resemblance::No };
    let could = match *trailer {
        [RIBBON, _, blocks @ ..] => ribbon::Columns::new(body, blocks).is_ok(),
        _ => !body.is_empty() && bloom::Trailer::new(body, *trailer).is_ok(),
    };
    Resemblance::could(could)
}
