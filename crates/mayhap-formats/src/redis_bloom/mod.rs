//! RedisBloom's `BF.SCANDUMP` and `BF.LOADCHUNK`: everything little-endian, without a magic number, a version or a checksum.
//!
//! ```text
//! iterator 1                                                                     later iterators
//! ┌────────────┬───────────┬──────────┬─────────┬──── for every layer: ──────────┐   ┌─────────┬─────────┬───
//! │ items      │ layers    │ options  │ growth  │ bytes │ bits │ items │ error │ …│   │ layer 0 │ layer 1 │ …
//! │ 8          │ 4         │ 4: 5, 13 │ 4       │ 53 bytes, below                │   │ bitmap  │ bitmap  │
//! └────────────┴───────────┴──────────┴─────────┴────────────────────────────────┘   └─────────┴─────────┴───
//!
//! a layer:  bytes 8 │ bits 8 │ items 8 │ error f64 │ bits per entry f64 │ probes 4 │ entries 8 │ n2 1
//! ```
//!
//! The reply to iterator `n` is `[n + length, chunk]`. The chunk begins at byte `n - 1` of the concatenated bitmaps. It is at most 16 MiB long and
//! never extends past the end of a layer. `LOADCHUNK` takes the iterator that came *with* the chunk. [`chunk`] replies as `SCANDUMP` does,
//! [`chunks`] returns all chunks in order, and a [`BloomLoader`] accepts them as `LOADCHUNK` does.
//!
//! [`read`] and [`write()`] use a dump in one piece: the header followed by all bitmaps. A client that appends every chunk to a file has exactly
//! that. The header contains the length of each bitmap.
//!
//! | options | made by | |
//! |---|---|---|
//! | 5 | `BF.RESERVE` | 64-bit hash, sizes not rounded to powers of two |
//! | 13 | `BF.RESERVE … NONSCALING` | the same, one layer |
//! | without 4, without 1, with 2 | versions before 2 | rejected: [`DecodeError::Unsupported`] |
//!
//! Traps:
//! * RedisBloom hashes the bytes a client sent, and clients send numbers as decimal digits. Query `"42"`, not `42_u64`.
//! * A scaling filter's first layer has *half* the error rate it was reserved with; [`ScalableBloom::target_fpr`] is the whole.
//! * An item is counted only if it sets a bit, so a filter is full somewhat later than after `capacity` insertions.
//! * Any client can forge items for these filters, because the hash has no secret. Use them for items that no attacker chooses. Otherwise use
//!   [`create_keyed`], which has the same sizes and a secret key. RedisBloom cannot read keyed filters, and the writers of this module reject
//!   them.
//!
//! ```
//! use mayhap_formats::redis_bloom::{self, BloomLoader, Scaling};
//!
//! let mut seen = redis_bloom::create(100, 0.01, Scaling::By(2))?; // BF.RESERVE seen 0.01 100
//! seen.insert("ada")?; // BF.ADD seen ada
//!
//! let mut loader = BloomLoader::new(1 << 20); // no filter larger than a megabyte
//! for (iterator, chunk) in redis_bloom::chunks(&seen)? {
//!     loader.load(iterator, &chunk)?; // BF.LOADCHUNK same iterator chunk
//! }
//! let same = loader.finish()?;
//! assert!(same.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod link;
mod load;

pub(super) use link::{Link, assemble, options};
pub use load::{BloomLoader, bytes_behind, from_header, load_chunk};

use std::io::Write;

use mayhap::internals::scalable::{COMPACT_TIGHTENING, Plan, REDIS_TIGHTENING};
use mayhap::{
    Bloom, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding, ScalableBloom, ScalableShape,
    SecretKey, internals,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
pub use crate::redis_chunk::{LoadError, MAX_CHUNK_BYTES};
pub use crate::redis_loader::{ChunkLoader, Chunked};

/// Whether and how a filter grows when it is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// `EXPANSION n`: each layer holds `n` times as many items as the one before, 1 to 32 768. The default is 2.
    By(u32),
    /// Grows `by` times like [`By`](Self::By), but each layer has `tightening` times the rate of the one before, strictly between 0 and 1.
    /// The second layer has `(1 - tightening)` times the rate of the first. The rates of all possible layers still add up to the promised
    /// rate. RedisBloom reads such layers as its own; its own have a tightening of 1/2.
    Tightened {
        /// Each layer holds this many times as many items as the one before, 1 to 32 768.
        by: u32,
        /// The tightening; use [`COMPACT`] unless there is a reason not to.
        tightening: f64,
    },
    /// `NONSCALING`: items beyond the capacity are rejected.
    Never,
}

/// The tightening that takes the least memory in filters that grow a lot. A filter of 1 % that grew from 1 000 to a million items, by 2, takes 17.8
/// bits per item; with halving it takes 23.1. After one growth it takes 13.7 (with halving 12.0). Before the first growth they are equal.
pub const COMPACT: f64 = COMPACT_TIGHTENING;

/// Higher rates are silently reduced to this one.
const MAX_ERROR: f64 = 0.25;
/// The largest `EXPANSION`.
const MAX_EXPANSION: u32 = 32_768;
/// The growth of a filter that never grows.
const UNUSED_GROWTH: u32 = 2;

/// Bytes of the header in front of the layers.
const HEADER_BYTES: u64 = 20;
/// Bytes of a layer in the header.
const LINK_BYTES: u64 = 53;

/// Creates an empty filter like `BF.RESERVE key error capacity`. An error above 0.25 becomes 0.25, as in RedisBloom since version 8.
///
/// Accepts any capacity that this library supports; the command accepts at most 2^30 since version 8.
///
/// # Errors
/// [`BuildError`] for an error rate outside (0, 1), a capacity of 0, an expansion outside 1 to 32 768, or an allocation that fails.
pub fn create(capacity: u64, error: f64, scaling: Scaling) -> Result<ScalableBloom, BuildError> {
    ScalableBloom::with_shape(shape(capacity, error, scaling)?, scheme())
}

/// Creates the same filter with a secret key instead of RedisBloom's hash. It has the same layers and the same rate, but its items cannot be
/// forged without the key, and RedisBloom cannot read it. It can be saved as a `.mayhap` file; all writers of this module reject it.
///
/// # Errors
/// As [`create`].
pub fn create_keyed(
    capacity: u64,
    error: f64,
    scaling: Scaling,
    key: SecretKey,
) -> Result<ScalableBloom, BuildError> {
    ScalableBloom::with_shape(shape(capacity, error, scaling)?, HashScheme::keyed(key))
}

/// Returns whether [`create_keyed`] made this filter.
#[must_use]
pub fn is_keyed(filter: &ScalableBloom) -> bool {
    internals::scalable::plan(filter.shape()) != Plan::Mayhap
        && matches!(filter.scheme(), HashScheme::Keyed { .. })
}

/// Returns the shape of the filter that [`create`] makes, initially and after any growth. Use it to compute the memory in advance.
///
/// # Errors
/// As [`create`], except for failed allocations.
pub fn shape(capacity: u64, error: f64, scaling: Scaling) -> Result<ScalableShape, BuildError> {
    let (plan, growth, tightening) = match scaling {
        Scaling::By(growth) => (Plan::RedisBloom, growth, REDIS_TIGHTENING),
        Scaling::Tightened { by, tightening } => (Plan::RedisBloomTightened, by, tightening),
        Scaling::Never => (Plan::RedisBloomFixed, UNUSED_GROWTH, REDIS_TIGHTENING),
    };
    if !(1..=MAX_EXPANSION).contains(&growth) {
        return Err(BuildError::GrowthOutOfRange { got: growth.into(), limit: MAX_EXPANSION.into() });
    }
    let error = check_rate(error)?.min(MAX_ERROR);
    internals::scalable::of_redis_bloom(plan, capacity, error, growth, tightening)
}

/// The hash of all these filters except keyed ones: the bytes of an item are hashed unchanged.
pub(super) fn scheme() -> HashScheme {
    internals::foreign_scheme(ForeignHash::RedisBloom, ItemEncoding::Bytes)
}

/// Reads the filter in a dump of one piece: the header, directly followed by all bitmaps.
///
/// # Errors
/// [`DecodeError`] for anything that RedisBloom would not load, for layers it can never have made, and for filters of its versions before 2.
pub fn read(bytes: &[u8]) -> Result<ScalableBloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let head = link::BloomHead::read(&mut cursor)?;
    let need = head.links.iter().fold(cursor.position() as u64, |sum, link| sum.saturating_add(link.bytes));
    if need > bytes.len() as u64 {
        return Err(DecodeError::TooShort { need, got: bytes.len() as u64 });
    }
    let mut filter = head.filter()?;
    for (layer, link) in internals::scalable::layers_mut(&mut filter).iter_mut().zip(&head.links) {
        internals::bloom::bits_mut(layer).put_le_bytes(0, cursor.take(link.bytes)?);
    }
    cursor.finish()?;
    Ok(filter)
}

/// Writes the header and all bitmaps in one piece.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &ScalableBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    for (_, bytes) in chunks(filter)? {
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Returns whether these bytes look like the header of a dump, with or without the bitmaps.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let bitmaps = link::BloomHead::read(&mut cursor)
        .map(|head| head.links.iter().fold(0_u64, |sum, link| sum.saturating_add(link.bytes)));
    Resemblance::could(bitmaps.is_ok_and(|bitmaps| [0, bitmaps].contains(&(cursor.left() as u64))))
}

/// Returns the header that `BF.SCANDUMP key 0` sends after the iterator 1.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn header(filter: &ScalableBloom) -> Result<Vec<u8>, WriteError> {
    let options = options(filter)?;
    let layers = filter.layers();
    let mut header = Vec::with_capacity((HEADER_BYTES + LINK_BYTES * layers.len() as u64) as usize);
    header.extend_from_slice(&filter.inserted().to_le_bytes());
    // There are at most 1 024 layers, and the growth was read as 32 bits.
    header.extend_from_slice(&(layers.len() as u32).to_le_bytes());
    header.extend_from_slice(&options.to_le_bytes());
    header.extend_from_slice(&(filter.shape().growth_factor() as u32).to_le_bytes());
    for layer in layers {
        Link::of(layer).write(&mut header);
    }
    Ok(header)
}

/// Returns the reply to `BF.SCANDUMP key iterator`: the next iterator and the chunk. Returns `(0, [])` after the last chunk.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn chunk(filter: &ScalableBloom, iterator: i64) -> Result<(i64, Vec<u8>), WriteError> {
    if iterator == 0 {
        return Ok((1, header(filter)?));
    }
    options(filter)?;
    let past_the_end = (0, Vec::new());
    let Some(mut at) = u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1)) else {
        return Ok(past_the_end);
    };
    for layer in filter.layers() {
        let bytes = layer_bytes(layer);
        if at < bytes {
            let count = (bytes - at).min(MAX_CHUNK_BYTES);
            let chunk = internals::bloom::bits(layer).le_bytes(at as usize, count as usize);
            return Ok((iterator.saturating_add_unsigned(count), chunk));
        }
        at -= bytes;
    }
    Ok(past_the_end)
}

/// Returns all chunks that `BF.SCANDUMP` sends until it returns 0, the header first. Each has the iterator that `BF.LOADCHUNK` needs.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn chunks(filter: &ScalableBloom) -> Result<impl Iterator<Item = (i64, Vec<u8>)>, WriteError> {
    options(filter)?;
    let mut iterator = 0;
    Ok(std::iter::from_fn(move || {
        let (next, bytes) = chunk(filter, iterator).ok().filter(|(next, _)| *next != 0)?;
        iterator = next;
        Some((next, bytes))
    }))
}

/// The *Size* of `BF.INFO`: the memory that RedisBloom uses for such a filter, including its own small structures.
#[must_use]
pub fn info_size_bytes(filter: &ScalableBloom) -> u64 {
    32 + filter.layers().iter().map(|layer| 64 + layer_bytes(layer)).sum::<u64>()
}

/// The bytes of a layer's bitmap. In our filters, the last bits are in a whole word.
pub(super) fn layer_bytes(layer: &Bloom) -> u64 {
    layer.shape().bits().div_ceil(8)
}
