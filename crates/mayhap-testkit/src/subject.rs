//! What a suite asks of a filter.

/// What came of an insert.
///
/// Made from a `bool` (`true`: certainly new) or from a `Result<bool, _>` (`Err`: refused), so that an
/// adapter is `self.0.insert(item).into()`.
///
/// ```
/// use mayhap_testkit::Inserted;
/// assert_eq!(Inserted::from(true), Inserted::New);
/// assert_eq!(Inserted::from(Err::<bool, &str>("full")), Inserted::Refused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The item certainly was not in the filter, and now is.
    New,
    /// Mayhap it was here already; it certainly is now. Filters that cannot tell say this always.
    Mayhap,
    /// The filter had no room; nothing changed, and nothing that was there is lost.
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
/// Two methods are needed. The others say `None`, "cannot", until they are written; a suite skips what a
/// filter cannot do and reports how often it did what, so a test can insist (see
/// [`Report::missing`](crate::suite::Report::missing)).
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
    /// Records `item`.
    fn insert(&mut self, item: &[u8]) -> Inserted;

    /// `false`: certainly not here. `true`: mayhap.
    fn may_contain(&self, item: &[u8]) -> bool;

    /// Takes one copy of `item` out. `Some(true)`: taken out; `Some(false)`: it certainly was not here;
    /// `None`: this filter cannot remove.
    ///
    /// A filter that can is taken to count copies: after two inserts and one remove the item is still here.
    fn remove(&mut self, _item: &[u8]) -> Option<bool> {
        None
    }

    /// What comes back after encoding and decoding; an error in words; or `None`: cannot be encoded.
    fn round_trip(&self) -> Option<Result<Self, String>> {
        None
    }

    /// Takes in everything `other` holds, which was made alike; `None`: cannot merge.
    fn merge(&mut self, _other: &Self) -> Option<Result<(), String>> {
        None
    }

    /// Records all `items`, answering for each as if they had come one after the other.
    fn insert_batch(&mut self, items: &[&[u8]]) -> Vec<Inserted> {
        items.iter().map(|item| self.insert(item)).collect()
    }

    /// Looks all `items` up at once.
    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        items.iter().map(|item| self.may_contain(item)).collect()
    }
}
