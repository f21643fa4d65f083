//! The three slots of one item, for [`explain`](crate::explain).

use super::fingerprint::{self, Fingerprint};
use super::graph::Graph;
use super::key;
use super::placed::{Placed, Twofold};
use super::shards::shard_of;
use super::table::StaticTable;
use crate::explain::{SlotLookup, StoredSlot};
use crate::hash::ItemHash;

impl<F: Fingerprint, G: Twofold> Placed<F, G> {
    /// What [`may_contain`](Self::may_contain) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> SlotLookup {
        if let Some(table) = self.as_foreign() {
            return table.trace(hash);
        }
        self.as_own().trace(hash)
    }
}

impl<F: Fingerprint, G: Graph> StaticTable<F, G> {
    fn trace(&self, hash: ItemHash) -> SlotLookup {
        let (places, words) = (self.places(), self.lines().words());
        let (slots, mixed) = places.places(key(hash));
        // An empty filter has no slots.
        let there = places.slots() <= (words.len() * fingerprint::per_word::<F>()) as u64;
        let stored =
            slots.map(|slot| (slot, if there { fingerprint::load::<F>(words, slot).widen() } else { 0 }));
        let stored = stored.map(|(slot, fingerprint)| StoredSlot { slot: slot as u64, fingerprint });
        // A fuse filter stores the power of two of its segment length and the number of segments; an xor filter has three.
        let segment_slots = match places.graph().parts() {
            [block, 0] => block,
            [bits, _] => 1 << bits,
        };
        let shard_bits = places.shard_bits();
        SlotLookup {
            shard: shard_of(key(hash), shard_bits) as u64,
            shards: 1 << shard_bits,
            slots: if there { places.slots() } else { 0 },
            segment_slots,
            fingerprint: G::fingerprint::<F>(mixed).widen(),
            fingerprint_bits: F::BITS,
            stored: if there { stored.into() } else { Vec::new() },
        }
    }
}
