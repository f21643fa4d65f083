//! Loads a RedisBloom filter, Bloom or cuckoo, from chunks.

use std::ops::Range;

use mayhap::{BuildError, DecodeError};

use crate::redis_chunk::{Coverage, LoadError, offset_of};

/// A filter whose dump is a header and chunks.
pub trait Chunked: Sized {
    /// The smallest length of a header in bytes.
    const HEADER_BYTES: u64;

    /// Creates the empty filter that a header describes, if it takes no more than the given number of bytes.
    ///
    /// # Errors
    /// [`DecodeError`] for a header that RedisBloom would reject, and for a filter above the limit.
    fn announced(header: &[u8], limit_bytes: u64) -> Result<Self, DecodeError>;

    /// Writes a chunk to its place in the filter.
    ///
    /// # Errors
    /// [`LoadError`]; the filter is unchanged.
    fn put_chunk(&mut self, iterator: i64, chunk: &[u8]) -> Result<(), LoadError>;

    /// The total length of all chunks in bytes.
    fn chunk_bytes(&self) -> u64;

    /// The memory of the filter in bytes; the limit for a resumed loader.
    fn limit_bytes(&self) -> u64;
}

/// Loads a filter chunk by chunk: the header first, then the other chunks in any order, each any number of times.
#[derive(Debug)]
pub struct ChunkLoader<F> {
    limit_bytes: u64,
    filter: Option<F>,
    coverage: Coverage,
}

impl<F: Chunked> ChunkLoader<F> {
    /// Creates a loader without a filter. The filter will take no more than `limit_bytes`, whatever its header contains.
    #[must_use]
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, filter: None, coverage: Coverage::new() }
    }

    /// Returns the memory in bytes of the filter that a header describes; 0 for an invalid header.
    #[must_use]
    pub fn bytes_for(header: &[u8]) -> u64 {
        // With a limit of no memory, the error contains the number of bytes needed.
        match F::announced(header, 0) {
            Err(DecodeError::Unbuildable(BuildError::TooLarge { bytes, .. })) => bytes,
            _ => 0,
        }
    }

    /// Executes `LOADCHUNK key iterator chunk`.
    ///
    /// # Errors
    /// [`LoadError`] for a chunk that does not fit the filter, and for chunks so scattered that the loaded ranges cannot be tracked. The
    /// filter is unchanged.
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

    /// Resumes a loader from the filter so far and the ranges loaded into it. Returns `None` for ranges that do not fit the filter.
    #[must_use]
    pub fn resume(filter: F, came: &[Range<u64>]) -> Option<Self> {
        let coverage = Coverage::of(came)?;
        let loader = Self { limit_bytes: filter.limit_bytes(), filter: Some(filter), coverage };
        (came.last().map_or(0, |piece| piece.end) <= loader.progress().1).then_some(loader)
    }

    /// The bytes loaded so far: ranges in order that neither overlap nor touch.
    #[must_use]
    pub fn came(&self) -> &[Range<u64>] {
        self.coverage.pieces()
    }

    /// The filter so far; `None` before the header was loaded.
    #[must_use]
    pub const fn filter(&self) -> Option<&F> {
        self.filter.as_ref()
    }

    /// The number of bytes loaded, each counted once, and the total; 0 of 0 before the header.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.coverage.bytes(), self.filter.as_ref().map_or(0, F::chunk_bytes))
    }

    /// Returns whether every byte of the filter has been loaded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let (came, all) = self.progress();
        self.filter.is_some() && came == all
    }

    /// Returns the filter, whether it [is complete](Self::is_complete) or not.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`] if the header was not loaded.
    pub fn finish(self) -> Result<F, DecodeError> {
        self.filter.ok_or(DecodeError::TooShort { need: F::HEADER_BYTES, got: 0 })
    }
}
