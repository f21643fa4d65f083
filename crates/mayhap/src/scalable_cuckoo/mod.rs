//! The cuckoo filter that grows by adding tables.

mod explain;
mod shape;
mod tables;

pub use shape::ScalableCuckooShape;

use self::tables::{CuckooTables, TablePlace};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, MAX_INSERTED, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::scalable;
use crate::store::Relocate;

/// RedisBloom's cuckoo filter: one byte per slot, and another table when the newest is full. Use it for
/// RedisBloom's data and for programs that must behave like RedisBloom.
///
/// * **Only remove items you inserted**, as with [`Cuckoo`](crate::Cuckoo). Calling [`remove`](Self::remove)
///   with an item that was never inserted but answers *maybe* deletes another item's entry and causes a false
///   negative. [`remove_verified`](Self::remove_verified) checks your own store first.
/// * Under that condition **no** is certain after any insertions, removals, failures and compactions.
///   **maybe** is a false positive for about `2 · bucket_size / 255` of the non-members *for every full
///   table*: 1.6 % with buckets of two, and more with every table. You cannot choose the rate.
/// * An insertion fails only if the filter may not or cannot grow. Nothing is changed then, in any slot.
/// * It accepts any number of copies of an item by growing: `2 · bucket_size` copies fit into a table.
/// * 16 to 22 bits per item, because RedisBloom's eviction order runs into a cycle long before a table is
///   full. [`GrowableCuckoo`](crate::GrowableCuckoo) takes half of that, keeps a rate, and has one table. Use
///   it unless you need compatibility with RedisBloom.
/// * A lookup touches two cache lines of every table. A growth allocates the new table and moves only small
///   existing tables.
///
/// ```text
/// item ─▶ ItemHash ─▶ fingerprint 1 … 255, and two buckets, reduced to the size of each table
///
///   table 0  │ 1f 0a │ 3e  · │ 11 c4 │ aa 9c │                                    full except one slot
///   table 1  │ 7f  · │  ·  · │ 2a  · │  ·  · │ 90  · │  ·  · │  ·  · │  ·  · │     expansion 2
/// ```
///
/// ```
/// use mayhap::ScalableCuckoo;
///
/// let mut online = ScalableCuckoo::for_capacity(1_000, 0)?;
/// assert!(online.insert("ada")?); // certainly new
/// assert!(!online.insert("ada")?); // a second copy
/// assert!(!online.insert_unique("ada")?); // not inserted again
/// assert_eq!(online.count("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// for id in 0..5_000_u64 {
///     online.insert(&id)?;
/// }
/// assert!(online.tables() > 4 && online.may_contain("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A number as scheme is the seed of our fast hash. `mayhap_formats::redis_cuckoo` creates and reads filters with
/// RedisBloom's own hash; only those can be written in its format.
#[derive(Debug)]
pub struct ScalableCuckoo {
    shape: ScalableCuckooShape,
    scheme: HashScheme,
    tables: CuckooTables,
    inserted: u64,
    /// Removals since the last compaction.
    removed: u64,
}

/// When removals exceed this share of the remaining items, the newest table is emptied into the others.
const COMPACT_FROM: f64 = 0.1;
/// Items prefetched together.
const CHUNK: usize = 32;

impl ScalableCuckoo {
    /// Creates a filter whose first table is for about `capacity` items; see
    /// [`ScalableCuckooShape::for_capacity`].
    ///
    /// A number as `scheme` is the seed of the fast hash. Use [`HashScheme::keyed_random`] if untrusted users
    /// choose the items.
    ///
    /// # Errors
    /// [`BuildError`] if `capacity` is 0 or above the limit, or the system refuses the memory.
    pub fn for_capacity(capacity: u64, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::with_shape(ScalableCuckooShape::for_capacity(capacity)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: ScalableCuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let (shape, tables) = (shape.settled(), CuckooTables::new(&shape, 1)?);
        Ok(Self { shape, scheme: scheme.into(), tables, inserted: 0, removed: 0 })
    }

    /// Creates a filter with empty tables and these counts, for another program to fill the slots.
    pub(crate) fn of_tables(
        shape: ScalableCuckooShape,
        scheme: HashScheme,
        tables: u64,
        inserted: u64,
        removed: u64,
    ) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme, tables: CuckooTables::new(&shape, tables)?, inserted, removed })
    }

    /// Returns the first slot and the number of slots of table `index`. The oldest is 0.
    pub(crate) fn table_range(&self, index: usize) -> (usize, usize) {
        self.tables.range(index)
    }

    /// Returns the first slot and the number of slots of the table that contains `slot`.
    pub(crate) fn table_around(&self, slot: u64) -> Option<(usize, usize)> {
        self.tables.table_of(slot).map(|index| self.tables.range(index))
    }

    /// Returns at most `count` slots from `at` on, counted over all tables.
    pub(crate) fn slot_bytes(&self, at: usize, count: usize) -> Vec<u8> {
        let count = count.min(self.tables.len().saturating_sub(at));
        let mut slots = Vec::with_capacity(count);
        self.tables.slots().extend_le_bytes(at, count, &mut slots);
        slots
    }

    /// Writes `slots` from `at` on, counted over all tables. They must fit.
    pub(crate) fn put_slots(&mut self, at: usize, slots: &[u8]) {
        self.tables.slots_mut().put_le_bytes(at, slots);
    }

    /// Counts copies like RedisBloom: twice if both buckets are the same.
    pub(crate) fn count_bucket_by_bucket(&self, hash: ItemHash) -> u64 {
        self.tables.count_of(TablePlace::of(hash), true)
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Inserts one copy of `item` and grows if necessary. `true`: it was certainly not a member before.
    /// `false`: it may have been one. Either way there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the filter may not grow, [`InsertError::CannotGrow`] if growing fails. On
    /// error, nothing has changed.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        let new = !self.may_contain_hash(hash);
        self.insert_copy_hash(hash)?;
        Ok(new)
    }

    /// Inserts one copy of `item` like [`insert`](Self::insert), but without a lookup: faster the more tables
    /// there are. `CF.ADD`.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_copy<I: Item + ?Sized>(&mut self, item: &I) -> Result<(), InsertError> {
        self.insert_copy_hash(self.scheme.hash(item))
    }

    /// [`insert_copy`](Self::insert_copy) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_copy_hash(&mut self, hash: ItemHash) -> Result<(), InsertError> {
        let place = TablePlace::of(hash);
        while !self.tables.put(place) && !self.tables.put_by_moving(place, self.shape.max_iterations()) {
            // The new table is empty, so the next round succeeds.
            self.add_table()?;
        }
        self.inserted = (self.inserted + 1).min(self.capacity());
        Ok(())
    }

    /// Same as [`insert_copy_hash`](Self::insert_copy_hash), but searches for the shortest path to a free
    /// slot before the filter grows. RedisBloom does not: its order of moves runs into a cycle. Tables fill
    /// to 0.85 with buckets of two and to 0.95 with buckets of four, so a filter takes half the memory. All
    /// other methods and programs read such filters like any other, and both ways of inserting may be mixed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_copy_hash_thorough(&mut self, hash: ItemHash) -> Result<(), InsertError> {
        let place = TablePlace::of(hash);
        while !self.tables.put(place) && !self.tables.put_by_searching(place) {
            // The new table is empty, so the next round succeeds.
            self.add_table()?;
        }
        self.inserted = (self.inserted + 1).min(self.capacity());
        Ok(())
    }

    /// Inserts one copy if one of its buckets has a free slot. It moves nothing and does not grow the filter.
    /// `false`: nothing changed.
    pub fn insert_copy_hash_if_free(&mut self, hash: ItemHash) -> bool {
        let is_in = self.tables.put(TablePlace::of(hash));
        if is_in {
            self.inserted = (self.inserted + 1).min(self.capacity());
        }
        is_in
    }

    /// Inserts `item` unless it may be a member already. `true`: it was certainly not one, and is now.
    /// `false`: nothing changed. `CF.ADDNX`.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_unique<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.scheme.hash(item))
    }

    /// [`insert_unique`](Self::insert_unique) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_unique_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        if self.may_contain_hash(hash) {
            return Ok(false);
        }
        self.insert_copy_hash(hash)?;
        Ok(true)
    }

    /// Inserts one copy of each of `items` and returns how many of them were certainly not members before. If
    /// the filter is larger than the cache, this is faster than single inserts.
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
        let mut new = 0;
        let mut hashes = Vec::with_capacity(CHUNK.min(items.len()));
        for chunk in items.chunks(CHUNK) {
            hashes.clear();
            hashes.extend(chunk.iter().map(|item| item.hashed(&self.scheme)));
            for index in 0..self.tables() {
                hashes.iter().for_each(|&hash| self.tables.prefetch(index, TablePlace::of(hash)));
            }
            for &hash in &hashes {
                new += u64::from(self.insert_hash(hash)?);
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
        self.tables.holds(TablePlace::of(hash))
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer_all(hashes, answers);
    }

    /// Looks up the oldest table one chunk after prefetching it, then the other tables for items not found
    /// yet.
    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        answers.reset(items.len());
        let start = |hash| {
            let place = TablePlace::of(hash);
            self.tables.prefetch(0, place);
            place
        };
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, places| {
            let mut pending = [0; CHUNK];
            let mut left = places.len();
            pending.iter_mut().zip(0..left).for_each(|(slot, index)| *slot = index);
            for table in 0..self.tables() {
                if table > 0 {
                    pending[..left].iter().for_each(|&index| self.tables.prefetch(table, places[index]));
                }
                let mut kept = 0;
                for at in 0..left {
                    let index = pending[at];
                    if self.tables.table_holds(table, places[index]) {
                        answers.set(first + index);
                    } else {
                        pending[kept] = index;
                        kept += 1;
                    }
                }
                left = kept;
            }
        });
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
        self.tables.count_of(TablePlace::of(hash), false)
    }

    /// Removes one copy of `item`. **Only remove items that were inserted**: removing any other item that
    /// answers *maybe* deletes another item's fingerprint and causes a false negative. If you cannot rule
    /// that out, use [`remove_verified`](Self::remove_verified).
    ///
    /// `true`: a copy was removed. After many removals, the newest table is emptied into the others, which
    /// takes a pass over it. `false`: it was certainly not a member, and nothing changed.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        if !self.tables.take(TablePlace::of(hash)) {
            return false;
        }
        self.inserted = self.inserted.saturating_sub(1);
        self.removed = self.removed.saturating_add(1).min(MAX_INSERTED);
        if self.tables() > 1 && self.removed as f64 > self.inserted as f64 * COMPACT_FROM {
            self.compact_tables(false);
        }
        true
    }

    /// Removes one copy of `item` if the caller's own store confirms that it was inserted, like
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

    /// Moves items from newer tables into free slots of older ones, and frees tables that become empty.
    /// `CF.COMPACT`.
    ///
    /// `false`: nothing could be moved or freed, no removals were counted, and nothing changed.
    pub fn compact(&mut self) -> bool {
        self.compact_tables(true)
    }

    fn compact_tables(&mut self, all: bool) -> bool {
        let changed = self.tables.compact(all) || self.removed > 0;
        self.removed = 0;
        // A decoded count may be wrong, but it never exceeds the number of slots.
        self.inserted = self.inserted.min(self.capacity());
        changed
    }

    /// Adds a table now instead of when an item next needs it.
    ///
    /// # Errors
    /// [`InsertError::Full`] if the filter may not grow, [`InsertError::CannotGrow`] if growing fails. On
    /// error, nothing has changed.
    #[cold]
    pub fn add_table(&mut self) -> Result<(), InsertError> {
        if self.shape.expansion() == 0 {
            return Err(InsertError::Full { inserted: self.inserted, capacity: self.capacity() });
        }
        let (capacity, layers) = (self.capacity(), self.tables());
        self.tables.grow(&self.shape).map_err(|cause| InsertError::CannotGrow { capacity, layers, cause })
    }

    /// Removes all items and frees all tables except the first.
    pub fn clear(&mut self) {
        self.tables.clear();
        (self.inserted, self.removed) = (0, 0);
    }

    /// Sets the memory limit of all tables together; `None` removes it. A filter that is already larger stays
    /// as it is.
    pub const fn limit_memory(&mut self, limit_bytes: Option<u64>) {
        self.shape = self.shape.limited(limit_bytes);
    }

    /// Returns the shape: buckets, slots, moves and expansion.
    #[must_use]
    pub const fn shape(&self) -> &ScalableCuckooShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of tables.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.count()
    }

    /// Returns the number of slots in all tables. The filter usually grows when half of the newest table's
    /// slots are taken.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.tables.len() as u64
    }

    /// Returns the false-positive rate of one full table. There is no promise for more tables.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of stored copies: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the number of removals since the last compaction, requested or automatic.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }

    /// Returns how many items all inserts have moved to other buckets, including those moved back. For
    /// inserts that [search](Self::insert_copy_hash_thorough) for room, it counts the buckets searched. It
    /// starts at 0 in a copy and in a decoded filter.
    #[must_use]
    pub const fn moves(&self) -> u64 {
        self.tables.moves()
    }

    /// Returns the cost of all inserts, successful or not, in words of eight slots read. A
    /// [move](Self::moves) counts as 16 words, because it waits for memory. Use it to limit the work of one
    /// request. It starts at 0 in a copy and in a decoded filter.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.tables.work()
    }

    /// Returns the cost of looking up a non-member, in units of [`work`](Self::work): it reads all tables.
    #[must_use]
    pub fn lookup_work(&self) -> u64 {
        self.tables.lookup_work(self.tables())
    }

    /// Returns the false-positive rate that the model predicts for the slots taken now. This reads all
    /// tables.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        scalable::chain_fpr((0..self.tables()).map(|index| {
            let (_, slots) = self.tables.range(index);
            self.shape.full_table_fpr(self.tables.taken(index) as f64 / slots as f64)
        }))
    }

    /// Returns the share of slots taken in all tables, by the filter's own count.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted as f64 / self.capacity() as f64
    }

    /// Returns the memory that the slots take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.tables.slots().memory_bytes()
    }

    /// Returns the bits of memory per counted item, or infinity if it holds none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted as f64
    }

    /// Moves the filter's memory to where `by` places it.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        self.tables.relocate(by);
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { tables: self.tables.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `ScalableCuckoo`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// Placement scheme 1: RedisBloom's.
const PLACEMENT: u16 = 1;
/// The encoding of "no limit".
const NO_LIMIT: u64 = u64::MAX;

impl codec::sealed::Sealed for ScalableCuckoo {}

impl Storable for ScalableCuckoo {
    const KIND: Option<Kind> = Some(Kind::ScalableCuckoo);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::ScalableCuckoo, PLACEMENT, Some(&self.scheme));
        header.capacity = self.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.target_fpr();
        header.parameters[0] = self.shape.buckets();
        header.parameters[1] = self.shape.bucket_size().into();
        header.parameters[2] = self.shape.max_iterations().into();
        header.parameters[3] = self.shape.expansion().into();
        header.parameters[4] = self.tables() as u64;
        header.parameters[5] = self.removed;
        header.parameters[6] = self.shape.limit_bytes().unwrap_or(NO_LIMIT);
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.tables.slots())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(7)?;
        let scheme = header.scheme()?;
        let [buckets, _, _, _, tables, removed, limit, _] = header.parameters;
        let shape = ScalableCuckooShape::from_parts(
            buckets,
            header.parameter_u32(1, "bucket size")?,
            header.parameter_u32(2, "moves")?,
            header.parameter_u32(3, "expansion")?,
        )?;
        let slots = shape.slots(tables)?;
        let bad = |field, got| Err(DecodeError::BadField { field, got });
        if header.capacity != slots {
            return bad("capacity", header.capacity);
        }
        // Compared with a tolerance: the last digit of a logarithm differs between systems.
        if header.target_fpr.is_nan() || (header.target_fpr - shape.target_fpr()).abs() > 1e-12 {
            return bad("target rate", header.target_fpr.to_bits());
        }
        if header.inserted > slots {
            return bad("inserted", header.inserted);
        }
        if removed > MAX_INSERTED {
            return bad("removed", removed);
        }
        let lines = body.lines(shape.memory_bytes(tables)?)?;
        lines.check_zero_from(slots * 8).map_err(|bit| DecodeError::StrayBit { bit })?;
        let tables = CuckooTables::of_slots(&shape, tables, lines)?;
        let shape = shape.limited((limit != NO_LIMIT).then_some(limit));
        Ok(Self { shape, scheme, tables, inserted: header.inserted, removed })
    }
}
