//! Hashing: each item becomes an [`ItemHash`] once, and every filter works from it.
//!
//! ```text
//! item bytes ──[ HashScheme: fast | keyed ]──▶ ItemHash (128 bits) ──▶ positions in a filter
//! ```
//!
//! A [`HashScheme`] defines the hash of every byte string and is frozen once released: its number is in the header of an
//! encoded filter, and a new scheme gets the next number.

pub mod named;

mod foreign;
#[cfg(not(feature = "named-hashes"))]
pub(crate) mod not_compiled_in;
mod scheme;

pub use foreign::{ForeignHash, ForeignScheme};
pub use scheme::{HashScheme, SecretKey};

/// The hash of one item: 128 well-mixed bits, computed once and used many times.
///
/// It has 128 bits because with 2^40 items a 64-bit hash alone would cause a false-positive rate of 1 in 2^24, far more than
/// a rate of 1e-9 allows.
///
/// Get one from [`HashScheme::hash`] or a filter's own `hash`. A hash made with one scheme is meaningless to a filter that
/// uses another: it would answer `no` for its own items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemHash {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// Uses 128 bits as they are. The caller guarantees that every bit depends on every bit of the item.
///
/// Filters take their positions straight from these bits. Counters, database ids or a weak hash would break the promised
/// rate; use [`ItemHash::from_unmixed`] for those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WellMixed(pub u128);

impl ItemHash {
    /// Mixes 64 bits of any quality (an id, a counter, another library's hash) into a full hash.
    ///
    /// Sequential integers are spread as well as random ones. Equal bits give equal hashes, so the collisions of a 64-bit
    /// hash remain: above about 2^32 items it is better to hash the items themselves.
    #[must_use]
    pub fn from_unmixed(bits: u64) -> Self {
        HashScheme::fast(0).hash(&bits)
    }

    /// The 128 bits as one number.
    #[must_use]
    pub fn to_u128(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    /// A hash that is as unrelated to this one as that of another item, and different for every `tweak`.
    #[must_use]
    pub(crate) fn tweaked(self, tweak: u64) -> Self {
        if tweak == 0 {
            return self;
        }
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.low.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.high.to_le_bytes());
        bytes[16..].copy_from_slice(&tweak.to_le_bytes());
        HashScheme::fast(0).hash(&bytes)
    }
}

impl From<WellMixed> for ItemHash {
    #[inline]
    fn from(mixed: WellMixed) -> Self {
        Self { low: mixed.0 as u64, high: (mixed.0 >> 64) as u64 }
    }
}

/// `hash` scaled to `0..range`: the multiply-shift that replaces a modulo. Uses the high bits of `hash`.
#[inline(always)]
pub(crate) fn reduce(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduction_covers_its_range_and_no_more() {
        assert_eq!(reduce(0, 10), 0);
        assert_eq!(reduce(u64::MAX, 10), 9);
        assert_eq!(reduce(u64::MAX, u64::MAX), u64::MAX - 1);
        assert_eq!(reduce(1 << 63, 10), 5);
    }

    #[test]
    fn tweaks_are_unrelated_to_each_other() {
        let hash = ItemHash::from_unmixed(7);
        assert_eq!(hash.tweaked(0), hash);
        let differing_bits = (hash.tweaked(1).to_u128() ^ hash.tweaked(2).to_u128()).count_ones();
        assert!((32..=96).contains(&differing_bits), "{differing_bits} of 128 bits differ");
    }

    #[test]
    fn sequential_numbers_come_out_mixed() {
        // Every output bit is set in about half of 4 096 consecutive inputs: 2 048 ± 6 standard deviations (32 each).
        for bit in 0..128 {
            let ones = (0..4096).filter(|&i| ItemHash::from_unmixed(i).to_u128() >> bit & 1 == 1).count();
            assert!((1856..=2240).contains(&ones), "bit {bit} is set {ones} times of 4096");
        }
    }
}
