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
    /// Uses all threads of the machine, and shards of two to four million items.
    fn default() -> Self {
        Self { threads: 0, items_per_shard: ITEMS_PER_SHARD }
    }
}

impl BuildOptions {
    /// Limits the number of threads; 0 means as many as the machine has. Every thread builds a different
    /// shard, so a set of one shard is built by one thread.
    #[must_use]
    pub const fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Cuts the set into shards of about this number of items at most, and at least half of it.
    ///
    /// A shard is built as a whole and takes about 22 bytes per item meanwhile. Smaller shards need less
    /// working memory, and more of them can be built at the same time. But each shard costs some space: a
    /// filter of a million items in shards of 10 000 is a fifth larger than in one shard.
    #[must_use]
    pub const fn items_per_shard(self, items: u64) -> Self {
        Self { items_per_shard: items, ..self }
    }

    /// Returns the base-2 logarithm of the number of shards for `items` items.
    pub(crate) fn shard_bits(&self, items: u64) -> u32 {
        fuse::shard_bits(items, self.items_per_shard).min(MAX_SHARD_BITS)
    }

    /// Returns the number of threads to use for `shards` shards.
    pub(crate) fn threads_for(&self, shards: usize) -> usize {
        match self.threads {
            // Asking the system for the number of threads reads files; a small filter is built in less time.
            _ if shards <= 1 => 1,
            0 => default_threads().min(shards),
            threads => threads.min(shards),
        }
    }
}
