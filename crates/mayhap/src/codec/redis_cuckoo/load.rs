//! `CF.LOADCHUNK`.

use super::super::DecodeError;
use super::super::cursor::Cursor;
use super::super::redis_chunk::{LoadError, offset_of};
use super::super::redis_loader::{ChunkLoader, Chunked};
use super::{HEADER_BYTES, Head};
use crate::scalable_cuckoo::ScalableCuckoo;
use crate::sizing;

/// The filter a header announces, with all slots free yet: `CF.LOADCHUNK key 1 header` where there is no such key.
///
/// The header alone decides how much memory that takes, so no filter of more than `limit_bytes` is made.
///
/// # Errors
/// [`DecodeError`] for a header of no filter RedisBloom can have made (`Invalid header`), and for one past the limit.
pub fn from_header(header: &[u8], limit_bytes: u64) -> Result<ScalableCuckoo, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = Head::read(&mut cursor)?;
    cursor.finish()?;
    let (shape, _) = head.shape()?;
    sizing::check_memory(shape.memory_bytes(head.tables)?, limit_bytes)?;
    head.filter()
}

/// How many bytes of tables follow this header, for who takes a dump from somebody else and must know when to stop.
///
/// # Errors
/// [`DecodeError`] for a header of no filter RedisBloom can have made.
pub fn bytes_behind(header: &[u8]) -> Result<u64, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = Head::read(&mut cursor)?;
    cursor.finish()?;
    // A slot is a byte.
    head.shape().map(|(_, slots)| slots)
}

/// Puts a chunk where it belongs: `CF.LOADCHUNK key iterator chunk` for a filter that is there. The chunk replaces what was in its place.
///
/// One that begins behind the last table is refused, where RedisBloom sometimes puts it into the last table.
///
/// # Errors
/// [`LoadError`] if it belongs nowhere, or the filter does not hash as RedisBloom's do; nothing has changed then.
pub fn load_chunk(filter: &mut ScalableCuckoo, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
    if super::check(filter).is_err() {
        return Err(LoadError::OtherPlacement);
    }
    let offset = offset_of(iterator, chunk)?;
    let Some((start, length)) = filter.table_around(offset) else {
        return Err(LoadError::NoLayer { offset, bytes: filter.capacity() });
    };
    let room = (start + length) as u64 - offset;
    if chunk.len() as u64 > room {
        return Err(LoadError::TooBig { chunk: chunk.len() as u64, room });
    }
    filter.put_slots(offset as usize, chunk);
    Ok(())
}

/// A filter on its way in, chunk by chunk: the header first, then the others in any order and any number of times. What did not come yet
/// is free slots.
pub type Loader = ChunkLoader<ScalableCuckoo>;

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
