//! The closed set of filter kinds.

use std::fmt;

/// Every kind of filter. Its number is stored in the header of an encoded filter and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// [`Bitmap`](crate::Bitmap): exact, for dense integers.
    Bitmap,
    /// [`Bloom`](crate::Bloom): the classic.
    Bloom,
    /// [`BlockedBloom`](crate::BlockedBloom): one cache line per lookup.
    BlockedBloom,
    /// [`CountingBloom`](crate::CountingBloom): removals, simple.
    CountingBloom,
    /// [`DualBloom`](crate::DualBloom): removals by a second filter.
    DualBloom,
    /// [`ScalableBloom`](crate::ScalableBloom): an unknown number of items.
    ScalableBloom,
    /// [`DLeft`](crate::DLeft): removals and counts in half the memory of a counting Bloom filter.
    DLeft,
    /// [`Cuckoo`](crate::Cuckoo): removals, low rates.
    Cuckoo,
    /// [`GrowableCuckoo`](crate::GrowableCuckoo): a cuckoo filter that doubles in place, up to a maximum set at creation.
    GrowableCuckoo,
    /// [`Quotient`](crate::Quotient): removals, counts, merging, resizing without the items.
    Quotient,
    /// [`Xor`](crate::Xor): static sets, the older of the two.
    Xor,
    /// [`BinaryFuse`](crate::BinaryFuse): static sets, small and fast.
    BinaryFuse,
    /// [`Ribbon`](crate::Ribbon): static sets, closest to the minimum of memory.
    Ribbon,
    /// [`Gcs`](crate::Gcs): static sets, smallest on the wire.
    Gcs,
    /// [`Window`](crate::Window): the last N items, or the items of the last N seconds.
    Window,
    /// [`Growing`](crate::Growing): an unknown number of items, lookups that do not slow as it grows.
    Growing,
    /// [`ScalableCuckoo`](crate::ScalableCuckoo): RedisBloom's cuckoo filter, which grows table by table.
    ScalableCuckoo,
    /// [`FingerprintSet`](crate::FingerprintSet): practically exact; grows, and cuts its fingerprints at a memory limit.
    Fingerprints,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Bitmap,
        Self::Bloom,
        Self::BlockedBloom,
        Self::CountingBloom,
        Self::DualBloom,
        Self::ScalableBloom,
        Self::DLeft,
        Self::Cuckoo,
        Self::GrowableCuckoo,
        Self::Quotient,
        Self::Xor,
        Self::BinaryFuse,
        Self::Ribbon,
        Self::Gcs,
        Self::Window,
        Self::Growing,
        Self::ScalableCuckoo,
        Self::Fingerprints,
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
            Self::DLeft => 7,
            Self::Cuckoo => 8,
            Self::GrowableCuckoo => 9,
            Self::Quotient => 10,
            Self::Xor => 11,
            Self::BinaryFuse => 12,
            Self::Ribbon => 13,
            Self::Gcs => 14,
            Self::Window => 15,
            Self::Growing => 16,
            Self::ScalableCuckoo => 17,
            Self::Fingerprints => 18,
        }
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in commands and texts: `bloom`, `blocked-bloom`, ….
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Bloom => "bloom",
            Self::BlockedBloom => "blocked-bloom",
            Self::CountingBloom => "counting-bloom",
            Self::DualBloom => "dual-bloom",
            Self::ScalableBloom => "scalable-bloom",
            Self::DLeft => "d-left",
            Self::Cuckoo => "cuckoo",
            Self::GrowableCuckoo => "growable-cuckoo",
            Self::Quotient => "quotient",
            Self::Xor => "xor",
            Self::BinaryFuse => "binary-fuse",
            Self::Ribbon => "ribbon",
            Self::Gcs => "gcs",
            Self::Window => "window",
            Self::Growing => "growing",
            Self::ScalableCuckoo => "scalable-cuckoo",
            Self::Fingerprints => "fingerprints",
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
    fn numbers_are_frozen_and_map_back_to_their_kind() {
        let numbers: Vec<u16> = Kind::ALL.iter().map(|kind| kind.number()).collect();
        assert_eq!(numbers, (1..=18).collect::<Vec<u16>>());
        assert!(Kind::ALL.iter().all(|kind| Kind::from_number(kind.number()) == Some(*kind)));
        assert_eq!(Kind::from_number(0), None);
    }
}
