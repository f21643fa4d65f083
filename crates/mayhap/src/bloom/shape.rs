//! The number of bits and probes of a classic Bloom filter, and the false-positive rate that follows.

use std::fmt;

use crate::error::BuildError;
use crate::probe::{BloomPlacement, MAX_PROBES, Range};
use crate::sizing::{self, MAX_BITS, classic};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// The shape of a [`Bloom`](crate::Bloom): its dimensions and memory, checked before any memory is allocated.
///
/// ```
/// use mayhap::BloomShape;
///
/// let shape = BloomShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!(shape.probes(), 7);
/// assert!(shape.bits() as f64 / 1e6 < 9.61);
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// assert!(shape.within(1 << 20).is_err()); // it needs 1.2 MB
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomShape {
    bits: Range,
    probes: u32,
    capacity: u64,
    target_fpr: f64,
}

impl BloomShape {
    /// Returns the smallest shape for `capacity` items with a false-positive rate of at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1).
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let (bits, probes) = classic::size(capacity, target_fpr);
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked()
    }

    /// Returns the best shape for `capacity` items in `bytes` bytes; [`target_fpr`](Self::target_fpr) returns
    /// the rate it reaches.
    ///
    /// # Errors
    /// [`BuildError::BitsOutOfRange`] for less than 8 bytes, [`BuildError::TooSmall`] for so few that the
    /// rate would reach 1.
    pub fn for_memory(bytes: u64, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let bits = bytes.saturating_mul(8) / 64 * 64;
        if bits == 0 || bits > MAX_BITS {
            return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
        }
        let probes = classic::best_probes(bits, capacity);
        let target_fpr = classic::rate_in_memory(bytes, bits, probes, capacity)?;
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked()
    }

    /// Returns the smallest shape with `probes` probes for `capacity` items and a false-positive rate of at
    /// most `target_fpr`. [`for_capacity`](Self::for_capacity) chooses the best number of probes itself.
    ///
    /// ```
    /// use mayhap::BloomShape;
    ///
    /// let few = BloomShape::for_probes(1_000_000, 0.01, 3)?;
    /// assert!(few.probes() == 3 && few.expected_fpr(1_000_000) <= 0.01);
    /// assert!(few.memory_bytes() > BloomShape::for_capacity(1_000_000, 0.01)?.memory_bytes());
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1), probes outside 1 to 64, and for more bits
    /// than any filter can have: one probe alone keeps no low rate.
    pub fn for_probes(capacity: u64, target_fpr: f64, probes: u32) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let probes = sizing::check_probes(probes)?;
        let bits = classic::bits_for(capacity, target_fpr, probes);
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked()
    }

    /// Returns a shape of exactly `bits` bits and `probes` probes, meant for `capacity` items. Use it to
    /// match another system's filter.
    ///
    /// # Errors
    /// [`BuildError`] if a number is 0 or above its limit.
    pub fn exactly(bits: u64, probes: u32, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let shape = Self { bits: Range::of(bits), probes, capacity, target_fpr: 1.0 }.checked()?;
        Ok(Self { target_fpr: shape.expected_fpr(capacity), ..shape })
    }

    /// Returns a shape of `bits` bits and `probes` probes, for a filter of another program that does not
    /// record its capacity. The capacity becomes the number of items that sets half of the bits, for which
    /// this number of probes is best.
    pub(crate) fn of_unknown_capacity(bits: u64, probes: u32) -> Result<Self, BuildError> {
        let capacity = (bits as f64 * std::f64::consts::LN_2 / f64::from(probes.max(1))).round();
        Self::from_parts(bits, probes, (capacity as u64).clamp(1, sizing::MAX_CAPACITY), 1.0).map(|shape| {
            Self { target_fpr: classic::quickly_expected_fpr(bits, probes, shape.capacity), ..shape }
        })
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape,
    /// except that it accepts as many probes as any other program uses. [`of_placement`](Self::of_placement)
    /// checks that number.
    pub(crate) fn from_parts(
        bits: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        Self::of_placement(BloomPlacement::Guava64, bits, probes, capacity, target_fpr)
    }

    /// Same as [`from_parts`](Self::from_parts), with at most as many probes as this placement allows.
    pub(crate) fn of_placement(
        placement: BloomPlacement,
        bits: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        sizing::check_capacity(capacity)?;
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked_up_to(placement.max_probes())
    }

    fn checked(self) -> Result<Self, BuildError> {
        self.checked_up_to(MAX_PROBES)
    }

    fn checked_up_to(self, limit: u32) -> Result<Self, BuildError> {
        let bits = self.bits();
        if bits == 0 || bits > MAX_BITS {
            return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
        }
        if self.probes == 0 || self.probes > limit {
            return Err(BuildError::ProbesOutOfRange { got: self.probes, limit });
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

    /// Returns the number of bits in the array.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits.len()
    }

    /// Returns the range from which positions are drawn.
    #[inline(always)]
    pub(crate) const fn range(&self) -> Range {
        self.bits
    }

    /// Returns the number of bits that an item sets.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// The number of items it is sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate while the filter holds at most `capacity` items.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the false-positive rate that the model predicts for `items` distinct items, accurate within
    /// 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        classic::expected_fpr(self.bits(), self.probes, items)
    }

    /// Returns the memory that the bits take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.bits().div_ceil(LINE_BYTES as u64 * 8) * LINE_BYTES as u64
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// The number of words that hold bits. The array is longer: it is rounded up to whole lines.
    pub(crate) const fn words(&self) -> u64 {
        self.bits().div_ceil(64)
    }

    pub(crate) fn lines(&self) -> usize {
        usize::try_from(self.words().div_ceil(WORDS_PER_LINE as u64)).unwrap_or(usize::MAX)
    }

    /// Returns whether each bit means the same in both. Capacity and target may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        (self.bits(), self.probes) == (other.bits(), other.probes)
    }
}

impl fmt::Display for BloomShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits with {} probes", self.bits(), self.probes)
    }
}
