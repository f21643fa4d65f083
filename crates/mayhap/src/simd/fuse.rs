//! Three fingerprints of a static filter, read as what they are.

use std::sync::atomic::AtomicU64;

use super::prefetch_address;
use crate::statics::fingerprint::{self, Fingerprint};
use crate::statics::graph::{Graph, Sharded};

/// The fingerprint `key` should have, xored with those in its three slots: zero for a member. `None` if `words` are too few for the slots of
/// `places`, as those of an empty filter are.
#[inline(always)]
pub(crate) fn difference<F: Fingerprint, G: Graph>(
    words: &[AtomicU64],
    places: &Sharded<G>,
    key: u64,
) -> Option<F> {
    // About the whole array, not these slots: in a loop over items it is checked once.
    if places.slots() > (words.len() * fingerprint::per_word::<F>()) as u64 {
        return None;
    }
    if cfg!(any(target_endian = "big", miri)) {
        return Some(plain_difference(words, places, key));
    }
    let ([first, second, third], mixed) = places.places(key);
    let start = words.as_ptr().cast::<F>();
    // SAFETY: `Sharded::places` gives slots below `Sharded::slots` (its only constructor sees to that), for which there are enough words: checked
    // above. In little-endian words the fingerprints follow each other in the order of their slots. Their types have no invalid values and no
    // larger alignment than the words. Words that are shared are never written in a static filter, so nothing races with these reads.
    let stored = unsafe { [start.add(first).read(), start.add(second).read(), start.add(third).read()] };
    Some(G::fingerprint::<F>(mixed) ^ stored[0] ^ stored[1] ^ stored[2])
}

/// The plain twin of [`difference`], for words that are enough.
fn plain_difference<F: Fingerprint, G: Graph>(words: &[AtomicU64], places: &Sharded<G>, key: u64) -> F {
    let (slots, mixed) = places.places(key);
    let stored = slots.map(|slot| fingerprint::load::<F>(words, slot));
    stored.into_iter().fold(G::fingerprint::<F>(mixed), |left, right| left ^ right)
}

/// Starts loading the line of fingerprint `slot`. Harmless for any slot.
#[inline(always)]
pub(crate) fn prefetch_slot<F: Fingerprint>(words: &[AtomicU64], slot: usize) {
    prefetch_address(words.as_ptr().cast::<F>().wrapping_add(slot).cast());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;
    use crate::statics::graph::{FuseGraph, XorGraph};
    use crate::store::Lines;

    fn both_are_the_same<F: Fingerprint, G: Graph>() {
        for (items, shard_bits) in [(1, 0), (10, 0), (10, 3), (1_000, 0), (1_000, 2)] {
            let places = Sharded::new(G::for_items(items), shard_bits, 5, F::BITS).unwrap();
            let words = (places.slots() as usize).div_ceil(fingerprint::per_word::<F>());
            let mut lines = Lines::zeroed(words.div_ceil(8)).unwrap();
            for (index, word) in (0..).zip(lines.words_mut()) {
                *word = ItemHash::from_unmixed(index).high;
            }
            let words = &lines.words()[..words];
            let ends = [0, u64::MAX, 1 << 63, 5];
            for key in (0..5_000).map(|i| ItemHash::from_unmixed(i).low).chain(ends) {
                let plain = plain_difference::<F, G>(words, &places, key);
                assert_eq!(difference::<F, G>(words, &places, key), Some(plain));
                assert_eq!(difference::<F, G>(&words[1..], &places, key), None, "one word is missing");
                assert_eq!(difference::<F, G>(&[], &places, key), None);
            }
        }
    }

    #[test]
    fn reading_fingerprints_and_reading_words_is_the_same() {
        both_are_the_same::<u8, FuseGraph>();
        both_are_the_same::<u16, FuseGraph>();
        both_are_the_same::<u32, FuseGraph>();
        both_are_the_same::<u8, XorGraph>();
        both_are_the_same::<u16, XorGraph>();
        both_are_the_same::<u32, XorGraph>();
    }

    #[test]
    fn and_so_it_is_for_the_slots_of_others() {
        use crate::statics::foreign::{ForeignFuse, ForeignXor};
        both_are_the_same::<u8, ForeignFuse>();
        both_are_the_same::<u16, ForeignFuse>();
        both_are_the_same::<u32, ForeignFuse>();
        both_are_the_same::<u8, ForeignXor>();
        both_are_the_same::<u16, ForeignXor>();
        both_are_the_same::<u32, ForeignXor>();
    }
}
