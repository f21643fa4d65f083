//! The binary fuse filter.

use super::XorFuse;
use crate::statics::graph::FuseGraph;

/// The smallest of the fast filters, for a set that is known in advance and never changes.
///
/// * **It is built once, from all items.** There is no insert and no remove; a changed set needs a new
///   filter. Building keeps all hashes in memory: 8 bytes per item, and about 22 bytes for every item of the
///   shards in progress ([`build_in_passes`](XorFuse::build_in_passes) needs less).
/// * **no** is certain. **maybe** is a false positive for one non-member in 256 ([`BinaryFuse8`]), 65 536
///   ([`BinaryFuse16`]) or 4 · 10^9 ([`BinaryFuse32`]), for any number of items. There are no rates in
///   between. An empty filter answers *no* to everything.
/// * It takes 9.04 bits per item at a million items with 8-bit fingerprints; a Bloom filter of that rate takes
///   11.6. Small sets take more: 11.3 bits at a thousand items, 15.4 at a hundred.
/// * A lookup is one hash, three independent loads and two XORs, for members and non-members.
/// * Duplicate items are allowed. Items are identified by 64 bits of their hash. Two items with the same 64
///   bits count as one, which adds `items / 2^64` to the rate. (With 8 and 16 bits, only 56 of them are used
///   within a shard, which adds at most `2^22 / 2^56`.)
///
/// ```text
/// key ─▶ shard, then three slots in neighbouring segments:
///
///   segment   0        1        2        3        4
///          ├────────┼────────┼────────┼────────┼────────┤
///                      f1  ⊕     f2 ⊕   f3                  equal to the fingerprint: maybe
/// ```
///
/// ```
/// use mayhap::BinaryFuse8;
///
/// let leaked = BinaryFuse8::from_items(["123456", "password", "qwerty", "password"])?;
/// assert_eq!(leaked.inserted(), 3);
/// assert!(leaked.may_contain("qwerty"));
/// if !leaked.may_contain("correct horse battery staple") {
///     println!("certainly not in the list");
/// }
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// T. M. Graf, D. Lemire, *Binary fuse filters: fast and smaller than xor filters*, ACM JEA 2022. The shards
/// follow S. Vigna, *ε-cost sharding*, 2025.
pub type BinaryFuse<F> = XorFuse<F, FuseGraph>;

/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 256; 9 bits per item.
pub type BinaryFuse8 = BinaryFuse<u8>;
/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 65 536; 18 bits per item.
pub type BinaryFuse16 = BinaryFuse<u16>;
/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 4.3 billion; 36 bits per item.
pub type BinaryFuse32 = BinaryFuse<u32>;
