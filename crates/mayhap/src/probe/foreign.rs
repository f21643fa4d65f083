//! The positions that other programs compute, by the rules of their own code. All are frozen, because their files are.
//!
//! ```text
//! Guava64      low, low + high, low + 2·high …          each & 2^63-1, mod bits
//! Guava32      a + b, a + 2b …  in 32 bits              negative: all bits flipped; mod bits
//! Redisson     low, + high, + low, + high …             each & 2^63-1, mod bits
//! RedisBloom   low, low + high, low + 2·high …          mod bits; `redis` computes the same without dividing
//! Spark2       a·(2^31-1) + b, + 2b …                   negative: all bits flipped; mod bits
//! Dcso         low·g mod p, ·g mod p …                  mod bits
//! DataSketches low + high, low + 2·high …               >> 1, mod bits; low odd, high even: nowhere
//! Rbloom       state·m + 1, again …   in 128 bits       bits 32 to 95, mod bits
//! LevelDb      low, low + rotated, …  in 32 bits        mod bits
//! Cassandra    high, high + low, …    signed            |mod bits|
//! ```

use super::{PositionStream, Range};
use crate::hash::ForeignHash;
use crate::hash::{HashScheme, ItemHash};

/// How a classic filter computes positions from the hash of an item. Its number is in the header of an encoded filter and
/// never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BloomPlacement {
    /// Ours.
    #[default]
    Mayhap,
    /// Guava's `MURMUR128_MITZ_64`.
    Guava64,
    /// Guava's `MURMUR128_MITZ_32`, and Spark's first version.
    Guava32,
    /// Redisson's `RBloomFilter`.
    Redisson,
    /// RedisBloom's and valkey-bloom's.
    RedisBloom,
    /// Spark's second version.
    Spark2,
    /// DCSO's `bloom`.
    Dcso,
    /// Apache DataSketches.
    DataSketches,
    /// rbloom.
    Rbloom,
    /// LevelDB's filter blocks.
    LevelDb,
    /// Cassandra's `Filter.db`.
    Cassandra,
}

impl BloomPlacement {
    /// All rules, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Mayhap,
        Self::Guava64,
        Self::Guava32,
        Self::Redisson,
        Self::RedisBloom,
        Self::Spark2,
        Self::Dcso,
        Self::DataSketches,
        Self::Rbloom,
        Self::LevelDb,
        Self::Cassandra,
    ];

    /// The number in encoded filters.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Do filters with this hash use this placement? Keyed filters of the `BF.*` family also use RedisBloom's placement.
    pub(crate) fn suits(self, scheme: &HashScheme) -> bool {
        if let HashScheme::Foreign(foreign) = scheme {
            let function = foreign.function();
            return match self {
                Self::Mayhap => true,
                Self::Guava64 => function == ForeignHash::Guava,
                Self::Guava32 => matches!(function, ForeignHash::Guava | ForeignHash::Spark { seed: 0 }),
                Self::Redisson => function == ForeignHash::Redisson,
                Self::RedisBloom => function == ForeignHash::RedisBloom,
                Self::Spark2 => matches!(function, ForeignHash::Spark { .. }),
                Self::Dcso => function == ForeignHash::Dcso,
                Self::DataSketches => matches!(function, ForeignHash::DataSketches { .. }),
                Self::Rbloom => function == ForeignHash::Rbloom,
                Self::LevelDb => function == ForeignHash::LevelDb,
                Self::Cassandra => function == ForeignHash::Cassandra,
            };
        }
        match self {
            Self::Mayhap => true,
            Self::RedisBloom => matches!(scheme, HashScheme::Keyed { .. }),
            _ => false,
        }
    }

    /// The most probes per item of a filter with this placement.
    pub(crate) const fn max_probes(self) -> u32 {
        match self {
            Self::Mayhap => super::MAX_PROBES,
            Self::RedisBloom => super::MAX_REDIS_PROBES,
            _ => super::MAX_FOREIGN_PROBES,
        }
    }

    /// The placement with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.number() == number)
    }
}

/// The positions of one item by another program's rule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForeignProbes {
    rule: BloomPlacement,
    state: u64,
    low: u64,
    high: u64,
    index: u32,
}

/// DCSO's modulus, the largest prime of 64 bits, and its factor.
const DCSO_PRIME: u64 = 18_446_744_073_709_551_557;
const DCSO_FACTOR: u64 = 18_446_744_073_709_550_147;
/// rbloom's factor.
const RBLOOM_FACTOR: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

impl ForeignProbes {
    pub(crate) fn new(rule: BloomPlacement, ItemHash { low, high }: ItemHash) -> Self {
        let mut probes = Self { rule, state: low, low, high, index: 0 };
        match rule {
            BloomPlacement::Guava32 => probes.index = 1,
            BloomPlacement::Spark2 => probes.state = i64::from(low as i32).wrapping_mul(0x7fff_ffff) as u64,
            BloomPlacement::Cassandra => probes.state = high,
            _ => {}
        }
        match rule {
            BloomPlacement::Spark2
            | BloomPlacement::Dcso
            | BloomPlacement::DataSketches
            | BloomPlacement::Rbloom => probes.advance(),
            _ => {}
        }
        probes
    }
}

impl PositionStream for ForeignProbes {
    #[inline]
    fn position(&self, range: Range) -> u64 {
        let drawn = match self.rule {
            BloomPlacement::Mayhap | BloomPlacement::RedisBloom | BloomPlacement::Dcso => self.state,
            BloomPlacement::Guava64 | BloomPlacement::Redisson => self.state & (u64::MAX >> 1),
            BloomPlacement::Guava32 => {
                let (a, b) = (self.low as u32, (self.low >> 32) as u32);
                let drawn = a.wrapping_add(b.wrapping_mul(self.index)) as i32;
                u64::from(if drawn < 0 { !drawn } else { drawn }.cast_unsigned())
            }
            BloomPlacement::Spark2 => {
                let drawn = self.state as i64;
                if drawn < 0 { !drawn } else { drawn }.cast_unsigned()
            }
            BloomPlacement::DataSketches => self.state >> 1,
            BloomPlacement::Rbloom => self.low >> 32 | self.high << 32,
            BloomPlacement::LevelDb => u64::from(self.state as u32),
            BloomPlacement::Cassandra => {
                let signed = i64::try_from(range.len()).unwrap_or(i64::MAX);
                return (self.state as i64 % signed).unsigned_abs();
            }
        };
        drawn % range.len()
    }

    #[inline]
    fn advance(&mut self) {
        match self.rule {
            BloomPlacement::Mayhap
            | BloomPlacement::Guava64
            | BloomPlacement::RedisBloom
            | BloomPlacement::DataSketches => self.state = self.state.wrapping_add(self.high),
            BloomPlacement::Guava32 => {}
            BloomPlacement::Redisson => {
                let step = if self.index.is_multiple_of(2) { self.high } else { self.low };
                self.state = self.state.wrapping_add(step);
            }
            BloomPlacement::Spark2 => {
                let step = i64::from((self.low >> 32) as i32).cast_unsigned();
                self.state = self.state.wrapping_add(step);
            }
            BloomPlacement::Dcso => self.state = self.state.wrapping_mul(DCSO_FACTOR) % DCSO_PRIME,
            BloomPlacement::Rbloom => {
                let state = u128::from(self.high) << 64 | u128::from(self.low);
                let next = state.wrapping_mul(RBLOOM_FACTOR).wrapping_add(1);
                (self.low, self.high) = (next as u64, (next >> 64) as u64);
            }
            BloomPlacement::LevelDb => {
                let step = (self.low as u32).rotate_right(17);
                self.state = u64::from((self.state as u32).wrapping_add(step));
            }
            BloomPlacement::Cassandra => self.state = self.state.wrapping_add(self.low),
        }
        self.index = self.index.wrapping_add(1);
    }

    /// DataSketches ignores empty text. If `high` is even, the lowest bit of `low` is shifted out of every position. Hashes of
    /// items have it clear, so odd ones are free to mean empty text.
    #[inline]
    fn is_nowhere(&self) -> bool {
        self.rule == BloomPlacement::DataSketches
            && !self.low.is_multiple_of(2)
            && self.high.is_multiple_of(2)
    }
}

/// The positions of the bits of one item, in the order in which the other program sets them.
#[derive(Clone, Debug)]
pub struct Positions {
    probes: ForeignProbes,
    /// At least 1.
    bits: u64,
    left: u32,
}

impl Positions {
    /// `probes` positions among `bits` bits, at least one.
    pub(crate) fn new(placement: BloomPlacement, hash: ItemHash, bits: u64, probes: u32) -> Self {
        Self { probes: ForeignProbes::new(placement, hash), bits: bits.max(1), left: probes }
    }
}

impl Iterator for Positions {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        Some(self.probes.next(Range::of(self.bits)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Positions {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stays_in_range_for_any_hash() {
        for rule in BloomPlacement::ALL {
            for (low, high) in [(0, 0), (u64::MAX, u64::MAX), (1 << 63, 1 << 31), (0xdead_beef, 7)] {
                for range in [1, 2, 63, 1 << 40, (1 << 63) + 1] {
                    let mut probes = ForeignProbes::new(rule, ItemHash { low, high });
                    assert!(
                        (0..300).all(|_| probes.next(Range::of(range)) < range),
                        "{rule:?} {low} {high} {range}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_first_version_of_spark_has_no_seed() {
        use crate::hash::ForeignScheme;
        use crate::item::ItemEncoding;
        let scheme = |seed| ForeignScheme::new(ForeignHash::Spark { seed }, ItemEncoding::Utf8).into();
        assert!(BloomPlacement::Guava32.suits(&scheme(0)) && !BloomPlacement::Guava32.suits(&scheme(1)));
        assert!(BloomPlacement::Spark2.suits(&scheme(0)) && BloomPlacement::Spark2.suits(&scheme(1)));
        assert!(!BloomPlacement::Guava64.suits(&scheme(0)));
    }

    #[test]
    fn a_key_suits_our_placement_and_redisblooms() {
        let keyed = HashScheme::keyed(crate::SecretKey::new([7; 16]));
        let suited: Vec<_> =
            BloomPlacement::ALL.into_iter().filter(|placement| placement.suits(&keyed)).collect();
        assert_eq!(suited, [BloomPlacement::Mayhap, BloomPlacement::RedisBloom]);
        assert!(!BloomPlacement::RedisBloom.suits(&HashScheme::fast(7)), "a seed is not a key");
    }

    #[test]
    fn only_datasketches_has_a_hash_without_positions() {
        for rule in BloomPlacement::ALL {
            let nowhere = |low, high| {
                let mut probes = ForeignProbes::new(rule, ItemHash { low, high });
                let before = probes.is_nowhere();
                (0..9).for_each(|_| probes.advance());
                assert_eq!(probes.is_nowhere(), before, "{rule:?} loses it on the next position");
                before
            };
            assert_eq!(nowhere(1, 0), rule == BloomPlacement::DataSketches);
            assert!(!nowhere(0, 0) && !nowhere(2, 4) && !nowhere(1, 1) && !nowhere(2, 1));
        }
    }

    #[test]
    fn numbers_are_frozen() {
        for (number, placement) in (1..).zip(BloomPlacement::ALL) {
            assert_eq!(placement.number(), number);
            assert_eq!(BloomPlacement::from_number(number), Some(placement));
        }
        assert_eq!(BloomPlacement::from_number(0), None);
        assert_eq!(BloomPlacement::from_number(12), None);
    }
}
