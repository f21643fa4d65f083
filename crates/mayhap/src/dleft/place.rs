//! From an [`ItemHash`] to a fingerprint and its four possible buckets.
//!
//! ```text
//! low  ──▶ home bucket ──┬──────────── + 0 ──▶ bucket in sub-table 0
//!                        ├─ + offset 1 ──────▶ bucket in sub-table 1       all modulo the number of buckets
//! high ──▶ fingerprint ──┼─ + offset 2 ──────▶ bucket in sub-table 2
//!              │         └─ + offset 3 ──────▶ bucket in sub-table 3
//!              └─▶ the three offsets
//! ```
//!
//! Why removing is safe: a filter represents an item by its pair *(home bucket, fingerprint)*. In sub-table
//! `i` the pair becomes *(home + offset_i(fingerprint), fingerprint)*. This is one to one: the fingerprint
//! gives the offset, and subtracting it gives the home. So an item that finds its fingerprint in its bucket
//! of any sub-table has found its own pair. Two items with different pairs never claim the same slot, in any
//! sub-table. Two items with the same pair are the same item for this filter: their copies are counted
//! together, in the same slots. A filter is thus an exact multiset of pairs, and removing an inserted item
//! leaves all others unchanged.
//!
//! With four independent hashes, or with only a common fingerprint, an item could find another item's entry
//! in one sub-table while its own is in another sub-table. Removing it would delete the wrong entry and cause
//! a false negative later.

use super::DLeftShape;
use crate::hash::{ItemHash, reduce};
use crate::sizing::dleft::TABLES;

/// Odd numbers without a pattern. They spread the fingerprint over a word and turn it into three offsets.
const SPREAD: u64 = 0x9fb2_1c65_1e98_df25;
const OFFSETS: [u64; TABLES as usize - 1] =
    [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x8cb9_2ba7_2f3d_8dd7];

/// The four possible places of a pair of fingerprint and home bucket. Placement scheme 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DLeftPlace {
    pub(super) fingerprint: u64,
    /// The first byte of the item's bucket in each sub-table.
    pub(super) bytes: [usize; TABLES as usize],
}

impl DLeftPlace {
    #[inline(always)]
    pub(super) fn of(hash: ItemHash, shape: &DLeftShape) -> Self {
        let fingerprint = hash.high >> (u64::BITS - shape.fingerprint_bits());
        Self::of_pair(reduce(hash.low, shape.buckets()), fingerprint, shape)
    }

    /// Returns the places of a pair. `home` is below the number of buckets.
    #[inline(always)]
    fn of_pair(home: u64, fingerprint: u64, shape: &DLeftShape) -> Self {
        let (buckets, width) = (shape.buckets(), u64::from(shape.slot_bits()));
        let offsets = offsets(fingerprint, buckets);
        let bytes = std::array::from_fn(|table| {
            let shifted = home + offsets[table];
            let bucket = if shifted >= buckets { shifted - buckets } else { shifted };
            ((table as u64 * buckets + bucket) * width) as usize
        });
        Self { fingerprint, bytes }
    }

    /// Calls `load` with a word of every cache line of its buckets. If a bucket lies in one line, it is
    /// called twice with that line.
    #[inline(always)]
    pub(super) fn for_each_line(&self, shape: &DLeftShape, mut load: impl FnMut(usize)) {
        for byte in self.bytes {
            load(byte / 8);
            load((byte + shape.slot_bits() as usize - 1) / 8);
        }
    }

    /// Returns the pair whose fingerprint is in `bucket` of sub-table `table`.
    pub(super) fn found_in(table: usize, bucket: u64, fingerprint: u64, shape: &DLeftShape) -> Self {
        let offset = offsets(fingerprint, shape.buckets())[table];
        let home = if bucket >= offset { bucket - offset } else { bucket + shape.buckets() - offset };
        Self::of_pair(home, fingerprint, shape)
    }
}

/// Returns the distance from the home bucket to the bucket of a fingerprint in each sub-table.
#[inline(always)]
fn offsets(fingerprint: u64, buckets: u64) -> [u64; TABLES as usize] {
    let spread = (fingerprint + 1).wrapping_mul(SPREAD);
    let spread = spread ^ spread >> 32;
    let [first, second, third] = OFFSETS.map(|odd| reduce(spread.wrapping_mul(odd), buckets));
    [0, first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashScheme;
    use std::collections::HashMap;

    /// Tests all pairs of small filters: no two share a bucket and a fingerprint in any sub-table, and each
    /// can be recovered from each of its places.
    #[test]
    fn each_place_of_a_pair_determines_the_pair() {
        for buckets in [1, 2, 3, 7, 10, 64, 100] {
            let shape = DLeftShape::exactly(buckets, 5, 10).unwrap();
            let mut owners = HashMap::new();
            for (home, fingerprint) in (0..buckets).flat_map(|home| (0..32).map(move |print| (home, print))) {
                let place = DLeftPlace::of_pair(home, fingerprint, &shape);
                for (table, byte) in place.bytes.into_iter().enumerate() {
                    let number = byte as u64 / u64::from(shape.slot_bits());
                    assert_eq!(number / buckets, table as u64, "each sub-table has its own buckets");
                    assert_eq!(owners.insert((number, fingerprint), home), None, "{number} {fingerprint}");
                    let found = DLeftPlace::found_in(table, number % buckets, fingerprint, &shape);
                    assert_eq!(found.bytes, place.bytes);
                }
            }
        }
    }

    /// Every sub-table gets every bucket equally often, and two sub-tables do not agree more often than by
    /// chance.
    #[test]
    fn buckets_are_spread_evenly_and_apart() {
        let shape = DLeftShape::exactly(100, 12, 10).unwrap();
        let mut loads = [[0_u32; 100]; 4];
        let mut equal = 0;
        for item in 0..100_000_u64 {
            let place = DLeftPlace::of(HashScheme::fast(1).hash(&item), &shape);
            let buckets = place.bytes.map(|byte| byte / shape.slot_bits() as usize % 100);
            for (load, bucket) in loads.iter_mut().zip(buckets) {
                load[bucket] += 1;
            }
            let pairs = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
            equal += pairs.filter(|&(i, j)| buckets[i] == buckets[j]).count();
        }
        // 1 000 each, standard deviation 32; 6 000 equal pairs, standard deviation 77 (fingerprints repeat:
        // more like 400).
        assert!(loads.iter().flatten().all(|load| (810..1190).contains(load)), "{loads:?}");
        assert!((4_500..7_500).contains(&equal), "{equal}");
    }
}
