//! The interface that a suite needs of a filter.

/// The result of an insert.
///
/// Made from a `bool` (`true`: certainly new) or from a `Result<bool, _>` (`Err`: rejected), so that an adapter is `self.0.insert(item).into()`.
///
/// ```
/// use mayhap_testkit::Inserted;
/// assert_eq!(Inserted::from(true), Inserted::New);
/// assert_eq!(Inserted::from(Err::<bool, &str>("full")), Inserted::Refused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The item was certainly not in the filter, and now is.
    New,
    /// The item may have been in the filter before; it certainly is now. Filters that cannot tell always return this.
    Mayhap,
    /// The filter had no room; nothing changed, and no item was lost.
    Refused,
}

impl From<bool> for Inserted {
    fn from(new: bool) -> Self {
        if new { Self::New } else { Self::Mayhap }
    }
}

impl<E> From<Result<bool, E>> for Inserted {
    fn from(outcome: Result<bool, E>) -> Self {
        outcome.map_or(Self::Refused, Self::from)
    }
}

/// A filter under test.
///
/// Two methods are required. The others return `None`, "not supported", by default. A suite skips operations that a filter does not support and reports
/// how often it ran each, so a test can require them (see [`Report::missing`](crate::suite::Report::missing)).
///
/// ```
/// use mayhap_testkit::{Inserted, Subject};
/// use std::collections::HashSet;
///
/// struct Exact(HashSet<Vec<u8>>);
///
/// impl Subject for Exact {
///     fn insert(&mut self, item: &[u8]) -> Inserted {
///         self.0.insert(item.to_vec()).into()
///     }
///     fn may_contain(&self, item: &[u8]) -> bool {
///         self.0.contains(item)
///     }
/// }
///
/// let mut exact = Exact(HashSet::new());
/// assert_eq!(exact.insert(b"a"), Inserted::New);
/// assert_eq!(exact.may_contain_batch(&[b"a", b"b"]), [true, false]);
/// ```
pub trait Subject: Sized {
    /// Inserts `item`.
    fn insert(&mut self, item: &[u8]) -> Inserted;

    /// Returns `false` if `item` is certainly not a member, `true` if it may be.
    fn may_contain(&self, item: &[u8]) -> bool;

    /// Removes one copy of `item`. Returns `Some(true)` if it was removed, `Some(false)` if it certainly was not a member, and `None` if this filter cannot
    /// remove.
    ///
    /// A filter that can remove is expected to count copies: after two inserts and one remove the item is still a member.
    fn remove(&mut self, _item: &[u8]) -> Option<bool> {
        None
    }

    /// Encodes and decodes the filter. Returns the result or the reason of a failure; `None` if it cannot be encoded.
    fn round_trip(&self) -> Option<Result<Self, String>> {
        None
    }

    /// Adds all members of `other`, which has the same parameters; `None` if it cannot merge.
    fn merge(&mut self, _other: &Self) -> Option<Result<(), String>> {
        None
    }

    /// Inserts all `items`, with the same results as inserting them one by one.
    fn insert_batch(&mut self, items: &[&[u8]]) -> Vec<Inserted> {
        items.iter().map(|item| self.insert(item)).collect()
    }

    /// Queries all `items` in one call.
    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        items.iter().map(|item| self.may_contain(item)).collect()
    }
}
