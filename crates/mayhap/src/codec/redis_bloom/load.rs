//! `BF.LOADCHUNK`.

use std::ops::Range;

use super::super::DecodeError;
use super::super::cursor::Cursor;
use super::super::redis_chunk::{Coverage, LoadError, offset_of};
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
    coverage: Coverage,
}

impl Loader {
    /// Nothing yet. The filter will take no more than `limit_bytes`, whatever its header says.
    #[must_use]
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, filter: None, coverage: Coverage::new() }
    }

    /// Takes `BF.LOADCHUNK key iterator chunk`.
    ///
    /// # Errors
    /// [`LoadError`] for what belongs nowhere, and for chunks scattered so widely that it is too much to remember which bytes came;
    /// nothing has changed then.
    pub fn load(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.filter {
            Some(filter) => {
                let start = offset_of(iterator, chunk)?;
                self.coverage.check(start, chunk.len() as u64)?;
                load_chunk(filter, iterator, chunk)?;
                self.coverage.add(start, chunk.len() as u64);
                Ok(())
            }
            None if iterator == 1 => {
                self.filter = Some(from_header(chunk, self.limit_bytes).map_err(LoadError::BadHeader)?);
                Ok(())
            }
            None => Err(LoadError::NoHeader { iterator }),
        }
    }

    /// One that goes on where another was: the filter so far, and which bytes of it came. `None` for bytes that are not its own.
    #[must_use]
    pub fn resume(filter: ScalableBloom, came: &[Range<u64>]) -> Option<Self> {
        let coverage = Coverage::of(came)?;
        let loader = Self { limit_bytes: filter.memory_bytes(), filter: Some(filter), coverage };
        (came.last().map_or(0, |piece| piece.end) <= loader.progress().1).then_some(loader)
    }

    /// Which bytes came: pieces that neither overlap nor touch, in order.
    #[must_use]
    pub fn came(&self) -> &[Range<u64>] {
        self.coverage.pieces()
    }

    /// The filter so far, once its header came. What did not come yet has no bit set.
    #[must_use]
    pub const fn filter(&self) -> Option<&ScalableBloom> {
        self.filter.as_ref()
    }

    /// How many bytes of the filter came, each counted once, and how many there are; 0 of 0 before the header.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let bytes = |filter: &ScalableBloom| filter.layers().iter().map(layer_bytes).sum();
        (self.coverage.bytes(), self.filter.as_ref().map_or(0, bytes))
    }

    /// Has every byte of the filter come?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let (came, all) = self.progress();
        self.filter.is_some() && came == all
    }

    /// The filter, whether it [is complete](Self::is_complete) or not: what did not come has no bit set.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`] if not even the header came.
    pub fn finish(self) -> Result<ScalableBloom, DecodeError> {
        self.filter.ok_or(DecodeError::TooShort { need: super::HEADER_BYTES, got: 0 })
    }
}
