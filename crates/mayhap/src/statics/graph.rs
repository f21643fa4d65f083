//! Computes an item's three slots.
//!
//! ```text
//! key ──top bits──▶ shard
//!  └──mixed with the seed──▶ three slots in the shard, and the fingerprint
//!
//! fuse:  ├──────┼──────┼──────┼──────┼──────┼──────┤   segments; an item has a slot in each of three neighbours
//!                  ●       ●     ●
//! xor:   ├──────────────┼──────────────┼───────────┤   three blocks; an item has a slot in each
//!              ●                ●           ●
//! ```

use super::fingerprint::Fingerprint;
use super::table::MAX_ATTEMPTS;
use crate::hash::reduce;
use crate::sizing::MAX_BITS;
use crate::sizing::fuse::{MAX_SEGMENT_BITS, fuse_segments, segment_bits, xor_block};

/// The bits of a mixed key that place it. The lowest byte does not: building keeps a counter there.
pub(crate) const PLACED_BITS: u64 = !0xff;

/// The most slots in a shard: building numbers them with 32 bits.
pub(crate) const MAX_SHARD_SLOTS: u64 = 1 << 31;
/// If there are several shards, each begins at a multiple of this number of slots.
const SHARD_ROUNDING: u64 = 64;
/// The base-2 logarithm of the largest number of shards.
pub(crate) const MAX_SHARD_BITS: u32 = 24;

/// Mixes keys, and computes three slots in a shard from a mixed key.
pub trait Graph: Copy + Send + Sync + Sized {
    /// Whether the number of items is always known.
    const COUNTED: bool = true;

    /// Returns a graph that can be solved for `items` items.
    fn for_items(items: u64) -> Self;

    /// Returns a graph of these two measurements, if there is one.
    fn from_parts(parts: [u64; 2]) -> Option<Self>;

    /// Returns the graph's two measurements.
    fn parts(&self) -> [u64; 2];

    /// Returns the number of slots in a shard: at least 3, at most [`MAX_SHARD_SLOTS`].
    fn slots(&self) -> u64;

    /// Returns the three slots of `mixed`: all different, each below `slots`.
    fn places(&self, mixed: u64) -> [usize; 3];

    /// Returns the seed that has this number in encoded filters.
    fn seed(number: u64) -> Option<u64> {
        u32::try_from(number).ok().filter(|&attempt| attempt < MAX_ATTEMPTS).map(seed_of)
    }

    /// Mixes a key with a seed. The mapping is one to one, so different keys stay different.
    #[inline(always)]
    fn mix(key: u64, seed: u64) -> u64 {
        mix(key, seed)
    }

    /// Returns the fingerprint of an item whose mixed key is `mixed`.
    #[inline(always)]
    fn fingerprint<F: Fingerprint>(mixed: u64) -> F {
        F::of(mixed)
    }
}

/// A graph of our own: keys are mixed by the rule of this module, and only the [`PLACED_BITS`] of a mixed key
/// determine its slots.
pub trait OwnGraph: Graph {
    /// Whether neighbouring keys have neighbouring slots, so that sorting the keys pays off.
    const LOCAL: bool;
}

/// The slots of a [`BinaryFuse`](crate::BinaryFuse) filter: one in each of three neighbouring segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuseGraph {
    /// The number of slots an item may begin in: a positive multiple of `segment`.
    pub(super) starts: u64,
    /// The number of slots in a segment: a power of two.
    pub(super) segment: u64,
}

impl FuseGraph {
    fn new(segment_bits: u32, segments: u64) -> Option<Self> {
        let most = MAX_SHARD_SLOTS >> segment_bits.min(MAX_SEGMENT_BITS);
        if segment_bits > MAX_SEGMENT_BITS || segments == 0 || segments > most - 2 {
            return None;
        }
        Some(Self { starts: segments << segment_bits, segment: 1 << segment_bits })
    }
}

impl OwnGraph for FuseGraph {
    const LOCAL: bool = true;
}

impl Graph for FuseGraph {
    fn for_items(items: u64) -> Self {
        let (bits, segments) = (segment_bits(items), fuse_segments(items));
        let most = (MAX_SHARD_SLOTS >> bits) - 2;
        Self { starts: segments.min(most) << bits, segment: 1 << bits }
    }

    fn from_parts([segment_bits, segments]: [u64; 2]) -> Option<Self> {
        Self::new(u32::try_from(segment_bits).ok()?, segments)
    }

    fn parts(&self) -> [u64; 2] {
        [u64::from(self.segment.trailing_zeros()), self.starts / self.segment]
    }

    #[inline(always)]
    fn slots(&self) -> u64 {
        self.starts + 2 * self.segment
    }

    #[inline(always)]
    fn places(&self, mixed: u64) -> [usize; 3] {
        let first = reduce(mixed & PLACED_BITS, self.starts);
        let within = self.segment - 1;
        let second = (first + self.segment) ^ (mixed >> 26 & within);
        let third = (first + 2 * self.segment) ^ (mixed >> 8 & within);
        [first as usize, second as usize, third as usize]
    }
}

/// The slots of an [`Xor`](crate::Xor) filter: one in each of three blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XorGraph {
    /// The number of slots in each of the three blocks, at least 1.
    pub(super) block: u64,
}

impl OwnGraph for XorGraph {
    const LOCAL: bool = false;
}

impl Graph for XorGraph {
    fn for_items(items: u64) -> Self {
        Self { block: xor_block(items).min(MAX_SHARD_SLOTS / 3) }
    }

    fn from_parts([block, unused]: [u64; 2]) -> Option<Self> {
        (unused == 0 && (1..=MAX_SHARD_SLOTS / 3).contains(&block)).then_some(Self { block })
    }

    fn parts(&self) -> [u64; 2] {
        [self.block, 0]
    }

    #[inline(always)]
    fn slots(&self) -> u64 {
        self.block * 3
    }

    #[inline(always)]
    fn places(&self, mixed: u64) -> [usize; 3] {
        /// Odd. With a rotation by 42 instead, the byte that must not count would affect the slot.
        const STIR: u64 = 0x9e6c_63d0_876a_3f6b;
        let mixed = mixed & PLACED_BITS;
        let first = reduce(mixed, self.block);
        let second = reduce(mixed.rotate_left(21), self.block) + self.block;
        let third = reduce(mixed.wrapping_mul(STIR), self.block) + 2 * self.block;
        [first as usize, second as usize, third as usize]
    }
}

/// Returns the seed of attempt number `attempt`; the first one is 0.
pub(crate) const fn seed_of(attempt: u32) -> u64 {
    (attempt as u64).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29)
}

/// Mixes a key with a seed. The mapping is one to one, so different keys stay different.
#[inline(always)]
pub(crate) const fn mix(key: u64, seed: u64) -> u64 {
    (key ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adjacent shards in one array, all with the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharded<G> {
    graph: G,
    seed: u64,
    /// A key shifted right by this is the number of its shard ...
    shard_shift: u32,
    /// ... which begins at that number times `stride`. 0 if there is only one shard: then the shifted key
    /// does not matter.
    stride: u64,
    /// The number of slots in all shards.
    slots: u64,
}

impl<G: Graph> Sharded<G> {
    /// Makes `2^shard_bits` shards of `graph`. `None` if there are too many, or if they are too large for
    /// fingerprints of `width` bits.
    pub(crate) fn new(graph: G, shard_bits: u32, seed: u64, width: u32) -> Option<Self> {
        if shard_bits > MAX_SHARD_BITS || graph.slots() > MAX_SHARD_SLOTS {
            return None;
        }
        // Each shard begins on a line of its own, so that each can be written by a different thread.
        let alone = shard_bits == 0;
        let room = if alone { graph.slots() } else { graph.slots().next_multiple_of(SHARD_ROUNDING) };
        // At most 2^31 slots times 2^24 shards: this cannot overflow.
        let slots = room << shard_bits;
        if slots > MAX_BITS / u64::from(width) {
            return None;
        }
        let (shard_shift, stride) = if alone { (63, 0) } else { (64 - shard_bits, room) };
        Some(Self { graph, seed, shard_shift, stride, slots })
    }

    /// Returns the same shards with another graph that has the same slots.
    pub(super) fn with_graph<H>(self, graph: H) -> Sharded<H> {
        let Self { seed, shard_shift, stride, slots, .. } = self;
        Sharded { graph, seed, shard_shift, stride, slots }
    }

    pub(crate) fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(crate) const fn graph(&self) -> &G {
        &self.graph
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of slots from the beginning of one shard to that of the next.
    pub(crate) const fn slots_per_shard(&self) -> u64 {
        self.slots >> self.shard_bits()
    }

    /// Returns the number of slots in all shards.
    #[inline(always)]
    pub(crate) const fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the base-2 logarithm of the number of shards.
    pub(crate) const fn shard_bits(&self) -> u32 {
        if self.stride == 0 { 0 } else { 64 - self.shard_shift }
    }

    /// Returns the three slots of `key` in the whole array, each below [`slots`](Self::slots), and the mixed
    /// key for its fingerprint.
    #[inline(always)]
    pub(crate) fn places(&self, key: u64) -> ([usize; 3], u64) {
        let mixed = G::mix(key, self.seed);
        let base = ((key >> self.shard_shift) * self.stride) as usize;
        let [first, second, third] = self.graph.places(mixed);
        ([first + base, second + base, third + base], mixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_different_slots_in_range<G: Graph>() {
        for items in [0, 1, 2, 3, 10, 1_000, 123_456, 50_000_000, 1 << 40] {
            let graph = G::for_items(items);
            assert!(graph.slots() >= 3 && graph.slots() <= MAX_SHARD_SLOTS, "{items}");
            assert!(G::from_parts(graph.parts()).is_some_and(|twin| twin.parts() == graph.parts()));
            for shard_bits in [0, 1, 5] {
                let Some(shards) = Sharded::new(graph, shard_bits, seed_of(3), 8) else { continue };
                assert_eq!(shards.shard_bits(), shard_bits);
                let extremes = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, seed_of(3), !seed_of(3)];
                for key in extremes.into_iter().chain((0..2_000).map(|i| mix(i, 77))) {
                    let ([a, b, c], mixed) = shards.places(key);
                    assert!(a != b && b != c && a != c, "{key:#x}");
                    assert!([a, b, c].iter().all(|&slot| (slot as u64) < shards.slots()), "{key:#x}");
                    assert_eq!(
                        graph.places(mixed),
                        graph.places(mixed | 0xff),
                        "the lowest byte does not count"
                    );
                }
            }
        }
    }

    #[test]
    fn every_key_has_three_different_slots_in_range() {
        three_different_slots_in_range::<FuseGraph>();
        three_different_slots_in_range::<XorGraph>();
    }

    #[test]
    fn measurements_out_of_range_make_no_graph() {
        for parts in [[19, 1], [0, 0], [18, 0], [18, 1 << 13], [u64::MAX, 1], [4, u64::MAX], [1 << 32, 1]] {
            assert_eq!(FuseGraph::from_parts(parts), None, "{parts:?}");
        }
        for parts in [[0, 0], [1, 1], [MAX_SHARD_SLOTS / 3 + 1, 0], [u64::MAX, 0]] {
            assert_eq!(XorGraph::from_parts(parts), None, "{parts:?}");
        }
        let graph = FuseGraph::for_items(1 << 30);
        assert_eq!(Sharded::new(graph, MAX_SHARD_BITS, 0, 32), None);
        assert_eq!(Sharded::new(FuseGraph::for_items(1), MAX_SHARD_BITS + 1, 0, 8), None);
    }
}
