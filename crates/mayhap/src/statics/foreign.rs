//! The slots of the FastFilter libraries (C, Go, Rust), which all place numbers the same way: placement 2.
//!
//! ```text
//! number + seed ──finaliser of murmur3──▶ h ──▶ three slots
//!                                         └──▶ fingerprint: the low bits of h ^ h >> 32
//! ```

use std::fmt::Debug;

use super::fingerprint::{Fingerprint, pack};
use super::graph::{FuseGraph, Graph, MAX_SHARD_SLOTS, OwnGraph, Sharded, XorGraph};
use super::table::{StaticTable, lines_of};
use super::{reserved, sort_and_dedup};
use crate::error::BuildError;
use crate::hash::reduce;
use crate::sizing::fuse::{fuse_segments, fuse_slots_per_item, segment_bits};
use crate::store::Lines;

/// The number of seeds tried before a set is declared unsolvable: the same as in the libraries.
const MAX_ATTEMPTS: u32 = 100;
/// The most items in a filter of one shard: the slots of a larger one could not be numbered.
const MAX_ITEMS: u64 = 1 << 30;

/// A graph with the slots of other programs.
pub trait ForeignGraph: Graph + Debug + PartialEq {
    /// Our own graph of the same measurements.
    type Own: OwnGraph;

    /// Returns our own graph of the same measurements.
    fn own(&self) -> Self::Own;

    /// Returns roughly the number of items that a filter of these measurements is made for.
    fn items(&self) -> u64;
}

/// Returns the seed that the libraries use for this attempt: splitmix64, starting at 1.
fn seed_of(attempt: u32) -> u64 {
    let state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(attempt) + 1).wrapping_add(1);
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The finaliser of murmur3, for 64 bits.
#[inline(always)]
const fn finaliser(number: u64) -> u64 {
    let mixed = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

/// The binary fuse filter of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFuse(FuseGraph);

impl ForeignGraph for ForeignFuse {
    type Own = FuseGraph;

    fn own(&self) -> FuseGraph {
        self.0
    }

    fn items(&self) -> u64 {
        most(|items| (items as f64 * fuse_slots_per_item(items)).round() as u64 <= self.slots())
    }
}

impl ForeignFuse {
    /// Returns the number of slots in a segment, and the number of segments an item may begin in.
    pub(crate) fn segments(&self) -> [u64; 2] {
        [self.0.segment, self.0.starts / self.0.segment]
    }

    /// Returns the smallest number of items for which the libraries choose these measurements, if there is
    /// one.
    pub(crate) fn fewest_items(&self) -> Option<u64> {
        let [bits, segments] = self.parts();
        let chosen = |items: u64| [u64::from(segment_bits(items)), fuse_segments(items)];
        // Both numbers only grow with the items; the second one does so as long as the first stays the same.
        let fewer = |items: u64| chosen(items) < [bits, segments];
        let fewest = if fewer(0) { most(fewer) + 1 } else { 0 };
        (chosen(fewest) == [bits, segments]).then_some(fewest)
    }
}

/// Returns the largest number of items, at least 1, for which `fit` is true. It must be true for all smaller
/// numbers as well.
fn most(fit: impl Fn(u64) -> bool) -> u64 {
    let (mut most, mut more) = (1, MAX_SHARD_SLOTS);
    while more - most > 1 {
        let middle = most + (more - most) / 2;
        if fit(middle) { most = middle } else { more = middle }
    }
    most
}

impl Graph for ForeignFuse {
    const COUNTED: bool = false;

    fn for_items(items: u64) -> Self {
        Self(FuseGraph::for_items(items))
    }

    fn from_parts(parts: [u64; 2]) -> Option<Self> {
        FuseGraph::from_parts(parts).map(Self)
    }

    fn parts(&self) -> [u64; 2] {
        self.0.parts()
    }

    #[inline(always)]
    fn slots(&self) -> u64 {
        self.0.slots()
    }

    #[inline(always)]
    fn places(&self, mixed: u64) -> [usize; 3] {
        let FuseGraph { starts, segment } = self.0;
        let first = reduce(mixed, starts);
        let within = segment - 1;
        let second = (first + segment) ^ (mixed >> 18 & within);
        let third = (first + 2 * segment) ^ (mixed & within);
        [first as usize, second as usize, third as usize]
    }

    fn seed(number: u64) -> Option<u64> {
        Some(number)
    }

    #[inline(always)]
    fn mix(key: u64, seed: u64) -> u64 {
        finaliser(key.wrapping_add(seed))
    }

    #[inline(always)]
    fn fingerprint<F: Fingerprint>(mixed: u64) -> F {
        F::lowest(mixed ^ mixed >> 32)
    }
}

/// The xor filter of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignXor(XorGraph);

impl ForeignXor {
    /// Returns the number of slots in each of the three blocks.
    pub(crate) fn block(&self) -> u64 {
        self.0.block
    }
}

impl ForeignGraph for ForeignXor {
    type Own = XorGraph;

    fn own(&self) -> XorGraph {
        self.0
    }

    fn items(&self) -> u64 {
        most(|items| xor_block(items) <= self.0.block)
    }
}

/// Returns the number of slots in a block for this number of items. The libraries round down where we round
/// up.
fn xor_block(items: u64) -> u64 {
    (32.0 + 1.23 * items as f64) as u64 / 3
}

impl Graph for ForeignXor {
    const COUNTED: bool = false;

    fn for_items(items: u64) -> Self {
        Self(XorGraph { block: xor_block(items).min(MAX_SHARD_SLOTS / 3) })
    }

    fn from_parts(parts: [u64; 2]) -> Option<Self> {
        XorGraph::from_parts(parts).map(Self)
    }

    fn parts(&self) -> [u64; 2] {
        self.0.parts()
    }

    #[inline(always)]
    fn slots(&self) -> u64 {
        self.0.slots()
    }

    #[inline(always)]
    fn places(&self, mixed: u64) -> [usize; 3] {
        let block = self.0.block;
        // The low half of each, scaled to the block length.
        let scaled = |mixed: u64| (u64::from(mixed as u32) * block) >> 32;
        let first = scaled(mixed);
        let second = scaled(mixed.rotate_left(21)) + block;
        let third = scaled(mixed.rotate_left(42)) + 2 * block;
        [first as usize, second as usize, third as usize]
    }

    fn seed(number: u64) -> Option<u64> {
        Some(number)
    }

    #[inline(always)]
    fn mix(key: u64, seed: u64) -> u64 {
        finaliser(key.wrapping_add(seed))
    }

    #[inline(always)]
    fn fingerprint<F: Fingerprint>(mixed: u64) -> F {
        F::lowest(mixed ^ mixed >> 32)
    }
}

impl<F: Fingerprint, G: ForeignGraph> StaticTable<F, G> {
    /// Builds a table from these slots. `lines` must have no more lines than the slots need. `None` if there
    /// are more slots than a filter can have.
    pub(crate) fn of_slots(graph: G, seed: u64, lines: Lines, inserted: Option<u64>) -> Option<Self> {
        let places = Sharded::new(graph, 0, seed, F::BITS)?;
        let counts = match inserted {
            None | Some(0) => [graph.items(), 0],
            Some(inserted) => [inserted, inserted],
        };
        Some(Self::of_parts(places, lines, counts, seed))
    }

    /// Builds a table from these keys, with the size and the seeds that the libraries choose. Slots without
    /// an item are zero.
    pub(crate) fn build_foreign(mut keys: Vec<u64>) -> Result<Self, BuildError> {
        sort_and_dedup(&mut keys);
        let items = keys.len() as u64;
        if items > MAX_ITEMS {
            return Err(BuildError::CapacityOutOfRange { got: items, limit: MAX_ITEMS });
        }
        let graph = G::for_items(items);
        let mut bench = Bench::new(graph.slots() as usize, keys.len())?;
        let unsolvable = BuildError::Unsolvable { attempts: MAX_ATTEMPTS, items };
        let seed = (0..MAX_ATTEMPTS).map(seed_of).find(|&seed| bench.peel(&graph, &keys, seed));
        let seed = seed.ok_or(unsolvable.clone())?;
        let mut lines = Lines::zeroed(lines_of::<F>(graph.slots()))?;
        pack(&bench.assign::<F, G>(&graph)?, lines.words_mut());
        Self::of_slots(graph, seed, lines, Some(items)).ok_or(unsolvable)
    }
}

/// The working memory for building. The workbench of our own filters keeps its counters in key bits that are
/// significant here, so this one is plain: 13 bytes per slot and 12 per item.
struct Bench {
    /// Per slot: the xor of the items that have it, and their number.
    sums: Vec<u64>,
    counts: Vec<u8>,
    /// Slots with one item left.
    alone: Vec<u32>,
    /// Items that own a slot, and that slot, in the order they were removed.
    taken: Vec<u64>,
    taken_slots: Vec<u32>,
}

impl Bench {
    fn new(slots: usize, items: usize) -> Result<Self, BuildError> {
        Ok(Self {
            sums: reserved(slots)?,
            counts: reserved(slots)?,
            alone: reserved(slots)?,
            taken: reserved(items)?,
            taken_slots: reserved(items)?,
        })
    }

    /// Removes the items one by one. Returns whether every item got a slot of its own.
    fn peel<G: Graph>(&mut self, graph: &G, keys: &[u64], seed: u64) -> bool {
        let slots = graph.slots() as usize;
        self.sums.clear();
        self.sums.resize(slots, 0);
        self.counts.clear();
        self.counts.resize(slots, 0);
        self.alone.clear();
        self.taken.clear();
        self.taken_slots.clear();
        for &key in keys {
            let mixed = G::mix(key, seed);
            for slot in graph.places(mixed) {
                // Honest keys never have 256 items in one slot.
                let Some(count) = self.counts[slot].checked_add(1) else { return false };
                self.counts[slot] = count;
                self.sums[slot] ^= mixed;
            }
        }
        let alone = (0..).zip(&self.counts).filter(|&(_, &count)| count == 1).map(|(slot, _)| slot);
        self.alone.extend(alone);
        while let Some(slot) = self.alone.pop() {
            // Its item may already have been removed through another slot.
            if self.counts[slot as usize] != 1 {
                continue;
            }
            let mixed = self.sums[slot as usize];
            self.taken.push(mixed);
            self.taken_slots.push(slot);
            for other in graph.places(mixed) {
                self.sums[other] ^= mixed;
                self.counts[other] -= 1;
                if self.counts[other] == 1 {
                    self.alone.push(other as u32);
                }
            }
        }
        self.taken.len() == keys.len()
    }

    /// Returns the fingerprints of all slots. The item removed last is assigned first.
    fn assign<F: Fingerprint, G: Graph>(&self, graph: &G) -> Result<Vec<F>, BuildError> {
        let mut fingerprints = reserved(graph.slots() as usize)?;
        fingerprints.resize(graph.slots() as usize, F::default());
        for (&mixed, &slot) in self.taken.iter().zip(&self.taken_slots).rev() {
            let [first, second, third] = graph.places(mixed);
            // The item's own slot is still zero.
            let others = fingerprints[first] ^ fingerprints[second] ^ fingerprints[third];
            fingerprints[slot as usize] = G::fingerprint::<F>(mixed) ^ others;
        }
        Ok(fingerprints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;
    use crate::statics::graph::MAX_SHARD_SLOTS;

    #[test]
    fn the_seeds_are_those_of_the_libraries() {
        assert_eq!(seed_of(0), 10_451_216_379_200_822_465);
        assert_eq!(seed_of(1), 0xbeeb_8da1_658e_ec67);
    }

    fn three_different_slots_in_range<G: ForeignGraph>(all: &[[u64; 2]]) {
        let hashes = (0..2_000).map(|i| ItemHash::from_unmixed(i).low);
        let mixed: Vec<u64> = hashes.chain([0, 1, u64::MAX, 1 << 63, u32::MAX.into()]).collect();
        for &parts in all {
            let graph = G::from_parts(parts).unwrap();
            assert!(graph.slots() <= MAX_SHARD_SLOTS && graph.items() <= graph.slots(), "{parts:?}");
            for &mixed in &mixed {
                let [a, b, c] = graph.places(mixed);
                assert!(a != b && b != c && a != c, "{parts:?} {mixed:#x}");
                assert!([a, b, c].iter().all(|&slot| (slot as u64) < graph.slots()), "{parts:?} {mixed:#x}");
            }
        }
    }

    #[test]
    fn every_number_has_three_different_slots_in_range() {
        three_different_slots_in_range::<ForeignFuse>(&[
            [0, 1],
            [2, 1],
            [3, 7],
            [18, 1],
            [18, 8190],
            [5, 333],
        ]);
        three_different_slots_in_range::<ForeignXor>(&[[1, 0], [10, 0], [443, 0], [MAX_SHARD_SLOTS / 3, 0]]);
    }

    #[test]
    fn the_fewest_items_choose_the_same_measurements() {
        for items in (0..3_000).chain([12_345, 999_999, 1 << 24, 1 << 29]) {
            let graph = ForeignFuse::for_items(items);
            let fewest = graph.fewest_items().unwrap();
            assert!(fewest <= items, "{items}");
            assert_eq!(ForeignFuse::for_items(fewest), graph, "{items}");
            assert!(fewest == 0 || ForeignFuse::for_items(fewest - 1) != graph, "{items}");
            assert!(items < 2 || graph.items() >= items, "{items}: made for {}", graph.items());
        }
        // Segments half as long as they should be: Go has these after a failed attempt.
        assert_eq!(ForeignFuse::from_parts([3, 42]).unwrap().fewest_items(), None);
    }

    #[test]
    fn forged_keys_end_as_an_error() {
        let same = vec![7_u64; 300];
        assert_eq!(StaticTable::<u8, ForeignFuse>::build_foreign(same).unwrap().inserted(), 1);
        let graph = ForeignFuse::for_items(3);
        let mut bench = Bench::new(graph.slots() as usize, 300).unwrap();
        let keys: Vec<u64> = (0..300).collect();
        assert!(!bench.peel(&graph, &keys, seed_of(0)), "three hundred items in so few slots");
        assert!(!bench.peel(&graph, &[5; 300], seed_of(0)), "more than can be counted");
        assert!(bench.peel(&graph, &keys[..3], seed_of(0)) || bench.peel(&graph, &keys[..3], seed_of(1)));
    }
}
