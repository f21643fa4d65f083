//! The sizes of a scalable cuckoo filter's tables, now and after any growth.

use std::fmt;

use crate::error::BuildError;
use crate::sizing::{self, MAX_CAPACITY};
use crate::store::LINE_BYTES;

/// The number of fingerprints: the values of a byte except 0, which marks a free slot.
pub(super) const FINGERPRINTS: u64 = 255;
/// The most slots in a table: RedisBloom counts them in 32 bits.
const MAX_TABLE_SLOTS: u64 = 1 << 32;
/// The most slots in all tables.
const MAX_SLOTS: u64 = MAX_CAPACITY;
/// The most tables. A lookup reads all of them.
const MAX_TABLES: u64 = 65_536;
/// The largest growth factor.
const MAX_EXPANSION: u32 = 32_768;

const DEFAULT_BUCKET_SIZE: u8 = 2;
const DEFAULT_ITERATIONS: u16 = 20;
const DEFAULT_EXPANSION: u16 = 1;

/// The shape of a [`ScalableCuckoo`](crate::ScalableCuckoo): its dimensions and memory, checked before any
/// memory is allocated.
///
/// Table *i* has `buckets · expansion^i` buckets of `bucket_size` slots of one byte. Numbers are rounded as
/// in RedisBloom. The number of buckets is `capacity / bucket size`, rounded down, then up to the next power
/// of two. The expansion is rounded up to the next power of two.
///
/// ```
/// use mayhap::ScalableCuckooShape;
///
/// let shape = ScalableCuckooShape::for_capacity(1_000)?;
/// assert_eq!((shape.buckets(), shape.bucket_size(), shape.slots(1)?), (512, 2, 1_024));
/// let wide = shape.with_bucket_size(4)?.with_expansion(3)?;
/// assert_eq!((wide.buckets(), wide.expansion()), (256, 4));
/// assert_eq!(wide.slots(2)?, 1_024 + 4 * 1_024);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalableCuckooShape {
    /// The requested capacity, which determines the buckets.
    asked: u64,
    bucket_size: u8,
    max_iterations: u16,
    expansion: u16,
    limit_bytes: Option<u64>,
}

impl ScalableCuckooShape {
    /// Returns RedisBloom's default shape with a first table for about `capacity` items: buckets of 2, at
    /// most 20 moves for one insertion, every table as large as the first.
    ///
    /// # Errors
    /// [`BuildError`] if `capacity` is 0 or above 2^32.
    pub fn for_capacity(capacity: u64) -> Result<Self, BuildError> {
        Self {
            asked: capacity,
            bucket_size: DEFAULT_BUCKET_SIZE,
            max_iterations: DEFAULT_ITERATIONS,
            expansion: DEFAULT_EXPANSION,
            limit_bytes: None,
        }
        .checked()
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(crate) fn from_parts(
        buckets: u64,
        bucket_size: u32,
        max_iterations: u32,
        expansion: u32,
    ) -> Result<Self, BuildError> {
        if !buckets.is_power_of_two() || buckets > MAX_TABLE_SLOTS {
            return Err(BuildError::BucketCountOutOfRange { got: buckets, limit: MAX_TABLE_SLOTS });
        }
        let expanding = |shape: Self| shape.with_expansion(expansion);
        let shape = Self::for_capacity(buckets)?.with_bucket_size(bucket_size).and_then(expanding)?;
        let shape = shape.with_max_iterations(max_iterations)?;
        if u32::from(shape.expansion) != expansion {
            return Err(BuildError::GrowthOutOfRange { got: expansion.into(), limit: MAX_EXPANSION.into() });
        }
        Self { asked: buckets * u64::from(shape.bucket_size), ..shape }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        sizing::check_capacity(self.asked)?;
        let bytes = self.memory_bytes(1)?;
        sizing::check_memory(bytes, self.limit_bytes.unwrap_or(u64::MAX))?;
        Ok(self)
    }

    /// Sets the number of slots in a bucket, 1 to 255. Larger buckets fill better before the filter grows,
    /// but raise the false-positive rate.
    ///
    /// # Errors
    /// [`BuildError::SlotsOutOfRange`].
    pub fn with_bucket_size(self, slots: u32) -> Result<Self, BuildError> {
        let bucket_size = u8::try_from(slots).ok().filter(|&slots| slots > 0);
        let bucket_size =
            bucket_size.ok_or(BuildError::SlotsOutOfRange { got: slots, limit: u8::MAX.into() })?;
        Self { bucket_size, ..self }.checked()
    }

    /// Sets the most moves to find room for an item, 1 to 65 535, before another table is added.
    ///
    /// # Errors
    /// [`BuildError::IterationsOutOfRange`].
    pub fn with_max_iterations(self, moves: u32) -> Result<Self, BuildError> {
        let max_iterations = u16::try_from(moves).ok().filter(|&moves| moves > 0);
        let limit = u16::MAX.into();
        let max_iterations = max_iterations.ok_or(BuildError::IterationsOutOfRange { got: moves, limit })?;
        Ok(Self { max_iterations, ..self })
    }

    /// Makes every table this many times as large as the one before, rounded up to a power of two, at most
    /// 32 768. With 0 the filter never grows.
    ///
    /// # Errors
    /// [`BuildError::GrowthOutOfRange`].
    pub fn with_expansion(self, factor: u32) -> Result<Self, BuildError> {
        if factor > MAX_EXPANSION {
            return Err(BuildError::GrowthOutOfRange { got: factor.into(), limit: MAX_EXPANSION.into() });
        }
        let expansion = if factor == 0 { 0 } else { factor.next_power_of_two() };
        Ok(Self { expansion: expansion as u16, ..self })
    }

    /// Limits all tables together to `limit_bytes`. The filter cannot grow past that.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] if not even the first table fits.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        Self { limit_bytes: Some(limit_bytes), ..self }.checked()
    }

    /// Returns the same shape with another limit, which may be below the memory already in use.
    pub(super) const fn limited(self, limit_bytes: Option<u64>) -> Self {
        Self { limit_bytes, ..self }
    }

    /// Returns the final shape: its capacity becomes the number of slots in its buckets.
    pub(super) const fn settled(self) -> Self {
        Self { asked: self.buckets() * self.bucket_size as u64, ..self }
    }

    /// Returns the number of buckets in the first table, a power of two.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        let buckets = self.asked / self.bucket_size as u64;
        // At most 2^42, so the next power of two fits.
        if buckets == 0 { 1 } else { buckets.next_power_of_two() }
    }

    /// Returns the number of slots in a bucket.
    #[must_use]
    pub const fn bucket_size(&self) -> u32 {
        self.bucket_size as u32
    }

    /// Returns the most moves for one insertion.
    #[must_use]
    pub const fn max_iterations(&self) -> u32 {
        self.max_iterations as u32
    }

    /// Returns how many times as large every table is as the one before, or 0 if the filter never grows.
    #[must_use]
    pub const fn expansion(&self) -> u32 {
        self.expansion as u32
    }

    /// Returns the memory limit of all tables together, if there is one.
    #[must_use]
    pub const fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    /// Returns the false-positive rate of a full first table. Every further full table adds the same.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.full_table_fpr(1.0)
    }

    /// Returns the false-positive rate of a table with this share of its slots taken: a lookup compares with
    /// the slots of two buckets.
    pub(crate) fn full_table_fpr(&self, fill: f64) -> f64 {
        let non_member_to_one = -fill / FINGERPRINTS as f64;
        -(2.0 * f64::from(self.bucket_size) * non_member_to_one.ln_1p()).exp_m1()
    }

    /// Returns the number of buckets of table `index`.
    ///
    /// # Errors
    /// [`BuildError`] if the table cannot exist: more than 65 536 tables, or more than 2^32 slots.
    pub(crate) fn table_buckets(&self, index: u64) -> Result<u64, BuildError> {
        let too_many = |got| BuildError::LayersOutOfRange { got, limit: MAX_TABLES as usize };
        if index >= MAX_TABLES || (index > 0 && self.expansion == 0) {
            return Err(too_many(usize::try_from(index).unwrap_or(usize::MAX).saturating_add(1)));
        }
        let doublings = u64::from(self.expansion.max(1).trailing_zeros()) * index;
        let buckets = 1_u64
            .checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX))
            .and_then(|times| times.checked_mul(self.buckets()));
        let slots = buckets.and_then(|buckets| buckets.checked_mul(self.bucket_size.into()));
        match (buckets, slots) {
            (Some(buckets), Some(slots)) if slots <= MAX_TABLE_SLOTS => Ok(buckets),
            _ => {
                let got = slots.unwrap_or(u64::MAX);
                Err(BuildError::CapacityOutOfRange { got, limit: MAX_TABLE_SLOTS })
            }
        }
    }

    /// Returns the number of slots of the first `tables` tables.
    ///
    /// # Errors
    /// [`BuildError`] if the tables cannot exist.
    pub fn slots(&self, tables: u64) -> Result<u64, BuildError> {
        if tables == 0 || tables > MAX_TABLES {
            let got = usize::try_from(tables).unwrap_or(usize::MAX);
            return Err(BuildError::LayersOutOfRange { got, limit: MAX_TABLES as usize });
        }
        let mut slots = 0;
        for table in 0..tables {
            slots += self.table_buckets(table)? * u64::from(self.bucket_size);
            if slots > MAX_SLOTS {
                return Err(BuildError::CapacityOutOfRange { got: slots, limit: MAX_SLOTS });
            }
        }
        Ok(slots)
    }

    /// Returns the memory of the first `tables` tables.
    ///
    /// # Errors
    /// [`BuildError`] if the tables cannot exist.
    pub fn memory_bytes(&self, tables: u64) -> Result<u64, BuildError> {
        Ok(self.slots(tables)?.next_multiple_of(LINE_BYTES as u64))
    }
}

impl fmt::Display for ScalableCuckooShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buckets, size) = (self.buckets(), self.bucket_size);
        match self.expansion {
            0 => write!(f, "one table of {buckets} buckets of {size}"),
            times => write!(f, "tables of {buckets} buckets of {size}, each {times} times the last"),
        }
    }
}
