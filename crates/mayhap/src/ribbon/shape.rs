//! What a ribbon filter of so many items will take, before there is one.

use std::fmt;

use super::layout::Layout;
use crate::error::BuildError;
use crate::sizing::ribbon::{self, COLUMN};
use crate::sizing::{self, MAX_CAPACITY};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// What a [`Ribbon`](crate::Ribbon) of so many items at such a rate will take: known and checked before any memory is taken.
///
/// The memory is an expectation. Which items are bumped decides how large the layers behind the first one are, so a filter may
/// come out a fraction of a per cent larger or smaller; its own `memory_bytes` is the truth.
///
/// ```
/// use mayhap::RibbonShape;
///
/// let shape = RibbonShape::for_items(1_000_000, 1.0 / 256.0)?;
/// assert_eq!(shape.columns(), 8.0);
/// assert!(shape.bits_per_item() < 8.04); // 8 is the least any filter can do
/// assert!(shape.expected_fpr() <= 1.0 / 256.0);
/// assert!(shape.within(1 << 19).is_err()); // it needs 1.0 MB
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonShape {
    items: u64,
    target_fpr: f64,
    layout: Layout,
}

impl RibbonShape {
    /// The shape for `items` different items, which may be none, that is wrong for at most `target_fpr` of the non-members.
    ///
    /// # Errors
    /// [`BuildError`] for a rate outside (0, 1), for too many items, and for a rate so low that non-members with
    /// the 64-bit key of an item would take up half of it.
    pub fn for_items(items: u64, target_fpr: f64) -> Result<Self, BuildError> {
        let target_fpr = sizing::check_rate(target_fpr)?;
        if items > MAX_CAPACITY {
            return Err(BuildError::CapacityOutOfRange { got: items, limit: MAX_CAPACITY });
        }
        let columns = ribbon::columns(items, target_fpr)?;
        let layout = Layout::of(columns, ribbon::expected_blocks(items), 0)?;
        Ok(Self { items, target_fpr, layout })
    }

    /// The shape itself, if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Different items it is meant for.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The promise: at most this share of non-members is answered *mayhap*.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Columns of a row, on average: `log2(1 / target_fpr)`, and up to 0.086 more between two powers of two.
    #[must_use]
    pub fn columns(&self) -> f64 {
        self.layout.columns as f64 / COLUMN as f64
    }

    /// The columns in exact units, for the builder.
    pub(super) const fn exact_columns(&self) -> u64 {
        self.layout.columns
    }

    /// The rate by the model. Nothing about it is luck: a non-member agrees with a column once in two, whatever is in it.
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

    /// Memory it is expected to take: whole cache lines.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.layout.words().div_ceil(WORDS_PER_LINE as u64) * LINE_BYTES as u64
    }

    /// Bits of memory per item that are expected; none for no items.
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
