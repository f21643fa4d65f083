//! The home of an item, and the part of its hash that is stored.

use crate::hash::ItemHash;

/// The fingerprint of an item: its home, and the remainder that is stored there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunPlace {
    pub(super) home: u64,
    pub(super) remainder: u64,
}

/// Treats the hash as a fraction between 0 and 1, with `low` before `high`, and multiplies it by the number
/// of homes. The integer part is the home, and the first bits of the fraction are the remainder.
///
/// Doubling the homes therefore moves exactly one bit from the fraction to the integer part, for any number
/// of homes. `high` is needed because `low` alone has too few bits for a large table with long remainders.
#[inline(always)]
pub(super) fn place(hash: ItemHash, homes: u64, remainder_bits: u32) -> RunPlace {
    let carried = (u128::from(hash.high) * u128::from(homes)) >> 64;
    let product = u128::from(hash.low) * u128::from(homes) + carried;
    RunPlace { home: (product >> 64) as u64, remainder: product as u64 >> (64 - remainder_bits) }
}

impl RunPlace {
    /// Returns the place of the same item in a table of twice as many homes, with one bit less to store.
    pub(super) const fn doubled(self, remainder_bits: u32) -> Self {
        let top = self.remainder >> (remainder_bits - 1);
        Self { home: self.home << 1 | top, remainder: self.remainder & !(top << (remainder_bits - 1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_moves_one_bit_for_any_number_of_homes() {
        for homes in [1, 2, 3, 10, 63, 1_000_003, (1 << 43) - 1] {
            for bits in [3, 8, 58] {
                for item in 0..2_000 {
                    let hash = ItemHash::from_unmixed(item);
                    let before = place(hash, homes, bits);
                    assert!(before.home < homes && before.remainder < 1 << bits);
                    assert_eq!(before.doubled(bits), place(hash, 2 * homes, bits - 1));
                }
            }
        }
        let last = ItemHash { low: u64::MAX, high: u64::MAX };
        assert_eq!(place(last, 7, 4), RunPlace { home: 6, remainder: 15 });
        assert_eq!(place(ItemHash::default(), 7, 4), RunPlace::default());
    }

    #[test]
    fn place_uses_both_halves_of_the_hash() {
        let (homes, bits) = (1 << 43, 58);
        let of = |low, high| place(ItemHash { low, high }, homes, bits);
        assert_ne!(of(5, 0), of(6, 0));
        assert_ne!(of(5, 1 << 63), of(5, 1 << 62));
    }
}
