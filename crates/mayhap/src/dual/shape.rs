//! The sizes of both filters of a dual filter, and the two rates that follow.

use std::fmt;

use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::sizing;

/// The shape of a [`DualBloom`](crate::DualBloom): its dimensions and memory, checked before any memory is
/// allocated.
///
/// ```
/// use mayhap::DualShape;
///
/// let shape = DualShape::for_capacity(1_000_000, 100_000, 0.01)?;
/// assert!(shape.bits_per_item() < 10.8); // 9.7 for the items, a tenth of that for the removals
/// assert!(shape.expected_fpr(1_000_000, 100_000) <= 0.01);
/// assert!(shape.expected_false_no(1_000_000, 100_000) <= 0.01);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualShape {
    capacity: u64,
    added: BloomShape,
    removed: BloomShape,
}

impl DualShape {
    /// Returns the smallest shape for `capacity` insertions and `removals` removals. `target_fpr` limits both
    /// the false-positive rate and the share of members that are hidden.
    ///
    /// # Errors
    /// [`BuildError`] if `capacity` or `removals` is 0, or a rate is outside (0, 1).
    pub fn for_capacity(capacity: u64, removals: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_rates(capacity, removals, target_fpr, target_fpr)
    }

    /// Same as [`for_capacity`](Self::for_capacity), with a separate rate for hidden members.
    ///
    /// # Errors
    /// [`BuildError`] if `capacity` or `removals` is 0, or a rate is outside (0, 1).
    pub fn for_rates(
        capacity: u64,
        removals: u64,
        target_fpr: f64,
        target_false_no: f64,
    ) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let removed = BloomShape::for_capacity(removals, target_false_no)?;
        // If `removed` already claims the generation of an insertion, the next one is used too: 1 / (1 - r)
        // on average.
        let slots = (capacity as f64 / (1.0 - target_false_no)).ceil() as u64;
        let added = BloomShape::for_capacity(slots.max(capacity), target_fpr)?;
        Ok(Self { capacity, added, removed })
    }

    /// Returns a shape of exactly these two filters: one for insertions, one for removals.
    #[must_use]
    pub const fn exactly(added: BloomShape, removed: BloomShape) -> Self {
        Self { capacity: added.capacity(), added, removed }
    }

    /// Builds the shape from the fields of an encoded filter. `None` if its two filters have no room for that
    /// capacity.
    pub(super) fn from_parts(capacity: u64, added: BloomShape, removed: BloomShape) -> Option<Self> {
        (1..=added.capacity()).contains(&capacity).then_some(Self { capacity, added, removed })
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the shape of the filter of inserted items.
    #[must_use]
    pub const fn added(&self) -> &BloomShape {
        &self.added
    }

    /// Returns the shape of the filter of removed items.
    #[must_use]
    pub const fn removed(&self) -> &BloomShape {
        &self.removed
    }

    /// Returns the number of insertions it is sized for, including those of items removed before.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the number of removals it is sized for.
    #[must_use]
    pub const fn removals(&self) -> u64 {
        self.removed.capacity()
    }

    /// The promised limit of the false-positive rate while at most `capacity` insertions were made.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.added.target_fpr()
    }

    /// The promised limit of the share of hidden members while at most `removals` removals were made.
    #[must_use]
    pub const fn target_false_no(&self) -> f64 {
        self.removed.target_fpr()
    }

    /// Returns the false-positive rate that the model predicts after this many insertions and removals,
    /// accurate within 2 %.
    #[must_use]
    pub fn expected_fpr(&self, inserted: u64, removed: u64) -> f64 {
        non_member_is_present(self.added.expected_fpr(inserted), self.removed.expected_fpr(removed))
    }

    /// Returns the share of members inserted before the first of `removals` removals that are hidden after
    /// them, by the model, accurate within 2 %. It is less for items inserted later, because an insertion
    /// avoids generations that are hidden.
    #[must_use]
    pub fn expected_false_no(&self, inserted: u64, removed: u64) -> f64 {
        item_is_hidden(self.added.expected_fpr(inserted), self.removed.expected_fpr(removed))
    }

    /// Returns the memory of both filters.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    /// Bits of memory per insertion at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns whether each bit means the same in both. Capacities and targets may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        self.added.places_like(&other.added) && self.removed.places_like(&other.removed)
    }
}

/// Returns the probability that the chain of a non-member ends in a present generation, if `added` has a
/// false positive for a generation with probability `added`, and `removed` with probability `removed`:
/// `a(1-r) + ar · a(1-r) + …`.
pub(super) fn non_member_is_present(added: f64, removed: f64) -> f64 {
    let goes_on = added * removed;
    if goes_on >= 1.0 { 0.0 } else { added * (1.0 - removed) / (1.0 - goes_on) }
}

/// Returns the probability that `removed` has a false positive for a member's generation and no later
/// generation looks present by chance.
pub(super) fn item_is_hidden(added: f64, removed: f64) -> f64 {
    removed * (1.0 - non_member_is_present(added, removed))
}

impl fmt::Display for DualShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for insertions, {} for removals", self.added, self.removed)
    }
}
