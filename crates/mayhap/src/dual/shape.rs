//! How large the two halves of a dual filter are, and what that means for both of its rates.

use std::fmt;

use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::sizing;

/// The measurements of a [`DualBloom`](crate::DualBloom): known, checked and priced before any memory is taken.
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
    /// The smallest shape for `capacity` insertions and `removals` removals, where at most `target_fpr` of the non-members are
    /// answered *mayhap* and at most as many of the items that are in are hidden.
    ///
    /// # Errors
    /// [`BuildError`] for a number of insertions or removals of 0, or a rate outside (0, 1).
    pub fn for_capacity(capacity: u64, removals: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_rates(capacity, removals, target_fpr, target_fpr)
    }

    /// [`for_capacity`](Self::for_capacity) with a rate of its own for the items that are hidden.
    ///
    /// # Errors
    /// [`BuildError`] for a number of insertions or removals of 0, or a rate outside (0, 1).
    pub fn for_rates(
        capacity: u64,
        removals: u64,
        target_fpr: f64,
        target_false_no: f64,
    ) -> Result<Self, BuildError> {
        let capacity = sizing::check_capacity(capacity)?;
        let removed = BloomShape::for_capacity(removals, target_false_no)?;
        // An insertion whose generation `removed` claims already takes the next one too: 1 / (1 - r) of them on average.
        let slots = (capacity as f64 / (1.0 - target_false_no)).ceil() as u64;
        let added = BloomShape::for_capacity(slots.max(capacity), target_fpr)?;
        Ok(Self { capacity, added, removed })
    }

    /// Exactly these two filters: one for what is put in, one for what is removed.
    #[must_use]
    pub const fn exactly(added: BloomShape, removed: BloomShape) -> Self {
        Self { capacity: added.capacity(), added, removed }
    }

    /// What an encoded filter says its shape is; `None` if its halves have no room for that capacity.
    pub(super) fn from_parts(capacity: u64, added: BloomShape, removed: BloomShape) -> Option<Self> {
        (1..=added.capacity()).contains(&capacity).then_some(Self { capacity, added, removed })
    }

    /// The shape itself, if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// The filter of what was put in.
    #[must_use]
    pub const fn added(&self) -> &BloomShape {
        &self.added
    }

    /// The filter of what was removed.
    #[must_use]
    pub const fn removed(&self) -> &BloomShape {
        &self.removed
    }

    /// Insertions it is meant for, those of items that had been removed included.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Removals it is meant for.
    #[must_use]
    pub const fn removals(&self) -> u64 {
        self.removed.capacity()
    }

    /// The promise: at most this share of non-members is answered *mayhap* while at most `capacity` insertions were made.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.added.target_fpr()
    }

    /// The promise: at most this share of the items that are in is hidden while at most `removals` removals were made.
    #[must_use]
    pub const fn target_false_no(&self) -> f64 {
        self.removed.target_fpr()
    }

    /// The share of non-members answered *mayhap*, by the model, after this many insertions and removals; within 2 %.
    #[must_use]
    pub fn expected_fpr(&self, inserted: u64, removed: u64) -> f64 {
        non_member_is_present(self.added.expected_fpr(inserted), self.removed.expected_fpr(removed))
    }

    /// The share of the items put in before the first of so many removals that is hidden, by the model; within 2 %. Of items
    /// put in later it is less: an insertion steps around what hides it.
    #[must_use]
    pub fn expected_false_no(&self, inserted: u64, removed: u64) -> f64 {
        item_is_hidden(self.added.expected_fpr(inserted), self.removed.expected_fpr(removed))
    }

    /// Memory of both filters.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    /// Bits of memory per insertion at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Does a bit mean the same in both? Capacities and targets may differ.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        self.added.places_like(&other.added) && self.removed.places_like(&other.removed)
    }
}

/// The chance that a chain of generations nobody made ends in a present one, when `added` claims a generation by mistake
/// with chance `added` and `removed` with chance `removed`: `a(1-r) + ar · a(1-r) + …`.
pub(super) fn non_member_is_present(added: f64, removed: f64) -> f64 {
    let goes_on = added * removed;
    if goes_on >= 1.0 { 0.0 } else { added * (1.0 - removed) / (1.0 - goes_on) }
}

/// The chance that `removed` claims the generation of an item that is in, and none behind it looks present by luck.
pub(super) fn item_is_hidden(added: f64, removed: f64) -> f64 {
    removed * (1.0 - non_member_is_present(added, removed))
}

impl fmt::Display for DualShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for insertions, {} for removals", self.added, self.removed)
    }
}
