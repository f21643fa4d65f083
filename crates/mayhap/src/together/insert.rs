//! Inserts into a layer that many threads fill, and that has room for so many items.

use super::room::Room;

/// Items whose lines are on their way while another is inserted: each has `k` of them, and more only crowd each other out.
const AHEAD: usize = 8;

/// What takes items through `&self`.
pub(crate) trait Layer {
    /// An item, hashed.
    type Hash: Copy;

    /// Starts loading the lines of an item.
    fn prefetch(&self, hash: Self::Hash);
    /// Are all bits of the item set?
    fn holds(&self, hash: Self::Hash) -> bool;
    /// Sets all bits of the item; did this call change any of them?
    fn set(&self, hash: Self::Hash) -> bool;
}

/// Puts those of at most 64 items that `non_members` has bits for into `layer`, one after the other, as far as there is room: `all` items, of which `room`
/// knows what is taken. How many of all it went through, and in `new`, which of them changed something: the same item a second time does not.
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

/// [`insert_word`] for one item, which a look did not find: `true` if it changed something. `None`: there is no room for it.
#[inline(always)]
pub(crate) fn insert_one<L: Layer>(layer: &L, room: &Room, all: u64, hash: L::Hash) -> Option<bool> {
    // Locked instructions wait for their lines one after the other.
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

/// Where `word` has its set bits, the lowest first.
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
