//! The lines of RocksDB's Bloom filters: one per item, as in our dense layout, but chosen and filled by other
//! rules.
//!
//! ```text
//!               line                        bits of it, k times
//! legacy        low mod lines               h & 511      h += low rotated by 17      from h = low, the 32-bit hash
//! fast local    low half · lines >> 32      x >> 23      x *= 9e3779b9               from x = high half of the 64-bit hash
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use super::BlockedPlacement;
use super::place::BlockPlace;
use crate::hash::ItemHash;
use crate::simd::generic::LINE_WORDS;

impl BlockedPlacement {
    /// Returns whether this is one of RocksDB's two rules.
    pub(super) const fn is_rocksdbs(self) -> bool {
        matches!(self, Self::RocksDbLegacy | Self::RocksDbFastLocal)
    }

    /// Returns the line of an item, at most 2^32 - 1, and the 32 bits that choose positions in it.
    #[inline]
    pub(super) fn line(self, hash: ItemHash, lines: u64) -> BlockPlace {
        let (low, high) = (hash.low as u32, (hash.low >> 32) as u32);
        let (line, bits) = match self {
            Self::RocksDbFastLocal => ((u64::from(low) * lines) >> 32, high),
            _ => (u64::from(low) % lines, low),
        };
        BlockPlace { word: line as usize * LINE_WORDS, bits }
    }

    /// Returns the positions of an item's bits in its line.
    #[inline]
    pub(super) fn positions(self, mut bits: u32, probes: u32) -> impl Iterator<Item = u32> {
        let step = bits.rotate_right(17);
        (0..probes).map(move |_| {
            let bit = match self {
                Self::RocksDbFastLocal => bits >> 23,
                _ => bits & 511,
            };
            bits = match self {
                Self::RocksDbFastLocal => bits.wrapping_mul(0x9e37_79b9),
                _ => bits.wrapping_add(step),
            };
            bit
        })
    }

    /// Returns the bits of an item in its line.
    #[inline]
    pub(super) fn mask(self, bits: u32, probes: u32) -> [u64; LINE_WORDS] {
        let mut mask = [0; LINE_WORDS];
        for bit in self.positions(bits, probes) {
            mask[bit as usize / 64] |= 1 << (bit % 64);
        }
        mask
    }

    /// Sets the bits of an item. Returns whether that changed one.
    #[inline]
    pub(super) fn set(self, words: &mut [u64], place: BlockPlace, probes: u32) -> bool {
        let mut clear = 0;
        for (word, mask) in words[place.word..][..LINE_WORDS].iter_mut().zip(self.mask(place.bits, probes)) {
            clear |= mask & !*word;
            *word |= mask;
        }
        clear != 0
    }

    /// Returns whether all bits of an item are set.
    #[inline]
    pub(super) fn covers(self, words: &[AtomicU64], place: BlockPlace, probes: u32) -> bool {
        let line = words[place.word..][..LINE_WORDS].iter();
        line.zip(self.mask(place.bits, probes))
            .all(|(word, mask)| word.load(Ordering::Relaxed) & mask == mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stays_in_range_for_any_hash() {
        for rule in [BlockedPlacement::RocksDbLegacy, BlockedPlacement::RocksDbFastLocal] {
            for low in [0, u64::MAX, u64::from(u32::MAX), 0xdead_beef_0bad_cafe] {
                for lines in [1, 2, 3, u64::from(u32::MAX)] {
                    let place = rule.line(ItemHash { low, high: 7 }, lines);
                    assert!(place.word as u64 / 8 < lines && place.word % 8 == 0, "{rule:?} {low} {lines}");
                }
                let ones = |mask: [u64; 8]| mask.iter().map(|word| word.count_ones()).sum::<u32>();
                assert!((1..=127).contains(&ones(rule.mask(low as u32, 127))));
                assert_eq!(ones(rule.mask(low as u32, 1)), 1);
            }
        }
    }
}
