//! Code shared by the readers and writers of other programs' formats.

use std::fmt;
use std::io;

use mayhap::{Bloom, BuildError, HashScheme, Kind};

use crate::format::Format;

pub use mayhap::internals::Positions;

/// Whether a file looks like one of some format, judged by its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resemblance {
    /// The file does not have this format.
    No,
    /// The file may have this format: lengths and fields agree, but the format has no magic number to confirm it.
    Could,
    /// The file has a magic number that only this format uses.
    Surely,
}

impl Resemblance {
    /// Returns `Could` or `No`.
    pub(crate) const fn could(it_could: bool) -> Self {
        if it_could { Self::Could } else { Self::No }
    }
}

/// Accepts any rate strictly between 0 and 1, as other programs do. Some promise rates too small to measure.
pub(crate) fn check_rate(rate: f64) -> Result<f64, BuildError> {
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(BuildError::RateOutOfRange { got: rate }) }
}

/// Why a filter was not written in another program's format.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The format holds another kind of filter.
    OtherKind {
        /// The kinds of filters the format holds.
        holds: &'static str,
        /// The kind of this filter.
        got: Kind,
    },
    /// The filter hashes or places its items differently from the format's readers. It can only be rebuilt from its items.
    OtherPlacement {
        /// How the format's readers hash and place items.
        needs: &'static str,
        /// How this filter hashes and places items.
        got: String,
    },
    /// The format can be read, but not written.
    ReadOnly {
        /// The format.
        format: Format,
    },
    /// A number of this filter is too large for the format.
    NoRoom {
        /// The name of the number.
        field: &'static str,
        /// Its value.
        got: u64,
        /// The largest value the format can hold.
        limit: u64,
    },
    /// The output could not be written.
    Io(io::Error),
}

impl WriteError {
    /// The error for a filter that does not hash and place its items by `needs`; `got` becomes its scheme and its shape.
    pub(crate) fn other_rule(needs: &'static str, scheme: &HashScheme, shape: &dyn fmt::Display) -> Self {
        Self::OtherPlacement { needs, got: format!("{scheme:?}, {shape}") }
    }

    /// The error for a classic filter that does not hash and place its items by `needs`.
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
                "the format needs items placed by {needs}, but this filter uses {got}; \
                 a filter cannot be converted without its items; rebuild it from them with `Format::build`"
            ),
            Self::ReadOnly { format } => write!(f, "{format} files can be read, but not written"),
            Self::NoRoom { field, got, limit } => {
                write!(f, "the format limits {field} to {limit}, this filter has {got}")
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
