//! The range of a coded set, and the coding of its values.

use std::fmt;

use super::index::BUCKETS_PER_LINE;
use crate::error::BuildError;
use crate::hash::reduce;
use crate::sizing::gcs::{self, ITEMS_PER_BUCKET, MAX_RANGE, MAX_REMAINDER_BITS};
use crate::sizing::{self, MAX_BITS};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// The shape of a [`Gcs`](crate::Gcs): its dimensions and memory, checked before any memory is allocated.
///
/// The actual memory depends slightly on the items, so these numbers are expectations. A set of a million
/// items is within a thousandth of them.
///
/// ```
/// use mayhap::GcsShape;
///
/// let shape = GcsShape::for_capacity(1_000_000, 0.01)?;
/// assert!(shape.bits_per_item() < 8.4); // the bound for any filter is 6.64
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// assert!(shape.within(1_000_000).is_err()); // it needs 1.04 MB
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcsShape {
    buckets: u64,
    bucket_range: u64,
    remainder_bits: u32,
    capacity: u64,
    target_fpr: f64,
    placement: GcsPlacement,
}

/// The numbered rules that turn a key into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GcsPlacement {
    /// 1: first the bucket, then the position in it. Every value is stored once.
    InBuckets,
    /// 2, as in BIP 158: a value below this range, which then falls into a bucket. Values are stored as often
    /// as items have them.
    InOneRange(u64),
}

/// The most bits a code can have before its low bits. Shapes sized for their items have about a hundred.
const MAX_CODE_BITS: u64 = 1 << 24;

impl GcsShape {
    /// Returns the smallest shape for `capacity` items with a false-positive rate of at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a rate outside (0, 1), or one that needs more than 62 bits of a
    /// hash.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, sizing::check_rate(target_fpr)?);
        let range = gcs::range(capacity, target_fpr * sizing::AIM);
        let buckets = (capacity / ITEMS_PER_BUCKET).max(1);
        let bucket_range = (range / buckets as f64).ceil();
        if bucket_range * buckets as f64 > MAX_RANGE as f64 {
            return Err(BuildError::RateTooLow {
                got: target_fpr,
                limit: capacity as f64 / MAX_RANGE as f64,
            });
        }
        let bucket_range = bucket_range as u64;
        let share = gcs::share_in_bucket(bucket_range * buckets, capacity, buckets);
        let remainder_bits = gcs::best_remainder_bits(share);
        let placement = GcsPlacement::InBuckets;
        Self { buckets, bucket_range, remainder_bits, capacity, target_fpr, placement }.checked()
    }

    /// Returns a shape of exactly `buckets` buckets of `bucket_range` values each, with gaps coded with
    /// `remainder_bits` low bits, meant for `capacity` items.
    ///
    /// # Errors
    /// [`BuildError`] if a number is 0 or above its limit.
    pub fn exactly(
        buckets: u64,
        bucket_range: u64,
        remainder_bits: u32,
        capacity: u64,
    ) -> Result<Self, BuildError> {
        let placement = GcsPlacement::InBuckets;
        let shape =
            Self { buckets, bucket_range, remainder_bits, capacity, target_fpr: 1.0, placement }.checked()?;
        Ok(Self { target_fpr: shape.expected_fpr(capacity), ..shape })
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(super) fn from_parts(
        buckets: u64,
        bucket_range: u64,
        remainder_bits: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        let placement = GcsPlacement::InBuckets;
        Self { buckets, bucket_range, remainder_bits, capacity, target_fpr, placement }.checked()
    }

    /// Returns the shape of a set of `items` items encoded by another program: values below
    /// `items · values_per_item`, all in one range. An empty set has the range of one item.
    ///
    /// It has buckets too, for the index. Each covers a power of two of values, so finding one is a shift.
    pub(crate) fn in_one_range(
        items: u64,
        values_per_item: u64,
        remainder_bits: u32,
    ) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(items.max(1))?;
        let range = capacity.saturating_mul(values_per_item);
        if range == 0 || range > MAX_RANGE {
            return Err(BuildError::ValuesOutOfRange { got: range, limit: MAX_RANGE });
        }
        let bucket_range = 1 << values_per_item.saturating_mul(ITEMS_PER_BUCKET).min(MAX_RANGE).ilog2();
        let buckets = range.div_ceil(bucket_range);
        let target_fpr = 1.0 / values_per_item as f64;
        let placement = GcsPlacement::InOneRange(range);
        Self { buckets, bucket_range, remainder_bits, capacity, target_fpr, placement }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        sizing::check_capacity(self.capacity)?;
        let limit = sizing::MAX_CAPACITY;
        if self.buckets == 0 || self.buckets > limit {
            return Err(BuildError::BucketCountOutOfRange { got: self.buckets, limit });
        }
        let range = self.bucket_range.saturating_mul(self.buckets);
        // Checked on creation. The last bucket may extend slightly beyond the range.
        let range = if let GcsPlacement::InOneRange(whole) = self.placement { whole } else { range };
        if range == 0 || range > MAX_RANGE {
            return Err(BuildError::ValuesOutOfRange { got: range, limit: MAX_RANGE });
        }
        if self.remainder_bits > MAX_REMAINDER_BITS {
            let (got, limit) = (self.remainder_bits, MAX_REMAINDER_BITS);
            return Err(BuildError::FingerprintOutOfRange { got, least: 0, limit });
        }
        if self.bucket_range >> self.remainder_bits > MAX_CODE_BITS {
            // At most the range, so it does not overflow.
            let limit = MAX_CODE_BITS << self.remainder_bits;
            return Err(BuildError::ValuesOutOfRange { got: self.bucket_range, limit });
        }
        Ok(self)
    }

    /// Returns the shape if it is expected to fit in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it is not.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the number of possible values. A non-member is a false positive if its value is that of a
    /// member.
    #[must_use]
    pub const fn range(&self) -> u64 {
        match self.placement {
            GcsPlacement::InBuckets => self.buckets * self.bucket_range,
            GcsPlacement::InOneRange(range) => range,
        }
    }

    pub(crate) const fn placement(&self) -> GcsPlacement {
        self.placement
    }

    /// Returns the least difference between two values: 0 if duplicates are stored.
    #[inline(always)]
    pub(super) const fn least_step(&self) -> u64 {
        matches!(self.placement, GcsPlacement::InBuckets) as u64
    }

    /// Returns the number of buckets of the range. The index records where each of them begins.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns the number of values that a bucket covers.
    #[must_use]
    pub const fn bucket_range(&self) -> u64 {
        self.bucket_range
    }

    /// Returns the number of low bits of a gap that are stored directly. The bits above them are stored in
    /// unary.
    #[must_use]
    pub const fn remainder_bits(&self) -> u32 {
        self.remainder_bits
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

    /// Returns the false-positive rate that the model predicts for `items` different items.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        gcs::expected_fpr(self.range(), items)
    }

    /// Returns the expected memory of a set of `capacity` items: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let bits = gcs::stream_bits(self.range(), self.capacity, self.buckets, self.remainder_bits);
        self.bytes_with(bits.ceil() as u64)
    }

    /// Expected bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns the memory with a stream of `bits` bits, at most [`MAX_BITS`].
    pub(super) fn bytes_with(&self, bits: u64) -> u64 {
        (self.index_lines() + stream_lines(bits)) * LINE_BYTES as u64
    }

    /// Returns the number of index lines.
    pub(super) const fn index_lines(&self) -> u64 {
        self.buckets.div_ceil(BUCKETS_PER_LINE as u64)
    }

    /// Returns the bucket of a value below the range, and the position in it.
    #[inline(always)]
    pub(super) const fn place_of_value(&self, value: u64) -> (u64, u64) {
        let bits = self.bucket_range.trailing_zeros();
        (value >> bits, value & (self.bucket_range - 1))
    }

    /// Returns the bucket of a key and the position in it, by placement 1. It preserves the order of keys.
    #[inline(always)]
    pub(super) fn place(&self, key: u64) -> (u64, u64) {
        let scaled = u128::from(key) * u128::from(self.buckets);
        ((scaled >> 64) as u64, reduce(scaled as u64, self.bucket_range))
    }

    /// Returns whether an item's value is coded the same in both. Capacity and target may differ.
    pub(super) fn places_like(&self, other: &Self) -> bool {
        let placing =
            |shape: &Self| (shape.buckets, shape.bucket_range, shape.remainder_bits, shape.placement);
        placing(self) == placing(other)
    }
}

/// Returns the lines that a stream of `bits` bits takes, at most [`MAX_BITS`]. At least one word is free
/// after it, for readers that look one word ahead.
pub(super) const fn stream_lines(bits: u64) -> u64 {
    let bits = if bits > MAX_BITS { MAX_BITS } else { bits };
    (bits.div_ceil(64) + 1).div_ceil(WORDS_PER_LINE as u64)
}

impl fmt::Display for GcsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buckets, bucket_range, remainder_bits, .. } = self;
        match self.placement {
            GcsPlacement::InBuckets => {
                write!(f, "{buckets} buckets of {bucket_range} values coded with {remainder_bits} low bits")
            }
            GcsPlacement::InOneRange(range) => {
                write!(f, "{range} values in one range coded with {remainder_bits} low bits")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_keeps_the_order_of_keys_and_covers_the_whole_range() {
        for (buckets, bucket_range) in [(1, 1), (1, 1000), (3, 7), (28, 20_480), (1 << 20, 1 << 42)] {
            let shape = GcsShape::exactly(buckets, bucket_range, 20, 1).unwrap();
            let mut last = (0, 0);
            for step in 0..=1_000_u64 {
                let place = shape.place(step * (u64::MAX / 1_000));
                assert!(place >= last && place.0 < buckets && place.1 < bucket_range);
                last = place;
            }
            assert_eq!(shape.place(0), (0, 0));
            assert_eq!(shape.place(u64::MAX).0, buckets - 1);
        }
        assert_eq!(GcsShape::exactly(28, 20_480, 0, 1).unwrap().place(u64::MAX), (27, 20_479));
    }

    #[test]
    fn the_space_is_near_the_bound() {
        for (fpr, extra) in
            [(0.5, 1.3), (0.1, 1.8), (0.01, 1.75), (1.0 / 256.0, 1.79), (1e-4, 1.8), (1e-9, 1.8)]
        {
            let shape = GcsShape::for_capacity(1_000_000, fpr).unwrap();
            let above = shape.bits_per_item() + fpr.log2();
            assert!(above < extra, "{fpr}: {above} bits above the bound");
            assert!((0.98..=1.0).contains(&(shape.expected_fpr(1_000_000) / fpr)), "{fpr}");
        }
    }

    #[test]
    fn invalid_parameters_are_refused_with_the_reason() {
        assert!(matches!(GcsShape::for_capacity(0, 0.01), Err(BuildError::CapacityOutOfRange { .. })));
        assert!(matches!(GcsShape::for_capacity(10, 1.0), Err(BuildError::RateOutOfRange { .. })));
        assert!(matches!(GcsShape::for_capacity(1 << 42, 1e-9), Err(BuildError::RateTooLow { .. })));
        assert!(matches!(GcsShape::exactly(0, 5, 1, 1), Err(BuildError::BucketCountOutOfRange { .. })));
        assert!(matches!(
            GcsShape::exactly(1 << 40, 1 << 40, 1, 1),
            Err(BuildError::ValuesOutOfRange { .. })
        ));
        assert!(matches!(GcsShape::exactly(1, 0, 1, 1), Err(BuildError::ValuesOutOfRange { .. })));
        assert!(matches!(GcsShape::exactly(1, 5, 57, 1), Err(BuildError::FingerprintOutOfRange { .. })));
        // One item would take four gigabytes.
        assert!(matches!(GcsShape::exactly(1, 1 << 35, 0, 1), Err(BuildError::ValuesOutOfRange { .. })));
    }
}
