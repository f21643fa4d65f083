//! Conversions from a kind to [`Filter`], which holds any kind, and back.

use std::fmt;

use crate::Filter;
use crate::membership::{every_hashing_kind, every_kind};

/// The error if a [`Filter`] holds another type than the wanted one. It contains the filter, unchanged.
///
/// ```
/// use mayhap::{Bloom, Cuckoo, Filter};
///
/// let filter = Filter::from(Cuckoo::new(1_000, 0.01)?);
/// let error = Bloom::try_from(filter).unwrap_err();
/// assert_eq!(error.to_string(), "the filter is a Cuckoo, not a Bloom");
/// assert!(Cuckoo::try_from(error.into_filter()).is_ok());
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WrongKind {
    filter: Box<Filter>,
    wanted: &'static str,
}

impl WrongKind {
    /// Returns the filter.
    #[must_use]
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Returns the filter and drops the error.
    #[must_use]
    pub fn into_filter(self) -> Filter {
        *self.filter
    }
}

impl fmt::Display for WrongKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the filter is a {}, not a {}", type_name(&self.filter), self.wanted)
    }
}

impl std::error::Error for WrongKind {}

macro_rules! impl_convert {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {$(
        impl From<crate::$filter> for Filter {
            fn from(filter: crate::$filter) -> Self {
                Self::$variant(filter)
            }
        }

        /// Fails if the [`Filter`] holds another type. The error contains the filter.
        impl TryFrom<Filter> for crate::$filter {
            type Error = WrongKind;

            fn try_from(filter: Filter) -> Result<Self, WrongKind> {
                match filter {
                    Filter::$variant(filter) => Ok(filter),
                    filter => Err(WrongKind { filter: Box::new(filter), wanted: stringify!($filter) }),
                }
            }
        }
    )*};
}

every_kind!(impl_convert);

/// Writes a function that returns the name of the type in a filter.
macro_rules! impl_type_name {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {
        const fn type_name(filter: &Filter) -> &'static str {
            match filter {
                Filter::Bitmap(_) => "Bitmap",
                Filter::WideBloom(_) => "WideBloom",
                $(Filter::$variant(_) => stringify!($filter),)*
            }
        }
    };
}

every_hashing_kind!(impl_type_name);
