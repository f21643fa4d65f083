//! The binary fuse filter.

mod shape;

pub use shape::BinaryFuseShape;
pub(crate) use shape::{check_bits, narrowest};

use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::BuildError;
use crate::explain::SlotLookup;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::fuse::rate;
use crate::statics::foreign::ForeignFuse;
use crate::statics::graph::FuseGraph;
use crate::statics::placed::Placed;
use crate::statics::table::StaticTable;
use crate::statics::{self, BuildOptions, Fingerprint};

/// The smallest of the fast filters, for a set that is known in advance and never changes.
///
/// * **It is built once, from all items.** There is no insert and no remove; a changed set needs a new
///   filter. Building keeps all hashes in memory: 8 bytes per item, and about 22 bytes for every item of the
///   shards in progress ([`build_in_passes`](Self::build_in_passes) needs less).
/// * **no** is certain. **maybe** is a false positive for one non-member in 256 ([`BinaryFuse8`]), 65 536
///   ([`BinaryFuse16`]) or 4 · 10^9 ([`BinaryFuse32`]), for any number of items. There are no rates in
///   between. An empty filter answers *no* to everything.
/// * 9.04 bits per item at a million items with 8-bit fingerprints, where a Bloom filter of that rate takes
///   11.6. Small sets take more: 11.3 bits at a thousand items, 15.4 at a hundred.
/// * A lookup is one hash, three independent loads and two XORs, for members and non-members.
/// * Duplicate items are allowed. Items are identified by 64 bits of their hash. Two items with the same 64
///   bits count as one, which adds `items / 2^64` to the rate. (With 8 and 16 bits, only 56 of them are used
///   within a shard, which adds at most `2^22 / 2^56`.)
///
/// ```text
/// key ─▶ shard, then three slots in neighbouring segments:
///
///   segment   0        1        2        3        4
///          ├────────┼────────┼────────┼────────┼────────┤
///                      f1  ⊕     f2 ⊕   f3                  equal to the fingerprint: maybe
/// ```
///
/// ```
/// use mayhap::BinaryFuse8;
///
/// let leaked = BinaryFuse8::build(["123456", "password", "qwerty", "password"], 0)?;
/// assert!(leaked.may_contain("qwerty"));
/// assert!(!leaked.may_contain("correct horse battery staple"));
/// assert_eq!(leaked.inserted(), 3);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// T. M. Graf, D. Lemire, *Binary fuse filters: fast and smaller than xor filters*, ACM JEA 2022. The shards
/// follow S. Vigna, *ε-cost sharding*, 2025.
#[derive(Debug)]
pub struct BinaryFuse<F: Fingerprint> {
    table: Placed<F, FuseGraph>,
    scheme: HashScheme,
}

/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 256; 9 bits per item.
pub type BinaryFuse8 = BinaryFuse<u8>;
/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 65 536; 18 bits per item.
pub type BinaryFuse16 = BinaryFuse<u16>;
/// A [`BinaryFuse`] filter with a false-positive rate of 1 in 4.3 billion; 36 bits per item.
pub type BinaryFuse32 = BinaryFuse<u32>;

impl<F: Fingerprint> BinaryFuse<F> {
    /// Builds the filter of these items, with all the machine's threads. Duplicates are allowed.
    ///
    /// A number as `scheme` is the seed of the fast hash. Use [`HashScheme::keyed_random`] if untrusted users
    /// choose the items.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory. [`BuildError::Unsolvable`] if an
    /// attacker who knew the seed chose items that cannot be built.
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
        table: StaticTable<F, ForeignFuse>,
        scheme: HashScheme,
    ) -> Result<Self, BuildError> {
        Ok(Self { table: Placed::foreign(table)?, scheme })
    }

    /// Returns its table, if it has another program's slots.
    pub(crate) const fn foreign(&self) -> Option<&StaticTable<F, ForeignFuse>> {
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
    pub fn shape(&self) -> BinaryFuseShape {
        BinaryFuseShape::of(self.table.places(), self.table.items(), F::BITS)
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
    /// [`DecodeError`] unless `bytes` is an intact encoded `BinaryFuse` with fingerprints of this width.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl<F: Fingerprint> codec::sealed::Sealed for BinaryFuse<F> {}

impl<F: Fingerprint> Storable for BinaryFuse<F> {
    const KIND: Option<Kind> = Some(Kind::BinaryFuse);

    fn header(&self) -> Header {
        self.table.header(Kind::BinaryFuse, &self.scheme)
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let (table, scheme) = Placed::restore(header, body)?;
        Ok(Self { table, scheme })
    }
}
