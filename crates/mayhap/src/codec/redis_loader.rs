//! A filter of RedisBloom's, of either family, that comes in chunks.

use std::ops::Range;

use super::DecodeError;
use super::redis_chunk::{Coverage, LoadError, offset_of};
use crate::error::BuildError;

/// A filter whose dump is a header and chunks.
pub trait Chunked: Sized {
    /// Bytes a header has at the least.
    const HEADER_BYTES: u64;

    /// The empty filter a header announces, of no more than so many bytes.
    ///
    /// # Errors
    /// [`DecodeError`] for a header RedisBloom would not take, and for one past the limit.
    fn announced(header: &[u8], limit_bytes: u64) -> Result<Self, DecodeError>;

    /// Puts a chunk where it belongs.
    ///
    /// # Errors
    /// [`LoadError`]; nothing has changed then.
    fn put_chunk(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError>;

    /// Bytes that all chunks have together.
    fn chunk_bytes(&self) -> u64;

    /// Bytes it takes in memory: what one that is resumed may take.
    fn limit_bytes(&self) -> u64;
}

/// A filter on its way in, chunk by chunk: the header first, then the others in any order and any number of times.
#[derive(Debug)]
pub struct ChunkLoader<F> {
    limit_bytes: u64,
    filter: Option<F>,
    coverage: Coverage,
}

impl<F: Chunked> ChunkLoader<F> {
    /// Nothing yet. The filter will take no more than `limit_bytes`, whatever its header says.
    #[must_use]
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, filter: None, coverage: Coverage::new() }
    }

    /// Bytes of memory that the filter takes which a header announces; 0 for a header of none.
    #[must_use]
    pub fn bytes_for(header: &[u8]) -> u64 {
        // It is told that there is no memory, to say how much it needs.
        match F::announced(header, 0) {
            Err(DecodeError::Unbuildable(BuildError::TooLarge { bytes, .. })) => bytes,
            _ => 0,
        }
    }

    /// Takes `LOADCHUNK key iterator chunk`.
    ///
    /// # Errors
    /// [`LoadError`] for what belongs nowhere, and for chunks scattered so widely that it is too much to remember which bytes came;
    /// nothing has changed then.
    pub fn load(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError> {
        match &mut self.filter {
            Some(filter) => {
                let start = offset_of(iterator, chunk)?;
                self.coverage.check(start, chunk.len() as u64)?;
                filter.put_chunk(iterator, chunk)?;
                self.coverage.add(start, chunk.len() as u64);
                Ok(())
            }
            None if iterator == 1 => {
                self.filter = Some(F::announced(chunk, self.limit_bytes).map_err(LoadError::BadHeader)?);
                Ok(())
            }
            None => Err(LoadError::NoHeader { iterator }),
        }
    }

    /// One that goes on where another was: the filter so far, and which bytes of it came. `None` for bytes that are not its own.
    #[must_use]
    pub fn resume(filter: F, came: &[Range<u64>]) -> Option<Self> {
        let coverage = Coverage::of(came)?;
        let loader = Self { limit_bytes: filter.limit_bytes(), filter: Some(filter), coverage };
        (came.last().map_or(0, |piece| piece.end) <= loader.progress().1).then_some(loader)
    }

    /// Which bytes came: pieces that neither overlap nor touch, in order.
    #[must_use]
    pub fn came(&self) -> &[Range<u64>] {
        self.coverage.pieces()
    }

    /// The filter so far, once its header came.
    #[must_use]
    pub const fn filter(&self) -> Option<&F> {
        self.filter.as_ref()
    }

    /// How many bytes of the filter came, each counted once, and how many there are; 0 of 0 before the header.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.coverage.bytes(), self.filter.as_ref().map_or(0, F::chunk_bytes))
    }

    /// Has every byte of the filter come?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let (came, all) = self.progress();
        self.filter.is_some() && came == all
    }

    /// The filter, whether it [is complete](Self::is_complete) or not.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`] if not even the header came.
    pub fn finish(self) -> Result<F, DecodeError> {
        self.filter.ok_or(DecodeError::TooShort { need: F::HEADER_BYTES, got: 0 })
    }
}
