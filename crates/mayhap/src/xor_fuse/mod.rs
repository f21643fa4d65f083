//! The xor filter and the binary fuse filter: one type, [`XorFuse`], with two ways to choose an item's slots.
//!
//! Code for both can be generic over the [`SlotGraph`]:
//!
//! ```
//! use mayhap::xor_fuse::{SlotGraph, XorFuse};
//! use mayhap::{BinaryFuse8, BuildError, Fingerprint, Xor8};
//!
//! fn matches<F: Fingerprint, G: SlotGraph>(filter: &XorFuse<F, G>, words: &[&str]) -> usize {
//!     words.iter().filter(|word| filter.may_contain(**word)).count()
//! }
//!
//! let words = ["red", "green", "blue"];
//! assert_eq!(matches(&Xor8::from_items(words)?, &words), 3);
//! assert_eq!(matches(&BinaryFuse8::from_items(words)?, &words), 3);
//! # Ok::<(), BuildError>(())
//! ```

mod binary_fuse;
mod shape;
mod xor;

pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32};
pub use shape::{BinaryFuseShape, XorFuseShape, XorShape};
pub use xor::{Xor, Xor8, Xor16, Xor32};

use std::fmt;

use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::BuildError;
use crate::explain::SlotLookup;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::fuse::rate;
pub use crate::statics::graph::{FuseGraph, XorGraph};
use crate::statics::placed::Placed;
pub use crate::statics::placed::SlotGraph;
use crate::statics::table::StaticTable;
use crate::statics::{self, BuildOptions, Fingerprint};

/// A static filter of fingerprints in slots, three for each item. See [`Xor`] and [`BinaryFuse`] for their promises and
/// costs.
///
/// `F` is the fingerprint, whose width sets the false-positive rate. `G` chooses the slots: [`XorGraph`] or
/// [`FuseGraph`].
///
/// ```text
/// item ─▶ ItemHash ─▶ key ─▶ fingerprint f, three slots
///
///   │ a3 │ 07 │▶1c◀│ f0 │▶55◀│ 9e │▶e2◀│ 31 │       1c ⊕ 55 ⊕ e2 = f: maybe; otherwise: no
/// ```
pub struct XorFuse<F: Fingerprint, G: SlotGraph> {
    table: Placed<F, G>,
    scheme: HashScheme,
}

impl<F: Fingerprint, G: SlotGraph> XorFuse<F, G> {
    /// Builds the filter of these items, with all the machine's threads. Duplicates are allowed.
    ///
    /// It uses the fast hash with a random seed. [`build`](Self::build) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory. [`BuildError::Unsolvable`] if an
    /// attacker who knew the seed chose items that cannot be built.
    pub fn from_items<I: Item>(items: impl IntoIterator<Item = I>) -> Result<Self, BuildError> {
        Self::build(items, HashScheme::random())
    }

    /// [`from_items`](Self::from_items) with a hash scheme of your choice. A number is the seed of the fast hash.
    /// Use [`HashScheme::keyed_random`] if untrusted users choose the items.
    ///
    /// # Errors
    /// As [`from_items`](Self::from_items).
    pub fn build<I: Item>(
        items: impl IntoIterator<Item = I>,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::build_with(items, &BuildOptions::default(), scheme)
    }

    /// [`build`](Self::build) with other threads or shards.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with<I: Item>(
        items: impl IntoIterator<Item = I>,
        options: &BuildOptions,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::of_all(items, options, scheme.into())
    }

    /// [`build_with`](Self::build_with) for items already hashed with this scheme.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_hashes(
        hashes: impl IntoIterator<Item = ItemHash>,
        options: &BuildOptions,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::of_all(hashes, options, scheme.into())
    }

    fn of_all<H: Hashed>(
        items: impl IntoIterator<Item = H>,
        options: &BuildOptions,
        scheme: HashScheme,
    ) -> Result<Self, BuildError> {
        let keys = statics::collect(items, &scheme)?;
        Ok(Self { table: Placed::own(StaticTable::build(keys, options)?), scheme })
    }

    /// [`build_with`](Self::build_with) for a set with too many hashes to keep in memory.
    ///
    /// `source` is iterated once to count, then `passes` times. Each pass keeps the hashes of one part of the
    /// shards. Without duplicates the result is the same filter as from [`build_with`](Self::build_with).
    /// With duplicates, it is sized as if they were items too. Sets of a single shard need a single pass.
    ///
    /// ```
    /// use mayhap::{BinaryFuse16, BuildOptions};
    ///
    /// // For example lines of a file, which is read four times.
    /// let options = BuildOptions::default().items_per_shard(10_000);
    /// let filter = BinaryFuse16::build_in_passes(|| 0..50_000_u64, 3, &options, 0)?;
    /// assert!((0..50_000_u64).all(|item| filter.may_contain(&item)));
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`build`](Self::build). A source that yields different items each time may make the set unsolvable.
    pub fn build_in_passes<I: Item, S: IntoIterator<Item = I>>(
        source: impl Fn() -> S,
        passes: usize,
        options: &BuildOptions,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        let table = StaticTable::build_in_passes(source, passes, options, &scheme)?;
        Ok(Self { table: Placed::own(table), scheme })
    }

    /// Creates a filter from another program's slots.
    pub(crate) fn of_foreign(
        table: StaticTable<F, G::Foreign>,
        scheme: HashScheme,
    ) -> Result<Self, BuildError> {
        Ok(Self { table: Placed::foreign(table)?, scheme })
    }

    /// Returns its table, if it has another program's slots.
    pub(crate) const fn foreign(&self) -> Option<&StaticTable<F, G::Foreign>> {
        self.table.as_foreign()
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
        self.table.may_contain(hash)
    }

    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> SlotLookup {
        self.table.trace(hash)
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.table.may_contain_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.table.may_contain_batch(&self.scheme, hashes, answers);
    }

    /// Returns the shape: slots, fingerprints and shards.
    #[must_use]
    pub fn shape(&self) -> XorFuseShape<G> {
        XorFuseShape::of(self.table.places(), self.table.items(), F::BITS)
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items it was built from. For another program's filter without a count,
    /// it is an estimate.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.table.items()
    }

    /// Returns the number of different items it was built from, or 0 for another program's filter without a
    /// count.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Returns the promised false-positive rate of its fingerprints: one in `2^bits`.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        rate(F::BITS)
    }

    /// Returns the false-positive rate by the model: the promised rate, or 0 for an empty filter.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shape().expected_fpr()
    }

    /// Returns the memory that the fingerprints take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Bits of memory per item.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape().bits_per_item()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { table: self.table.try_clone()?, scheme: self.scheme })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded filter of this kind, with fingerprints of this width.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl<F: Fingerprint, G: SlotGraph> codec::sealed::Sealed for XorFuse<F, G> {}

impl<F: Fingerprint, G: SlotGraph> Storable for XorFuse<F, G> {
    const KIND: Option<Kind> = Some(G::KIND);

    fn header(&self) -> Header {
        self.table.header(&self.scheme)
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let (table, scheme) = Placed::restore(header, body)?;
        Ok(Self { table, scheme })
    }
}

/// Builds the filter of these numbers like [`XorFuse::from_items`], with a random seed.
///
/// ```
/// use mayhap::BinaryFuse8;
///
/// let keys: Vec<u64> = (0..1_000).collect();
/// let filter = BinaryFuse8::try_from(&keys)?;
/// assert!(keys.iter().all(|key| filter.may_contain(key)));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
impl<F: Fingerprint, G: SlotGraph> TryFrom<&[u64]> for XorFuse<F, G> {
    type Error = BuildError;

    fn try_from(keys: &[u64]) -> Result<Self, BuildError> {
        Self::from_items(keys)
    }
}

/// Builds the filter as from a slice.
impl<F: Fingerprint, G: SlotGraph> TryFrom<&Vec<u64>> for XorFuse<F, G> {
    type Error = BuildError;

    fn try_from(keys: &Vec<u64>) -> Result<Self, BuildError> {
        Self::from_items(keys)
    }
}

/// Builds the filter as from a slice.
impl<F: Fingerprint, G: SlotGraph> TryFrom<Vec<u64>> for XorFuse<F, G> {
    type Error = BuildError;

    fn try_from(keys: Vec<u64>) -> Result<Self, BuildError> {
        Self::from_items(keys)
    }
}

impl<F: Fingerprint, G: SlotGraph> fmt::Debug for XorFuse<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", G::KIND);
        f.debug_struct(&name).field("table", &self.table).field("scheme", &self.scheme).finish()
    }
}
