//! How a cuckoo filter grows: its initial capacity, its number of doublings, and the fingerprint length that
//! these need.

use std::fmt;

use super::placement::Placement;
use super::shape::{
    check_bucket_size, check_buckets, check_capacity, check_fingerprint, check_rate, fewest_buckets,
};
use super::table::BucketLayout;
use crate::error::BuildError;
use crate::sizing;
use crate::sizing::cuckoo::{self, MAX_FINGERPRINT_BITS, MIN_FINGERPRINT_BITS, fingerprint_values};

/// Slots in a bucket of a filter sized here.
const BUCKET_SIZE: u32 = 4;

/// The growth plan of a [`GrowableCuckoo`](crate::GrowableCuckoo): its dimensions and memory, checked before
/// any memory is allocated.
///
/// ```
/// use mayhap::GrowableCuckooShape;
///
/// let shape = GrowableCuckooShape::for_growth(10_000, 1_000_000, 0.01)?;
/// assert_eq!(shape.max_doublings(), 6);
/// assert!(shape.memory_bytes(0) < 35_000); // initially
/// assert!(shape.memory_bytes(6) < 1_350_000); // finally: no more than a filter that never grew
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowableCuckooShape {
    base_buckets: u64,
    bucket_size: u32,
    tag_bits: u32,
    max_doublings: u32,
    capacity: u64,
    target_fpr: f64,
}

impl GrowableCuckooShape {
    /// Returns the plan that begins with room for `initial_capacity` items and ends with room for
    /// `largest_capacity`. The false-positive rate is at most `target_fpr` at every stage.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, a largest capacity below the initial one, a rate outside (0, 1) or
    /// below 1e-9, or a growth that would need initial fingerprints of more than 32 bits.
    pub fn for_growth(
        initial_capacity: u64,
        largest_capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        let initial = sizing::check_capacity(initial_capacity)?;
        let capacity = sizing::check_capacity(largest_capacity)?;
        if initial > capacity {
            return Err(BuildError::CapacityOutOfRange { got: initial, limit: capacity });
        }
        let target_fpr = check_rate(target_fpr)?;
        // Sized for the end, where the filter spends most of its life and memory. The initial size follows by
        // halving.
        let with_bits = |tag_bits| {
            let last = fewest_buckets(BUCKET_SIZE, tag_bits, capacity, target_fpr);
            let first = fewest_buckets(BUCKET_SIZE, tag_bits, initial, target_fpr).min(last);
            let max_doublings = (last / first).ilog2();
            let base_buckets = last.div_ceil(2 << max_doublings) * 2;
            Self { base_buckets, bucket_size: BUCKET_SIZE, tag_bits, max_doublings, capacity, target_fpr }
                .checked()
        };
        let shapes = (MIN_FINGERPRINT_BITS..=MAX_FINGERPRINT_BITS).map(with_bits);
        let price = |shape: &Self| shape.memory_bytes(shape.max_doublings);
        let best = shapes.reduce(|a, b| match (&a, &b) {
            (Ok(ours), Ok(theirs)) if price(ours) <= price(theirs) => a,
            (Ok(_), Err(_)) => a,
            _ => b,
        });
        let too_long = BuildError::FingerprintOutOfRange {
            got: MAX_FINGERPRINT_BITS + 1,
            least: MIN_FINGERPRINT_BITS,
            limit: MAX_FINGERPRINT_BITS,
        };
        best.unwrap_or(Err(too_long))
    }

    /// Builds the plan from the fields of an encoded filter, with the same checks as for any other plan.
    pub(crate) fn from_parts(
        base_buckets: u64,
        bucket_size: u32,
        tag_bits: u32,
        max_doublings: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        if !(0.0..=1.0).contains(&target_fpr) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        Self { base_buckets, bucket_size, tag_bits, max_doublings, capacity, target_fpr }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        check_bucket_size(self.bucket_size)?;
        check_fingerprint(self.tag_bits, MIN_FINGERPRINT_BITS)?;
        check_fingerprint(self.tag_bits.saturating_add(self.max_doublings), MIN_FINGERPRINT_BITS)?;
        // Every stage must be possible. The last one has the most buckets, the first one the longest
        // fingerprints.
        check_buckets(self.base_buckets, &self.layout(0))?;
        let last = self.base_buckets.saturating_mul(1 << self.max_doublings);
        check_buckets(last, &self.layout(0))?;
        check_capacity(self.capacity, last.saturating_mul(u64::from(self.bucket_size)))?;
        Ok(self)
    }

    /// Returns the most doublings.
    #[must_use]
    pub const fn max_doublings(&self) -> u32 {
        self.max_doublings
    }

    /// Slots in a bucket.
    #[must_use]
    pub const fn bucket_size(&self) -> u32 {
        self.bucket_size
    }

    /// Returns the number of buckets after this many doublings, at most
    /// [`max_doublings`](Self::max_doublings).
    #[must_use]
    pub fn buckets(&self, doublings: u32) -> u64 {
        self.base_buckets << doublings.min(self.max_doublings)
    }

    /// Returns the number of slots in all buckets after this many doublings.
    #[must_use]
    pub fn slots(&self, doublings: u32) -> u64 {
        self.buckets(doublings) * u64::from(self.bucket_size)
    }

    /// Returns the bits of a stored fingerprint after this many doublings. Each doubling moves one bit into
    /// the bucket number.
    #[must_use]
    pub fn fingerprint_bits(&self, doublings: u32) -> u32 {
        self.tag_bits + self.max_doublings - doublings.min(self.max_doublings)
    }

    /// Returns the number of items that fit after this many doublings.
    #[must_use]
    pub fn capacity_after(&self, doublings: u32) -> u64 {
        if doublings >= self.max_doublings {
            return self.capacity;
        }
        cuckoo::safe_items(self.buckets(doublings), self.bucket_size).max(1).min(self.capacity)
    }

    /// Returns the number of items that the filter is sized for after the last doubling.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate at every stage.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the false-positive rate that the model predicts for `items` different items, accurate within
    /// 2 %. Doubling does not change it: each bit that the fingerprints lose is gained by the bucket numbers.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        cuckoo::expected_fpr(self.buckets(self.max_doublings), fingerprint_values(self.tag_bits), items)
    }

    /// Returns the memory that the buckets take after this many doublings: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self, doublings: u32) -> u64 {
        self.layout(doublings).memory_bytes(self.buckets(doublings))
    }

    /// Bits of memory per item at the largest capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes(self.max_doublings) as f64 * 8.0 / self.capacity as f64
    }

    pub(super) const fn base_buckets(&self) -> u64 {
        self.base_buckets
    }

    pub(super) const fn tag_bits(&self) -> u32 {
        self.tag_bits
    }

    pub(super) const fn placement(&self, doublings: u32) -> Placement {
        Placement::new(self.base_buckets, self.tag_bits, self.max_doublings, doublings)
    }

    pub(super) fn layout(&self, doublings: u32) -> BucketLayout {
        BucketLayout::packed(self.bucket_size, self.fingerprint_bits(doublings))
    }
}

impl fmt::Display for GrowableCuckooShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} buckets of {} fingerprints of {} bits, to be doubled {} times",
            self.base_buckets,
            self.bucket_size,
            self.fingerprint_bits(0),
            self.max_doublings
        )
    }
}
