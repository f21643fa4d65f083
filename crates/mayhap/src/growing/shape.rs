//! The initial shape of a growing filter, and its sizes and rates after any growth.

use std::fmt;

use crate::error::BuildError;
use crate::run_table::RunTable;
use crate::sizing::growing::{
    self, AIMED_FIRST_SHARE, GrowthSteps, MAX_FINGERPRINT_BITS, MAX_HOMES, MIN_GROWING_RATE, slot_limit,
};
use crate::sizing::{self, MAX_CAPACITY};
use crate::store::LINE_BYTES;

/// The shape of a [`Growing`](crate::Growing) filter now and after any growth: its dimensions and memory,
/// checked before any memory is allocated.
///
/// ```
/// use mayhap::GrowingShape;
///
/// let shape = GrowingShape::for_capacity(1_000, 0.01)?.within(1 << 30)?;
/// assert_eq!(shape.fingerprint_bits(), 8);
/// assert_eq!(shape.doublings_for(1_000_000)?, 10);
/// assert!(shape.memory_bytes_after(1_000_000)? < 2_000_000);
/// assert!(shape.expected_fpr(1_000_000)? <= 0.01);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowingShape {
    homes: u64,
    fingerprint_bits: u32,
    capacity: u64,
    target_fpr: f64,
    limit_bytes: Option<u64>,
}

impl GrowingShape {
    /// Returns a shape with initial room for `capacity` items. The false-positive rate is at most
    /// `target_fpr` after any growth.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1) or below 10^-12.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        Self::from_parts(growing::first_homes(capacity), capacity, target_fpr, None)
    }

    /// Returns a shape that begins with exactly `homes` homes and fingerprints of `fingerprint_bits` bits.
    /// The promised rate follows from them.
    ///
    /// # Errors
    /// [`BuildError`] for fewer than 2 homes, no bits, or a number above its limit.
    pub fn exactly(homes: u64, fingerprint_bits: u32) -> Result<Self, BuildError> {
        if fingerprint_bits == 0 || fingerprint_bits > MAX_FINGERPRINT_BITS {
            return Err(BuildError::FingerprintOutOfRange {
                got: fingerprint_bits,
                least: 1,
                limit: MAX_FINGERPRINT_BITS,
            });
        }
        check_homes(homes)?;
        let capacity = slot_limit(homes).min(MAX_CAPACITY);
        let covered = growing::covered(slot_limit(homes) as f64, fingerprint_bits, homes);
        // Slightly above the exact rate, so computing the bits from the rate gives the same bits again.
        let target_fpr = covered / AIMED_FIRST_SHARE * (1.0 + 1e-9);
        Self::from_parts(homes, capacity, target_fpr, None)
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(super) fn from_parts(
        homes: u64,
        capacity: u64,
        target_fpr: f64,
        limit_bytes: Option<u64>,
    ) -> Result<Self, BuildError> {
        check_homes(homes)?;
        sizing::check_rate(target_fpr)?;
        if capacity == 0 || capacity > slot_limit(homes) {
            return Err(BuildError::CapacityOutOfRange { got: capacity, limit: slot_limit(homes) });
        }
        let too_low = BuildError::RateTooLow { got: target_fpr, limit: MIN_GROWING_RATE };
        if target_fpr < MIN_GROWING_RATE {
            return Err(too_low);
        }
        let fingerprint_bits = growing::first_fingerprint_bits(homes, target_fpr).ok_or(too_low)?;
        RunTable::lines_for(homes, fingerprint_bits + 1)?;
        Ok(Self { homes, fingerprint_bits, capacity, target_fpr, limit_bytes })
    }

    /// Limits the table to `limit_bytes`. The filter cannot grow past that. While it grows, the old table
    /// takes half as much as the new one in addition.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] if not even the first table fits.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self.limited(Some(limit_bytes)))
    }

    /// Returns the same shape with another limit, which may be below the memory already in use.
    pub(super) const fn limited(self, limit_bytes: Option<u64>) -> Self {
        Self { limit_bytes, ..self }
    }

    /// Returns how often the filter doubles until it holds `items` items.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many, with the reason why it cannot grow.
    pub fn doublings_for(&self, items: u64) -> Result<u32, BuildError> {
        Ok((self.grown_to(items)?.homes() / self.homes).ilog2())
    }

    /// Returns the memory of the table for `items` items.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many.
    pub fn memory_bytes_after(&self, items: u64) -> Result<u64, BuildError> {
        let grown = self.grown_to(items)?;
        table_bytes(grown.homes(), grown.fingerprint_bits())
    }

    /// Returns the false-positive rate that the model predicts for `items` different items.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many.
    pub fn expected_fpr(&self, items: u64) -> Result<f64, BuildError> {
        Ok(growing::expected_fpr(self.grown_to(items)?.covered_at(items)))
    }

    /// Returns the table that holds `items` items, as it is when full.
    fn grown_to(&self, items: u64) -> Result<GrowthSteps, BuildError> {
        let too_low = BuildError::RateTooLow { got: self.target_fpr, limit: MIN_GROWING_RATE };
        let mut full = GrowthSteps::first(self.homes, self.target_fpr).ok_or(too_low)?;
        while full.items() < items {
            let limit = full.items();
            full = full.doubled().ok_or(BuildError::CapacityOutOfRange { got: items, limit })?;
            self.check_table(full.homes(), full.fingerprint_bits())?;
        }
        Ok(full)
    }

    /// Checks that such a table is allowed.
    pub(super) fn check_table(&self, homes: u64, fingerprint_bits: u32) -> Result<(), BuildError> {
        sizing::check_memory(table_bytes(homes, fingerprint_bits)?, self.limit_bytes.unwrap_or(u64::MAX))
    }

    /// Returns the number of homes of the first table. Every doubling doubles it.
    #[must_use]
    pub const fn homes(&self) -> u64 {
        self.homes
    }

    /// Returns the bits of the first fingerprints. They lose one at every doubling; fingerprints inserted
    /// later have as many as they need.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns the number of items it has initial room for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate, which holds after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the memory limit of the table, if there is one.
    #[must_use]
    pub const fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Returns the memory of the first table.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        table_bytes(self.homes, self.fingerprint_bits).unwrap_or(u64::MAX)
    }

    /// Bits of memory per item at the initial capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }
}

fn check_homes(homes: u64) -> Result<(), BuildError> {
    // A table with one home has no slot to fill below nine tenths.
    if !(2..=MAX_HOMES).contains(&homes) {
        return Err(BuildError::CapacityOutOfRange { got: homes, limit: MAX_HOMES });
    }
    Ok(())
}

/// The bits of a slot: the fingerprint and the bit that ends it.
fn table_bytes(homes: u64, fingerprint_bits: u32) -> Result<u64, BuildError> {
    Ok(RunTable::lines_for(homes, fingerprint_bits + 1)? * LINE_BYTES as u64)
}

impl fmt::Display for GrowingShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} homes with fingerprints of {} bits, then twice as many",
            self.homes, self.fingerprint_bits
        )
    }
}
