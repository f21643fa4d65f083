//! The xor filter.

use super::XorFuse;
use crate::statics::graph::XorGraph;

/// A filter for a set that is known in advance and never changes. [`BinaryFuse`](crate::BinaryFuse) is its
/// successor: smaller and built faster. Use this one for its simplicity, and for sets of up to about 16,000 items,
/// for which it takes fewer bits.
///
/// * **It is built once, from all items.** There is no insert and no remove; a changed set needs a new
///   filter. Building keeps all hashes in memory: 8 bytes per item, and about 24 bytes for every item of the
///   shards in progress ([`build_in_passes`](XorFuse::build_in_passes) needs less).
/// * **no** is certain. **maybe** is a false positive for one non-member in 256 ([`Xor8`]), 65 536
///   ([`Xor16`]) or 4 · 10^9 ([`Xor32`]), for any number of items. There are no rates in between. An empty
///   filter answers *no* to everything.
/// * It takes 1.23 fingerprints per item, and 32 more: 9.84 bits per item with 8-bit fingerprints, 10.1 at a
///   thousand items.
/// * A lookup is one hash, three independent loads and two XORs, for members and non-members. The three slots
///   can be anywhere, so building is slow: every step waits for memory.
/// * Duplicate items are allowed. Items are identified by 64 bits of their hash. Two items with the same 64
///   bits count as one, which adds `items / 2^64` to the rate. (With 8 and 16 bits, only 56 of them are used
///   within a shard, which adds at most `2^22 / 2^56`.)
///
/// ```text
/// key ─▶ shard, then one slot in each of three blocks:
///
///          ├──────────────┼──────────────┼──────────────┤
///                f1    ⊕           f2 ⊕     f3               equal to the fingerprint: maybe
/// ```
///
/// ```
/// use mayhap::Xor8;
///
/// let leaked = Xor8::from_items(["123456", "password", "qwerty", "password"])?;
/// assert_eq!(leaked.inserted(), 3);
/// assert!(leaked.may_contain("qwerty"));
/// if !leaked.may_contain("correct horse battery staple") {
///     println!("certainly not in the list");
/// }
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// T. M. Graf, D. Lemire, *Xor filters: faster and smaller than Bloom and cuckoo filters*, ACM JEA 2020.
pub type Xor<F> = XorFuse<F, XorGraph>;

/// An [`Xor`] filter with a false-positive rate of 1 in 256; 9.84 bits per item.
pub type Xor8 = Xor<u8>;
/// An [`Xor`] filter with a false-positive rate of 1 in 65 536; 19.7 bits per item.
pub type Xor16 = Xor<u16>;
/// An [`Xor`] filter with a false-positive rate of 1 in 4.3 billion; 39.4 bits per item.
pub type Xor32 = Xor<u32>;
