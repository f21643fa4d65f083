//! The number of buckets and the sizes of buckets and fingerprints, and the false-positive rate that follows.

use std::fmt;

use super::placement::Placement;
use super::semi_sorted;
use super::table::BucketLayout;
use crate::error::BuildError;
use crate::sizing::cuckoo::{
    self, BUCKET_SIZES, MAX_FINGERPRINT_BITS, MIN_CUCKOO_RATE, MIN_FINGERPRINT_BITS, fingerprint_values,
};
use crate::sizing::{self, AIM, MAX_BITS, fewest};

/// The shape of a [`Cuckoo`](crate::Cuckoo): its dimensions and memory, checked before any memory is
/// allocated.
///
/// ```
/// use mayhap::CuckooShape;
///
/// let shape = CuckooShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!((shape.bucket_size(), shape.fingerprint_bits()), (4, 10));
/// assert!(shape.bits_per_item() < 10.6);
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// let sorted = CuckooShape::semi_sorted(1_000_000, 0.01)?; // one bit less per slot, for slower lookups
/// assert!(sorted.bits_per_item() < 9.6);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CuckooShape {
    buckets: u64,
    bucket_size: u32,
    fingerprint_bits: u32,
    semi_sorted: bool,
    capacity: u64,
    target_fpr: f64,
}

impl CuckooShape {
    /// Returns the smallest shape that holds any `capacity` items, unless they were chosen to collide, with a
    /// false-positive rate of at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1), below 1e-9, or too low for this capacity.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        // Buckets of one are never the smallest: they can be filled at most halfway.
        let four = Self::with_bucket_size(4, capacity, target_fpr)?;
        let others =
            [2, 8].into_iter().filter_map(|size| Self::with_bucket_size(size, capacity, target_fpr).ok());
        // Only a smaller shape beats buckets of four, whose lookups are the fastest for most fingerprint
        // lengths.
        Ok(others
            .fold(four, |best, shape| if shape.memory_bytes() < best.memory_bytes() { shape } else { best }))
    }

    /// Returns the smallest shape with buckets of `bucket_size` slots: 1, 2, 4 or 8.
    ///
    /// Small buckets do not suit many items at high rates. For everything to fit always, no pair of buckets
    /// may be shared by more items than it holds. With small buckets that takes long fingerprints or much
    /// free room.
    ///
    /// # Errors
    /// As [`for_capacity`](Self::for_capacity), and [`BuildError::BucketOutOfRange`].
    pub fn with_bucket_size(bucket_size: u32, capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        check_bucket_size(bucket_size)?;
        Self::smallest(bucket_size, false, capacity, target_fpr)
    }

    /// Returns the smallest shape with semi-sorted buckets of four: each slot takes one bit less than its
    /// fingerprint has, and lookups and insertions take longer.
    ///
    /// # Errors
    /// As [`for_capacity`](Self::for_capacity).
    pub fn semi_sorted(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::smallest(semi_sorted::SLOTS, true, capacity, target_fpr)
    }

    fn smallest(
        bucket_size: u32,
        semi_sorted: bool,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        let (capacity, target_fpr) = (sizing::check_capacity(capacity)?, check_rate(target_fpr)?);
        let least = MIN_FINGERPRINT_BITS + u32::from(semi_sorted);
        let with_bits = |fingerprint_bits| {
            let buckets = fewest_buckets(bucket_size, fingerprint_bits, capacity, target_fpr);
            let shape = Self { buckets, bucket_size, fingerprint_bits, semi_sorted, capacity, target_fpr };
            shape.checked().map(Self::filling_its_lines)
        };
        // With fewer bits than the bound, `log2(1 / rate)`, the number of buckets grows without limit.
        let bound = (-target_fpr.log2()) as u32;
        let full = fewest_buckets(bucket_size, MAX_FINGERPRINT_BITS, capacity, 1.0);
        let mut smallest: Result<Self, BuildError> =
            Err(BuildError::CapacityOutOfRange { got: capacity, limit: 0 });
        for fingerprint_bits in least.max(bound.min(MAX_FINGERPRINT_BITS))..=MAX_FINGERPRINT_BITS {
            let shape = with_bits(fingerprint_bits);
            let smaller = match (&shape, &smallest) {
                (Ok(shape), Ok(smallest)) => shape.memory_bytes() < smallest.memory_bytes(),
                (Err(_), Ok(_)) => false,
                _ => true,
            };
            if smaller {
                smallest = shape;
            }
            // The table is as full as it can be: longer fingerprints only take more memory.
            if smallest.as_ref().is_ok_and(|shape| shape.buckets <= full + 2) {
                break;
            }
        }
        smallest
    }

    /// Returns a shape of exactly `buckets` buckets of `bucket_size` fingerprints of `fingerprint_bits` bits,
    /// meant for `capacity` items.
    ///
    /// It is not guaranteed that `capacity` items fit. An insertion that finds no room returns an error.
    ///
    /// # Errors
    /// [`BuildError`] if the number of buckets is odd or any number is above its limit.
    pub fn exactly(
        buckets: u64,
        bucket_size: u32,
        fingerprint_bits: u32,
        capacity: u64,
    ) -> Result<Self, BuildError> {
        Self::exact(buckets, bucket_size, fingerprint_bits, false, capacity)
    }

    /// Returns a shape of exactly `buckets` semi-sorted buckets of four fingerprints of `fingerprint_bits`
    /// bits, meant for `capacity` items.
    ///
    /// # Errors
    /// As [`exactly`](Self::exactly).
    pub fn exactly_semi_sorted(
        buckets: u64,
        fingerprint_bits: u32,
        capacity: u64,
    ) -> Result<Self, BuildError> {
        Self::exact(buckets, semi_sorted::SLOTS, fingerprint_bits, true, capacity)
    }

    fn exact(
        buckets: u64,
        bucket_size: u32,
        fingerprint_bits: u32,
        semi_sorted: bool,
        capacity: u64,
    ) -> Result<Self, BuildError> {
        let shape = Self { buckets, bucket_size, fingerprint_bits, semi_sorted, capacity, target_fpr: 1.0 }
            .checked()?;
        Ok(Self { target_fpr: shape.expected_fpr(capacity), ..shape })
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(crate) fn from_parts(
        buckets: u64,
        bucket_size: u32,
        fingerprint_bits: u32,
        semi_sorted: bool,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        Self { buckets, bucket_size, fingerprint_bits, semi_sorted, capacity, target_fpr }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        check_bucket_size(self.bucket_size)?;
        let least = MIN_FINGERPRINT_BITS + u32::from(self.semi_sorted);
        check_fingerprint(self.fingerprint_bits, least)?;
        check_buckets(self.buckets, &self.layout())?;
        check_capacity(self.capacity, self.slots())?;
        Ok(self)
    }

    /// Raises the number of buckets to what its cache lines have room for.
    fn filling_its_lines(self) -> Self {
        let room = (self.memory_bytes() * 8 - 64) / self.layout().bucket_bits();
        Self { buckets: room & !1, ..self }
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the number of buckets in the table, which is even.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Slots in a bucket.
    #[must_use]
    pub const fn bucket_size(&self) -> u32 {
        self.bucket_size
    }

    /// Returns the number of slots in all buckets.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.buckets * self.bucket_size as u64
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns whether the buckets are semi-sorted, with one bit less per slot.
    #[must_use]
    pub const fn is_semi_sorted(&self) -> bool {
        self.semi_sorted
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

    /// Returns the false-positive rate that the model predicts for `items` different items, accurate within
    /// 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        cuckoo::expected_fpr(self.buckets, fingerprint_values(self.fingerprint_bits), items)
    }

    /// Returns the memory that the buckets take: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.layout().memory_bytes(self.buckets)
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    pub(super) const fn placement(&self) -> Placement {
        Placement::new(self.buckets, self.fingerprint_bits, 0, 0)
    }

    pub(super) const fn layout(&self) -> BucketLayout {
        if self.semi_sorted {
            BucketLayout::semi_sorted(self.fingerprint_bits)
        } else {
            BucketLayout::packed(self.bucket_size, self.fingerprint_bits)
        }
    }
}

/// Returns an even number of buckets in which `capacity` items always fit, at this rate.
pub(super) fn fewest_buckets(bucket_size: u32, fingerprint_bits: u32, capacity: u64, target_fpr: f64) -> u64 {
    let values = fingerprint_values(fingerprint_bits);
    let enough = |half: u64| {
        let buckets = half * 2;
        cuckoo::expected_fpr(buckets, values, capacity) <= target_fpr * AIM
            && cuckoo::fits(buckets, bucket_size, values, capacity)
    };
    fewest(capacity / u64::from(2 * bucket_size), enough).saturating_mul(2)
}

/// Returns `rate` if a cuckoo filter can promise it.
pub(super) fn check_rate(rate: f64) -> Result<f64, BuildError> {
    let rate = sizing::check_rate(rate)?;
    if rate < MIN_CUCKOO_RATE {
        return Err(BuildError::RateTooLow { got: rate, limit: MIN_CUCKOO_RATE });
    }
    Ok(rate)
}

pub(super) fn check_bucket_size(bucket_size: u32) -> Result<(), BuildError> {
    if BUCKET_SIZES.contains(&bucket_size) {
        return Ok(());
    }
    Err(BuildError::BucketOutOfRange { got: bucket_size })
}

pub(super) fn check_fingerprint(bits: u32, least: u32) -> Result<(), BuildError> {
    if (least..=MAX_FINGERPRINT_BITS).contains(&bits) {
        return Ok(());
    }
    Err(BuildError::FingerprintOutOfRange { got: bits, least, limit: MAX_FINGERPRINT_BITS })
}

pub(super) fn check_buckets(buckets: u64, layout: &BucketLayout) -> Result<(), BuildError> {
    // One spare word remains after the last bucket.
    let limit = ((MAX_BITS - 64) / layout.bucket_bits()) & !1;
    if buckets == 0 || buckets % 2 == 1 || buckets > limit {
        return Err(BuildError::BucketsOutOfRange { got: buckets, limit });
    }
    Ok(())
}

pub(super) fn check_capacity(capacity: u64, slots: u64) -> Result<(), BuildError> {
    let limit = slots.min(sizing::MAX_CAPACITY);
    if capacity == 0 || capacity > limit {
        return Err(BuildError::CapacityOutOfRange { got: capacity, limit });
    }
    Ok(())
}

impl fmt::Display for CuckooShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = if self.semi_sorted { "semi-sorted " } else { "" };
        write!(
            f,
            "{} {sorted}buckets of {} fingerprints of {} bits",
            self.buckets, self.bucket_size, self.fingerprint_bits
        )
    }
}
