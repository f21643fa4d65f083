//! The shape of a bitmap with Guava's bit positions, and the positions of its items.

use mayhap::{BuildError, Item, ItemEncoding, ItemHash};
use mayhap_formats::guava::{self, Positions, Rounding, Strategy};

use crate::java_bitmap::LAST_BIT;

/// The number of bits, the number of bits that an item sets, and the strategy that selects them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuavaShape {
    bits: u64,
    probes: u32,
    strategy: Strategy,
}

/// The largest number of probes, which Guava stores in a byte.
const MAX_PROBES: u32 = 255;

impl GuavaShape {
    /// The number of bits of Guava's `optimalNumOfBits` and the probes of its `optimalNumOfHashFunctions`, as
    /// programs use them by hand.
    ///
    /// # Errors
    /// [`BuildError`] for a rate outside (0, 1), or more bits than a Redis string can have.
    pub fn sized(
        expected_insertions: u64,
        fpp: f64,
        rounding: Rounding,
        strategy: Strategy,
    ) -> Result<Self, BuildError> {
        let (bits, probes) = guava::size(expected_insertions, fpp, rounding)?;
        Self::exactly(bits, probes, strategy)
    }

    /// The same shape with its bits rounded up to whole words of 64, as in Guava's own `BloomFilter`.
    ///
    /// # Errors
    /// [`BuildError`] for more bits than a Redis string can have.
    pub fn in_words(self) -> Result<Self, BuildError> {
        Self::exactly(self.bits.next_multiple_of(64), self.probes, self.strategy)
    }

    /// A shape with exactly these numbers.
    ///
    /// # Errors
    /// [`BuildError`] for 0 bits, for 2^32 bits or more, and for probes outside 1 to 255.
    pub fn exactly(bits: u64, probes: u32, strategy: Strategy) -> Result<Self, BuildError> {
        // The last bit of a string is left for the marker.
        if bits == 0 || bits > LAST_BIT {
            return Err(BuildError::BitsOutOfRange { got: bits, limit: LAST_BIT });
        }
        if probes == 0 || probes > MAX_PROBES {
            return Err(BuildError::ProbesOutOfRange { got: probes, limit: MAX_PROBES });
        }
        Ok(Self { bits, probes, strategy })
    }

    /// The number of bits, without the marker.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of bits that an item sets.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// The strategy that selects the bits.
    #[must_use]
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The positions of the bits of `item`, in the order in which Guava sets them: the offsets for SETBIT and
    /// GETBIT.
    #[must_use]
    pub fn positions<I: Item + ?Sized>(&self, item: &I, items: ItemEncoding) -> Positions {
        self.positions_of(guava::scheme(items).hash(item))
    }

    pub(super) fn positions_of(&self, hash: ItemHash) -> Positions {
        guava::positions(self.strategy, hash, self.bits, self.probes)
    }
}

#[cfg(test)]
mod tests {
    use mayhap::Filter;
    use mayhap::explain::Lookup;

    use super::*;

    /// The bits that the library reads in one of Guava's filters.
    fn librarys(shape: &GuavaShape, item: &str, items: ItemEncoding) -> Vec<u64> {
        let mut stream = vec![u8::from(shape.strategy == Strategy::Mitz64), shape.probes as u8];
        stream.extend(u32::try_from(shape.bits / 64).unwrap().to_be_bytes());
        stream.resize(6 + shape.bits as usize / 8, 0);
        let filter = Filter::Bloom(guava::read(&stream, items).unwrap());
        match filter.trace(item) {
            Lookup::Bits(lookup) => lookup.probes.iter().map(|probe| probe.position).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn positions_match_the_library() {
        for strategy in [Strategy::Mitz32, Strategy::Mitz64] {
            for (bits, probes) in [(64, 1), (9_600, 7), (1 << 20, 33)] {
                let shape = GuavaShape::exactly(bits, probes, strategy).unwrap();
                for item in ["", "ada", "grace", "7", "你好"] {
                    for items in [ItemEncoding::Utf8, ItemEncoding::Utf16Le] {
                        let ours = shape.positions(item, items).collect::<Vec<_>>();
                        assert_eq!(ours, librarys(&shape, item, items), "{shape:?} {item:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_a_redis_string_are_rejected() {
        let exactly = |bits, probes| GuavaShape::exactly(bits, probes, Strategy::Mitz64);
        assert!(exactly(0, 1).is_err() && exactly(1 << 32, 1).is_err() && exactly(u64::MAX, 1).is_err());
        assert!(exactly(1, 0).is_err() && exactly(1, 256).is_err());
        assert!(exactly((1 << 32) - 1, 255).unwrap().in_words().is_err());
        let sized = GuavaShape::sized(1_000, 0.01, Rounding::Until33, Strategy::Mitz32).unwrap();
        assert_eq!((sized.bits(), sized.probes()), (9_585, 7), "as by hand");
        assert_eq!(sized.in_words().unwrap().bits(), 9_600, "as Guava itself");
        assert!(GuavaShape::sized(1 << 40, 0.01, Rounding::Until33, Strategy::Mitz32).is_err());
        assert!(GuavaShape::sized(1, 1.0, Rounding::Until33, Strategy::Mitz32).is_err());
    }
}
