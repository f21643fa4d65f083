//! Inserts into a layer that many threads fill, and that accepts a limited number of items.

use super::room::Room;

/// The number of items whose lines are loading while another is inserted. Each item has `k` lines; more items
/// would evict each other's lines.
const AHEAD: usize = 8;

/// A store that accepts items through `&self`.
pub(crate) trait Layer {
    /// The hash of an item.
    type Hash: Copy;

    /// Starts loading the lines of an item.
    fn prefetch(&self, hash: Self::Hash);
    /// Returns whether all bits of the item are set.
    fn holds(&self, hash: Self::Hash) -> bool;
    /// Sets all bits of the item and returns whether this call changed any of them.
    fn set(&self, hash: Self::Hash) -> bool;
}

/// Inserts the items that have a bit in `non_members`, of at most 64, into `layer`, in order and as far as
/// there is room. The layer accepts `all` items, and `room` counts those it has.
///
/// Returns how many of the hashes were processed. Sets a bit in `new` for each item that changed the layer; a
/// duplicate does not change it.
#[inline(always)]
pub(crate) fn insert_word<L: Layer>(
    layer: &L,
    room: &Room,
    all: u64,
    hashes: &[L::Hash],
    non_members: u64,
    new: &mut u64,
) -> usize {
    let mut coming = places_in(non_members);
    coming.by_ref().take(AHEAD).for_each(|place| layer.prefetch(hashes[place]));
    let claimed = room.claim(non_members.count_ones().into(), all);
    let mut used = 0;
    let mut done = hashes.len();
    for place in places_in(non_members) {
        if let Some(place) = coming.next() {
            layer.prefetch(hashes[place]);
        }
        if used < claimed {
            let changed = layer.set(hashes[place]);
            used += u64::from(changed);
            *new |= u64::from(changed) << place;
        } else if !layer.holds(hashes[place]) {
            done = place;
            break;
        }
    }
    if used < claimed {
        room.give_back(claimed - used);
    }
    done
}

/// [`insert_word`] for one item that a lookup did not find: `true` if it changed the layer. `None`: there is
/// no room for it.
#[inline(always)]
pub(crate) fn insert_one<L: Layer>(layer: &L, room: &Room, all: u64, hash: L::Hash) -> Option<bool> {
    // Locked instructions wait for their lines one after the other, so load all lines first.
    layer.prefetch(hash);
    if room.claim(1, all) == 0 {
        return layer.holds(hash).then_some(false);
    }
    let changed = layer.set(hash);
    if !changed {
        room.give_back(1);
    }
    Some(changed)
}

/// Returns the positions of the set bits of `word`, the lowest first.
#[inline]
pub(crate) fn places_in(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            place
        })
    })
}
