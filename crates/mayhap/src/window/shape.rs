//! The length and the generations of a window, and the false-positive rate that follows.

use std::fmt;

use crate::blocked::{BlockedLayout, BlockedShape};
use crate::error::BuildError;
use crate::simd::generic::{LINE_WORDS, SPLIT_WORDS};
use crate::sizing::window::{
    GENERATIONS, MAX_GENERATIONS, combined_rate, generation_items, generation_rate, generation_span,
};
use crate::sizing::{self, MAX_BITS};
use crate::store::{LINE_BYTES, WORDS_PER_LINE};

/// What moves a window forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pace {
    /// Every inserted item: the window holds the last N items.
    Items,
    /// The caller's clock: the window holds the items of the last `span` units.
    Time {
        /// The length of the window, in the caller's unit.
        span: u64,
    },
}

/// The shape of a [`Window`](crate::Window): its dimensions and memory, checked before any memory is
/// allocated.
///
/// ```
/// use mayhap::WindowShape;
///
/// let shape = WindowShape::of_items(1_000_000, 0.01)?;
/// assert_eq!((shape.generations(), shape.generation_items()), (4, 333_334));
/// let finer = shape.with_generations(8)?; // forgets sooner, reads more
/// assert_eq!(finer.generation_items(), 142_858);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowShape {
    pace: Pace,
    /// The number of items in a window.
    capacity: u64,
    target_fpr: f64,
    generations: u32,
    /// The blocks of one generation.
    generation: BlockedShape,
}

/// Words per generation before the blocks: the number of inserted items, and how many of them changed a bit.
pub(super) const ACCOUNT_WORDS: usize = 2;
/// The lowest rate that one generation can promise.
const MIN_GENERATION_RATE: f64 = 1e-9;

impl WindowShape {
    /// Returns a window over the last `window_items` items.
    ///
    /// # Errors
    /// [`BuildError`] for a window of 0, a rate outside (0, 1) or below 1e-9 for each generation.
    pub fn of_items(window_items: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::sized(Pace::Items, window_items, target_fpr, GENERATIONS)
    }

    /// Returns a window over the last `span` units of the caller's time, in which `expected_items_per_span`
    /// items are expected.
    ///
    /// # Errors
    /// As [`of_items`](Self::of_items), and for a span of 0.
    pub fn of_time(span: u64, expected_items_per_span: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::sized(Pace::Time { span }, expected_items_per_span, target_fpr, GENERATIONS)
    }

    /// Returns the same window with this many generations, 2 to 16. With more generations, old items are
    /// forgotten sooner, but lookups read more. An item is kept for at most a window and
    /// `1 / (generations - 1)` of a window.
    ///
    /// # Errors
    /// [`BuildError::GenerationsOutOfRange`], and as [`of_items`](Self::of_items).
    pub fn with_generations(self, generations: u32) -> Result<Self, BuildError> {
        Self::sized(self.pace, self.capacity, self.target_fpr, generations)
    }

    fn sized(pace: Pace, capacity: u64, target_fpr: f64, generations: u32) -> Result<Self, BuildError> {
        let items = check_window(pace, capacity, target_fpr, generations)?;
        let generation = BlockedShape::for_capacity(items, generation_rate(target_fpr, generations))?;
        Self { pace, capacity, target_fpr, generations, generation }.checked()
    }

    /// Builds the shape from the fields of an encoded window, with the same checks as for any other shape.
    pub(super) fn from_parts(
        pace: Pace,
        [capacity, blocks]: [u64; 2],
        target_fpr: f64,
        layout: BlockedLayout,
        [generations, regions, probes]: [u32; 3],
    ) -> Result<Self, BuildError> {
        let items = check_window(pace, capacity, target_fpr, generations)?;
        let rate = generation_rate(target_fpr, generations);
        let generation = BlockedShape::from_parts(layout, [regions, probes], blocks, items, rate)?;
        Self { pace, capacity, target_fpr, generations, generation }.checked()
    }

    fn checked(self) -> Result<Self, BuildError> {
        let bits = self.generation.bits().saturating_mul(u64::from(self.generations));
        if bits > MAX_BITS {
            return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
        }
        Ok(self)
    }

    /// Returns the shape if it fits in `limit_bytes`.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] with both numbers if it does not fit.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        sizing::check_memory(self.memory_bytes(), limit_bytes)?;
        Ok(self)
    }

    /// Returns what moves the window forward.
    #[must_use]
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the number of items in a window: given, or expected in a span of time.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised limit of the false-positive rate at any time, while no generation holds more than its
    /// [`generation_items`](Self::generation_items).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Generations.
    #[must_use]
    pub const fn generations(&self) -> u32 {
        self.generations
    }

    /// Returns the number of items that one generation is sized for.
    #[must_use]
    pub const fn generation_items(&self) -> u64 {
        self.generation.capacity()
    }

    /// Returns how long a generation is the newest, in the caller's unit, or `None` for a window of items.
    #[must_use]
    pub const fn generation_span(&self) -> Option<u64> {
        match self.pace {
            Pace::Items => None,
            Pace::Time { span } => Some(generation_span(span, self.generations)),
        }
    }

    /// Returns the false-positive rate that the model predicts if each generation holds `items` different
    /// items, accurate within 2 %.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        let each = self.generation.expected_fpr(items);
        combined_rate((0..self.generations).map(|_| each))
    }

    /// Returns the false-positive rate that the model predicts after inserting `items` different items into
    /// an empty window. Older items fill their generations, the newest items are in the one being filled, and
    /// items older than all generations are forgotten.
    #[must_use]
    pub fn expected_fpr_after(&self, items: u64) -> f64 {
        let each = self.generation_items();
        // A generation that has just been filled is still the newest.
        let full = items.saturating_sub(1) / each;
        let newest = items - full * each;
        let older = full.min(u64::from(self.generations) - 1) as u32;
        let full_rate = self.generation.expected_fpr(each);
        let rates = (0..older).map(|_| full_rate);
        combined_rate(rates.chain([self.generation.expected_fpr(newest)]))
    }

    /// Returns the memory that all generations take: whole cache lines.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        let bits = self.end_bit();
        bits.div_ceil(8 * LINE_BYTES as u64) * LINE_BYTES as u64
    }

    /// Bits of memory per item of a window.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.capacity as f64
    }

    /// Returns the blocks of one generation.
    pub(super) const fn generation(&self) -> &BlockedShape {
        &self.generation
    }

    /// Returns the number of words before the first block: the counts of all generations, in whole lines.
    pub(super) const fn head_words(&self) -> usize {
        (self.generations as usize * ACCOUNT_WORDS).div_ceil(WORDS_PER_LINE) * WORDS_PER_LINE
    }

    /// Returns the bit after the last block.
    pub(super) const fn end_bit(&self) -> u64 {
        self.head_words() as u64 * 64 + self.generation.bits() * self.generations as u64
    }

    /// Returns the words of one block of one generation.
    pub(super) const fn block_words(&self) -> usize {
        match self.generation.layout() {
            BlockedLayout::Split256 => SPLIT_WORDS,
            BlockedLayout::Line512 => LINE_WORDS,
        }
    }

    pub(super) fn lines(&self) -> usize {
        usize::try_from(self.memory_bytes() / LINE_BYTES as u64).unwrap_or(usize::MAX)
    }
}

/// Returns the number of items of one generation. Checks that the parameters form a valid window.
fn check_window(pace: Pace, capacity: u64, target_fpr: f64, generations: u32) -> Result<u64, BuildError> {
    let capacity = sizing::check_capacity(capacity)?;
    let target_fpr = sizing::check_rate(target_fpr)?;
    if !(2..=MAX_GENERATIONS).contains(&generations) {
        return Err(BuildError::GenerationsOutOfRange { got: generations, limit: MAX_GENERATIONS });
    }
    if pace == (Pace::Time { span: 0 }) {
        return Err(BuildError::SpanOutOfRange { got: 0, least: 1 });
    }
    let limit = MIN_GENERATION_RATE * f64::from(generations);
    if target_fpr < limit {
        return Err(BuildError::RateTooLow { got: target_fpr, limit });
    }
    Ok(generation_items(capacity, generations))
}

impl fmt::Display for WindowShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generations of {}", self.generations, self.generation)
    }
}
