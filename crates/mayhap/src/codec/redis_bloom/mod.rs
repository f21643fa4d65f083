//! RedisBloom's `BF.SCANDUMP` and `BF.LOADCHUNK`: everything little-endian, without a mark, a version or a checksum.
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
//! The answer to iterator `n` is `[n + length, chunk]`: byte `n - 1` of all bitmaps one behind the other and those behind it, 16 MiB at most and
//! never past the end of a layer. `LOADCHUNK` takes the iterator that came *with* the chunk. [`chunk`] answers as `SCANDUMP` does, [`chunks`]
//! gives all of them in order, and a [`Loader`] takes them as `LOADCHUNK` does.
//!
//! A dump in one piece, as [`read`] and [`write()`] have it, is simply the header and all bitmaps behind it: what a client has that appends every
//! chunk to a file. The header says where each ends.
//!
//! | options | made by | |
//! |---|---|---|
//! | 5 | `BF.RESERVE` | 64-bit hash, sizes not rounded to powers of two |
//! | 13 | `BF.RESERVE … NONSCALING` | the same, one layer |
//! | without 4, without 1, with 2 | versions before 2 | refused: [`DecodeError::Unsupported`] |
//!
//! Traps:
//! * RedisBloom hashes the bytes a client sent, and clients send numbers as decimal digits. Ask for `"42"`, not for `42_u64`.
//! * A scaling filter's first layer has *half* the error rate it was reserved with; [`ScalableBloom::target_fpr`] is the whole.
//! * Items are counted if they set a bit, so a filter is full somewhat later than after `capacity` insertions.
//! * Any client can forge items for these filters: the hash has no secret. Use them for items that no attacker chooses, or
//!   [`create_keyed`] ones, which have the same measurements and a secret key. RedisBloom cannot read those, and nothing here writes them as if it could.
//!
//! ```
//! use mayhap::codec::redis_bloom::{self, Loader, Scaling};
//!
//! let mut seen = redis_bloom::create(100, 0.01, Scaling::By(2))?; // BF.RESERVE seen 0.01 100
//! seen.insert("ada")?; // BF.ADD seen ada
//!
//! let mut loader = Loader::new(1 << 20); // no filter larger than a megabyte
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
pub use load::{Loader, bytes_behind, from_header, load_chunk};

use std::io::Write;

use super::DecodeError;
use super::cursor::Cursor;
use super::foreign::{Resemblance, WriteError, check_rate};
pub use super::redis_chunk::{LoadError, MAX_CHUNK_BYTES};
pub use super::redis_loader::{ChunkLoader, Chunked};
use crate::bloom::Bloom;
use crate::error::BuildError;
use crate::hash::{ForeignHash, ForeignScheme, HashScheme, SecretKey};
use crate::item::ItemEncoding;
use crate::scalable::{COMPACT_TIGHTENING, Plan, REDIS_TIGHTENING, ScalableBloom, ScalableShape};

/// Does a filter grow when it is full?
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// `EXPANSION n`: the next layer holds so many times as many items, 1 to 32 768. The default is 2.
    By(u32),
    /// It grows `by` times as [`By`](Self::By), but a layer promises `tightening` times the rate of the one before, strictly between 0 and 1, and
    /// the second `(1 - tightening)` times that of the first: all layers ever still keep the promise together. RedisBloom reads such
    /// layers as its own, and its own would be those of 1/2.
    Tightened {
        /// The next layer holds so many times as many items, 1 to 32 768.
        by: u32,
        /// What [`COMPACT`] is, unless there is a reason.
        tightening: f64,
    },
    /// `NONSCALING`: items past its capacity are refused.
    Never,
}

/// The tightening that takes the least memory where filters grow much: a filter of 1 % that grew from 1 000 to a million items, by 2, takes 17.8
/// bits for each of them, where halving takes 23.1; after one growth it is 13.7 and 12.0, and before the first they are the same.
pub const COMPACT: f64 = COMPACT_TIGHTENING;

/// Rates above this are taken for it, silently.
const MAX_ERROR: f64 = 0.25;
/// The largest `EXPANSION`.
const MAX_EXPANSION: u32 = 32_768;
/// What a filter that never grows has for a growth.
const UNUSED_GROWTH: u32 = 2;

/// Bytes of the header in front of the layers.
const HEADER_BYTES: u64 = 20;
/// Bytes of a layer in the header.
const LINK_BYTES: u64 = 53;

/// An empty filter as `BF.RESERVE key error capacity` makes it. An error above 0.25 becomes 0.25, as it does there since version 8.
///
/// Any capacity this library can hold will do; the command takes no more than 2^30 since version 8.
///
/// # Errors
/// [`BuildError`] for an error rate outside (0, 1), a capacity of 0, an expansion outside 1 to 32 768, and for memory the system refuses.
pub fn create(capacity: u64, error: f64, scaling: Scaling) -> Result<ScalableBloom, BuildError> {
    ScalableBloom::with_shape(shape(capacity, error, scaling)?, scheme())
}

/// The same filter with a secret key in place of RedisBloom's hash: the same layers and the same rate, but its items cannot be forged without the key, and
/// RedisBloom cannot read it. It travels as a `.mayhap` file; all writers of this module refuse it.
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

/// Is it a filter that [`create_keyed`] made?
#[must_use]
pub fn is_keyed(filter: &ScalableBloom) -> bool {
    filter.shape().plan() != Plan::Mayhap && matches!(filter.scheme(), HashScheme::Keyed { .. })
}

/// The measurements of the filter that [`create`] makes, now and after any growth, for whoever wants to know the price first.
///
/// # Errors
/// As [`create`], but for memory.
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
    ScalableShape::of_redis_bloom(plan, capacity, error, growth, tightening)
}

/// How all of these filters but keyed ones hash: the bytes of an item as they are.
pub(super) fn scheme() -> HashScheme {
    ForeignScheme::new(ForeignHash::RedisBloom, ItemEncoding::Bytes).into()
}

/// The filter in a dump of one piece: the header and, right behind it, all bitmaps.
///
/// # Errors
/// [`DecodeError`] for anything RedisBloom would not load, for layers it can never have made, and for what its versions before 2 made.
pub fn read(bytes: &[u8]) -> Result<ScalableBloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let head = link::Head::read(&mut cursor)?;
    let need = head.links.iter().fold(cursor.position() as u64, |sum, link| sum.saturating_add(link.bytes));
    if need > bytes.len() as u64 {
        return Err(DecodeError::TooShort { need, got: bytes.len() as u64 });
    }
    let mut filter = head.filter()?;
    for (layer, link) in filter.layers_mut().iter_mut().zip(&head.links) {
        layer.bits_mut().put_le_bytes(0, cursor.take(link.bytes)?);
    }
    cursor.finish()?;
    Ok(filter)
}

/// Writes the header and all bitmaps in one piece.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's, [`WriteError::Io`] if `out` refuses.
pub fn write(filter: &ScalableBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    for (_, bytes) in chunks(filter)? {
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Could these bytes be the header of a dump, alone or with its bitmaps behind it?
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let bitmaps = link::Head::read(&mut cursor)
        .map(|head| head.links.iter().fold(0_u64, |sum, link| sum.saturating_add(link.bytes)));
    Resemblance::could(bitmaps.is_ok_and(|bitmaps| [0, bitmaps].contains(&(cursor.left() as u64))))
}

/// What `BF.SCANDUMP key 0` answers behind the iterator 1.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn header(filter: &ScalableBloom) -> Result<Vec<u8>, WriteError> {
    let options = options(filter)?;
    let layers = filter.layers();
    let mut header = Vec::with_capacity((HEADER_BYTES + LINK_BYTES * layers.len() as u64) as usize);
    header.extend_from_slice(&filter.inserted().to_le_bytes());
    // There are never more than 1 024 layers, and the growth came from 32 bits.
    header.extend_from_slice(&(layers.len() as u32).to_le_bytes());
    header.extend_from_slice(&options.to_le_bytes());
    header.extend_from_slice(&(filter.shape().growth_factor() as u32).to_le_bytes());
    for layer in layers {
        Link::of(layer).write(&mut header);
    }
    Ok(header)
}

/// What `BF.SCANDUMP key iterator` answers: the next iterator, and the chunk. `(0, [])` behind the last one.
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
            let chunk = layer.bits().le_bytes(at as usize, count as usize);
            return Ok((iterator.saturating_add_unsigned(count), chunk));
        }
        at -= bytes;
    }
    Ok(past_the_end)
}

/// Everything `BF.SCANDUMP` answers until it says 0, each chunk with the iterator `BF.LOADCHUNK` wants: the header first.
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

/// The *Size* of `BF.INFO`: what RedisBloom takes for such a filter, its own small structures included.
#[must_use]
pub fn info_size_bytes(filter: &ScalableBloom) -> u64 {
    32 + filter.layers().iter().map(|layer| 64 + layer_bytes(layer)).sum::<u64>()
}

/// The bytes of a layer's bitmap; of a filter of ours, whole words hold the last bits.
pub(super) fn layer_bytes(layer: &Bloom) -> u64 {
    layer.shape().bits().div_ceil(8)
}
