//! What the set is like and what will be asked of it.

use std::fmt;

use super::{Structure, say};
use crate::error::BuildError;
use crate::sizing;

/// What somebody needs of a set of items, for [`advise`](super::advise).
///
/// ```
/// use mayhap::advise::{Deletes, ItemShape, Needs};
///
/// // A billion Chinese mobile numbers, wrong for at most one non-member in a hundred, numbers may be given back:
/// let needs = Needs::new(1_000_000_000, 0.01)
///     .of(ItemShape::IntegerRange { low: 13_000_000_000, high: 19_999_999_999 })
///     .deleting(Deletes::Endlessly);
/// ```
///
/// Nothing is checked before it is used; then nonsense is a [`NeedsError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Needs {
    /// How many items; a first guess where [`growth`](Self::growth) is unknown; those in the window where there is one.
    pub items: u64,
    /// How many of the non-members may be answered *mayhap*.
    pub target_fpr: f64,
    /// How the set comes to be.
    pub growth: Growth,
    /// Items are removed again.
    pub deletes: Deletes,
    /// The most memory it may take.
    pub memory_limit_bytes: Option<u64>,
    /// What an item looks like.
    pub item: ItemShape,
    /// Non-members choose the items, and some would like the filter to fail.
    pub untrusted: bool,
    /// Several threads insert at the same time.
    pub threads: bool,
    /// How many non-members are asked about every day.
    pub lookups_per_day: Option<u64>,
    /// The rate follows from the memory: within a limit every filter is priced at the lowest rate it reaches there, and
    /// [`target_fpr`](Self::target_fpr) bounds nothing. Without a limit this means nothing.
    pub rate_from_memory: bool,
    /// The items follow from the memory: within a limit every structure is priced for the most items it holds there. Without
    /// a limit this means nothing.
    pub items_from_memory: bool,
    /// So many probes and no other number: for a classic filter, or a counting one. Nothing else lets them be chosen.
    pub probes: Option<u32>,
    /// It is to be kept in a file of ours: a structure of which there is none will not do.
    pub in_file: bool,
    /// This structure and no other: nothing else is priced.
    pub only: Option<Structure>,
}

/// How a set comes to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Growth {
    /// All items are there when it is built, and none comes later.
    AllAtOnce,
    /// Items arrive one by one, up to the number given.
    #[default]
    UpToItems,
    /// Nobody knows how many there will be; the number given is a first guess.
    Unknown,
    /// Items never end, and only the last so many count: what is older is to be forgotten.
    Window,
}

/// How often items are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Deletes {
    /// Never.
    #[default]
    Never,
    /// At most this often, from its first day to its last.
    UpTo(u64),
    /// Again and again, with no end.
    Endlessly,
}

/// What an item looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemShape {
    /// Nothing is known; where it matters, byte strings of [`ItemShape::ASSUMED_LEN`] bytes are assumed.
    #[default]
    Unknown,
    /// Byte strings.
    Bytes {
        /// How long most of them are.
        typical_len: u32,
    },
    /// Integers within a known range, such as phone numbers or database ids.
    IntegerRange {
        /// The smallest possible.
        low: u64,
        /// The largest possible: it can occur.
        high: u64,
    },
}

impl ItemShape {
    /// How long an item is taken to be when nothing is known: a longish identifier, a short URL.
    pub const ASSUMED_LEN: u32 = 32;

    /// How many different items there can be, if that is known.
    #[must_use]
    pub fn possible(&self) -> Option<u128> {
        match *self {
            Self::IntegerRange { low, high } => Some((u128::from(high) + 1).saturating_sub(u128::from(low))),
            Self::Unknown | Self::Bytes { .. } => None,
        }
    }
}

impl Needs {
    /// `items` items arriving one by one, trusted, from one thread, at most `target_fpr` of the non-members answered wrongly.
    #[must_use]
    pub fn new(items: u64, target_fpr: f64) -> Self {
        Self {
            items,
            target_fpr,
            growth: Growth::default(),
            deletes: Deletes::default(),
            memory_limit_bytes: None,
            item: ItemShape::default(),
            untrusted: false,
            threads: false,
            lookups_per_day: None,
            rate_from_memory: false,
            items_from_memory: false,
            probes: None,
            in_file: false,
            only: None,
        }
    }

    /// The set comes to be like this.
    #[must_use]
    pub fn growing(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// Items are removed again, so often.
    #[must_use]
    pub fn deleting(self, deletes: Deletes) -> Self {
        Self { deletes, ..self }
    }

    /// It may take `bytes` bytes and no more.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        Self { memory_limit_bytes: Some(bytes), ..self }
    }

    /// Items look like this.
    #[must_use]
    pub fn of(self, item: ItemShape) -> Self {
        Self { item, ..self }
    }

    /// Non-members choose the items.
    #[must_use]
    pub fn untrusted(self) -> Self {
        Self { untrusted: true, ..self }
    }

    /// Several threads insert at the same time.
    #[must_use]
    pub fn threaded(self) -> Self {
        Self { threads: true, ..self }
    }

    /// So many non-members are asked about every day.
    #[must_use]
    pub fn asked_daily(self, lookups_per_day: u64) -> Self {
        Self { lookups_per_day: Some(lookups_per_day), ..self }
    }

    /// As seldom wrong as `bytes` bytes allow, down to [`solve::LOWEST_RATE`](super::solve::LOWEST_RATE).
    #[must_use]
    pub fn as_right_as_fits(self, bytes: u64) -> Self {
        Self { rate_from_memory: true, ..self.within(bytes) }
    }

    /// For as many items as `bytes` bytes hold at the rate asked for.
    #[must_use]
    pub fn as_many_as_fit(self, bytes: u64) -> Self {
        Self { items_from_memory: true, ..self.within(bytes) }
    }

    /// With `probes` probes for every item.
    #[must_use]
    pub fn probing(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self }
    }

    /// It is to be kept in a file of ours.
    #[must_use]
    pub fn in_a_file(self) -> Self {
        Self { in_file: true, ..self }
    }

    /// `structure` and no other.
    #[must_use]
    pub fn only(self, structure: Structure) -> Self {
        Self { only: Some(structure), ..self }
    }

    /// The memory rates are solved from, if they are.
    pub(super) fn memory_for_rates(&self) -> Option<u64> {
        self.memory_limit_bytes.filter(|_| self.rate_from_memory)
    }

    /// The memory numbers of items are solved from, if they are.
    pub(super) fn memory_for_items(&self) -> Option<u64> {
        self.memory_limit_bytes.filter(|_| self.items_from_memory)
    }

    /// `Ok` if these needs can be meant.
    ///
    /// # Errors
    /// [`NeedsError`] for a rate outside (0, 1), no items or too many, a range that is empty or too small for the items, a limit
    /// of no memory, no removals where there are some, no lookups, probes outside 1 to 64, and a set that is built at once, or a window, yet removed from.
    pub fn check(&self) -> Result<(), NeedsError> {
        sizing::check_capacity(self.items)?;
        sizing::check_rate(self.target_fpr)?;
        self.probes.map(sizing::check_probes).transpose()?;
        match self.item {
            ItemShape::IntegerRange { low, high } if low > high => {
                return Err(NeedsError::EmptyRange { low, high });
            }
            ItemShape::Bytes { typical_len: 0 } => return Err(NeedsError::EmptyItems),
            _ => {}
        }
        if let Some(possible) = self.item.possible()
            && u128::from(self.items) > possible
        {
            // At most 2^42 here, or it would not be less than `items`.
            return Err(NeedsError::MoreItemsThanRange { items: self.items, possible: possible as u64 });
        }
        if self.memory_limit_bytes == Some(0) {
            return Err(NeedsError::NoMemory);
        }
        if self.deletes == Deletes::UpTo(0) {
            return Err(NeedsError::NoDeletes);
        }
        if self.lookups_per_day == Some(0) {
            return Err(NeedsError::NoLookups);
        }
        if self.deletes != Deletes::Never && self.growth == Growth::AllAtOnce {
            return Err(NeedsError::DeletesFromFixedSet);
        }
        if self.deletes != Deletes::Never && self.growth == Growth::Window {
            return Err(NeedsError::DeletesFromWindow);
        }
        Ok(())
    }
}

/// Why no advice could be given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NeedsError {
    /// A number no filter can be built from.
    Build(BuildError),
    /// The lowest integer is above the highest.
    EmptyRange {
        /// The smallest possible.
        low: u64,
        /// The largest possible.
        high: u64,
    },
    /// There are fewer integers in the range than items.
    MoreItemsThanRange {
        /// Items asked for.
        items: u64,
        /// Integers in the range.
        possible: u64,
    },
    /// Items of no bytes: there is only one of those.
    EmptyItems,
    /// A limit of 0 bytes.
    NoMemory,
    /// Items are removed, but at most 0 times.
    NoDeletes,
    /// Nobody ever asks.
    NoLookups,
    /// All items are there at once and none is added later, yet some are removed.
    DeletesFromFixedSet,
    /// Items leave a window by getting old, and in no other way.
    DeletesFromWindow,
    /// So little memory that every second non-member would be answered wrongly, or more.
    TooLittleMemory {
        /// The structure looked at.
        structure: Structure,
        /// Memory given.
        bytes: u64,
        /// What one wrong answer in two takes; nothing where no amount would do.
        needed: Option<u64>,
    },
    /// An exact structure has no rate to solve for.
    NotAFilter {
        /// The structure asked about.
        structure: Structure,
    },
}

impl fmt::Display for NeedsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::EmptyRange { low, high } => {
                write!(f, "the range {low}..{high} is empty: write the lower end first")
            }
            Self::MoreItemsThanRange { items, possible } => {
                write!(
                    f,
                    "{} cannot differ in a range of {} integers",
                    say::items(*items),
                    say::count(*possible)
                )
            }
            Self::EmptyItems => f.write_str("items must have at least 1 byte, got 0"),
            Self::NoMemory => f.write_str("a memory limit must be at least 1 byte, got 0"),
            Self::NoDeletes => f.write_str("a number of removals must be at least 1, got 0"),
            Self::NoLookups => f.write_str("a number of lookups must be at least 1, got 0"),
            Self::DeletesFromFixedSet => f.write_str("a set that never changes cannot have items removed"),
            Self::DeletesFromWindow => {
                f.write_str("items leave a window by getting old and cannot be removed")
            }
            Self::TooLittleMemory { structure, bytes, needed } => {
                write!(f, "{} are too few for a useful {structure}", say::bytes(*bytes))?;
                match needed {
                    Some(needed) => write!(f, ": a rate of 50% would take {}", say::bytes(*needed)),
                    None => Ok(()),
                }
            }
            Self::NotAFilter { structure } => write!(f, "a {structure} has no rate to solve for"),
        }
    }
}

impl std::error::Error for NeedsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuildError> for NeedsError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_an_error() {
        for rate in [0.0, 1.0, -1.0, 1.5, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(matches!(Needs::new(1000, rate).check(), Err(NeedsError::Build(_))), "{rate}");
        }
        for items in [0, u64::MAX, sizing::MAX_CAPACITY + 1] {
            assert!(matches!(Needs::new(items, 0.01).check(), Err(NeedsError::Build(_))), "{items}");
        }
        let range = |low, high| Needs::new(1000, 0.01).of(ItemShape::IntegerRange { low, high }).check();
        assert_eq!(range(8, 7), Err(NeedsError::EmptyRange { low: 8, high: 7 }));
        assert_eq!(range(1, 999), Err(NeedsError::MoreItemsThanRange { items: 1000, possible: 999 }));
        assert_eq!(range(1, 1000), Ok(()));
        assert_eq!(range(0, u64::MAX), Ok(()));
        let needs = Needs::new(1000, 0.01);
        assert_eq!(needs.clone().within(0).check(), Err(NeedsError::NoMemory));
        assert_eq!(
            needs.clone().of(ItemShape::Bytes { typical_len: 0 }).check(),
            Err(NeedsError::EmptyItems)
        );
        assert_eq!(needs.clone().deleting(Deletes::UpTo(0)).check(), Err(NeedsError::NoDeletes));
        for probes in [0, 65, u32::MAX] {
            assert!(matches!(needs.clone().probing(probes).check(), Err(NeedsError::Build(_))), "{probes}");
        }
        assert_eq!(needs.clone().probing(64).check(), Ok(()));
        assert_eq!(needs.clone().asked_daily(0).check(), Err(NeedsError::NoLookups));
        let fixed = needs.clone().growing(Growth::AllAtOnce).deleting(Deletes::UpTo(5));
        assert_eq!(fixed.check(), Err(NeedsError::DeletesFromFixedSet));
        let window = needs.growing(Growth::Window).deleting(Deletes::Endlessly);
        assert_eq!(window.check(), Err(NeedsError::DeletesFromWindow));
    }
}
