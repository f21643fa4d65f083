//! Why a filter could not be built, filled or merged. (Decoding has its own, in [`crate::codec`].)

use std::fmt;

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
        /// The lowest rate it takes.
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
    /// So little memory that a filter of so many items would answer *mayhap* to everything.
    TooSmall {
        /// The memory given.
        bytes: u64,
        /// The capacity asked for.
        capacity: u64,
    },
    /// The filter would need more memory than the caller allows.
    TooLarge {
        /// What it needs.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The system would not give the memory.
    OutOfMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// The operating system gave no random bytes for a secret key.
    NoRandomness,
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
                write!(f, "{bytes} bytes are too few for {capacity} items: every answer would be mayhap")
            }
            Self::TooLarge { bytes, limit } => write!(f, "filter needs {bytes} bytes, limit is {limit}"),
            Self::OutOfMemory { bytes } => write!(f, "the system refused {bytes} bytes of memory"),
            Self::NoRandomness => f.write_str("the system gave no random bytes for a secret key"),
        }
    }
}

impl std::error::Error for BuildError {}

/// Why an item could not be put in. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InsertError {
    /// The item was removed and put in again too often, or the filter holds far more removals than it was sized for.
    TooManyGenerations {
        /// The generation the item would need, at least.
        got: u32,
        /// The most there are.
        limit: u32,
    },
    /// The filter is full, and the growth that would make room was refused.
    CannotGrow {
        /// Items it holds, which is all it has room for.
        capacity: u64,
        /// Layers it has.
        layers: usize,
        /// Why it could not get one more.
        cause: BuildError,
    },
    /// There is no such bit.
    PastTheEnd {
        /// The number asked for.
        index: u64,
        /// How many bits there are.
        bits: u64,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyGenerations { got, limit } => {
                write!(f, "item needs {got} generations, limit is {limit}")
            }
            Self::CannotGrow { capacity, layers, .. } => {
                write!(f, "filter is full with {capacity} items in {layers} layers and cannot grow")
            }
            Self::PastTheEnd { index, bits } => {
                write!(f, "bit {index} is past the end, there are {bits} bits")
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

/// Why two filters could not become one. Neither was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They differ in size or number of probes: a bit means something else in each.
    ShapeDiffers {
        /// This filter's shape.
        ours: String,
        /// The other filter's shape.
        theirs: String,
    },
    /// They hash items differently, by scheme, seed or key.
    HashDiffers {
        /// This filter's scheme.
        ours: String,
        /// The other filter's scheme.
        theirs: String,
    },
    /// Items were removed from one of them: the other may hold those very items, which nobody can tell.
    HasRemovals {
        /// Removals from this filter.
        ours: u64,
        /// Removals from the other filter.
        theirs: u64,
    },
}

impl MergeError {
    /// `Ok` when both hash alike; the error otherwise. Secrets are not printed.
    pub(crate) fn check_schemes(ours: &crate::HashScheme, theirs: &crate::HashScheme) -> Result<(), Self> {
        if ours == theirs {
            return Ok(());
        }
        Err(Self::HashDiffers { ours: format!("{ours:?}"), theirs: format!("{theirs:?}") })
    }

    /// The error for two filters whose bits mean different things.
    pub(crate) fn shapes(ours: &impl fmt::Display, theirs: &impl fmt::Display) -> Self {
        Self::ShapeDiffers { ours: ours.to_string(), theirs: theirs.to_string() }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
        }
    }
}

impl std::error::Error for MergeError {}
