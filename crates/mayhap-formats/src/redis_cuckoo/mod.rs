//! RedisBloom's `CF.SCANDUMP` and `CF.LOADCHUNK`: everything little-endian, without a magic number, a version or a checksum.
//!
//! ```text
//! iterator 1: 38 bytes                                                                                  later iterators
//! ┌───────┬─────────┬─────────┬────────┬─────────────┬────────────────┬───────────┐   ┌─────────┬─────────┬───
//! │ items │ buckets │ deletes │ tables │ bucket size │ max iterations │ expansion │   │ table 0 │ table 1 │ …
//! │ 8     │ 8       │ 8       │ 8      │ 2           │ 2              │ 2         │   │ slots   │ slots   │
//! └───────┴─────────┴─────────┴────────┴─────────────┴────────────────┴───────────┘   └─────────┴─────────┴───
//! ```
//!
//! Table `i` has `buckets · expansion^i` buckets; a slot is one byte, 0 if it is free. Iterators are those of
//! [`redis_bloom`](super::redis_bloom), but a table of at most 16 MiB is always sent whole and from its beginning.
//!
//! [`read`] and [`write()`] use a dump in one piece: the header followed by all tables.
//!
//! Traps:
//! * RedisBloom hashes the bytes a client sent, and clients send numbers as decimal digits. Query `"42"`, not `42_u64`.
//! * `CF.COUNT` counts an item twice if its two buckets are the same, which is common in tiny filters. [`count`] does so too;
//!   [`ScalableCuckoo::count`] does not.
//! * `CF.SCANDUMP` of an empty filter returns nothing at all, and so does [`chunk`]. [`chunks`] returns the header, as a rewritten
//!   append-only file contains it.
//! * Any client can forge items for these filters, and so delete the items of others, because the hash has no secret. [`create_keyed`] filters
//!   have a secret key; RedisBloom cannot read them.
//! * "Number of items deleted" restarts from 0 with every compaction.
//!
//! ```
//! use mayhap_formats::redis_cuckoo;
//! use mayhap::ScalableCuckooShape;
//!
//! let mut online = redis_cuckoo::create(ScalableCuckooShape::for_capacity(1_000)?)?; // CF.RESERVE online 1000
//! online.insert("ada")?; // CF.ADD online ada
//! let mut dump = Vec::new();
//! redis_cuckoo::write(&online, &mut dump)?;
//!
//! let mut same = redis_cuckoo::read(&dump)?;
//! assert!(same.remove("ada") && !same.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod load;

pub use load::{CuckooLoader, bytes_behind, from_header, load_chunk};

use std::io::Write;

use mayhap::internals::MAX_INSERTED;
use mayhap::{
    BuildError, DecodeError, ForeignHash, HashScheme, Item, ItemEncoding, ScalableCuckoo,
    ScalableCuckooShape, SecretKey, internals,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError};
pub use crate::redis_chunk::{LoadError, MAX_CHUNK_BYTES};
pub use crate::redis_loader::{ChunkLoader, Chunked};

/// Bytes of the header.
const HEADER_BYTES: u64 = 38;

/// Creates an empty filter like `CF.RESERVE`; the shape has its rounding and its defaults.
///
/// # Errors
/// [`BuildError::OutOfMemory`] if the allocation fails.
pub fn create(shape: ScalableCuckooShape) -> Result<ScalableCuckoo, BuildError> {
    ScalableCuckoo::with_shape(shape, scheme())
}

/// Creates the same filter with a secret key instead of RedisBloom's hash. Its items cannot be forged without the key, and RedisBloom cannot
/// read it. It can be saved as a `.mayhap` file; all writers of this module reject it.
///
/// # Errors
/// As [`create`].
pub fn create_keyed(shape: ScalableCuckooShape, key: SecretKey) -> Result<ScalableCuckoo, BuildError> {
    ScalableCuckoo::with_shape(shape, HashScheme::keyed(key))
}

/// Returns whether [`create_keyed`] made this filter.
#[must_use]
pub const fn is_keyed(filter: &ScalableCuckoo) -> bool {
    matches!(filter.scheme(), HashScheme::Keyed { .. })
}

/// The hash of all these filters except keyed ones: the bytes of an item are hashed unchanged.
fn scheme() -> HashScheme {
    internals::foreign_scheme(ForeignHash::RedisCuckoo, ItemEncoding::Bytes)
}

/// Returns the reply to `CF.COUNT`: copies in the first bucket plus copies in the second, even if they are the same bucket.
#[must_use]
pub fn count<I: Item + ?Sized>(filter: &ScalableCuckoo, item: &I) -> u64 {
    internals::scalable_cuckoo::count_bucket_by_bucket(filter, filter.hash(item))
}

/// A filter as a dump or an RDB file describes it: everything except its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct CuckooHead {
    pub(super) items: u64,
    pub(super) buckets: u64,
    pub(super) deletes: u64,
    pub(super) tables: u64,
    pub(super) bucket_size: u64,
    pub(super) max_iterations: u64,
    pub(super) expansion: u64,
}

impl CuckooHead {
    pub(super) fn of(filter: &ScalableCuckoo) -> Self {
        let shape = filter.shape();
        Self {
            items: filter.inserted(),
            buckets: shape.buckets(),
            deletes: filter.removed(),
            tables: filter.tables() as u64,
            bucket_size: shape.bucket_size().into(),
            max_iterations: shape.max_iterations().into(),
            expansion: shape.expansion().into(),
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            items: cursor.u64_le()?,
            buckets: cursor.u64_le()?,
            deletes: cursor.u64_le()?,
            tables: cursor.u64_le()?,
            bucket_size: cursor.u16_le()?.into(),
            max_iterations: cursor.u16_le()?.into(),
            expansion: cursor.u16_le()?.into(),
        })
    }

    /// Returns the shape, if RedisBloom can have made it, and the number of slots in all tables.
    pub(super) fn shape(&self) -> Result<(ScalableCuckooShape, u64), DecodeError> {
        let narrow = |field, got| u32::try_from(got).map_err(|_| DecodeError::BadField { field, got });
        let shape = internals::scalable_cuckoo::from_parts(
            self.buckets,
            narrow("bucket size", self.bucket_size)?,
            narrow("max iterations", self.max_iterations)?,
            narrow("expansion", self.expansion)?,
        )?;
        let slots = shape.slots(self.tables)?;
        if self.items > slots {
            return Err(DecodeError::BadField { field: "items", got: self.items });
        }
        if self.deletes > MAX_INSERTED {
            return Err(DecodeError::BadField { field: "deletes", got: self.deletes });
        }
        Ok((shape, slots))
    }

    /// Creates the filter with all slots free.
    pub(super) fn filter(&self) -> Result<ScalableCuckoo, DecodeError> {
        let (shape, _) = self.shape()?;
        Ok(internals::scalable_cuckoo::of_tables(shape, scheme(), self.tables, self.items, self.deletes)?)
    }
}

/// `Ok` for a filter that hashes like RedisBloom.
pub(super) fn check(filter: &ScalableCuckoo) -> Result<(), WriteError> {
    if *filter.scheme() == scheme() {
        return Ok(());
    }
    Err(WriteError::OtherPlacement {
        needs: "RedisBloom's MurmurHash64A for cuckoo filters",
        got: format!("{:?}", filter.scheme()),
    })
}

/// Reads the filter in a dump of one piece: the header, directly followed by all tables.
///
/// # Errors
/// [`DecodeError`] for anything RedisBloom cannot have made.
pub fn read(bytes: &[u8]) -> Result<ScalableCuckoo, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let head = CuckooHead::read(&mut cursor)?;
    let (_, slots) = head.shape()?;
    let slots = cursor.take(slots)?;
    cursor.finish()?;
    let mut filter = head.filter()?;
    internals::scalable_cuckoo::put_slots(&mut filter, 0, slots);
    Ok(filter)
}

/// Writes the header and all tables in one piece.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that does not hash like RedisBloom, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &ScalableCuckoo, out: &mut dyn Write) -> Result<(), WriteError> {
    for (_, bytes) in chunks(filter)? {
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Returns whether these bytes look like the header of a dump, with or without the tables.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(bytes);
    let slots = CuckooHead::read(&mut cursor).and_then(|head| head.shape()).map(|(_, slots)| slots);
    Resemblance::could(slots.is_ok_and(|slots| [0, slots].contains(&(cursor.left() as u64))))
}

/// Returns the 38 bytes that `CF.SCANDUMP key 0` sends after the iterator 1.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that does not hash like RedisBloom.
pub fn header(filter: &ScalableCuckoo) -> Result<Vec<u8>, WriteError> {
    check(filter)?;
    let head = CuckooHead::of(filter);
    let mut header = Vec::with_capacity(HEADER_BYTES as usize);
    for wide in [head.items, head.buckets, head.deletes, head.tables] {
        header.extend_from_slice(&wide.to_le_bytes());
    }
    // The shape keeps each of them in 16 bits.
    for narrow in [head.bucket_size, head.max_iterations, head.expansion] {
        header.extend_from_slice(&(narrow as u16).to_le_bytes());
    }
    Ok(header)
}

/// Returns the reply to `CF.SCANDUMP key iterator`: the next iterator and the chunk. Returns `(0, [])`, which is `nil` on the wire, after the
/// last chunk and for an empty filter.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that does not hash like RedisBloom.
pub fn chunk(filter: &ScalableCuckoo, iterator: i64) -> Result<(i64, Vec<u8>), WriteError> {
    if filter.inserted() == 0 {
        check(filter)?;
        return Ok((0, Vec::new()));
    }
    any_chunk(filter, iterator)
}

fn any_chunk(filter: &ScalableCuckoo, iterator: i64) -> Result<(i64, Vec<u8>), WriteError> {
    if iterator == 0 {
        return Ok((1, header(filter)?));
    }
    check(filter)?;
    let at = u64::try_from(iterator).ok().and_then(|iterator| iterator.checked_sub(1));
    let Some((at, (start, length))) =
        at.and_then(|at| Some((at, internals::scalable_cuckoo::table_around(filter, at)?)))
    else {
        return Ok((0, Vec::new()));
    };
    let from = if length as u64 <= MAX_CHUNK_BYTES { start as u64 } else { at };
    let count = ((start + length) as u64 - from).min(MAX_CHUNK_BYTES);
    // A slot number fits: there are at most 2^42 of them.
    Ok((
        (from + count) as i64 + 1,
        internals::scalable_cuckoo::slot_bytes(filter, from as usize, count as usize),
    ))
}

/// Returns the header and all tables, even for an empty filter. Each chunk has the iterator that `CF.LOADCHUNK` needs.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that does not hash like RedisBloom.
pub fn chunks(filter: &ScalableCuckoo) -> Result<impl Iterator<Item = (i64, Vec<u8>)>, WriteError> {
    check(filter)?;
    let mut iterator = 0;
    Ok(std::iter::from_fn(move || {
        let (next, bytes) = any_chunk(filter, iterator).ok().filter(|(next, _)| *next != 0)?;
        iterator = next;
        Some((next, bytes))
    }))
}

/// The *Size* of `CF.INFO`: the memory that RedisBloom uses for such a filter, including its own small structures.
#[must_use]
pub fn info_size_bytes(filter: &ScalableCuckoo) -> u64 {
    40 + 16 * filter.tables() as u64 + filter.capacity()
}
