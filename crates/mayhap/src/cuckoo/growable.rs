//! The cuckoo filter that doubles.

use super::growable_shape::GrowableCuckooShape;
use super::table::{CuckooTable, NoRoom};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::explain::{BucketLookup, Density};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;

/// **Take a [`Growing`](crate::Growing) instead**, which needs no largest capacity in advance, or a
/// [`Cuckoo`](crate::Cuckoo) of that capacity.
///
/// A cuckoo filter that doubles when it is full, without needing the items again, up to a capacity chosen in
/// advance.
///
/// * **Only remove items you inserted**, as with [`Cuckoo`](crate::Cuckoo). Calling [`remove`](Self::remove)
///   with an item that was never inserted but answers *maybe* deletes another item's entry and causes a false
///   negative. [`remove_verified`](Self::remove_verified) checks your own store first.
/// * Under that condition **no** is certain through any number of doublings. **maybe** can be a false
///   positive: the false-positive rate is at most `target_fpr` at every size. Insertions past the largest
///   capacity are rejected, so the rate cannot rise further.
/// * A lookup reads two buckets, no matter how often the filter has doubled. There is only one table.
/// * Growth costs memory in advance: to double ten times, fingerprints begin ten bits longer, and lose one
///   bit each time. At its largest it takes as much as a [`Cuckoo`](crate::Cuckoo) of that capacity: 10.5
///   bits per item at 1 %.
/// * Doubling rewrites the whole table and needs the memory of both sizes while it runs, so an occasional
///   insertion takes long. If the memory is refused, nothing changes, and insertions succeed while there is
///   room.
/// * It holds at most `2 · bucket_size` copies of one item, at any size. It never shrinks, and cannot list or
///   merge items.
///
/// ```text
///  fingerprint: tag, spare bits             one spare bit moves …          … to the end of the bucket's number
///
///  bucket  5 │ tag 011 │ tag 101 │    ──▶   bucket 10 │ tag 11 │
///                                           bucket 11 │ tag 01 │
/// ```
///
/// ```
/// use mayhap::GrowableCuckoo;
///
/// let mut seen = GrowableCuckoo::new(1_000, 1_000_000, 0.01)?.with_seed(0);
/// for item in 0..10_000_u64 {
///     seen.insert(&item)?;
/// }
/// assert_eq!(seen.doublings(), 3);
/// assert!((0..10_000_u64).all(|item| seen.may_contain(&item)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT
/// 2014. The moving bits follow J. Apple, *Stretching Your Data With Taffy Filters*, 2022.
#[derive(Debug)]
pub struct GrowableCuckoo {
    shape: GrowableCuckooShape,
    scheme: HashScheme,
    doublings: u32,
    /// The capacity by the plan after this many doublings.
    capacity_now: u64,
    table: CuckooTable,
}

impl GrowableCuckoo {
    /// Creates a filter with room for `initial_capacity` items that can grow to `largest_capacity` items,
    /// always at `target_fpr`.
    ///
    /// The hash is the fast one with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) draws a secret key, and [`for_growth`](Self::for_growth) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn new(initial_capacity: u64, largest_capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_growth(initial_capacity, largest_capacity, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_growth(
        initial_capacity: u64,
        largest_capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(
            GrowableCuckooShape::for_growth(initial_capacity, largest_capacity, target_fpr)?,
            scheme,
        )
    }

    /// Creates an empty filter that grows by this plan.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: GrowableCuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let table = CuckooTable::new(shape.placement(0), shape.layout(0))?;
        Ok(Self { shape, scheme: scheme.into(), doublings: 0, capacity_now: shape.capacity_after(0), table })
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

    /// Inserts one copy of `item` and doubles the filter if necessary. `true`: it was certainly not a member
    /// before. `false`: it may have been one. Either way there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the filter is full and cannot double again, or if items were chosen to
    /// collide; [`InsertError::CannotGrow`] if the memory to double was refused and there is no other room;
    /// [`InsertError::TooManyCopies`] if the two buckets of the item hold nothing but copies of it. No member
    /// is lost.
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
        if self.inserted() < self.capacity_now
            && let Ok(new) = self.table.insert(hash)
        {
            return Ok(new);
        }
        self.insert_growing(hash)
    }

    /// Inserts an item that finds no room, or that would exceed the present capacity.
    #[cold]
    fn insert_growing(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        let full = InsertError::Full { inserted: self.inserted(), capacity: self.capacity() };
        if self.inserted() >= self.capacity() {
            return Err(full);
        }
        // Copies of one item have only two buckets at any table size.
        let limit = 2 * u64::from(self.shape.bucket_size());
        if self.count_hash(hash) >= limit {
            return Err(InsertError::TooManyCopies { limit });
        }
        loop {
            // Unless items were chosen to collide, there is room until the table is nearly full. Colliding
            // items must not make it grow, except in a small table: there nine items may share the same two
            // buckets by chance, and growing costs very little.
            let outgrown = self.inserted() >= self.capacity_now() / 4 * 3
                || self.shape.buckets(self.doublings) < SMALL_BUCKETS;
            let refused = if outgrown { self.double().err() } else { None };
            match (self.table.insert(hash), refused) {
                (Ok(new), _) => return Ok(new),
                (Err(NoRoom::Copies), _) => return Err(InsertError::TooManyCopies { limit }),
                (Err(NoRoom::Full), Some(cause)) => {
                    return Err(InsertError::CannotGrow { capacity: self.inserted(), layers: 1, cause });
                }
                (Err(NoRoom::Full), None) if outgrown && self.doublings < self.shape.max_doublings() => {}
                (Err(NoRoom::Full), None) => return Err(full),
            }
        }
    }

    /// Doubles the number of buckets, if the plan allows it.
    fn double(&mut self) -> Result<(), BuildError> {
        if self.doublings < self.shape.max_doublings() {
            self.table.double()?;
            self.doublings += 1;
            self.capacity_now = self.shape.capacity_after(self.doublings);
        }
        Ok(())
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

    fn insert_all<H: Hashed>(&mut self, mut items: &[H]) -> Result<u64, InsertError> {
        let mut new = 0;
        while !items.is_empty() {
            let room = self.capacity_now().saturating_sub(self.inserted());
            let some = &items[..items.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
            let before = self.inserted();
            let (fresh, result) = self.table.insert_batch(&self.scheme, some);
            new += fresh;
            items = &items[(self.inserted() - before) as usize..];
            if (result.is_err() || some.is_empty())
                && let Some(next) = items.first()
            {
                new += u64::from(self.insert_growing(next.hashed(&self.scheme))?);
                items = &items[1..];
            }
        }
        Ok(new)
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

    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        self.table.trace(hash)
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        self.table.density(name, parts)
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
    /// `true`: a copy was removed. `false`: it was certainly not a member, and nothing changed. The filter
    /// never shrinks.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        self.table.remove(hash)
    }

    /// Removes one copy of `item` if the caller's own store confirms that it was inserted. The store is asked
    /// only if the filter answers *maybe*. `true`: it was removed. See
    /// [`Cuckoo::remove_verified`](crate::Cuckoo::remove_verified).
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

    /// Removes all items. The table keeps its size.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Returns the plan that it grows by.
    #[must_use]
    pub const fn shape(&self) -> &GrowableCuckooShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns how often the filter has doubled.
    #[must_use]
    pub const fn doublings(&self) -> u32 {
        self.doublings
    }

    /// Returns the number of items that the filter is sized for after the last doubling.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the number of items it holds before it doubles.
    #[must_use]
    pub const fn capacity_now(&self) -> u64 {
        self.capacity_now
    }

    /// Returns the promised false-positive rate, which holds at any size.
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

    /// Returns the share of slots in use at its present size.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted() as f64 / self.shape.slots(self.doublings) as f64
    }

    /// Returns the memory that the buckets take now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.lines().memory_bytes()
    }

    /// Returns the bits of memory per stored item, or infinity if it holds none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted() as f64
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

    /// Decodes a filter and checks every byte. It continues to grow as the encoded one would have.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `GrowableCuckoo`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// A table with fewer buckets than this grows whenever an item finds no room. It takes a few kilobytes at
/// most.
const SMALL_BUCKETS: u64 = 256;

/// Packed buckets, as in a [`Cuckoo`](crate::Cuckoo) of placement scheme 1 while it has not doubled.
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for GrowableCuckoo {}

impl Storable for GrowableCuckoo {
    const KIND: Option<Kind> = Some(Kind::GrowableCuckoo);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::GrowableCuckoo, PLACEMENT, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted();
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.base_buckets();
        header.parameters[1] = u64::from(self.shape.bucket_size());
        header.parameters[2] = u64::from(self.shape.tag_bits());
        header.parameters[3] = u64::from(self.shape.max_doublings());
        header.parameters[4] = u64::from(self.doublings);
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(5)?;
        let scheme = header.scheme()?;
        let shape = GrowableCuckooShape::from_parts(
            header.parameters[0],
            header.parameter_u32(1, "bucket size")?,
            header.parameter_u32(2, "fingerprint bits")?,
            header.parameter_u32(3, "most doublings")?,
            header.capacity,
            header.target_fpr,
        )?;
        let doublings = header.parameter_u32(4, "doublings")?;
        if doublings > shape.max_doublings() {
            return Err(DecodeError::BadField { field: "doublings", got: doublings.into() });
        }
        let table =
            CuckooTable::decoded(shape.placement(doublings), shape.layout(doublings), header.inserted, body)?;
        Ok(Self { shape, scheme, doublings, capacity_now: shape.capacity_after(doublings), table })
    }
}
