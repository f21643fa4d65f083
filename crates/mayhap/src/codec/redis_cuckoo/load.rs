//! `CF.LOADCHUNK`.

use std::ops::Range;

use super::super::DecodeError;
use super::super::cursor::Cursor;
use super::super::redis_chunk::{Coverage, LoadError, offset_of};
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

/// A filter on its way in, chunk by chunk: the header first, then the others in any order and any number of times.
#[derive(Debug)]
pub struct Loader {
    limit_bytes: u64,
    filter: Option<ScalableCuckoo>,
    coverage: Coverage,
}

impl Loader {
    /// Nothing yet. The filter will take no more than `limit_bytes`, whatever its header says.
    #[must_use]
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, filter: None, coverage: Coverage::new() }
    }

    /// Takes `CF.LOADCHUNK key iterator chunk`.
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
    pub fn resume(filter: ScalableCuckoo, came: &[Range<u64>]) -> Option<Self> {
        let coverage = Coverage::of(came)?;
        let loader = Self { limit_bytes: filter.memory_bytes(), filter: Some(filter), coverage };
        (came.last().map_or(0, |piece| piece.end) <= loader.progress().1).then_some(loader)
    }

    /// Which bytes came: pieces that neither overlap nor touch, in order.
    #[must_use]
    pub fn came(&self) -> &[Range<u64>] {
        self.coverage.pieces()
    }

    /// The filter so far, once its header came. What did not come yet is free slots.
    #[must_use]
    pub const fn filter(&self) -> Option<&ScalableCuckoo> {
        self.filter.as_ref()
    }

    /// How many bytes of the filter came, each counted once, and how many there are; 0 of 0 before the header.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let bytes = |filter: &ScalableCuckoo| filter.capacity();
        (self.coverage.bytes(), self.filter.as_ref().map_or(0, bytes))
    }

    /// Has every byte of the filter come?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let (came, all) = self.progress();
        self.filter.is_some() && came == all
    }

    /// The filter, whether it [is complete](Self::is_complete) or not: what did not come is free slots.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`] if not even the header came.
    pub fn finish(self) -> Result<ScalableCuckoo, DecodeError> {
        self.filter.ok_or(DecodeError::TooShort { need: HEADER_BYTES, got: 0 })
    }
}
