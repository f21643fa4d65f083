//! The numbered, frozen rules by which an item's block is chosen, and its bits in it.

use super::BlockedLayout;
#[cfg(feature = "formats")]
use crate::hash::ForeignHash;
use crate::hash::HashScheme;

/// How a blocked filter turns the hash of an item into a block and bits of it. Its number is in the header of an encoded filter and
/// never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedPlacement {
    /// Ours, in 256-bit blocks of eight lanes.
    Split,
    /// Ours, in 512-bit lines.
    Line,
    /// Parquet's: the blocks of `Split`, chosen by the upper 32 bits of the hash alone. With a power of two of blocks, which is what all
    /// known writers take, that is the very block `Split` chooses.
    Parquet,
    /// RocksDB's before format version 5: 512-bit lines, one for each item.
    RocksDbLegacy,
    /// RocksDB's `FastLocalBloom`, since format version 5: the same, by another rule.
    RocksDbFastLocal,
}

/// The most blocks a filter of Parquet's may have: the choice is made with 32 bits.
pub(crate) const MAX_PARQUET_BLOCKS: u64 = i32::MAX as u64;

impl BlockedPlacement {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Split, Self::Line, Self::Parquet, Self::RocksDbLegacy, Self::RocksDbFastLocal];

    /// The number in encoded filters.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// The placement of this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.number() == number)
    }

    /// Our own rule for blocks of this layout.
    pub(crate) const fn ours(layout: BlockedLayout) -> Self {
        match layout {
            BlockedLayout::Split256 => Self::Split,
            BlockedLayout::Line512 => Self::Line,
        }
    }

    /// The blocks this rule is for.
    #[must_use]
    pub const fn layout(self) -> BlockedLayout {
        match self {
            Self::Split | Self::Parquet => BlockedLayout::Split256,
            Self::Line | Self::RocksDbLegacy | Self::RocksDbFastLocal => BlockedLayout::Line512,
        }
    }

    /// Do filters that hash like this place their items so?
    pub(crate) fn suits(self, scheme: &HashScheme) -> bool {
        match (self, scheme) {
            (Self::Split | Self::Line, _) => true,
            #[cfg(feature = "formats")]
            (rule, HashScheme::Foreign(foreign)) => {
                let function = match rule {
                    Self::Parquet => ForeignHash::Parquet,
                    Self::RocksDbLegacy => ForeignHash::RocksDb,
                    _ => ForeignHash::RocksDb64,
                };
                foreign.function() == function
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_frozen() {
        for (number, placement) in (1..).zip(BlockedPlacement::ALL) {
            assert_eq!(placement.number(), number);
            assert_eq!(BlockedPlacement::from_number(number), Some(placement));
        }
        assert_eq!((BlockedPlacement::from_number(0), BlockedPlacement::from_number(6)), (None, None));
        for layout in [BlockedLayout::Split256, BlockedLayout::Line512] {
            assert_eq!(BlockedPlacement::ours(layout).layout(), layout);
        }
        assert!(!BlockedPlacement::Parquet.suits(&HashScheme::fast(0)));
    }
}
