//! What the filters for sets that do not change have in common: the keys they are built from.
//!
//! ```text
//! items ─▶ ItemHash ─▶ key (64 bits) ─▶ one Vec<u64> ─▶ sorted, each once ─▶ Xor, BinaryFuse, Ribbon, Gcs
//! ```

mod explain;
pub(crate) mod fingerprint;
pub(crate) mod foreign;
pub(crate) mod graph;
mod options;
mod peel;
pub(crate) mod placed;
mod shards;
pub(crate) mod table;

pub use fingerprint::Fingerprint;
pub use options::BuildOptions;

use crate::batch::Hashed;
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::sizing::check_capacity;

/// What a static filter knows of an item. Two items in `2^64` share a key, which adds `items / 2^64` to the rate.
#[inline(always)]
pub(crate) const fn key(hash: ItemHash) -> u64 {
    hash.low
}

/// The keys of `items`, in their order, duplicates and all; eight bytes each.
///
/// # Errors
/// [`BuildError::CapacityOutOfRange`] for too many items, [`BuildError::OutOfMemory`] if the system refuses the memory.
pub(crate) fn collect<H: Hashed>(
    items: impl IntoIterator<Item = H>,
    scheme: &HashScheme,
) -> Result<Vec<u64>, BuildError> {
    let items = items.into_iter();
    let mut keys = Vec::new();
    reserve(&mut keys, items.size_hint().0)?;
    for item in items {
        if keys.len() == keys.capacity() {
            let more = keys.len().max(1024);
            reserve(&mut keys, more)?;
        }
        keys.push(key(item.hashed(scheme)));
    }
    if !keys.is_empty() {
        check_capacity(keys.len() as u64)?;
    }
    Ok(keys)
}

fn reserve(keys: &mut Vec<u64>, more: usize) -> Result<(), BuildError> {
    let bytes = (keys.len() as u64).saturating_add(more as u64).saturating_mul(8);
    keys.try_reserve_exact(more).map_err(|_| BuildError::OutOfMemory { bytes })
}

/// An empty vector with room for `len` values.
fn reserved<T>(len: usize) -> Result<Vec<T>, BuildError> {
    let mut values = Vec::new();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    values.try_reserve_exact(len).map_err(|_| BuildError::OutOfMemory { bytes })?;
    Ok(values)
}

/// Sorts the keys and drops what is there twice.
pub(crate) fn sort_and_dedup(keys: &mut Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
}

/// How many threads a build uses if nobody says: as many as the machine has.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_and_once_sorted_each_is_there_once() {
        let scheme = HashScheme::fast(7);
        let mut keys = collect([3_u64, 1, 3, 2], &scheme).unwrap();
        assert_eq!(keys[0], keys[2]);
        sort_and_dedup(&mut keys);
        assert_eq!(keys.len(), 3);
        assert!(keys.is_sorted());
        assert_eq!(collect(Vec::<u64>::new(), &scheme), Ok(vec![]));
    }
}
