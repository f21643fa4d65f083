//! `BF.LOADCHUNK`.

use mayhap::{DecodeError, ScalableBloom, internals};

use super::{layer_bytes, link};
use crate::cursor::Cursor;
use crate::redis_chunk::{LoadError, offset_of};
use crate::redis_loader::{ChunkLoader, Chunked};

/// Creates the filter that a header describes, with no bit set: `BF.LOADCHUNK key 1 header` for a new key.
///
/// The header alone determines the memory, so a filter of more than `limit_bytes` is rejected.
///
/// # Errors
/// [`DecodeError`] for a header that RedisBloom would reject (`received bad data`), and for a filter above the limit.
pub fn from_header(header: &[u8], limit_bytes: u64) -> Result<ScalableBloom, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = link::BloomHead::read(&mut cursor)?;
    cursor.finish()?;
    internals::check_memory(head.memory_bytes()?, limit_bytes)?;
    head.filter()
}

/// Returns the number of bytes of bitmaps after this header. A caller that receives a dump needs it to know when to stop.
///
/// # Errors
/// [`DecodeError`] for a header that RedisBloom would reject.
pub fn bytes_behind(header: &[u8]) -> Result<u64, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = link::BloomHead::read(&mut cursor)?;
    cursor.finish()?;
    Ok(head.links.iter().fold(0_u64, |sum, link| sum.saturating_add(link.bytes)))
}

/// Writes a chunk to its place in an existing filter, replacing the bytes there: `BF.LOADCHUNK key iterator chunk`.
///
/// # Errors
/// [`LoadError`] if the chunk does not fit the filter, or the filter is not RedisBloom's. The filter is unchanged.
pub fn load_chunk(filter: &mut ScalableBloom, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
    if super::options(filter).is_err() {
        return Err(LoadError::OtherPlacement);
    }
    let mut at = offset_of(iterator, chunk)?;
    let bytes = filter.chunk_bytes();
    let (offset, length) = (at, chunk.len() as u64);
    for layer in internals::scalable::layers_mut(filter) {
        let room = layer_bytes(layer);
        if at >= room {
            at -= room;
            continue;
        }
        if length > room - at {
            return Err(LoadError::TooBig { chunk: length, room: room - at });
        }
        internals::bloom::bits_mut(layer).put_le_bytes(at as usize, chunk);
        return Ok(());
    }
    Err(LoadError::NoLayer { offset, bytes })
}

/// Loads a filter chunk by chunk: the header first, then the other chunks in any order, each any number of times. Bits that were not loaded
/// yet are not set.
pub type BloomLoader = ChunkLoader<ScalableBloom>;

impl Chunked for ScalableBloom {
    const HEADER_BYTES: u64 = super::HEADER_BYTES;

    fn announced(header: &[u8], limit_bytes: u64) -> Result<Self, DecodeError> {
        from_header(header, limit_bytes)
    }

    fn put_chunk(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
        load_chunk(self, iterator, chunk)
    }

    fn chunk_bytes(&self) -> u64 {
        self.layers().iter().map(layer_bytes).sum()
    }

    fn limit_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}
