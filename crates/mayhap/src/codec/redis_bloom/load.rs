//! `BF.LOADCHUNK`.

use super::super::DecodeError;
use super::super::cursor::Cursor;
use super::super::redis_chunk::{LoadError, offset_of};
use super::super::redis_loader::{ChunkLoader, Chunked};
use super::{layer_bytes, link};
use crate::scalable::ScalableBloom;
use crate::sizing;

/// The filter a header announces, with no bit set yet: `BF.LOADCHUNK key 1 header` where there is no such key.
///
/// The header alone decides how much memory that takes, so no filter of more than `limit_bytes` is made.
///
/// # Errors
/// [`DecodeError`] for a header RedisBloom would not take (`received bad data`) and for one past the limit.
pub fn from_header(header: &[u8], limit_bytes: u64) -> Result<ScalableBloom, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = link::Head::read(&mut cursor)?;
    cursor.finish()?;
    sizing::check_memory(head.memory_bytes()?, limit_bytes)?;
    head.filter()
}

/// How many bytes of bitmaps follow this header, for who takes a dump from somebody else and must know when to stop.
///
/// # Errors
/// [`DecodeError`] for a header RedisBloom would not take.
pub fn bytes_behind(header: &[u8]) -> Result<u64, DecodeError> {
    let mut cursor = Cursor::new(header);
    let head = link::Head::read(&mut cursor)?;
    cursor.finish()?;
    Ok(head.links.iter().fold(0_u64, |sum, link| sum.saturating_add(link.bytes)))
}

/// Puts a chunk where it belongs: `BF.LOADCHUNK key iterator chunk` for a filter that is there. The chunk replaces what was in its place.
///
/// # Errors
/// [`LoadError`] if it belongs nowhere, or the filter is not RedisBloom's; nothing has changed then.
pub fn load_chunk(filter: &mut ScalableBloom, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
    if super::options(filter).is_err() {
        return Err(LoadError::OtherPlacement);
    }
    let mut at = offset_of(iterator, chunk)?;
    let bytes = filter.chunk_bytes();
    let (offset, length) = (at, chunk.len() as u64);
    for layer in filter.layers_mut() {
        let room = layer_bytes(layer);
        if at >= room {
            at -= room;
            continue;
        }
        if length > room - at {
            return Err(LoadError::TooBig { chunk: length, room: room - at });
        }
        layer.bits_mut().put_le_bytes(at as usize, chunk);
        return Ok(());
    }
    Err(LoadError::NoLayer { offset, bytes })
}

/// A filter on its way in, chunk by chunk: the header first, then the others in any order and any number of times. What did not come yet
/// has no bit set.
pub type Loader = ChunkLoader<ScalableBloom>;

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
