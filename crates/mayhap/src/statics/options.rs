//! How a static filter is built: the number of threads and the size of shards.

use super::default_threads;
use super::graph::MAX_SHARD_BITS;
use crate::sizing::fuse::{self, ITEMS_PER_SHARD};

/// How to build a static filter. The number of threads changes only the time, not the filter.
///
/// ```
/// use mayhap::{BinaryFuse8, BuildOptions};
///
/// let options = BuildOptions::default().threads(2);
/// let filter = BinaryFuse8::build_with(0..10_000_u64, &options, 0)?;
/// assert_eq!(filter.encode(), BinaryFuse8::build(0..10_000_u64, 0)?.encode());
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    threads: usize,
    items_per_shard: u64,
}

impl Default for BuildOptions {
    /// All the machine's threads, shards of two to four million items.
    fn default() -> Self {
        Self { threads: 0, items_per_shard: ITEMS_PER_SHARD }
    }
}

impl BuildOptions {
    /// So many threads at most; 0 means as many as the machine has. Every thread works on a shard of its own, so sets of one shard are
    /// built by one thread.
    #[must_use]
    pub const fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Cuts the set into shards of at most about so many items, at least half as many.
    ///
    /// A shard is built as a whole and takes some 22 bytes per item while it is. Smaller shards mean less working memory and more that can be
    /// done at once; but each costs a little: a filter of a million items in shards of 10 000 is a fifth larger than in one piece.
    #[must_use]
    pub const fn items_per_shard(self, items: u64) -> Self {
        Self { items_per_shard: items, ..self }
    }

    /// The power of two of the number of shards for `items` items.
    pub(crate) fn shard_bits(&self, items: u64) -> u32 {
        fuse::shard_bits(items, self.items_per_shard).min(MAX_SHARD_BITS)
    }

    /// Threads to use for `shards` shards.
    pub(crate) fn threads_for(&self, shards: usize) -> usize {
        match self.threads {
            // Asking how many threads there are reads files; a small filter is built in less time.
            _ if shards <= 1 => 1,
            0 => default_threads().min(shards),
            threads => threads.min(shards),
        }
    }
}
