//! The number of slots of an xor or a binary fuse filter, and their bits.

use std::fmt;

use crate::error::BuildError;
use crate::sizing::fuse::{FINGERPRINT_BITS, fullest_shard, rate};
use crate::sizing::{self, check_capacity, check_rate};
use crate::statics::BuildOptions;
use crate::statics::graph::{FuseGraph, Graph as _, Sharded, XorGraph};
use crate::statics::placed::SlotGraph;
use crate::statics::table::sharded_for;
use crate::store::LINE_BYTES;

/// The shape of an [`XorFuse`](super::XorFuse) filter: [`XorShape`] or [`BinaryFuseShape`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XorFuseShape<G> {
    places: Sharded<G>,
    items: u64,
    width: u32,
}

/// The shape of a [`BinaryFuse`](crate::BinaryFuse) filter: its dimensions and memory, checked before there
/// are any items.
///
/// ```
/// use mayhap::BinaryFuseShape;
///
/// let shape = BinaryFuseShape::for_items(1_000_000, 8)?;
/// assert!(shape.bits_per_item() < 9.05);
/// assert_eq!(shape.expected_fpr(), 1.0 / 256.0);
/// // Small sets cost more per item.
/// assert!(BinaryFuseShape::for_items(1_000, 8)?.bits_per_item() > 11.0);
/// // A rate is rounded down to the next available one: 8, 16 or 32 bits.
/// assert_eq!(BinaryFuseShape::for_capacity(1_000_000, 0.001)?.fingerprint_bits(), 16);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
pub type BinaryFuseShape = XorFuseShape<FuseGraph>;

/// The shape of a [`Xor`](crate::Xor) filter: its dimensions and memory, checked before there are any items.
///
/// ```
/// use mayhap::XorShape;
///
/// let shape = XorShape::for_items(1_000_000, 8)?;
/// assert!(shape.bits_per_item() < 9.85);
/// assert_eq!(shape.expected_fpr(), 1.0 / 256.0);
/// // Small sets cost hardly more per item.
/// assert!(XorShape::for_items(1_000, 8)?.bits_per_item() < 10.3);
/// // A rate is rounded down to the next available one: 8, 16 or 32 bits.
/// assert_eq!(XorShape::for_capacity(1_000_000, 0.001)?.fingerprint_bits(), 16);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
pub type XorShape = XorFuseShape<XorGraph>;

impl<G: SlotGraph> XorFuseShape<G> {
    /// Returns the shape of a filter of `items` different items with fingerprints of `bits` bits: 8, 16 or
    /// 32.
    ///
    /// A set of more than four million items is built in shards. In the rare case that the fullest shard is
    /// fuller than expected, it takes a few tenths of a per cent more.
    ///
    /// # Errors
    /// [`BuildError`] for too many items or another number of bits.
    pub fn for_items(items: u64, bits: u32) -> Result<Self, BuildError> {
        if items != 0 {
            check_capacity(items)?;
        }
        check_bits(bits)?;
        let shard_bits = BuildOptions::default().shard_bits(items);
        let places = sharded_for(items, fullest_shard(items, shard_bits), shard_bits, bits)?;
        Ok(Self { places, items, width: bits })
    }

    /// Returns the shape for `capacity` items with the narrowest fingerprints that keep `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0, or a rate that no fingerprint keeps.
    pub fn for_capacity(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_items(check_capacity(capacity)?, Self::bits_for(target_fpr)?)
    }

    /// Returns the narrowest fingerprints that keep `target_fpr`: 8 bits down to 0.4 %, 16 down to 0.0016 %,
    /// then 32.
    ///
    /// # Errors
    /// [`BuildError`] for a rate outside (0, 1) or below `2^-32`.
    pub fn bits_for(target_fpr: f64) -> Result<u32, BuildError> {
        narrowest(target_fpr)
    }

    pub(super) fn of(places: Sharded<G>, items: u64, width: u32) -> Self {
        Self { places, items, width }
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.width
    }

    /// Returns the number of items it is for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.items
    }

    /// Returns the promised false-positive rate.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        rate(self.width)
    }

    /// Returns the false-positive rate by the model: exactly one in `2^bits`, or 0 without items.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        if self.items == 0 { 0.0 } else { rate(self.width) }
    }

    /// Returns the number of slots, one fingerprint each.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        if self.items == 0 { 0 } else { self.places.slots() }
    }

    /// Returns the number of shards of the set. Each is a separate filter within the one array.
    #[must_use]
    pub const fn shards(&self) -> u64 {
        1 << self.places.shard_bits()
    }

    /// Returns the memory that the slots take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        let bytes = self.slots() * (self.width / 8) as u64;
        bytes.next_multiple_of(LINE_BYTES as u64)
    }

    /// Bits of memory per item.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.items.max(1) as f64
    }
}

impl BinaryFuseShape {
    /// Returns the number of slots in a segment. An item has a slot in each of three neighbouring segments.
    #[must_use]
    pub fn segment_slots(&self) -> u64 {
        1 << self.places.graph().parts()[0]
    }
}

impl XorShape {
    /// Returns the number of slots in a block. An item has a slot in each of the three blocks of its shard.
    #[must_use]
    pub fn block_slots(&self) -> u64 {
        self.places.graph().parts()[0]
    }
}

/// Returns the narrowest fingerprints that keep `target_fpr`.
fn narrowest(target_fpr: f64) -> Result<u32, BuildError> {
    check_rate(target_fpr)?;
    let limit = rate(FINGERPRINT_BITS[2]);
    let narrowest = FINGERPRINT_BITS.into_iter().find(|&bits| rate(bits) <= target_fpr);
    narrowest.ok_or(BuildError::RateTooLow { got: target_fpr, limit })
}

/// Checks that fingerprints of this width exist.
fn check_bits(bits: u32) -> Result<(), BuildError> {
    if FINGERPRINT_BITS.contains(&bits) {
        return Ok(());
    }
    Err(BuildError::FingerprintOutOfRange {
        got: bits,
        least: FINGERPRINT_BITS[0],
        limit: FINGERPRINT_BITS[2],
    })
}

impl<G: SlotGraph> fmt::Display for XorFuseShape<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots of {} bits in {} shards", self.slots(), self.width, self.shards())
    }
}
