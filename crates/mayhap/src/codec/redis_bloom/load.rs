//! `BF.LOADCHUNK`.

use super::super::DecodeError;
use super::super::cursor::Cursor;
use super::super::redis_chunk::{LoadError, offset_of};
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

/// Puts a chunk where it belongs: `BF.LOADCHUNK key iterator chunk` for a filter that is there. The chunk replaces what was in its place.
///
/// # Errors
/// [`LoadError`] if it belongs nowhere, or the filter is not RedisBloom's; nothing has changed then.
pub fn load_chunk(filter: &mut ScalableBloom, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
    if super::options(filter).is_err() {
        return Err(LoadError::OtherPlacement);
    }
    let mut at = offset_of(iterator, chunk)?;
    let bytes = filter.layers().iter().map(layer_bytes).sum();
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

/// A filter on its way in, chunk by chunk: the header first, then the others in any order and any number of times.
#[derive(Debug)]
pub struct Loader {
    limit_bytes: u64,
    filter: Option<ScalableBloom>,
}

impl Loader {
    /// Nothing yet. The filter will take no more than `limit_bytes`, whatever its header says.
    #[must_use]
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, filter: None }
    }

    /// Takes `BF.LOADCHUNK key iterator chunk`.
    ///
    /// # Errors
    /// [`LoadError`] for what RedisBloom refuses; nothing has changed then.
    pub fn load(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.filter {
            Some(filter) => load_chunk(filter, iterator, chunk),
            None if iterator == 1 => {
                self.filter = Some(from_header(chunk, self.limit_bytes).map_err(LoadError::BadHeader)?);
                Ok(())
            }
            None => Err(LoadError::NoHeader { iterator }),
        }
    }

    /// The filter. Whether all chunks came is not known: what did not has no bit set.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`] if not even the header came.
    pub fn finish(self) -> Result<ScalableBloom, DecodeError> {
        self.filter.ok_or(DecodeError::TooShort { need: super::HEADER_BYTES, got: 0 })
    }
}
