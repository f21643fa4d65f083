//! The closed set of filter kinds.

use std::fmt;

/// Every kind of filter there is. Its number is in the header of an encoded filter and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// [`Bitmap`](crate::Bitmap): exact, for dense integers.
    Bitmap,
    /// [`Bloom`](crate::Bloom): the classic.
    Bloom,
    /// [`BlockedBloom`](crate::BlockedBloom): one cache line per lookup.
    BlockedBloom,
    /// [`CountingBloom`](crate::CountingBloom): deletions, simple.
    CountingBloom,
    /// [`DualBloom`](crate::DualBloom): deletions by a second filter.
    DualBloom,
    /// [`ScalableBloom`](crate::ScalableBloom): unknown size.
    ScalableBloom,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Bitmap,
        Self::Bloom,
        Self::BlockedBloom,
        Self::CountingBloom,
        Self::DualBloom,
        Self::ScalableBloom,
    ];

    /// The number in encoded filters.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Bitmap => 1,
            Self::Bloom => 2,
            Self::BlockedBloom => 3,
            Self::CountingBloom => 4,
            Self::DualBloom => 5,
            Self::ScalableBloom => 6,
        }
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name people and programs use: `bloom`, `blocked-bloom`, ….
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Bloom => "bloom",
            Self::BlockedBloom => "blocked-bloom",
            Self::CountingBloom => "counting-bloom",
            Self::DualBloom => "dual-bloom",
            Self::ScalableBloom => "scalable-bloom",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn numbers_are_frozen_and_lead_back() {
        let numbers: Vec<u16> = Kind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        assert!(Kind::ALL.iter().all(|kind| Kind::from_number(kind.number()) == Some(*kind)));
        assert_eq!(Kind::from_number(0), None);
    }
}
