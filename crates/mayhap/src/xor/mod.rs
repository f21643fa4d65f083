//! The xor filter.

mod shape;

pub use shape::XorShape;

use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::BuildError;
use crate::explain::SlotLookup;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::fuse::rate;
#[cfg(feature = "formats")]
use crate::statics::foreign::ForeignXor;
use crate::statics::graph::XorGraph;
use crate::statics::placed::Placed;
use crate::statics::table::Table;
use crate::statics::{self, BuildOptions, Fingerprint};

/// A filter for a set that is known from the beginning and never changes: the elder sister of [`BinaryFuse`](crate::BinaryFuse), which is smaller and
/// built faster. This one is here for its simplicity, and for sets of up to some ten thousand items, for which it takes fewer bits.
///
/// * **It is built once, from all items.** There is no insert and no remove; a new set is a new filter. While it is built, all hashes are in
///   memory: 8 bytes an item, and some 24 bytes for every item of the shards being worked on
///   ([`build_in_passes`](Self::build_in_passes) does with less).
/// * **no** is certain. **mayhap** is wrong for one non-member in 256 ([`Xor8`]), 65 536 ([`Xor16`]) or 4 · 10^9 ([`Xor32`]),
///   whatever the number of items; there is nothing in between. An empty filter answers *no* to everything.
/// * 1.23 fingerprints per item and 32 more: 9.84 bits per item with 8-bit fingerprints, 10.1 at a thousand items.
/// * A lookup is one hash, three loads that do not wait for each other, and two xors, for members and non-members alike. Its three slots are anywhere,
///   which makes building it slow: every step of it waits for memory.
/// * Items may come twice. It knows items by 64 bits of their hash: two that share them are one to it, which adds `items / 2^64` to the rate.
///   (8 and 16 bits look at 56 of them within a shard, which adds at most `2^22 / 2^56`.)
///
/// ```text
/// key ─▶ shard, then one slot in each of three blocks:
///
///          ├──────────────┼──────────────┼──────────────┤
///                f1    ⊕           f2 ⊕     f3               equal to the fingerprint: mayhap
/// ```
///
/// ```
/// use mayhap::Xor8;
///
/// let leaked = Xor8::build(["123456", "password", "qwerty", "password"], 0)?;
/// assert!(leaked.may_contain("qwerty"));
/// assert!(!leaked.may_contain("correct horse battery staple"));
/// assert_eq!(leaked.inserted(), 3);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// T. M. Graf, D. Lemire, *Xor filters: faster and smaller than Bloom and cuckoo filters*, ACM JEA 2020.
#[derive(Debug)]
pub struct Xor<F: Fingerprint> {
    table: Placed<F, XorGraph>,
    scheme: HashScheme,
}

/// Wrong for one non-member in 256; 9.84 bits per item.
pub type Xor8 = Xor<u8>;
/// Wrong for one non-member in 65 536; 19.7 bits per item.
pub type Xor16 = Xor<u16>;
/// Wrong for one non-member in 4.3 billion; 39.4 bits per item.
pub type Xor32 = Xor<u32>;

impl<F: Fingerprint> Xor<F> {
    /// The filter of these items, with all the machine's threads. Some may be there twice.
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory; [`BuildError::Unsolvable`] if somebody who knew the seed chose the items in order
    /// to hinder it.
    pub fn build<I: Item>(
        items: impl IntoIterator<Item = I>,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::build_with(items, &BuildOptions::default(), scheme)
    }

    /// [`build`](Self::build) with other threads or shards.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
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
    /// As for [`build`](Self::build).
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
        Ok(Self { table: Placed::own(Table::build(keys, options)?), scheme })
    }

    /// [`build_with`](Self::build_with) for a set whose hashes are too many to keep at once.
    ///
    /// `source` is gone through once to count, then `passes` times; each pass keeps the hashes of one share of the shards. Without duplicates it makes
    /// the same filter as [`build_with`](Self::build_with); with some, it is sized as if they were items too.
    /// Sets of a single shard need a single pass.
    ///
    /// ```
    /// use mayhap::{Xor16, BuildOptions};
    ///
    /// // Lines of a file, say, which is read four times.
    /// let options = BuildOptions::default().items_per_shard(10_000);
    /// let filter = Xor16::build_in_passes(|| 0..50_000_u64, 3, &options, 0)?;
    /// assert!((0..50_000_u64).all(|item| filter.may_contain(&item)));
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`build`](Self::build). A source that yields other items every time may make an unsolvable set.
    pub fn build_in_passes<I: Item, S: IntoIterator<Item = I>>(
        source: impl Fn() -> S,
        passes: usize,
        options: &BuildOptions,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        let table = Table::build_in_passes(source, passes, options, &scheme)?;
        Ok(Self { table: Placed::own(table), scheme })
    }

    /// A filter with the slots of other programs.
    #[cfg(feature = "formats")]
    pub(crate) fn of_foreign(table: Table<F, ForeignXor>, scheme: HashScheme) -> Result<Self, BuildError> {
        Ok(Self { table: Placed::foreign(table)?, scheme })
    }

    /// Its table, if it has the slots of other programs.
    #[cfg(feature = "formats")]
    pub(crate) const fn foreign(&self) -> Option<&Table<F, ForeignXor>> {
        self.table.as_foreign()
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// `false`: not one of the items. `true`: mayhap.
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

    /// What [`may_contain_hash`](Self::may_contain_hash) looks at.
    pub(crate) fn trace(&self, hash: ItemHash) -> SlotLookup {
        self.table.trace(hash)
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it faster than asking
    /// one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.table.may_contain_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.table.may_contain_batch(&self.scheme, hashes, answers);
    }

    /// The measurements: slots, fingerprints, shards.
    #[must_use]
    pub fn shape(&self) -> XorShape {
        XorShape::of(self.table.places(), self.table.items(), F::BITS)
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Different items it was built from; about how many it was made for, in a filter of another program that did not count.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.table.items()
    }

    /// Different items it was built from; 0 in a filter of another program that did not say.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// The rate its fingerprints promise: one in `2^bits`.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        rate(F::BITS)
    }

    /// The rate by the model: the same, but 0 for an empty filter.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shape().expected_fpr()
    }

    /// Memory the fingerprints take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Bits of memory per item.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape().bits_per_item()
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { table: self.table.try_clone()?, scheme: self.scheme })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `Xor` with fingerprints of this width.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl<F: Fingerprint> codec::sealed::Sealed for Xor<F> {}

impl<F: Fingerprint> Storable for Xor<F> {
    const KIND: Option<Kind> = Some(Kind::Xor);

    fn header(&self) -> Header {
        self.table.header(Kind::Xor, &self.scheme)
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let (table, scheme) = Placed::restore(header, body)?;
        Ok(Self { table, scheme })
    }
}
