//! Where an item's three slots are.
//!
//! ```text
//! key ──top bits──▶ shard
//!  └──mixed with the seed──▶ three slots inside of it, and the fingerprint
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

/// Slots a shard has at most: they are numbered with 32 bits while building.
pub(crate) const MAX_SHARD_SLOTS: u64 = 1 << 31;
/// Where there are several shards, each begins at a multiple of so many slots.
const SHARD_ROUNDING: u64 = 64;
/// The power of two of the most shards there can be.
pub(crate) const MAX_SHARD_BITS: u32 = 24;

/// Three slots for every mixed key, inside one shard, and how keys are mixed.
pub(crate) trait Graph: Copy + Send + Sync + Sized {
    /// The number of items is always known.
    const COUNTED: bool = true;

    /// A graph that comes together for `items` items.
    fn for_items(items: u64) -> Self;

    /// A graph of these two measurements, if there is one.
    fn from_parts(parts: [u64; 2]) -> Option<Self>;

    /// Its two measurements.
    fn parts(&self) -> [u64; 2];

    /// Slots in a shard: at least 3, at most [`MAX_SHARD_SLOTS`].
    fn slots(&self) -> u64;

    /// The three slots of `mixed`: three different ones, each below `slots`.
    fn places(&self, mixed: u64) -> [usize; 3];

    /// The seed that encoded filters know by this number.
    fn seed(number: u64) -> Option<u64> {
        u32::try_from(number).ok().filter(|&attempt| attempt < MAX_ATTEMPTS).map(seed_of)
    }

    /// A key, mixed anew for every seed: one to one, so that no two keys become one.
    #[inline(always)]
    fn mix(key: u64, seed: u64) -> u64 {
        mix(key, seed)
    }

    /// The fingerprint of an item whose key was mixed to `mixed`.
    #[inline(always)]
    fn fingerprint<F: Fingerprint>(mixed: u64) -> F {
        F::of(mixed)
    }
}

/// A graph of our own: keys are mixed by the rule of this module, and only the [`PLACED_BITS`] of a mixed key count for its slots.
pub(crate) trait OwnGraph: Graph {
    /// Neighbouring keys have neighbouring slots: worth sorting them for.
    const LOCAL: bool;
}

/// The graph of the binary fuse filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FuseGraph {
    /// Slots an item may begin in: a positive multiple of `segment`.
    pub(super) starts: u64,
    /// Slots in a segment: a power of two.
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

/// The graph of the xor filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct XorGraph {
    /// Slots in each of the three blocks, at least 1.
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
        /// Odd. A rotation by 42 would bring the byte that does not count to where it hurts.
        const STIR: u64 = 0x9e6c_63d0_876a_3f6b;
        let mixed = mixed & PLACED_BITS;
        let first = reduce(mixed, self.block);
        let second = reduce(mixed.rotate_left(21), self.block) + self.block;
        let third = reduce(mixed.wrapping_mul(STIR), self.block) + 2 * self.block;
        [first as usize, second as usize, third as usize]
    }
}

/// The seed of attempt number `attempt`; that of the first is 0.
pub(crate) const fn seed_of(attempt: u32) -> u64 {
    (attempt as u64).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29)
}

/// A key, mixed anew for every seed: one to one, so that no two keys become one.
#[inline(always)]
pub(crate) const fn mix(key: u64, seed: u64) -> u64 {
    (key ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Shards side by side in one array, each with the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharded<G> {
    graph: G,
    seed: u64,
    /// What is left of a key shifted by this is its shard ...
    shard_shift: u32,
    /// ... which begins at this many times that slot. 0 if there is one shard, whatever is left of the key.
    stride: u64,
    /// Slots in all shards.
    slots: u64,
}

impl<G: Graph> Sharded<G> {
    /// `2^shard_bits` shards of `graph`. `None` if there were too many of them, or they too large for fingerprints of `width` bits.
    pub(crate) fn new(graph: G, shard_bits: u32, seed: u64, width: u32) -> Option<Self> {
        if shard_bits > MAX_SHARD_BITS || graph.slots() > MAX_SHARD_SLOTS {
            return None;
        }
        // Shards begin on lines of their own, so that each can be written by a thread of its own.
        let alone = shard_bits == 0;
        let room = if alone { graph.slots() } else { graph.slots().next_multiple_of(SHARD_ROUNDING) };
        // At most 2^31 slots times 2^24 shards: no overflow.
        let slots = room << shard_bits;
        if slots > MAX_BITS / u64::from(width) {
            return None;
        }
        let (shard_shift, stride) = if alone { (63, 0) } else { (64 - shard_bits, room) };
        Some(Self { graph, seed, shard_shift, stride, slots })
    }

    /// The same shards of another graph with the same slots.
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

    /// Slots from the beginning of one shard to that of the next.
    pub(crate) const fn slots_per_shard(&self) -> u64 {
        self.slots >> self.shard_bits()
    }

    /// Slots in all shards.
    #[inline(always)]
    pub(crate) const fn slots(&self) -> u64 {
        self.slots
    }

    /// The power of two of the number of shards.
    pub(crate) const fn shard_bits(&self) -> u32 {
        if self.stride == 0 { 0 } else { 64 - self.shard_shift }
    }

    /// The three slots of `key` in the whole array, each below [`slots`](Self::slots), and the key mixed for its fingerprint.
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
