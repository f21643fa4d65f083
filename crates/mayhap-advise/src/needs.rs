//! The properties of a set and the operations it needs.

use std::fmt;

use mayhap::{BuildError, internals, say};

use crate::Structure;

/// The requirements on a set of items, for [`advise`](super::advise).
///
/// ```
/// use mayhap_advise::{Deletes, ItemShape, Needs};
///
/// // A billion Chinese mobile numbers, false positives for at most 1 % of the non-members, numbers can be removed:
/// let needs = Needs::new(1_000_000_000, 0.01)
///     .of(ItemShape::IntegerRange { low: 13_000_000_000, high: 19_999_999_999 })
///     .deleting(Deletes::Endlessly);
/// ```
///
/// The values are checked when they are used; invalid ones are a [`NeedsError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Needs {
    /// The number of items: a first guess if [`growth`](Self::growth) is unknown, the items of the window if there is one.
    pub items: u64,
    /// The highest false-positive rate.
    pub target_fpr: f64,
    /// How the set is filled.
    pub growth: Growth,
    /// Whether items are removed again.
    pub deletes: Deletes,
    /// The most memory it may take.
    pub memory_limit_bytes: Option<u64>,
    /// The form of an item.
    pub item: ItemShape,
    /// Untrusted clients choose the items, and may attack the filter.
    pub untrusted: bool,
    /// Several threads insert at the same time.
    pub threads: bool,
    /// Lookups of non-members per day.
    pub lookups_per_day: Option<u64>,
    /// Solve for the rate: every filter is priced at the lowest rate it reaches within the memory limit, and
    /// [`target_fpr`](Self::target_fpr) is not a bound. Without a limit this has no effect.
    pub rate_from_memory: bool,
    /// Solve for the items: every structure is priced for the most items it holds within the memory limit. Without a limit
    /// this has no effect.
    pub items_from_memory: bool,
    /// Exactly this number of probes, for a classic or a counting filter. The other structures do not let it be chosen.
    pub probes: Option<u32>,
    /// It must be saved to a file of ours: structures without a file format do not suit.
    pub in_file: bool,
    /// Price only this structure.
    pub only: Option<Structure>,
}

/// How a set is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Growth {
    /// All items are known when it is built, and no more come later.
    AllAtOnce,
    /// Items arrive one by one, up to the number given.
    #[default]
    UpToItems,
    /// The final number is unknown; the number given is a first guess.
    Unknown,
    /// Items never end, and only the last N count: older ones are forgotten.
    Window,
}

/// How often items are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Deletes {
    /// Never.
    #[default]
    Never,
    /// At most this many removals in its lifetime.
    UpTo(u64),
    /// Any number of removals.
    Endlessly,
}

/// The form of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemShape {
    /// Unknown. If the length matters, byte strings of [`ItemShape::ASSUMED_LEN`] bytes are assumed.
    #[default]
    Unknown,
    /// Byte strings.
    Bytes {
        /// The typical length.
        typical_len: u32,
    },
    /// Integers in a known range, such as phone numbers or database ids.
    IntegerRange {
        /// The smallest possible.
        low: u64,
        /// The largest possible, inclusive.
        high: u64,
    },
}

impl ItemShape {
    /// The length assumed for an unknown item: a longish identifier, a short URL.
    pub const ASSUMED_LEN: u32 = 32;

    /// The number of different items that are possible, if known.
    #[must_use]
    pub fn possible(&self) -> Option<u128> {
        match *self {
            Self::IntegerRange { low, high } => Some((u128::from(high) + 1).saturating_sub(u128::from(low))),
            Self::Unknown | Self::Bytes { .. } => None,
        }
    }
}

impl Needs {
    /// `items` trusted items that arrive one by one, from one thread, with a false-positive rate of at most `target_fpr`.
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

    /// Sets how the set is filled.
    #[must_use]
    pub fn growing(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// Sets how often items are removed.
    #[must_use]
    pub fn deleting(self, deletes: Deletes) -> Self {
        Self { deletes, ..self }
    }

    /// Limits the memory to `bytes` bytes.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        Self { memory_limit_bytes: Some(bytes), ..self }
    }

    /// Sets the form of the items.
    #[must_use]
    pub fn of(self, item: ItemShape) -> Self {
        Self { item, ..self }
    }

    /// Untrusted clients choose the items.
    #[must_use]
    pub fn untrusted(self) -> Self {
        Self { untrusted: true, ..self }
    }

    /// Several threads insert at the same time.
    #[must_use]
    pub fn threaded(self) -> Self {
        Self { threads: true, ..self }
    }

    /// Sets the number of lookups of non-members per day.
    #[must_use]
    pub fn asked_daily(self, lookups_per_day: u64) -> Self {
        Self { lookups_per_day: Some(lookups_per_day), ..self }
    }

    /// Solves for the lowest rate in `bytes` bytes, down to [`solve::LOWEST_RATE`](super::solve::LOWEST_RATE).
    #[must_use]
    pub fn as_right_as_fits(self, bytes: u64) -> Self {
        Self { rate_from_memory: true, ..self.within(bytes) }
    }

    /// Solves for the most items that `bytes` bytes hold at the rate asked for.
    #[must_use]
    pub fn as_many_as_fit(self, bytes: u64) -> Self {
        Self { items_from_memory: true, ..self.within(bytes) }
    }

    /// Sets the number of probes per item.
    #[must_use]
    pub fn probing(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self }
    }

    /// It must be saved to a file of ours.
    #[must_use]
    pub fn in_a_file(self) -> Self {
        Self { in_file: true, ..self }
    }

    /// Prices only `structure`.
    #[must_use]
    pub fn only(self, structure: Structure) -> Self {
        Self { only: Some(structure), ..self }
    }

    /// The memory from which rates are solved, if they are.
    pub(super) fn memory_for_rates(&self) -> Option<u64> {
        self.memory_limit_bytes.filter(|_| self.rate_from_memory)
    }

    /// The memory from which the items are solved, if they are.
    pub(super) fn memory_for_items(&self) -> Option<u64> {
        self.memory_limit_bytes.filter(|_| self.items_from_memory)
    }

    /// Returns `Ok` if these needs are valid.
    ///
    /// # Errors
    /// [`NeedsError`] for a rate outside (0, 1), no items or too many, a range that is empty or too small for the items, a
    /// memory limit of 0, 0 removals, 0 lookups, probes outside 1 to 64, and removals from a static set or a window.
    pub fn check(&self) -> Result<(), NeedsError> {
        internals::check_capacity(self.items)?;
        internals::check_rate(self.target_fpr)?;
        self.probes.map(internals::check_probes).transpose()?;
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
            // At most 2^42 here; otherwise it would not be less than `items`.
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

/// Why no advice is possible.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NeedsError {
    /// A filter cannot be built from these numbers.
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
        /// The items asked for.
        items: u64,
        /// The integers in the range.
        possible: u64,
    },
    /// Items of 0 bytes: there is only one such item.
    EmptyItems,
    /// A limit of 0 bytes.
    NoMemory,
    /// Items are removed, but at most 0 times.
    NoDeletes,
    /// There are 0 lookups.
    NoLookups,
    /// The set is static, but items are removed.
    DeletesFromFixedSet,
    /// Items leave a window only by getting old; they cannot be removed.
    DeletesFromWindow,
    /// The memory is so small that the false-positive rate would be 50 % or more.
    TooLittleMemory {
        /// The structure considered.
        structure: Structure,
        /// The memory given.
        bytes: u64,
        /// The memory for a rate of 50 %; `None` if no amount is enough.
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
                    "{} cannot all be different in a range of {} integers",
                    say::items(*items),
                    say::count(*possible)
                )
            }
            Self::EmptyItems => f.write_str("items must have at least 1 byte, got 0"),
            Self::NoMemory => f.write_str("a memory limit must be at least 1 byte, got 0"),
            Self::NoDeletes => f.write_str("a number of removals must be at least 1, got 0"),
            Self::NoLookups => f.write_str("a number of lookups must be at least 1, got 0"),
            Self::DeletesFromFixedSet => f.write_str("items cannot be removed from a static set"),
            Self::DeletesFromWindow => {
                f.write_str("items cannot be removed from a window: they leave it by getting old")
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
    fn invalid_needs_are_errors() {
        for rate in [0.0, 1.0, -1.0, 1.5, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(matches!(Needs::new(1000, rate).check(), Err(NeedsError::Build(_))), "{rate}");
        }
        for items in [0, u64::MAX, mayhap::sizing::MAX_CAPACITY + 1] {
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
