//! The number of buckets and the fingerprint length of a d-left filter, and the false-positive rate that
//! follows.

use std::fmt;

use crate::error::BuildError;
use crate::sizing::dleft::{
    self, COUNTER_BITS, MAX_FINGERPRINT_BITS, MIN_FINGERPRINT_BITS, MIN_RATE, SLOTS, TABLES,
};
use crate::sizing::{self, MAX_BITS};
use crate::store::LINE_BYTES;

/// The shape of a [`DLeft`](crate::DLeft): its dimensions and memory, checked before any memory is allocated.
///
/// ```
/// use mayhap::{CountingShape, DLeftShape};
///
/// let shape = DLeftShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!(shape.fingerprint_bits(), 12);
/// assert!(shape.bits_per_item() < 18.2);
/// let counting = CountingShape::for_capacity(1_000_000, 0.01)?;
/// assert!(shape.memory_bytes() < counting.memory_bytes() / 2);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DLeftShape {
    /// Buckets in each sub-table.
    buckets: u64,
    fingerprint_bits: u32,
    capacity: u64,
    target_fpr: f64,
}

/// Bytes after the last bucket, for reading whole words from any bucket on.
const SLACK_BYTES: u64 = 16;

impl DLeftShape {
    /// Returns the smallest shape for `capacity` items with a false-positive rate of at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1) or below 1e-10.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        if target_fpr < MIN_RATE {
            return Err(BuildError::RateTooLow { got: target_fpr, limit: MIN_RATE });
        }
        let (buckets, fingerprint_bits) = dleft::size(capacity, target_fpr);
        Self { buckets, fingerprint_bits, capacity, target_fpr }.checked()
    }

    /// Returns a shape of exactly `buckets` buckets in each of the four sub-tables, with fingerprints of
    /// `fingerprint_bits` bits, meant for `capacity` items. With more than 24 items per bucket some may find
    /// no room.
    ///
    /// # Errors
    /// [`BuildError`] if a number is 0 or above its limit.
    pub fn exactly(buckets: u64, fingerprint_bits: u32, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let shape = Self { buckets, fingerprint_bits, capacity, target_fpr: 0.5 }.checked()?;
        // A rate is strictly between 0 and 1, also after rounding.
        let target_fpr = shape.expected_fpr(capacity).clamp(sizing::MIN_RATE, 1.0 - f64::EPSILON);
        Ok(Self { target_fpr, ..shape })
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(super) fn from_parts(
        buckets: u64,
        fingerprint_bits: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        sizing::check_capacity(capacity)?;
        sizing::check_rate(target_fpr)?;
        Self { buckets, fingerprint_bits, capacity, target_fpr }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        if !(MIN_FINGERPRINT_BITS..=MAX_FINGERPRINT_BITS).contains(&self.fingerprint_bits) {
            return Err(BuildError::FingerprintOutOfRange {
                got: self.fingerprint_bits,
                least: MIN_FINGERPRINT_BITS,
                limit: MAX_FINGERPRINT_BITS,
            });
        }
        let bits = self.buckets.saturating_mul(TABLES * SLOTS).saturating_mul(u64::from(self.slot_bits()));
        if bits == 0 || bits > MAX_BITS {
            return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
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

    /// Returns the number of buckets in each of the four sub-tables.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns the number of slots in all buckets.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.buckets * TABLES * SLOTS
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns the bits of a slot: a fingerprint and a counter. This is also the number of bytes of a bucket,
    /// which has eight slots.
    #[must_use]
    pub const fn slot_bits(&self) -> u32 {
        self.fingerprint_bits + COUNTER_BITS
    }

    /// Returns the number of different items it is sized for, with up to three copies each.
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

    /// Returns the false-positive rate for `items` different items. Copies of an item do not matter.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        dleft::expected_fpr(self.buckets, self.fingerprint_bits, items)
    }

    /// Returns the memory that the buckets take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        (self.bucket_bytes() + SLACK_BYTES).div_ceil(LINE_BYTES as u64) * LINE_BYTES as u64
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns the bytes that the buckets of all sub-tables take.
    pub(super) const fn bucket_bytes(&self) -> u64 {
        self.slots() / SLOTS * self.slot_bits() as u64
    }

    pub(super) fn lines(&self) -> usize {
        usize::try_from(self.memory_bytes() / LINE_BYTES as u64).unwrap_or(usize::MAX)
    }

    /// Returns whether each slot means the same in both. Capacity and target may differ.
    pub(super) fn places_like(&self, other: &Self) -> bool {
        (self.buckets, self.fingerprint_bits) == (other.buckets, other.fingerprint_bits)
    }
}

impl fmt::Display for DLeftShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, bits) = (self.buckets, self.fingerprint_bits);
        write!(f, "{TABLES} x {buckets} buckets of {SLOTS} fingerprints of {bits} bits")
    }
}
