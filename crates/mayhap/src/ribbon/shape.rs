//! The expected size of a ribbon filter.

use std::fmt;

use super::layout::RibbonLayout;
use crate::error::BuildError;
use crate::sizing::ribbon::{self, COLUMN};
use crate::sizing::{self, MAX_CAPACITY};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// The shape of a [`Ribbon`](crate::Ribbon) for a number of items and a rate: its dimensions and expected
/// memory, checked before any memory is allocated.
///
/// The memory is an expectation. The sizes of the layers after the first depend on which items are bumped, so
/// a filter may be a fraction of a per cent larger or smaller. Its own `memory_bytes` is exact.
///
/// ```
/// use mayhap::RibbonShape;
///
/// let shape = RibbonShape::for_items(1_000_000, 1.0 / 256.0)?;
/// assert_eq!(shape.columns(), 8.0);
/// assert!(shape.bits_per_item() < 8.04); // 8 is the minimum for any filter
/// assert!(shape.expected_fpr() <= 1.0 / 256.0);
/// assert!(shape.within(1 << 19).is_err()); // it needs 1.0 MB
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonShape {
    items: u64,
    target_fpr: f64,
    layout: RibbonLayout,
}

impl RibbonShape {
    /// Returns the shape for `items` different items, which may be 0, with a false-positive rate of at most
    /// `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a rate outside (0, 1), for too many items, and for a rate so low that non-members
    /// with the 64-bit key of an item would take up half of it.
    pub fn for_items(items: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let target_fpr = sizing::check_rate(target_fpr)?;
        if items > MAX_CAPACITY {
            return Err(BuildError::CapacityOutOfRange { got: items, limit: MAX_CAPACITY });
        }
        let columns = ribbon::columns(items, target_fpr)?;
        let layout = RibbonLayout::of(columns, ribbon::expected_blocks(items), 0)?;
        Ok(Self { items, target_fpr, layout })
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns the number of different items it is for.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The promised limit of the false-positive rate.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the average number of columns of a row: `log2(1 / target_fpr)`, and up to 0.086 more between
    /// two powers of two.
    #[must_use]
    pub fn columns(&self) -> f64 {
        self.layout.columns as f64 / COLUMN as f64
    }

    /// Returns the columns in exact units, for the builder.
    pub(super) const fn exact_columns(&self) -> u64 {
        self.layout.columns
    }

    /// Returns the false-positive rate by the model. It does not depend on chance: a non-member agrees with
    /// any column with probability 1/2.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let mut expected = 0.0;
        let mut share = 1.0;
        let layers = self.layout.layers();
        for (index, layer) in layers.iter().enumerate() {
            let bumped = if index + 1 == layers.len() { 0.0 } else { ribbon::BUMPED };
            expected += share * (1.0 - bumped) * layer.rate();
            share *= bumped;
        }
        expected + if self.items == 0 { 0.0 } else { ribbon::shared_keys(self.items, self.target_fpr) }
    }

    /// Returns the expected memory: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.layout.words().div_ceil(WORDS_PER_LINE as u64) * LINE_BYTES as u64
    }

    /// Returns the expected bits of memory per item, or 0 without items.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        if self.items == 0 { 0.0 } else { self.memory_bytes() as f64 * 8.0 / self.items as f64 }
    }
}

impl fmt::Display for RibbonShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items with {:.3} columns", self.items, self.columns())
    }
}
