//! Finds fingerprints such that the three slots of every item xor to the item's own: by peeling.
//!
//! ```text
//! 1. fill     every slot counts its items and xors them
//! 2. peel     a slot with one item left belongs to that item: remove the item from its other two slots,
//!             which may leave one of those with one item; and so on
//! 3. assign   the item removed last comes first: its slot gets the value that completes the xor of the three
//! ```
//!
//! Sums and counts do not depend on the order of the keys, and slots are visited in their own order. So equal
//! sets give equal filters.

use super::fingerprint::{Fingerprint, NARROW_BITS};
use super::graph::{OwnGraph, PLACED_BITS, mix};
use crate::error::BuildError;
use crate::simd::prefetch_words;
use crate::store::{Lines, WORDS_PER_LINE};

/// What to do with items that differ only in the byte that does not place them. With 8 and 16 bits their
/// fingerprints are equal, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twins {
    /// Give up: they may be duplicates, and then the size must be computed again.
    Refuse,
    /// Keep one of them.
    Merge,
}

/// The working memory of one thread, used for one shard after another.
#[derive(Debug)]
pub(crate) struct Workbench<F> {
    /// The mixed keys, roughly in the order of their slots.
    mixed: Lines,
    /// The number of keys.
    keys: usize,
    /// Per slot: the xor of the items that have it, and their number in the lowest byte. Once the slot
    /// belongs to an item: that item, and a zero.
    slots: Lines,
    /// Per slot: the xor of the lowest bytes of its items. Only for fingerprints that need it.
    tails: Vec<u8>,
    /// Slots with one item left, in the order they were found. Those that were used move to the front.
    queue: Vec<u32>,
    fingerprints: Vec<F>,
}

/// The lowest byte of a slot.
const COUNT: u64 = !PLACED_BITS;

impl<F: Fingerprint> Workbench<F> {
    pub(crate) fn new() -> Result<Self, BuildError> {
        let (mixed, slots) = (Lines::zeroed(0)?, Lines::zeroed(0)?);
        Ok(Self { mixed, keys: 0, slots, tails: Vec::new(), queue: Vec::new(), fingerprints: Vec::new() })
    }

    /// Whether the fingerprint depends on the byte for which the slots have no room.
    const WIDE: bool = F::BITS > NARROW_BITS;

    /// Returns the fingerprints of all slots of one shard, or `None` if this seed does not solve it.
    pub(crate) fn solve<G: OwnGraph>(
        &mut self,
        graph: &G,
        keys: &[u64],
        seed: u64,
        twins: Twins,
    ) -> Result<Option<&[F]>, BuildError> {
        let slots = graph.slots() as usize;
        self.mix_all::<G>(keys, seed)?;
        resized(&mut self.queue, slots + 3)?;
        let mut peeled = self.fill(graph)? && self.peel(graph);
        if !peeled && twins == Twins::Merge && self.merge_twins() {
            peeled = self.fill(graph)? && self.peel(graph);
        }
        if !peeled {
            return Ok(None);
        }
        resized(&mut self.fingerprints, slots)?;
        self.assign(graph);
        Ok(Some(&self.fingerprints))
    }

    /// Mixes the keys. Sorts them roughly if that makes their slots adjacent.
    fn mix_all<G: OwnGraph>(&mut self, keys: &[u64], seed: u64) -> Result<(), BuildError> {
        /// For fewer slots all of them are in the cache anyway.
        const WORTH_IT: usize = 1 << 13;
        /// The ends of more than `2^8` piles would not all stay in the cache, and a pile is already as small
        /// as a segment.
        const PILE_BITS: u32 = 8;
        with_room(&mut self.mixed, keys.len())?;
        self.keys = keys.len();
        let to = &mut self.mixed.words_mut()[..keys.len()];
        if !G::LOCAL || keys.len() < WORTH_IT {
            to.iter_mut().zip(keys).for_each(|(to, &key)| *to = mix(key, seed));
            return Ok(());
        }
        let mut ends = [0_usize; 1 << PILE_BITS];
        let pile_of = |mixed: u64| (mixed >> (64 - PILE_BITS)) as usize;
        for &key in keys {
            ends[pile_of(mix(key, seed))] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for &key in keys {
            let mixed = mix(key, seed);
            let end = &mut ends[pile_of(mixed)];
            to[*end] = mixed;
            *end += 1;
        }
        Ok(())
    }

    /// Counts the items of every slot. `false` if a slot has too many items to count, which does not happen
    /// with honest keys.
    fn fill<G: OwnGraph>(&mut self, graph: &G) -> Result<bool, BuildError> {
        let count = graph.slots() as usize;
        with_room(&mut self.slots, count)?;
        if Self::WIDE {
            resized(&mut self.tails, count)?;
        }
        let (slots, tails) = (&mut self.slots.words_mut()[..count], &mut self.tails[..]);
        slots.fill(0);
        let mut crowded = false;
        for &mixed in &self.mixed.words_mut()[..self.keys] {
            for place in graph.places(mixed) {
                let slot = (slots[place] ^ (mixed & PLACED_BITS)).wrapping_add(1);
                crowded |= slot & COUNT == 0;
                slots[place] = slot;
                if Self::WIDE {
                    tails[place] ^= mixed as u8;
                }
            }
        }
        Ok(!crowded)
    }

    /// Removes the items one by one. Returns whether every item got a slot of its own. Then the queue begins
    /// with these slots, in the order they were assigned.
    fn peel<G: OwnGraph>(&mut self, graph: &G) -> bool {
        let slots = &mut self.slots.words_mut()[..graph.slots() as usize];
        let (tails, queue) = (&mut self.tails[..], &mut self.queue[..]);
        // Always written, kept only if there is one item: no branch to mispredict. A slot is found at most
        // once, when it has one item left, so there is room for all.
        let mut found = 0;
        for (place, slot) in (0..).zip(slots.iter()) {
            queue[found] = place;
            found += usize::from(slot & COUNT == 1);
        }
        let prefetch = prefetch_words(slots);
        let (mut next, mut taken) = (0, 0);
        while next < found {
            let place = queue[next];
            // First in, first out: the next slots are known in advance, and so are the slots they will touch.
            prefetch.at(queue[(next + 2 * AHEAD).min(found)] as usize);
            let soon = slots[queue[(next + AHEAD).min(found)] as usize];
            graph.places(soon).into_iter().for_each(|other| prefetch.at(other));
            next += 1;
            let slot = slots[place as usize];
            if slot & COUNT != 1 {
                continue;
            }
            let item = slot & PLACED_BITS;
            let tail = if Self::WIDE { tails[place as usize] } else { 0 };
            for other in graph.places(item) {
                let left = (slots[other] ^ item).wrapping_sub(1);
                slots[other] = left;
                if Self::WIDE {
                    tails[other] ^= tail;
                }
                queue[found] = other as u32;
                found += usize::from(left & COUNT == 1);
            }
            slots[place as usize] = item;
            if Self::WIDE {
                tails[place as usize] = tail;
            }
            queue[taken] = place;
            taken += 1;
        }
        taken == self.keys
    }

    /// Computes the fingerprint of every slot; slots without an item stay zero.
    fn assign<G: OwnGraph>(&mut self, graph: &G) {
        let slots = &mut self.slots.words_mut()[..graph.slots() as usize];
        let prefetch = prefetch_words(slots);
        let (queue, fingerprints) = (&self.queue[..self.keys], &mut self.fingerprints[..]);
        for (index, &place) in queue.iter().enumerate().rev() {
            prefetch.at(queue[index.saturating_sub(AHEAD)] as usize);
            let place = place as usize;
            let tail = if Self::WIDE { u64::from(self.tails[place]) } else { 0 };
            let item = slots[place] | tail;
            let [first, second, third] = graph.places(item);
            // The item's own slot is still zero.
            let others = fingerprints[first] ^ fingerprints[second] ^ fingerprints[third];
            fingerprints[place] = F::of(item) ^ others;
        }
    }

    /// Keeps one of several keys that cannot be distinguished. Returns whether there were any.
    fn merge_twins(&mut self) -> bool {
        let known_by = |mixed: u64| if Self::WIDE { mixed } else { mixed & PLACED_BITS };
        let mixed = &mut self.mixed.words_mut()[..self.keys];
        mixed.sort_unstable();
        let mut kept = 0;
        for index in 0..mixed.len() {
            if index == 0 || known_by(mixed[index]) != known_by(mixed[kept - 1]) {
                mixed[kept] = mixed[index];
                kept += 1;
            }
        }
        std::mem::replace(&mut self.keys, kept) > kept
    }
}

/// The number of slots by which prefetching runs ahead.
const AHEAD: usize = 12;

/// Makes sure that there are at least this number of words.
fn with_room(lines: &mut Lines, words: usize) -> Result<(), BuildError> {
    if lines.words().len() < words {
        // The old contents are no longer needed: free them first.
        *lines = Lines::zeroed(0)?;
        *lines = Lines::zeroed(words.div_ceil(WORDS_PER_LINE))?;
    }
    Ok(())
}

/// Makes `values` a list of `len` zeroes.
fn resized<T: Copy + Default>(values: &mut Vec<T>, len: usize) -> Result<(), BuildError> {
    values.clear();
    reserve(values, len)?;
    values.resize(len, T::default());
    Ok(())
}

fn reserve<T>(values: &mut Vec<T>, len: usize) -> Result<(), BuildError> {
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    values.try_reserve_exact(len).map_err(|_| BuildError::OutOfMemory { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;
    use crate::statics::graph::{FuseGraph, Graph as _, XorGraph, seed_of};

    fn all_come_out<F: Fingerprint, G: OwnGraph>() {
        let mut bench = Workbench::<F>::new().unwrap();
        for count in [0, 1, 2, 3, 10, 99, 1_000, 20_000] {
            let keys: Vec<u64> = (0..count).map(|i| ItemHash::from_unmixed(i).low).collect();
            let graph = G::for_items(count);
            let solved = (0..50).find(|&attempt| {
                let fingerprints = bench.solve(&graph, &keys, seed_of(attempt), Twins::Refuse).unwrap();
                fingerprints.is_some_and(|fingerprints| {
                    assert!(keys.iter().all(|&key| {
                        let mixed = mix(key, seed_of(attempt));
                        let [a, b, c] = graph.places(mixed);
                        fingerprints[a] ^ fingerprints[b] ^ fingerprints[c] == F::of(mixed)
                    }));
                    true
                })
            });
            assert!(solved.is_some_and(|attempts| attempts < 20), "{count} items: {solved:?}");
        }
    }

    #[test]
    fn three_slots_xor_to_the_fingerprint() {
        all_come_out::<u8, FuseGraph>();
        all_come_out::<u16, FuseGraph>();
        all_come_out::<u32, FuseGraph>();
        all_come_out::<u8, XorGraph>();
        all_come_out::<u16, XorGraph>();
        all_come_out::<u32, XorGraph>();
    }

    /// Returns the key that `mix` turns into `mixed`.
    fn unmixed(mixed: u64, seed: u64) -> u64 {
        // Newton's iteration: each step doubles the number of correct bits.
        let odd = mix(1, 0);
        let inverse = (0..6)
            .fold(odd, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))));
        mixed.wrapping_mul(inverse) ^ seed
    }

    #[test]
    fn twins_are_merged_only_if_that_is_allowed_and_their_fingerprints_are_the_same() {
        let seed = seed_of(1);
        let keys: Vec<u64> = (0..300)
            .map(|i| {
                unmixed((0x9e37_79b9_7f4a_7c00_u64.wrapping_mul(1 + i / 2) & PLACED_BITS) | (i % 2), seed)
            })
            .collect();
        let graph = FuseGraph::for_items(keys.len() as u64);
        let mut narrow = Workbench::<u16>::new().unwrap();
        assert_eq!(narrow.solve(&graph, &keys, seed, Twins::Refuse), Ok(None));
        let solved = narrow.solve(&graph, &keys, seed, Twins::Merge).unwrap();
        assert!(solved.is_some());
        let mut wide = Workbench::<u32>::new().unwrap();
        assert_eq!(wide.solve(&graph, &keys, seed, Twins::Merge), Ok(None));
    }

    #[test]
    fn a_slot_too_crowded_to_count_is_noticed() {
        // 256 and 512 items in the same three slots: the counter wraps to 0.
        for count in [255, 256, 257, 512, 513] {
            let keys: Vec<u64> = (0..count).map(|_| unmixed(77 << 8, 0)).collect();
            let graph = FuseGraph::for_items(count);
            assert_eq!(
                Workbench::<u8>::new().unwrap().solve(&graph, &keys, 0, Twins::Refuse),
                Ok(None),
                "{count}"
            );
        }
    }
}
