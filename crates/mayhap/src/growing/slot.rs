//! A slot: a fingerprint of any length up to the table's, with its length.
//!
//! ```text
//! slots of 8 bits      1 f f f f f f f      a fingerprint of 7 bits, the longest
//!                      0 0 1 f f f f f      of 5 bits: two doublings old
//!                      0 0 0 0 0 0 0 1      of none: void, and every item with this home matches it
//! ```
//!
//! The highest set bit ends the fingerprint. Its first bit is the lowest. Zero is not a valid slot.

use crate::hash::ItemHash;

/// The place of an item: its home, and the bits that distinguish it from others there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotPlace {
    pub(super) home: u64,
    /// The bits that fingerprints are compared with. The first bit is the lowest.
    pub(super) key: u64,
}

impl SlotPlace {
    /// One half of the hash chooses the home in the first table. The bits of the other half follow, from the
    /// lowest: the bits for the doublings so far choose the copy of the first table, and the rest is the key.
    ///
    /// So at a doubling the first bit of the key becomes the highest bit of the home: an item keeps its home
    /// number, or adds the old number of homes to it. (If it were the lowest bit of the home, the two homes
    /// would be neighbours. A void slot is stored in all homes that descend from its own, so these would
    /// crowd together. This was tried: after a dozen doublings there are thousands in a row, and an insertion
    /// has to move them all.)
    #[inline(always)]
    pub(super) fn of(hash: ItemHash, first_homes: u64, doublings: u32) -> Self {
        let product = u128::from(hash.low) * u128::from(first_homes);
        let copy = hash.high & ((1 << doublings) - 1);
        // The other half may be too short for the key: the unused bits of the first half follow it.
        let unused = product as u64 >> 32;
        let key = hash.high >> doublings | unused << 1 << (63 - doublings);
        Self { home: (product >> 64) as u64 + first_homes * copy, key }
    }

    /// Returns the item's fingerprint of `bits` bits, as a slot.
    #[inline(always)]
    pub(super) const fn fingerprint(self, bits: u32) -> u64 {
        let end = 1 << bits;
        end | self.key & (end - 1)
    }
}

/// A slot with an empty fingerprint.
pub(super) const VOID: u64 = 1;

/// Returns whether the key begins with the fingerprint in the slot.
#[inline(always)]
pub(super) const fn covers(slot: u64, key: u64) -> bool {
    // Shifts out the bits after the fingerprint and the bit that ends it.
    ((slot ^ key) << (slot.leading_zeros() % 64)) << 1 == 0
}

/// Returns the bits of the fingerprint in the slot.
#[inline(always)]
pub(super) const fn length(slot: u64) -> u32 {
    63_u32.saturating_sub(slot.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: ItemHash = ItemHash { low: 0xffff_ffff_0123_4567, high: 0xfedc_ba98_7654_3210 };

    #[test]
    fn doubling_moves_one_bit_into_the_home() {
        for seed in 0..1_000 {
            let hash = ItemHash::from_unmixed(seed);
            for first_homes in [2, 3, 64, 1_000_003, 1 << 20] {
                assert_eq!(
                    SlotPlace::of(hash, first_homes, 0).home,
                    crate::hash::reduce(hash.low, first_homes)
                );
                for doublings in 0..23 {
                    let old = SlotPlace::of(hash, first_homes, doublings);
                    let new = SlotPlace::of(hash, first_homes, doublings + 1);
                    let homes = first_homes << doublings;
                    assert!(old.home < homes);
                    assert_eq!(new.home, old.home + homes * (old.key & 1));
                    assert_eq!(new.key << 1 >> 1, old.key >> 1);
                }
            }
        }
        let place = SlotPlace::of(HASH, 1 << 32, 8);
        assert_eq!((place.home, place.key), (0x10_ffff_ffff, 0x67fe_dcba_9876_5432));
    }

    #[test]
    fn a_slot_covers_keys_that_begin_with_its_fingerprint() {
        // Compares all slots and all keys of six bits with the definition.
        for slot in 1..1_u64 << 6 {
            let text = format!("{slot:06b}");
            let fingerprint = text.trim_start_matches('0').strip_prefix('1').unwrap();
            assert_eq!(length(slot) as usize, fingerprint.len());
            assert_eq!(slot == VOID, fingerprint.is_empty());
            for key in 0..1_u64 << 6 {
                for far in [0, 1 << 63, u64::MAX << 6] {
                    let ends = format!("{key:06b}").ends_with(fingerprint);
                    assert_eq!(covers(slot, key | far), ends, "{slot:b} {key:b}");
                }
            }
        }
    }

    #[test]
    fn a_fingerprint_follows_its_item_through_every_doubling() {
        let mut slot = SlotPlace::of(HASH, 10, 0).fingerprint(8);
        for doublings in 1..=8 {
            let old = SlotPlace::of(HASH, 10, doublings - 1);
            assert!(covers(slot, old.key));
            assert_eq!(slot & 1, old.key & 1);
            slot >>= 1;
            let place = SlotPlace::of(HASH, 10, doublings);
            assert!(covers(slot, place.key));
            assert_eq!(length(slot), 8 - doublings);
            // The last remaining bit still distinguishes it; the bit after that does not.
            assert!(covers(slot, place.key ^ 1 << length(slot)));
            assert!(slot == VOID || !covers(slot, place.key ^ 1 << (length(slot) - 1)));
        }
        assert_eq!(slot, VOID);
    }

    #[test]
    fn invalid_slots_do_not_panic() {
        assert!(!covers(0, 5) && covers(0, 0));
        assert_eq!(length(0), 0);
    }
}
