//! The cuckoo filter, and its growable twin.

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

use self::table::{NoRoom, Table};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;

/// A filter that removes, in little memory: short fingerprints in a table, each in one of two buckets.
///
/// * **Remove only what was inserted.** [`remove`](Self::remove) of an item that was never in, but answers *mayhap*, takes out
///   the fingerprint of another, which is lost then. No filter can tell the two apart; only somebody who knows the items can.
///   [`remove_verified`](Self::remove_verified) asks them first. An item that answers *no* is turned away and harms nobody.
/// * Keeping to that, **no** is certain, whatever was inserted, removed and refused. **mayhap** is wrong for at most `target_fpr`
///   of the non-members while no more than `capacity` items are in.
/// * **It can be full.** `capacity` different items always fit, if nobody chose them to collide; some more usually do. An
///   insertion that finds no room is an error and changes nothing. Non-members who know the seed can choose items that
///   all want the same buckets; for theirs take [`HashScheme::keyed_random`].
/// * It counts copies, and takes at most `2 · bucket_size` of one item: 8, as a rule. Copies take room like other items.
/// * 10.5 bits per item at 1 %, 13.6 at 0.1 %, a third or less of what [`CountingBloom`](crate::CountingBloom) takes; semi-sorted
///   ([`CuckooShape::semi_sorted`]) one bit less. A lookup touches two cache lines, at the same time.
/// * It cannot list items, merge or grow; [`GrowableCuckoo`] grows.
///
/// ```text
/// item ─▶ ItemHash ─▶ fingerprint 0x2c7, buckets 3 and 8: each leads to the other by the fingerprint alone
///
///    0     1     2     3     4     5     6     7     8     9
///  │ 1f3 │ 0a0 │ 3e1 │▶2c7◀│ 111 │ 0f4 │ 2aa │ 19c │ 3b0 │ 046 │     in either: mayhap; in none: no
///  │ 33d │  ·  │ 2c0 │ 0e5 │  ·  │ 1b1 │ 2c7 │  ·  │ 092 │ 3ff │
/// ```
///
/// ```
/// use mayhap::Cuckoo;
///
/// let mut online = Cuckoo::for_capacity(1_000_000, 0.01, 0)?;
/// assert!(online.insert("ada")?); // new, certainly
/// assert!(!online.insert("ada")?); // a second copy
/// assert_eq!(online.count("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// assert!(online.remove("ada") && !online.may_contain("ada"));
/// assert!(!online.remove("ada")); // certainly not in: nothing changed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT 2014.
#[derive(Debug)]
pub struct Cuckoo {
    shape: CuckooShape,
    scheme: HashScheme,
    table: Table,
}

impl Cuckoo {
    /// The smallest filter for `capacity` items at `target_fpr`.
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose.
    ///
    /// # Errors
    /// [`BuildError`] for parameters that make no sense, and for memory the system refuses.
    pub fn for_capacity(
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(CuckooShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: CuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme: scheme.into(), table: Table::new(shape.placement(), shape.layout())? })
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Puts one copy of `item` in. `true`: it was certainly not in before.
    /// `false`: mayhap it was; there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if no place can be freed for it, [`InsertError::TooManyCopies`] if its two buckets hold
    /// nothing but copies of it. Nothing changed.
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

    /// Puts one copy of each of `items` in and says how many of them were certainly not in before. Much faster than one
    /// by one once the filter is larger than the cache.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), at the first item that is refused. All items before it are in, and none behind it;
    /// [`inserted`](Self::inserted) has grown by their number. To give the whole batch again would insert them twice.
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

    /// `false`: not in, or removed as often as inserted. `true`: mayhap.
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

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it faster than asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.table.holds_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.table.holds_batch(&self.scheme, hashes, answers);
    }

    /// How many copies of `item` are in: never fewer than there are, and 0 is certain. Copies of others with the same
    /// fingerprint and buckets count too.
    #[must_use]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.scheme.hash(item))
    }

    /// [`count`](Self::count) for an item already hashed.
    #[must_use]
    pub fn count_hash(&self, hash: ItemHash) -> u64 {
        self.table.count(hash)
    }

    /// Takes one copy of `item` out. **Only for items that were inserted**: one that was not, but answers *mayhap*, takes the
    /// fingerprint of another, which is lost. Where that cannot be ruled out, use [`remove_verified`](Self::remove_verified).
    ///
    /// `true`: a copy was taken out. `false`: it was certainly not in, and nothing changed.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        self.table.remove(hash)
    }

    /// Takes one copy of `item` out if the caller's own store confirms that it was in. `true`: it was taken out.
    ///
    /// `was_in_store` is asked only if the filter says *mayhap*, so deletions of what never was do not reach the store either. It
    /// is the place to delete from the store and say whether there was something to delete: the store decides, the
    /// filter follows. Where every insertion and every removal goes along with one in the store, in the same order, nothing is
    /// ever lost, whoever asks for removals of whatever.
    ///
    /// ```
    /// use mayhap::Cuckoo;
    /// use std::collections::BTreeSet;
    ///
    /// let mut store = BTreeSet::from(["coupon-1"]);
    /// let mut filter = Cuckoo::for_capacity(100, 0.01, 0)?;
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

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// The measurements: buckets, fingerprints, capacity, promise.
    #[must_use]
    pub const fn shape(&self) -> &CuckooShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Items it was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Copies in it: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// The rate by the model, for the copies in it. Copies of one item count as different items, so the rate is no higher.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shape.expected_fpr(self.inserted())
    }

    /// The share of places taken.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted() as f64 / self.shape.slots() as f64
    }

    /// Memory the buckets take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.lines().memory_bytes()
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { table: self.table.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `Cuckoo`.
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
/// The same places for items, in semi-sorted buckets.
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
        let table = Table::decoded(shape.placement(), shape.layout(), header.inserted, body)?;
        Ok(Self { shape, scheme, table })
    }
}
