//! The number of homes and remainder bits of a quotient filter, and the false-positive rate that follows.

use std::fmt;

use crate::error::BuildError;
use crate::run_table::RunTable;
use crate::sizing::quotient::{self, MAX_REMAINDER_BITS, MIN_REMAINDER_BITS};
use crate::sizing::{self};
use crate::store::LINE_BYTES;

/// The shape of a [`Quotient`](crate::Quotient): its dimensions and memory, checked before any memory is
/// allocated.
///
/// ```
/// use mayhap::QuotientShape;
///
/// let shape = QuotientShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!(shape.remainder_bits(), 7);
/// assert!(shape.bits_per_item() < 9.7);
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// // With three more bits it can double three times and still keep the rate.
/// let shape = QuotientShape::for_capacity_with_doublings(1_000_000, 0.01, 3)?;
/// assert_eq!(shape.remainder_bits(), 10);
/// assert_eq!(shape.target_fpr(), 0.01);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotientShape {
    homes: u64,
    remainder_bits: u32,
    capacity: u64,
    target_fpr: f64,
}

impl QuotientShape {
    /// Returns the smallest shape for `capacity` different items with a false-positive rate of at most
    /// `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, or a rate outside (0, 1).
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_capacity_with_doublings(capacity, target_fpr, 0)
    }

    /// Same as [`for_capacity`](Self::for_capacity), with a spare bit in every slot for each of `doublings`
    /// doublings. The rate is far below `target_fpr` at first and doubles each time. It still keeps
    /// `target_fpr` when the filter is full after the last doubling.
    ///
    /// # Errors
    /// As [`for_capacity`](Self::for_capacity), and [`BuildError::FingerprintOutOfRange`] if that needs
    /// remainders of more than 58 bits.
    pub fn for_capacity_with_doublings(
        capacity: u64,
        target_fpr: f64,
        doublings: u32,
    ) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let (homes, remainder_bits) = quotient::size(capacity, target_fpr);
        let remainder_bits = remainder_bits.saturating_add(doublings);
        Self { homes, remainder_bits, capacity, target_fpr }.checked()
    }

    /// Returns a shape of exactly `homes` homes and remainders of `remainder_bits` bits, meant for `capacity`
    /// different items.
    ///
    /// # Errors
    /// [`BuildError`] if a number is 0 or above its limit, or the capacity is more than 95 % of the homes.
    pub fn exactly(homes: u64, remainder_bits: u32, capacity: u64) -> Result<Self, BuildError> {
        let target_fpr = quotient::expected_fpr(homes, remainder_bits.min(64), capacity);
        Self { homes, remainder_bits, capacity, target_fpr }.checked()
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(super) fn from_parts(
        homes: u64,
        remainder_bits: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        Self { homes, remainder_bits, capacity, target_fpr }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        let (least, limit) = (MIN_REMAINDER_BITS, MAX_REMAINDER_BITS);
        if !(least..=limit).contains(&self.remainder_bits) {
            return Err(BuildError::FingerprintOutOfRange { got: self.remainder_bits, least, limit });
        }
        sizing::check_capacity(self.capacity)?;
        RunTable::lines_for(self.homes, self.remainder_bits)?;
        if self.capacity > self.max_slots() {
            return Err(BuildError::CapacityOutOfRange { got: self.capacity, limit: self.max_slots() });
        }
        Ok(self)
    }

    /// Returns the shape after a doubling: twice the homes and the capacity, one bit less in every slot. The
    /// promised rate stays the same while it can be kept.
    pub(super) fn doubled(self) -> Result<Self, BuildError> {
        let (homes, capacity) = (self.homes.saturating_mul(2), self.capacity.saturating_mul(2));
        let remainder_bits = self.remainder_bits - 1;
        let expected = quotient::expected_fpr(homes, remainder_bits, capacity);
        Self { homes, remainder_bits, capacity, target_fpr: self.target_fpr.max(expected) }.checked()
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the number of homes in the table. It can be any number.
    #[must_use]
    pub const fn homes(&self) -> u64 {
        self.homes
    }

    /// Returns the bits of a slot.
    #[must_use]
    pub const fn remainder_bits(&self) -> u32 {
        self.remainder_bits
    }

    /// Returns the number of different items it is sized for.
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

    /// Returns the number of slots that may be in use: 95 % of the homes.
    #[must_use]
    pub const fn max_slots(&self) -> u64 {
        quotient::max_slots(self.homes)
    }

    /// Returns the false-positive rate that the model predicts for `items` different items, accurate within
    /// 2 %. Copies of an item do not matter.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        quotient::expected_fpr(self.homes, self.remainder_bits, items)
    }

    /// Returns the memory that the table takes: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        // Cannot fail: the shape was checked when it was created.
        RunTable::lines_for(self.homes, self.remainder_bits)
            .map_or(u64::MAX, |lines| lines * LINE_BYTES as u64)
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns whether each fingerprint means the same in both. Capacity and target may differ.
    pub(super) fn places_like(&self, other: &Self) -> bool {
        (self.homes, self.remainder_bits) == (other.homes, other.remainder_bits)
    }
}

impl fmt::Display for QuotientShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} homes with remainders of {} bits", self.homes, self.remainder_bits)
    }
}
