//! `CF.LOADCHUNK`.

use mayhap::{DecodeError, ScalableCuckoo, internals};

use super::{CuckooHead, HEADER_BYTES};
use crate::cursor::Cursor;
use crate::redis_chunk::{LoadError, offset_of};
use crate::redis_loader::{ChunkLoader, Chunked};

/// Creates the filter that a header describes, with all slots free: `CF.LOADCHUNK key 1 header` for a new key.
///
/// The header alone determines the memory, so a filter of more than `limit_bytes` is rejected.
///
/// # Errors
/// [`DecodeError`] for a header that RedisBloom cannot have made (`Invalid header`), and for a filter above the limit.
pub fn from_header(header: &[u8], limit_bytes: u64) -> Result<ScalableCuckoo, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = CuckooHead::read(&mut cursor)?;
    cursor.finish()?;
    let (shape, _) = head.shape()?;
    internals::check_memory(shape.memory_bytes(head.tables)?, limit_bytes)?;
    head.filter()
}

/// Returns the number of bytes of tables after this header. A caller that receives a dump needs it to know when to stop.
///
/// # Errors
/// [`DecodeError`] for a header that RedisBloom cannot have made.
pub fn bytes_behind(header: &[u8]) -> Result<u64, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = CuckooHead::read(&mut cursor)?;
    cursor.finish()?;
    // A slot is a byte.
    head.shape().map(|(_, slots)| slots)
}

/// Writes a chunk to its place in an existing filter, replacing the bytes there: `CF.LOADCHUNK key iterator chunk`.
///
/// A chunk that begins after the last table is rejected; RedisBloom sometimes writes it into the last table.
///
/// # Errors
/// [`LoadError`] if the chunk does not fit the filter, or the filter does not hash like RedisBloom. The filter is unchanged.
pub fn load_chunk(filter: &mut ScalableCuckoo, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
    if super::check(filter).is_err() {
        return Err(LoadError::OtherPlacement);
    }
    let offset = offset_of(iterator, chunk)?;
    let Some((start, length)) = internals::scalable_cuckoo::table_around(filter, offset) else {
        return Err(LoadError::NoLayer { offset, bytes: filter.capacity() });
    };
    let room = (start + length) as u64 - offset;
    if chunk.len() as u64 > room {
        return Err(LoadError::TooBig { chunk: chunk.len() as u64, room });
    }
    internals::scalable_cuckoo::put_slots(filter, offset as usize, chunk);
    Ok(())
}

/// Loads a filter chunk by chunk: the header first, then the other chunks in any order, each any number of times. Slots that were not
/// loaded yet are free.
pub type CuckooLoader = ChunkLoader<ScalableCuckoo>;

impl Chunked for ScalableCuckoo {
    const HEADER_BYTES: u64 = HEADER_BYTES;

    fn announced(header: &[u8], limit_bytes: u64) -> Result<Self, DecodeError> {
        from_header(header, limit_bytes)
    }

    fn put_chunk(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
        load_chunk(self, iterator, chunk)
    }

    fn chunk_bytes(&self) -> u64 {
        self.capacity()
    }

    fn limit_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}
