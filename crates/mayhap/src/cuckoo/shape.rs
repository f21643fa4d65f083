//! How many buckets of how many fingerprints of how many bits, and what that means for the rate.

use std::fmt;

use super::placement::Placement;
use super::semi_sorted;
use super::table::Layout;
use crate::error::BuildError;
use crate::sizing::cuckoo::{
    self, BUCKET_SIZES, MAX_FINGERPRINT_BITS, MIN_CUCKOO_RATE, MIN_FINGERPRINT_BITS, fingerprint_values,
};
use crate::sizing::{self, AIM, MAX_BITS, fewest};

/// The measurements of a [`Cuckoo`](crate::Cuckoo): known, checked and priced before any memory is taken.
///
/// ```
/// use mayhap::CuckooShape;
///
/// let shape = CuckooShape::for_capacity(1_000_000, 0.01)?;
/// assert_eq!((shape.bucket_size(), shape.fingerprint_bits()), (4, 10));
/// assert!(shape.bits_per_item() < 10.6);
/// assert!(shape.expected_fpr(1_000_000) <= 0.01);
/// let sorted = CuckooShape::semi_sorted(1_000_000, 0.01)?; // a bit less per place, for slower lookups
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
    /// The smallest shape that takes any `capacity` honest items and is wrong for at most `target_fpr` of the non-members.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1), below 1e-9, or too low for so many items.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        // Buckets of one are never the smallest: they can be filled to half at most.
        let four = Self::with_bucket_size(4, capacity, target_fpr)?;
        let others =
            [2, 8].into_iter().filter_map(|size| Self::with_bucket_size(size, capacity, target_fpr).ok());
        // Only what is really smaller beats four, whose lookups are the fastest for most fingerprints.
        Ok(others
            .fold(four, |best, shape| if shape.memory_bytes() < best.memory_bytes() { shape } else { best }))
    }

    /// The smallest shape with buckets of `bucket_size` places: 1, 2, 4 or 8.
    ///
    /// Small buckets are no good for many items at high rates. That always everything fits, takes fingerprints so long, or so
    /// much room, that no pair of buckets is ever wanted by more items than it holds.
    ///
    /// # Errors
    /// As [`for_capacity`](Self::for_capacity), and [`BuildError::BucketOutOfRange`].
    pub fn with_bucket_size(bucket_size: u32, capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        check_bucket_size(bucket_size)?;
        Self::smallest(bucket_size, false, capacity, target_fpr)
    }

    /// The smallest shape with semi-sorted buckets of four: each place takes a bit less than its fingerprint has, and lookups and
    /// insertions take longer.
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
        // With fewer bits than the bound, `log2(1 / rate)`, buckets multiply without end.
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
            // As full as a table can be: longer fingerprints only take more.
            if smallest.as_ref().is_ok_and(|shape| shape.buckets <= full + 2) {
                break;
            }
        }
        smallest
    }

    /// Exactly `buckets` buckets of `bucket_size` fingerprints of `fingerprint_bits` bits, meant for `capacity` items.
    ///
    /// Nobody vouches that so many items fit; an insertion that finds no room says so.
    ///
    /// # Errors
    /// [`BuildError`] for an odd number of buckets, and for any number past its limit.
    pub fn exactly(
        buckets: u64,
        bucket_size: u32,
        fingerprint_bits: u32,
        capacity: u64,
    ) -> Result<Self, BuildError> {
        Self::exact(buckets, bucket_size, fingerprint_bits, false, capacity)
    }

    /// Exactly `buckets` semi-sorted buckets of four fingerprints of `fingerprint_bits` bits, meant for `capacity` items.
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

    /// What an encoded filter says its shape is, checked like every other.
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

    /// As many buckets as its cache lines have room for: what is paid for is used.
    fn filling_its_lines(self) -> Self {
        let room = (self.memory_bytes() * 8 - 64) / self.layout().bucket_bits();
        Self { buckets: room & !1, ..self }
    }

    /// The shape itself, if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Buckets in the table: an even number.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Places in a bucket.
    #[must_use]
    pub const fn bucket_size(&self) -> u32 {
        self.bucket_size
    }

    /// Places in all buckets.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.buckets * self.bucket_size as u64
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Are the buckets semi-sorted, a bit less per place?
    #[must_use]
    pub const fn is_semi_sorted(&self) -> bool {
        self.semi_sorted
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

    /// The rate by the model once `items` different items are in, within 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        cuckoo::expected_fpr(self.buckets, fingerprint_values(self.fingerprint_bits), items)
    }

    /// Memory the buckets take: whole cache lines.
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

    pub(super) const fn layout(&self) -> Layout {
        if self.semi_sorted {
            Layout::semi_sorted(self.fingerprint_bits)
        } else {
            Layout::packed(self.bucket_size, self.fingerprint_bits)
        }
    }
}

/// An even number of buckets that takes `capacity` items always, at this rate.
pub(super) fn fewest_buckets(bucket_size: u32, fingerprint_bits: u32, capacity: u64, target_fpr: f64) -> u64 {
    let values = fingerprint_values(fingerprint_bits);
    let enough = |half: u64| {
        let buckets = half * 2;
        cuckoo::expected_fpr(buckets, values, capacity) <= target_fpr * AIM
            && cuckoo::fits(buckets, bucket_size, values, capacity)
    };
    fewest(capacity / u64::from(2 * bucket_size), enough).saturating_mul(2)
}

/// `rate`, if a cuckoo filter can promise it.
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

pub(super) fn check_buckets(buckets: u64, layout: &Layout) -> Result<(), BuildError> {
    // A word is left over behind the last one.
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
