//! What the readers and writers of other programs' formats share.

use std::fmt;
use std::io;

use super::format::Format;
use crate::bloom::Bloom;
use crate::error::BuildError;
use crate::hash::HashScheme;
use crate::kind::Kind;
use crate::probe::{ForeignProbes, Range, Stream};

/// Does a file look like one of some format? Answered from its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resemblance {
    /// It is none.
    No,
    /// It could be one: lengths and fields agree, but there is no mark that only this format has.
    Could,
    /// It has a mark that only this format has.
    Surely,
}

impl Resemblance {
    /// `Could` or `No`.
    pub(crate) const fn could(it_could: bool) -> Self {
        if it_could { Self::Could } else { Self::No }
    }
}

/// A rate as other programs take it, strictly between 0 and 1: some promise less than anybody could measure.
pub(crate) fn check_rate(rate: f64) -> Result<f64, BuildError> {
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(BuildError::RateOutOfRange { got: rate }) }
}

/// Where the bits of one item are, in the order in which another program sets them.
#[derive(Clone, Debug)]
pub struct Positions {
    probes: ForeignProbes,
    /// At least 1.
    bits: u64,
    left: u32,
}

impl Positions {
    pub(crate) const fn new(probes: ForeignProbes, bits: u64, left: u32) -> Self {
        Self { probes, bits, left }
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

/// Why a filter was not written in another program's format.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The format holds another kind of filter.
    OtherKind {
        /// Kinds of filters the format holds.
        holds: &'static str,
        /// The kind of this one.
        got: Kind,
    },
    /// The filter places its items by another rule than the format's readers do, or hashes them otherwise; without its items it cannot
    /// be placed anew.
    OtherPlacement {
        /// How the format's readers hash and place items.
        needs: &'static str,
        /// How this filter does.
        got: String,
    },
    /// The format is only read.
    ReadOnly {
        /// Which one.
        format: Format,
    },
    /// The format has no room for a number of this filter.
    NoRoom {
        /// Which one.
        field: &'static str,
        /// What it is.
        got: u64,
        /// The largest the format can say.
        limit: u64,
    },
    /// The writer's output refused.
    Io(io::Error),
}

impl WriteError {
    /// The refusal of a filter that hashes or places its items otherwise than `needs`; `got` is its scheme and its shape.
    pub(crate) fn other_rule(needs: &'static str, scheme: &HashScheme, shape: &dyn fmt::Display) -> Self {
        Self::OtherPlacement { needs, got: format!("{scheme:?}, {shape}") }
    }

    /// The refusal of a classic filter that hashes or places its items otherwise than `needs`.
    pub(crate) fn other_placement(needs: &'static str, filter: &Bloom) -> Self {
        Self::OtherPlacement { needs, got: format!("{:?}, {:?}", filter.scheme(), filter.placement()) }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKind { holds, got } => write!(f, "the format holds {holds}, not a {got} filter"),
            Self::OtherPlacement { needs, got } => write!(
                f,
                "the format needs items placed by {needs}, and this filter has {got}; \
                 a filter cannot be placed anew without its items; `Format::build` makes one of those"
            ),
            Self::ReadOnly { format } => write!(f, "{format} files are only read here, not written"),
            Self::NoRoom { field, got, limit } => {
                write!(f, "the format has room for {field} up to {limit}, this filter has {got}")
            }
            Self::Io(cause) => write!(f, "could not write: {cause}"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}
