//! The numbered, frozen rules that choose an item's block and its bits in the block.

use super::BlockedLayout;
use crate::hash::ForeignHash;
use crate::hash::HashScheme;

/// The rule by which a blocked filter turns an item's hash into a block and bits. Its number is in the header
/// of an encoded filter and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedPlacement {
    /// Ours: 256-bit blocks of eight lanes.
    Split,
    /// Ours: 512-bit lines.
    Line,
    /// Parquet's: the blocks of `Split`, chosen by the upper 32 bits of the hash alone. If the number of
    /// blocks is a power of two, as with all known writers, this is the block that `Split` chooses.
    Parquet,
    /// RocksDB's before format version 5: 512-bit lines, one per item.
    RocksDbLegacy,
    /// RocksDB's `FastLocalBloom`, since format version 5: also one 512-bit line per item, but by another
    /// rule.
    RocksDbFastLocal,
}

/// The most blocks a Parquet filter may have: 32 bits make the choice.
pub(crate) const MAX_PARQUET_BLOCKS: u64 = i32::MAX as u64;

impl BlockedPlacement {
    /// All placements, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Split, Self::Line, Self::Parquet, Self::RocksDbLegacy, Self::RocksDbFastLocal];

    /// Returns the number used in encoded filters.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Returns the placement with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|placement| placement.number() == number)
    }

    /// Returns our own placement for this layout.
    pub(crate) const fn ours(layout: BlockedLayout) -> Self {
        match layout {
            BlockedLayout::Split256 => Self::Split,
            BlockedLayout::Line512 => Self::Line,
        }
    }

    /// Returns the layout that this placement is for.
    #[must_use]
    pub const fn layout(self) -> BlockedLayout {
        match self {
            Self::Split | Self::Parquet => BlockedLayout::Split256,
            Self::Line | Self::RocksDbLegacy | Self::RocksDbFastLocal => BlockedLayout::Line512,
        }
    }

    /// Returns whether filters with this hash scheme can use this placement.
    pub(crate) fn suits(self, scheme: &HashScheme) -> bool {
        match (self, scheme) {
            (Self::Split | Self::Line, _) => true,
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
