//! The number of counters and probes of a counting Bloom filter, and the false-positive rate that follows.

use std::fmt;

use super::counters::COUNTERS_PER_WORD;
use crate::error::BuildError;
use crate::probe::MAX_PROBES;
use crate::sizing::counting::{self, MAX_COUNTERS};
use crate::sizing::{self, classic};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// The shape of a [`CountingBloom`](crate::CountingBloom): its dimensions and memory, checked before any
/// memory is allocated.
///
/// ```
/// use mayhap::CountingShape;
///
/// let shape = CountingShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!(shape.probes(), 7);
/// assert!(shape.bits_per_item() < 38.5); // four bits where the plain filter has one
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// assert!(shape.within(1 << 20).is_err()); // it needs 4.8 MB
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingShape {
    counters: u64,
    probes: u32,
    capacity: u64,
    target_fpr: f64,
}

impl CountingShape {
    /// Returns the smallest shape for `capacity` items with a false-positive rate of at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1).
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let (counters, probes) = classic::size(capacity, target_fpr);
        Self { counters, probes, capacity, target_fpr }.checked()
    }

    /// Returns the best shape for `capacity` items in `bytes` bytes; [`target_fpr`](Self::target_fpr) returns
    /// the rate it reaches.
    ///
    /// # Errors
    /// [`BuildError`] for less than 8 bytes, or if the rate would reach 1.
    pub fn for_memory(bytes: u64, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let counters = (bytes / 8).saturating_mul(COUNTERS_PER_WORD);
        check_counters(counters)?;
        let probes = classic::best_probes(counters, capacity);
        let target_fpr = classic::rate_in_memory(bytes, counters, probes, capacity)?;
        Self { counters, probes, capacity, target_fpr }.checked()
    }

    /// Returns the smallest shape with `probes` probes for `capacity` items and a false-positive rate of at
    /// most `target_fpr`. [`for_capacity`](Self::for_capacity) chooses the best number of probes itself.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1), probes outside 1 to 64, and for more
    /// counters than any filter can have.
    pub fn for_probes(capacity: u64, target_fpr: f64, probes: u32) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let probes = sizing::check_probes(probes)?;
        let counters = classic::bits_for(capacity, target_fpr, probes);
        Self { counters, probes, capacity, target_fpr }.checked()
    }

    /// Returns a shape of exactly `counters` counters and `probes` probes, meant for `capacity` items.
    ///
    /// # Errors
    /// [`BuildError`] if a number is 0 or above its limit.
    pub fn exactly(counters: u64, probes: u32, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let shape = Self { counters, probes, capacity, target_fpr: 1.0 }.checked()?;
        Ok(Self { target_fpr: shape.expected_fpr(capacity), ..shape })
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(crate) fn from_parts(
        counters: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        sizing::check_capacity(capacity)?;
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        Self { counters, probes, capacity, target_fpr }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        check_counters(self.counters)?;
        if self.probes == 0 || self.probes > MAX_PROBES {
            return Err(BuildError::ProbesOutOfRange { got: self.probes, limit: MAX_PROBES });
        }
        Ok(self)
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the number of counters in the array.
    #[must_use]
    pub const fn counters(&self) -> u64 {
        self.counters
    }

    /// Returns the number of counters that an item raises.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// The number of items it is sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate while the filter holds at most `capacity` different
    /// items.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the false-positive rate that the model predicts for `items` different items, accurate within
    /// 2 %. Copies of an item do not matter.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        classic::expected_fpr(self.counters, self.probes, items)
    }

    /// Returns how many counters the model expects to be stuck with one copy of each of `items` different
    /// items.
    #[must_use]
    pub fn expected_saturated(&self, items: u64) -> f64 {
        counting::expected_saturated(self.counters, self.probes, items)
    }

    /// Returns the memory that the counters take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.words().div_ceil(WORDS_PER_LINE as u64) * LINE_BYTES as u64
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// The number of words that hold counters. The array is longer: it is rounded up to whole lines.
    pub(crate) const fn words(&self) -> u64 {
        self.counters.div_ceil(COUNTERS_PER_WORD)
    }

    pub(crate) fn lines(&self) -> usize {
        usize::try_from(self.words().div_ceil(WORDS_PER_LINE as u64)).unwrap_or(usize::MAX)
    }

    /// Returns whether each counter means the same in both. Capacity and target may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        (self.counters, self.probes) == (other.counters, other.probes)
    }
}

fn check_counters(counters: u64) -> Result<(), BuildError> {
    if counters == 0 || counters > MAX_COUNTERS {
        return Err(BuildError::CountersOutOfRange { got: counters, limit: MAX_COUNTERS });
    }
    Ok(())
}

impl fmt::Display for CountingShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} counters with {} probes", self.counters, self.probes)
    }
}
