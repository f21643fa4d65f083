//! Errors of building, filling and merging filters. Decoding errors are in [`crate::codec`].

use std::fmt;

use crate::kind::Kind;

/// Why a filter could not be built from the numbers it was given. Nothing was allocated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// A false-positive rate lies strictly between 0 and 1.
    RateOutOfRange {
        /// The rate asked for.
        got: f64,
    },
    /// This kind of filter cannot keep a promise this strict.
    RateTooLow {
        /// The rate asked for.
        got: f64,
        /// The lowest rate it supports.
        limit: f64,
    },
    /// A capacity is at least 1 and at most [`crate::sizing::MAX_CAPACITY`].
    CapacityOutOfRange {
        /// The capacity asked for.
        got: u64,
        /// The largest it may be.
        limit: u64,
    },
    /// The number of probes per item is at least 1 and has a limit.
    ProbesOutOfRange {
        /// The number asked for.
        got: u32,
        /// The largest it may be.
        limit: u32,
    },
    /// The number of lines an item has bits in is at least 1 and has a limit.
    RegionsOutOfRange {
        /// The number asked for.
        got: u32,
        /// The largest it may be.
        limit: u32,
    },
    /// The number of bits is at least 1 and has a limit.
    BitsOutOfRange {
        /// The number asked for.
        got: u64,
        /// The largest it may be.
        limit: u64,
    },
    /// The number of counters is at least 1 and has a limit.
    CountersOutOfRange {
        /// The number asked for.
        got: u64,
        /// The largest it may be.
        limit: u64,
    },
    /// A growth factor is finite, at least 1 and has a limit.
    GrowthOutOfRange {
        /// The factor asked for.
        got: f64,
        /// The largest it may be.
        limit: f64,
    },
    /// A tightening ratio lies strictly between 0 and 1.
    TighteningOutOfRange {
        /// The ratio asked for.
        got: f64,
    },
    /// The list of tiers is empty or longer than the limit.
    TiersOutOfRange {
        /// How many tiers were given.
        got: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The number of layers in a chain has a limit.
    LayersOutOfRange {
        /// The number asked for.
        got: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The memory is too small for this capacity: the filter would answer *maybe* to everything.
    TooSmall {
        /// The memory given.
        bytes: u64,
        /// The capacity asked for.
        capacity: u64,
    },
    /// The filter would need more memory than the caller allows.
    TooLarge {
        /// The bytes it needs.
        bytes: u64,
        /// The bytes allowed.
        limit: u64,
    },
    /// The system refused to allocate the memory.
    OutOfMemory {
        /// The bytes asked for.
        bytes: u64,
    },
    /// The number of fingerprint bits is out of range.
    FingerprintOutOfRange {
        /// The bits asked for.
        got: u32,
        /// The fewest it may have.
        least: u32,
        /// The most it may have.
        limit: u32,
    },
    /// A bucket has 1, 2, 4 or 8 slots.
    BucketOutOfRange {
        /// The number asked for.
        got: u32,
    },
    /// A window has at least 2 generations and has a limit.
    GenerationsOutOfRange {
        /// The number asked for.
        got: u32,
        /// The most there may be.
        limit: u32,
    },
    /// Every attempt to build a static filter failed.
    /// With unbiased hashes this does not happen: the items were chosen by an attacker who knows the seed.
    Unsolvable {
        /// Attempts made, each with its own seed.
        attempts: u32,
        /// The number of distinct items.
        items: u64,
    },
    /// The operating system returned no random bytes for a secret key.
    NoRandomness,
    /// The number of buckets is at least 1 and has a limit.
    BucketCountOutOfRange {
        /// The number asked for.
        got: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The number of possible hash values is at least 1 and has a limit.
    ValuesOutOfRange {
        /// The number asked for; 2^64 - 1 if it is larger than that.
        got: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The hashes are not in ascending order.
    Unsorted {
        /// The number of distinct hashes before the first one that is smaller than its predecessor.
        index: u64,
    },
    /// The number of buckets is even, at least 2 and has a limit.
    BucketsOutOfRange {
        /// The number asked for.
        got: u64,
        /// The largest it may be.
        limit: u64,
    },
    /// The span of a window is too short.
    SpanOutOfRange {
        /// The span asked for.
        got: u64,
        /// The shortest it may be.
        least: u64,
    },
    /// The shape of a filter read from another program's bytes can only hold that filter's own items.
    ForeignShape {
        /// The kind of filter.
        kind: Kind,
    },
    /// The shape belongs to another program's filter, which has its own hash function.
    OtherHash {
        /// The function it needs.
        needs: &'static str,
    },
    /// Filters of this kind are built from all items together, so there is no empty one to fill.
    NeedsItems {
        /// The kind.
        kind: Kind,
    },
    /// Only an even number of blocks can be halved.
    OddBlocks {
        /// The number of blocks.
        got: u64,
    },
    /// A bucket has at least 1 slot, and there is a limit.
    SlotsOutOfRange {
        /// The number asked for.
        got: u32,
        /// The most there may be.
        limit: u32,
    },
    /// The number of items that may be moved to make room for another is at least 1 and has a limit.
    IterationsOutOfRange {
        /// The number asked for.
        got: u32,
        /// The largest it may be.
        limit: u32,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RateOutOfRange { got } => {
                write!(f, "false-positive rate must be between 0 and 1, got {got}")
            }
            Self::RateTooLow { got, limit } => {
                write!(
                    f,
                    "false-positive rate {got:e} is below {limit:e}, the lowest this filter can promise"
                )
            }
            Self::CapacityOutOfRange { got, limit } => {
                write!(f, "capacity must be between 1 and {limit}, got {got}")
            }
            Self::ProbesOutOfRange { got, limit } => {
                write!(f, "probes per item must be between 1 and {limit}, got {got}")
            }
            Self::RegionsOutOfRange { got, limit } => {
                write!(f, "lines per item must be between 1 and {limit}, got {got}")
            }
            Self::BitsOutOfRange { got, limit } => {
                write!(f, "number of bits must be between 1 and {limit}, got {got}")
            }
            Self::CountersOutOfRange { got, limit } => {
                write!(f, "number of counters must be between 1 and {limit}, got {got}")
            }
            Self::GrowthOutOfRange { got, limit } => {
                write!(f, "growth factor must be between 1 and {limit}, got {got}")
            }
            Self::TighteningOutOfRange { got } => {
                write!(f, "tightening ratio must be between 0 and 1, got {got}")
            }
            Self::TiersOutOfRange { got, limit } => {
                write!(f, "a filter has between 1 and {limit} tiers, got {got}")
            }
            Self::LayersOutOfRange { got, limit } => {
                write!(f, "a filter has between 1 and {limit} layers, got {got}")
            }
            Self::TooSmall { bytes, capacity } => {
                write!(f, "{bytes} bytes are too few for {capacity} items: every answer would be maybe")
            }
            Self::TooLarge { bytes, limit } => write!(f, "filter needs {bytes} bytes, limit is {limit}"),
            Self::OutOfMemory { bytes } => write!(f, "the system refused {bytes} bytes of memory"),
            Self::FingerprintOutOfRange { got, least, limit } => {
                write!(f, "fingerprint must have between {least} and {limit} bits, got {got}")
            }
            Self::BucketOutOfRange { got } => write!(f, "a bucket has 1, 2, 4 or 8 slots, got {got}"),
            Self::GenerationsOutOfRange { got, limit } => {
                write!(f, "a window has between 2 and {limit} generations, got {got}")
            }
            Self::Unsolvable { attempts, items } => {
                write!(
                    f,
                    "all {attempts} attempts to build a filter of {items} items failed: they may be chosen to collide"
                )
            }
            Self::NoRandomness => f.write_str("the system returned no random bytes for a secret key"),
            Self::BucketCountOutOfRange { got, limit } => {
                write!(f, "number of buckets must be between 1 and {limit}, got {got}")
            }
            Self::ValuesOutOfRange { got, limit } => {
                write!(f, "number of values must be between 1 and {limit}, got {got}")
            }
            Self::Unsorted { index } => {
                write!(
                    f,
                    "hashes must be in ascending order: hash {index} (from 0) is smaller than the one before it"
                )
            }
            Self::BucketsOutOfRange { got, limit } => {
                write!(f, "number of buckets must be even and between 2 and {limit}, got {got}")
            }
            Self::SpanOutOfRange { got, least } => {
                write!(f, "a window must span at least {least}, got {got}")
            }
            Self::ForeignShape { kind } => {
                write!(
                    f,
                    "the shape of another program's {kind} filter can only hold that filter's own items"
                )
            }
            Self::SlotsOutOfRange { got, limit } => {
                write!(f, "a bucket must have between 1 and {limit} slots, got {got}")
            }
            Self::IterationsOutOfRange { got, limit } => {
                write!(f, "moves for an insertion must be between 1 and {limit}, got {got}")
            }
            Self::OtherHash { needs } => write!(f, "a filter of this shape needs {needs}"),
            Self::NeedsItems { kind } => {
                write!(f, "a {kind} filter is built from all items together and cannot begin empty")
            }
            Self::OddBlocks { got } => {
                write!(f, "only an even number of blocks can be halved, got {got}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Why an item could not be inserted. The filter did not change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InsertError {
    /// The item was removed and inserted again too often, or the filter holds far more removals than it was
    /// sized for.
    TooManyGenerations {
        /// The smallest generation the item would need.
        got: u32,
        /// The highest generation there is.
        limit: u32,
    },
    /// The filter is full, and the growth that would make room was refused.
    CannotGrow {
        /// The items it holds; it has no room for more.
        capacity: u64,
        /// Layers it has.
        layers: usize,
        /// Why it could not add a layer.
        cause: BuildError,
    },
    /// There is no room for the item. The filter did not change and lost no other item.
    Full {
        /// Copies in the filter.
        inserted: u64,
        /// Items it was sized for.
        capacity: u64,
    },
    /// The filter already holds as many copies as it can of this item, or of items with the same fingerprint.
    TooManyCopies {
        /// Copies there is room for.
        limit: u64,
    },
    /// The filter is immutable: it is built once, from all items.
    NeverChanges {
        /// Its kind.
        kind: Kind,
    },
    /// A bitmap holds numbers, and this item is not a number: it does not have eight bytes.
    NotANumber,
    /// The filter is in another program's format, and the format's encoding cannot represent this item.
    NoForm(crate::EncodingError),
    /// There is no such bit.
    PastTheEnd {
        /// The number asked for.
        index: u64,
        /// The number of bits.
        bits: u64,
    },
    /// A bitmap has no bit for this number.
    OutOfRange {
        /// The number.
        number: u64,
        /// The number of its first bit.
        first: u64,
        /// The number of bits.
        bits: u64,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyGenerations { got, limit } => {
                write!(f, "item needs {got} generations, limit is {limit}")
            }
            Self::CannotGrow { capacity, layers: 1, .. } => {
                write!(f, "filter is full with {capacity} items and cannot grow")
            }
            Self::CannotGrow { capacity, layers, .. } => {
                write!(f, "filter is full with {capacity} items in {layers} layers and cannot grow")
            }
            Self::Full { inserted, capacity } => {
                write!(f, "filter is full with {inserted} items, it was sized for {capacity}")
            }
            Self::TooManyCopies { limit } => {
                write!(f, "too many copies of one item, limit is {limit}")
            }
            Self::NeverChanges { kind } => {
                write!(f, "this {kind} filter is immutable: it is built once, from all items")
            }
            Self::NoForm(cause) => write!(f, "item cannot be encoded for this filter's format: {cause}"),
            Self::NotANumber => f.write_str("a bitmap holds numbers only: the item must have eight bytes"),
            Self::PastTheEnd { index, bits } => {
                write!(f, "bit {index} is past the end, there are {bits} bits")
            }
            Self::OutOfRange { number, bits: 0, .. } => {
                write!(f, "{number} is out of range, the bitmap is empty")
            }
            Self::OutOfRange { number, first, bits } => {
                write!(
                    f,
                    "{number} is out of range, the bitmap is for {first} to {}",
                    first.saturating_add(bits - 1)
                )
            }
        }
    }
}

impl std::error::Error for InsertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::CannotGrow { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Why an item could not be removed. The filter did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoveError {
    /// Filters of this kind cannot remove items.
    CannotRemove {
        /// The kind.
        kind: Kind,
    },
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotRemove { kind } => write!(f, "a {kind} cannot remove items"),
        }
    }
}

impl std::error::Error for RemoveError {}

/// Why two filters could not be merged. Neither changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters compute different positions from the same hash.
    PlacementDiffers {
        /// The placement rule of this filter.
        ours: crate::BloomPlacement,
        /// The placement rule of the other filter.
        theirs: crate::BloomPlacement,
    },
    /// The filters differ in size or number of probes, so their bits do not correspond.
    ShapeDiffers {
        /// This filter's shape.
        ours: String,
        /// The other filter's shape.
        theirs: String,
    },
    /// The filters hash items differently: by scheme, seed or key.
    HashDiffers {
        /// This filter's scheme.
        ours: String,
        /// The other filter's scheme.
        theirs: String,
    },
    /// Items were removed from one of the filters. The other may hold the same items, and neither filter can
    /// detect that.
    HasRemovals {
        /// Removals from this filter.
        ours: u64,
        /// Removals from the other filter.
        theirs: u64,
    },
    /// The filters are of different kinds.
    KindDiffers {
        /// This filter's kind.
        ours: Kind,
        /// The other filter's kind.
        theirs: Kind,
    },
    /// Filters of this kind cannot be merged.
    NeverMerges {
        /// The kind.
        kind: Kind,
    },
    /// There is no room for the items of both.
    Full {
        /// The copies in both filters together.
        inserted: u64,
        /// The items this filter was sized for.
        capacity: u64,
    },
    /// The merged filter could not be built, mostly because memory ran out.
    Unbuildable(BuildError),
    /// The filters compute different blocks from the same hash.
    BlocksDiffer {
        /// The placement rule of this filter.
        ours: crate::BlockedPlacement,
        /// The placement rule of the other filter.
        theirs: crate::BlockedPlacement,
    },
}

impl MergeError {
    /// Returns `Ok` if both schemes are equal. The error does not contain secret keys.
    pub(crate) fn check_schemes(ours: &crate::HashScheme, theirs: &crate::HashScheme) -> Result<(), Self> {
        if ours == theirs {
            return Ok(());
        }
        Err(Self::HashDiffers { ours: format!("{ours:?}"), theirs: format!("{theirs:?}") })
    }

    /// The error for two filters whose bits do not correspond.
    pub(crate) fn shapes(ours: &impl fmt::Display, theirs: &impl fmt::Display) -> Self {
        Self::ShapeDiffers { ours: ours.to_string(), theirs: theirs.to_string() }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlacementDiffers { ours, theirs } => {
                write!(f, "filters with different placement cannot be merged: {ours:?} and {theirs:?}")
            }
            Self::ShapeDiffers { ours, theirs } => {
                write!(f, "filters of different shape cannot be merged: {ours} and {theirs}")
            }
            Self::HashDiffers { ours, theirs } if ours == theirs => {
                f.write_str("filters with different secret keys cannot be merged")
            }
            Self::HashDiffers { ours, theirs } => {
                write!(f, "filters that hash differently cannot be merged: {ours} and {theirs}")
            }
            Self::HasRemovals { ours, theirs } => {
                write!(
                    f,
                    "filters with removals cannot be merged: {ours} here and {theirs} there, limit is 0"
                )
            }
            Self::KindDiffers { ours, theirs } => {
                write!(f, "filters of different kinds cannot be merged: {ours} and {theirs}")
            }
            Self::NeverMerges { kind } => write!(f, "two filters of kind {kind} cannot be merged"),
            Self::Full { inserted, capacity } => {
                write!(f, "no room for both: {inserted} items together in a filter for {capacity}")
            }
            Self::Unbuildable(_) => f.write_str("the merged filter could not be built"),
            Self::BlocksDiffer { ours, theirs } => {
                write!(f, "filters with different block placement cannot be merged: {ours:?} and {theirs:?}")
            }
        }
    }
}

impl std::error::Error for MergeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unbuildable(cause) => Some(cause),
            _ => None,
        }
    }
}
