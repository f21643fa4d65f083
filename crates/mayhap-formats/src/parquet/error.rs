//! Why the filters of a Parquet file could not be read.

use std::sync::Arc;
use std::{fmt, io};

use mayhap::{BuildError, EncodingError};

use super::{ColumnFilter, DecodeError};

/// Why the filters of a Parquet file could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ParquetError {
    /// The source could not be read.
    Io(io::Error),
    /// The last four bytes are not those of a Parquet file.
    NotParquet,
    /// The footer is longer than the caller allows.
    FooterTooLarge {
        /// The length of the footer.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The footer is invalid.
    Footer(DecodeError),
    /// A filter is invalid.
    Filter {
        /// The row group.
        row_group: usize,
        /// The column.
        column: Arc<str>,
        /// The error.
        cause: DecodeError,
    },
    /// There is no such column.
    UnknownColumn {
        /// The requested path.
        got: String,
    },
    /// Two columns have this path, because a name contains a dot.
    AmbiguousColumn {
        /// The requested path.
        got: String,
    },
    /// The column cannot hold such an item.
    Item(EncodingError),
    /// The memory could not be allocated.
    Memory(BuildError),
}

impl ParquetError {
    pub(super) fn filter(filter: &ColumnFilter) -> impl Fn(DecodeError) -> Self {
        let (row_group, column) = (filter.row_group, Arc::clone(&filter.column));
        move |cause| Self::Filter { row_group, column: Arc::clone(&column), cause }
    }
}

impl fmt::Display for ParquetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(cause) => write!(f, "could not read: {cause}"),
            Self::NotParquet => f.write_str("not a Parquet file: the last four bytes differ"),
            Self::FooterTooLarge { bytes, limit } => {
                write!(f, "footer of the Parquet file is {bytes} bytes long, limit is {limit}")
            }
            Self::Footer(cause) => write!(f, "footer of the Parquet file: {cause}"),
            Self::Filter { row_group, column, cause } => {
                write!(f, "filter of column {column} in row group {row_group}: {cause}")
            }
            Self::UnknownColumn { got } => write!(f, "the Parquet file has no column {got}"),
            Self::AmbiguousColumn { got } => write!(f, "the Parquet file has two columns {got}"),
            Self::Item(cause) => write!(f, "the column cannot hold such an item: {cause}"),
            Self::Memory(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for ParquetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(cause) => Some(cause),
            Self::Footer(cause) | Self::Filter { cause, .. } => Some(cause),
            Self::Item(cause) => Some(cause),
            Self::Memory(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<io::Error> for ParquetError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

/// A decode error that does not name a filter is about the footer.
impl From<DecodeError> for ParquetError {
    fn from(cause: DecodeError) -> Self {
        Self::Footer(cause)
    }
}

impl From<EncodingError> for ParquetError {
    fn from(cause: EncodingError) -> Self {
        Self::Item(cause)
    }
}

impl From<BuildError> for ParquetError {
    fn from(cause: BuildError) -> Self {
        Self::Memory(cause)
    }
}
