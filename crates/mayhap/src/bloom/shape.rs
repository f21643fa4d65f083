//! How many bits and probes a classic Bloom filter has, and what that means for its rate.

use std::fmt;

use crate::error::BuildError;
use crate::probe::{BloomPlacement, MAX_PROBES, Range};
use crate::sizing::{self, MAX_BITS, classic};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// The measurements of a [`Bloom`](crate::Bloom) filter: known, checked and priced before any memory is taken.
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
    /// The smallest shape that holds `capacity` items and is wrong for at most `target_fpr` of the non-members.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1).
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let (bits, probes) = classic::size(capacity, target_fpr);
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked()
    }

    /// The best use of `bytes` bytes for `capacity` items; [`target_fpr`](Self::target_fpr) says how good that is.
    ///
    /// # Errors
    /// [`BuildError::BitsOutOfRange`] for less than 8 bytes, [`BuildError::TooSmall`] for so few that the rate would reach 1.
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

    /// The smallest shape of `probes` probes that holds `capacity` items and is wrong for at most `target_fpr` of the
    /// non-members; [`for_capacity`](Self::for_capacity) knows how many probes are best.
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
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1), probes outside 1 to 64, and for more bits than any filter can
    /// have: one probe alone keeps no low rate.
    pub fn for_probes(capacity: u64, target_fpr: f64, probes: u32) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let probes = sizing::check_probes(probes)?;
        let bits = classic::bits_for(capacity, target_fpr, probes);
        Self { bits: Range::of(bits), probes, capacity, target_fpr }.checked()
    }

    /// Exactly `bits` bits and `probes` probes, meant for `capacity` items: for matching another system's filter.
    ///
    /// # Errors
    /// [`BuildError`] for a zero, or a number past its limit.
    pub fn exactly(bits: u64, probes: u32, capacity: u64) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let shape = Self { bits: Range::of(bits), probes, capacity, target_fpr: 1.0 }.checked()?;
        Ok(Self { target_fpr: shape.expected_fpr(capacity), ..shape })
    }

    /// `bits` bits and `probes` probes as another program says them, which does not say what they were meant for: so many
    /// items as leave half of the bits clear, for which so many probes are best.
    #[cfg(feature = "formats")]
    pub(crate) fn of_unknown_capacity(bits: u64, probes: u32) -> Result<Self, BuildError> {
        let capacity = (bits as f64 * std::f64::consts::LN_2 / f64::from(probes.max(1))).round();
        Self::from_parts(bits, probes, (capacity as u64).clamp(1, sizing::MAX_CAPACITY), 1.0).map(|shape| {
            Self { target_fpr: classic::quickly_expected_fpr(bits, probes, shape.capacity), ..shape }
        })
    }

    /// What an encoded filter says its shape is, checked like every other but for the number of probes, of which other
    /// programs take more than we do; [`of_placement`](Self::of_placement) is what checks that.
    pub(crate) fn from_parts(
        bits: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        Self::of_placement(BloomPlacement::Guava64, bits, probes, capacity, target_fpr)
    }

    /// The same for a filter of this placement, with as many probes as such a filter may have.
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

    /// The shape itself, if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Bits in the array.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.bits.len()
    }

    /// The bits as what positions are drawn from.
    #[inline(always)]
    pub(crate) const fn range(&self) -> Range {
        self.bits
    }

    /// Bits an item sets.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// Items it is meant for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promise: at most this share of non-members is answered *mayhap* while at most `capacity` items are in.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// The rate by the model once `items` distinct items are in, within 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        classic::expected_fpr(self.bits(), self.probes, items)
    }

    /// Memory the bits take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.bits().div_ceil(LINE_BYTES as u64 * 8) * LINE_BYTES as u64
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// The words that hold bits; the array is rounded up to whole lines behind them.
    pub(crate) const fn words(&self) -> u64 {
        self.bits().div_ceil(64)
    }

    pub(crate) fn lines(&self) -> usize {
        usize::try_from(self.words().div_ceil(WORDS_PER_LINE as u64)).unwrap_or(usize::MAX)
    }

    /// Do a bit and its neighbours mean the same in both? Capacity and target may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        (self.bits(), self.probes) == (other.bits(), other.probes)
    }
}

impl fmt::Display for BloomShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits with {} probes", self.bits(), self.probes)
    }
}
