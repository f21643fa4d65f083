//! The bumped ribbon filter.

mod band;
mod build;
mod explain;
mod layout;
mod lookup;
mod shape;

pub use shape::RibbonShape;

use self::layout::RibbonLayout;
use self::lookup::Layers;
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::ribbon::{BLOCK_ROWS, BUCKET_ROWS, COLUMN, MAX_COLUMNS, shared_keys};
use crate::sizing::{self, MAX_CAPACITY};
use crate::statics;
use crate::store::{LINE_BYTES, Lines, WORDS_PER_LINE};

/// A filter for a set that does not change, with hardly more memory than the theoretical minimum.
///
/// * **It is built once, from all items.** There is no insert and no remove; a changed set needs a new
///   filter. Building takes eight bytes per item.
/// * **no** is certain. **maybe** can be a false positive: the false-positive rate is at most `target_fpr`,
///   for any choice of rate. It is exact and does not depend on chance. It includes non-members with the same
///   64-bit key as an item, so rates below about 2^-63 times the number of items are rejected.
/// * `log2(1 / target_fpr)` bits per item plus 0.3 % if the rate is a power of two, and up to 0.086 bits more
///   in between. Sets below a few thousand items take more, because memory is allocated in whole blocks: 100
///   items at 1 % take two lines, 10.24 bits each.
/// * A lookup reads two bits that are nearly always in the cache, then two to three adjacent lines for rates
///   down to 1/256. One item in eighteen is bumped and needs another lookup in a layer a seventeenth of the
///   size.
/// * It cannot list or count items, or merge with another filter.
///
/// ```text
///           ┌─ first row               ┌──── 64 rows, each in or out by a coefficient
/// item ─▶ ItemHash ─▶ key ─────────────┤
///           └─ fingerprint             ▼
///                          ……… 0 1 1 0 1 0 0 1 ………   column 0: parity = bit 0 of the fingerprint?
///                          ……… 1 1 0 1 0 0 1 0 ………   column 1: parity = bit 1?           all equal: maybe
///                          ……… 0 0 1 0 1 1 0 1 ………   column 2: …                         one differs: no
/// ```
///
/// The columns are the solution of a system of equations, one per item, which is solved when the filter is
/// built. If too many items begin in one place, the first of them are *bumped* to a smaller system of the
/// same kind, and so on.
///
/// ```
/// use mayhap::Ribbon;
///
/// let blocked = Ribbon::from_items(["eve", "mallory", "eve"], 0.001)?;
/// assert!(blocked.may_contain("eve") && blocked.may_contain("mallory"));
/// assert_eq!(blocked.inserted(), 2); // duplicates do not count
/// let empty = Ribbon::from_items::<&str>([], 0.001)?;
/// assert!(!empty.may_contain("eve"));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// P. Dillinger, S. Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021; P. Dillinger, L.
/// Hübschle-Schneider, P. Sanders, S. Walzer, *Fast succinct retrieval and approximate membership using
/// ribbon*, SEA 2022.
#[derive(Debug)]
pub struct Ribbon {
    layout: RibbonLayout,
    scheme: HashScheme,
    lines: Lines,
    items: u64,
    target_fpr: f64,
}

impl Ribbon {
    /// Builds the filter of these items, in any order. Duplicates and an empty set are allowed.
    ///
    /// The hash is the fast one with a random seed; [`build`](Self::build) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError`] if the rate is out of range or too low for this number of items, or the system refuses
    /// the memory. [`BuildError::Unsolvable`] if the items were chosen to make it fail.
    pub fn from_items<I: Item>(
        items: impl IntoIterator<Item = I>,
        target_fpr: f64,
    ) -> Result<Self, BuildError> {
        Self::build(items, target_fpr, HashScheme::random())
    }

    /// [`from_items`](Self::from_items) with a hash scheme of your choice. A number is the seed of the fast hash; use
    /// [`HashScheme::keyed_random`] if untrusted users choose the items.
    ///
    /// # Errors
    /// As [`from_items`](Self::from_items).
    pub fn build<I: Item>(
        items: impl IntoIterator<Item = I>,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::of_all(items, target_fpr, scheme.into())
    }

    /// [`build`](Self::build) from items already hashed with `scheme`.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_hashes(
        hashes: impl IntoIterator<Item = ItemHash>,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::of_all(hashes, target_fpr, scheme.into())
    }

    fn of_all<H: Hashed>(
        items: impl IntoIterator<Item = H>,
        target_fpr: f64,
        scheme: HashScheme,
    ) -> Result<Self, BuildError> {
        sizing::check_rate(target_fpr)?;
        let mut keys = statics::collect(items, &scheme)?;
        statics::sort_and_dedup(&mut keys);
        let items = keys.len() as u64;
        let shape = RibbonShape::for_items(items, target_fpr)?;
        let (layout, lines) = build::build(keys, shape.exact_columns())?;
        Ok(Self { layout, scheme, lines, items, target_fpr })
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// `false`: not one of the items. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.layers().may_contain(statics::key(hash))
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.layers().may_contain_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.layers().may_contain_batch(&self.scheme, hashes, answers);
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items in it. There is no room for more.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.items
    }

    /// Returns the number of different items it was built from.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.items
    }

    /// Returns the promised false-positive rate.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the false-positive rate by the model, from the actual columns and thresholds. This reads all
    /// thresholds, a 500th of the memory.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let (layers, mut share, mut expected) = (self.layers(), 1.0, 0.0);
        let Some((last, before)) = self.layout.layers().split_last() else { return 0.0 };
        for layer in before {
            let (mut narrow, mut wide) = (0, 0);
            let first_wide = layer.narrow * BLOCK_ROWS;
            for bucket in 0..layer.buckets() {
                let row = bucket * BUCKET_ROWS;
                let end = layer.starts.min(row + BUCKET_ROWS);
                let kept = end.min(row + layers.threshold(layer, row));
                let middle = first_wide.clamp(kept, end);
                (narrow, wide) = (narrow + middle - kept, wide + end - middle);
            }
            let kept = (narrow + wide) as f64 / layer.starts as f64;
            expected += share * kept * layer.rate_of(narrow, wide);
            share *= 1.0 - kept;
        }
        expected + share * last.rate() + shared_keys(self.items, self.target_fpr)
    }

    /// Returns the number of layers: one for few items, and rarely more than four.
    #[must_use]
    pub fn layer_count(&self) -> usize {
        self.layout.layers().len()
    }

    /// Returns the memory that the columns and thresholds take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// Returns the bits of memory per item, or 0 without items.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        if self.items == 0 { 0.0 } else { self.memory_bytes() as f64 * 8.0 / self.items as f64 }
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Ribbon`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn layers(&self) -> Layers<'_> {
        Layers { words: self.lines.words(), layout: &self.layout }
    }
}

/// Placement scheme 1: see [`layout`].
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for Ribbon {}

impl Storable for Ribbon {
    const KIND: Option<Kind> = Some(Kind::Ribbon);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Ribbon, PLACEMENT, Some(&self.scheme));
        header.capacity = self.items;
        header.inserted = self.items;
        header.target_fpr = self.target_fpr;
        header.parameters[0] = self.layout.columns;
        header.parameters[1] = u64::from(self.layout.attempt);
        header.parameters[2..].copy_from_slice(&self.layout.blocks());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.lines)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        let scheme = header.scheme()?;
        let target_fpr = sizing::check_rate(header.target_fpr)?;
        let items = header.capacity;
        if items > MAX_CAPACITY {
            return Err(BuildError::CapacityOutOfRange { got: items, limit: MAX_CAPACITY }.into());
        }
        if header.inserted != items {
            return Err(DecodeError::BadField { field: "inserted", got: header.inserted });
        }
        let [columns, _, blocks @ ..] = header.parameters;
        if columns == 0 || columns > MAX_COLUMNS * COLUMN {
            return Err(DecodeError::BadField { field: "columns", got: columns });
        }
        let attempt = header.parameter_u32(1, "attempt")?;
        if attempt >= build::MAX_ATTEMPTS {
            return Err(DecodeError::BadField { field: "attempt", got: attempt.into() });
        }
        let layout = RibbonLayout::of(columns, blocks, attempt)?;
        if layout.blocks() != blocks || (layout.layers().is_empty() != (items == 0)) {
            let got = blocks.iter().copied().max().unwrap_or_default();
            return Err(DecodeError::BadField { field: "blocks of a layer", got });
        }
        let bytes = layout.words().div_ceil(WORDS_PER_LINE as u64) * LINE_BYTES as u64;
        let lines = body.lines(bytes)?;
        lines.check_zero_from(layout.words() * 64).map_err(|bit| DecodeError::StrayBit { bit })?;
        layout.check_thresholds(lines.words()).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self { layout, scheme, lines, items, target_fpr })
    }
}
