//! The cuckoo filter and the growable cuckoo filter.

mod buckets;
mod eviction;
mod explain;
mod growable;
mod growable_shape;
mod packed;
mod placement;
mod semi_sorted;
mod shape;
mod table;

pub use growable::GrowableCuckoo;
pub use growable_shape::GrowableCuckooShape;
pub use shape::CuckooShape;

use self::table::{CuckooTable, NoRoom};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;

/// A compact filter that can remove items: short fingerprints in a table, each in one of two buckets.
///
/// * **Only remove items you inserted.** Calling [`remove`](Self::remove) with an item that was never
///   inserted but answers *maybe* deletes another item's fingerprint and causes a false negative. No filter
///   can detect this, because it does not store the items. [`remove_verified`](Self::remove_verified) checks
///   your own store first. An item that answers *no* is rejected, and nothing changes.
/// * Under that condition **no** is certain after any insertions, removals and failed insertions. **maybe**
///   can be a false positive: the false-positive rate is at most `target_fpr` while the filter holds at most
///   `capacity` items.
/// * **It can be full.** `capacity` different items always fit, unless they were chosen to collide, and
///   usually a few more. An insertion that finds no room returns an error and changes nothing. An attacker
///   who knows the seed can choose items that all share the same buckets. If untrusted users choose the
///   items, use [`HashScheme::keyed_random`].
/// * It counts copies, and holds at most `2 · bucket_size` of one item, usually 8. Copies take room like
///   other items.
/// * 10.5 bits per item at 1 %, 13.6 at 0.1 %: a third or less of [`CountingBloom`](crate::CountingBloom).
///   Semi-sorted buckets ([`CuckooShape::semi_sorted`]) take one bit less. A lookup touches two cache lines,
///   in parallel.
/// * It cannot list items, merge or grow; [`GrowableCuckoo`] grows.
///
/// ```text
/// item ─▶ ItemHash ─▶ fingerprint 0x2c7, buckets 3 and 8: each follows from the other and the fingerprint
///
///    0     1     2     3     4     5     6     7     8     9
///  │ 1f3 │ 0a0 │ 3e1 │▶2c7◀│ 111 │ 0f4 │ 2aa │ 19c │ 3b0 │ 046 │     in either: maybe; in neither: no
///  │ 33d │  ·  │ 2c0 │ 0e5 │  ·  │ 1b1 │ 2c7 │  ·  │ 092 │ 3ff │
/// ```
///
/// ```
/// use mayhap::Cuckoo;
///
/// let mut online = Cuckoo::new(1_000_000, 0.01)?;
/// assert!(online.insert("ada")?); // certainly new
/// assert!(!online.insert("ada")?); // a second copy
/// assert_eq!(online.count("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// assert!(online.remove("ada") && !online.may_contain("ada"));
/// assert!(!online.remove("ada")); // certainly a non-member: nothing changed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT
/// 2014.
#[derive(Debug)]
pub struct Cuckoo {
    shape: CuckooShape,
    scheme: HashScheme,
    table: CuckooTable,
}

impl Cuckoo {
    /// Creates the smallest filter for `capacity` items at `target_fpr`.
    ///
    /// The hash is the fast one with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) draws a secret key, and [`for_capacity`](Self::for_capacity) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn new(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_capacity(capacity, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_capacity(
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(CuckooShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: CuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme: scheme.into(), table: CuckooTable::new(shape.placement(), shape.layout())? })
    }

    pub(crate) const fn set_scheme(&mut self, scheme: HashScheme) {
        self.scheme = scheme;
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Inserts one copy of `item`. `true`: it was certainly not a member before.
    /// `false`: it may have been one. Either way there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if no slot can be freed for it, [`InsertError::TooManyCopies`] if its two
    /// buckets hold nothing but copies of it. On error, nothing has changed.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        self.table.insert(hash).map_err(|cause| self.refusal(cause))
    }

    /// Inserts one copy of each of `items` and returns how many of them were certainly not members before. If
    /// the filter is larger than the cache, this is much faster than single inserts.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), at the first item that fails. All items before it are inserted, and none
    /// after it; [`inserted`](Self::inserted) has grown by their number. Do not insert the whole batch again:
    /// that would insert them twice.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        self.insert_all(hashes)
    }

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> Result<u64, InsertError> {
        let (new, result) = self.table.insert_batch(&self.scheme, items);
        result.map(|()| new).map_err(|cause| self.refusal(cause))
    }

    /// `false`: never inserted, or removed as often as inserted. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.table.holds(hash)
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.table.holds_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.table.holds_batch(&self.scheme, hashes, answers);
    }

    /// Returns the number of copies of `item`. It is never too low, and 0 is certain. It can be too high:
    /// copies of other items with the same fingerprint and buckets count too.
    #[must_use]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.scheme.hash(item))
    }

    /// [`count`](Self::count) for an item already hashed.
    #[must_use]
    pub fn count_hash(&self, hash: ItemHash) -> u64 {
        self.table.count(hash)
    }

    /// Removes one copy of `item`. **Only remove items that were inserted**: removing any other item that
    /// answers *maybe* deletes another item's fingerprint and causes a false negative. If you cannot rule
    /// that out, use [`remove_verified`](Self::remove_verified).
    ///
    /// `true`: a copy was removed. `false`: it was certainly not a member, and nothing changed.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        self.table.remove(hash)
    }

    /// Removes one copy of `item` if the caller's own store confirms that it was inserted. `true`: it was
    /// removed.
    ///
    /// `was_in_store` is called only if the filter answers *maybe*, so removals of most non-members do not
    /// reach the store. It should delete the item from the store and return whether it was there: the store
    /// decides, and the filter follows. If every insertion and every removal is also made in the store, in
    /// the same order, no removal request can cause a false negative.
    ///
    /// ```
    /// use mayhap::Cuckoo;
    /// use std::collections::BTreeSet;
    ///
    /// let mut store = BTreeSet::from(["coupon-1"]);
    /// let mut filter = Cuckoo::new(100, 0.01)?;
    /// filter.insert("coupon-1")?;
    /// assert!(filter.remove_verified("coupon-1", || store.remove("coupon-1")));
    /// assert!(!filter.remove_verified("coupon-1", || store.remove("coupon-1"))); // redeemed already
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_verified<I: Item + ?Sized>(
        &mut self,
        item: &I,
        was_in_store: impl FnOnce() -> bool,
    ) -> bool {
        self.remove_verified_hash(self.scheme.hash(item), was_in_store)
    }

    /// [`remove_verified`](Self::remove_verified) for an item already hashed.
    pub fn remove_verified_hash(&mut self, hash: ItemHash, was_in_store: impl FnOnce() -> bool) -> bool {
        self.may_contain_hash(hash) && was_in_store() && self.remove_hash(hash)
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Returns the shape: buckets, fingerprints, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &CuckooShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of items the filter was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of stored copies: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Returns the false-positive rate that the model predicts for the stored copies. It counts copies of one
    /// item as different items, so the actual rate is no higher.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shape.expected_fpr(self.inserted())
    }

    /// Returns the share of slots in use.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted() as f64 / self.shape.slots() as f64
    }

    /// Returns the memory that the buckets take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.lines().memory_bytes()
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { table: self.table.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Cuckoo`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[cold]
    fn refusal(&self, cause: NoRoom) -> InsertError {
        match cause {
            NoRoom::Full => InsertError::Full { inserted: self.inserted(), capacity: self.capacity() },
            NoRoom::Copies => InsertError::TooManyCopies { limit: 2 * u64::from(self.shape.bucket_size()) },
        }
    }
}

/// Packed buckets.
const PACKED: u16 = 1;
/// The same placement, in semi-sorted buckets.
const SEMI_SORTED: u16 = 2;

impl codec::sealed::Sealed for Cuckoo {}

impl Storable for Cuckoo {
    const KIND: Option<Kind> = Some(Kind::Cuckoo);

    fn header(&self) -> Header {
        let placement = if self.shape.is_semi_sorted() { SEMI_SORTED } else { PACKED };
        let mut header = Header::new(Kind::Cuckoo, placement, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted();
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.buckets();
        header.parameters[1] = u64::from(self.shape.bucket_size());
        header.parameters[2] = u64::from(self.shape.fingerprint_bits());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let semi_sorted = header.placement == SEMI_SORTED;
        if !semi_sorted {
            header.expect_placement(PACKED)?;
        }
        header.expect_parameters(3)?;
        let scheme = header.scheme()?;
        let bucket_size = header.parameter_u32(1, "bucket size")?;
        let fingerprint_bits = header.parameter_u32(2, "fingerprint bits")?;
        let shape = CuckooShape::from_parts(
            header.parameters[0],
            bucket_size,
            fingerprint_bits,
            semi_sorted,
            header.capacity,
            header.target_fpr,
        )?;
        if semi_sorted && bucket_size != semi_sorted::SLOTS {
            return Err(DecodeError::BadField { field: "bucket size", got: bucket_size.into() });
        }
        let table = CuckooTable::decoded(shape.placement(), shape.layout(), header.inserted, body)?;
        Ok(Self { shape, scheme, table })
    }
}
