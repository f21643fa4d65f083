//! The cuckoo filter that grows table by table.

mod explain;
mod shape;
mod tables;

pub use shape::ScalableCuckooShape;

use self::tables::{Place, Tables};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, MAX_INSERTED, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::scalable;
use crate::store::Relocate;

/// RedisBloom's cuckoo filter: one byte per slot, and another table when the newest is full. For its data, and for programs that must behave as it does.
///
/// * **Remove only what was inserted.** As for [`Cuckoo`](crate::Cuckoo): [`remove`](Self::remove) of an item that was never in, but answers
///   *mayhap*, loses another. [`remove_verified`](Self::remove_verified) asks somebody who knows.
/// * Keeping to that, **no** is certain, whatever was inserted, removed, refused and compacted. **mayhap** is wrong for about `2 · bucket_size / 255` of the non-members
///   *for every full table*: 1.6 % with buckets of two, and the more tables, the more often. There is no rate to ask for.
/// * An insertion fails only if the filter may not grow, or a growth is refused. Nothing is changed then, to the last slot.
/// * It takes any number of copies of an item, by growing: `2 · bucket_size` fit into a table.
/// * 16 to 22 bits per item, because the order in which items give way to each other ends in a circle long before a table is full.
///   [`GrowableCuckoo`](crate::GrowableCuckoo) takes half of that, keeps a rate, and asks one table; take that one where nothing has to look like RedisBloom.
/// * A lookup touches two cache lines of every table. A growth takes the memory of the new table, and moves none of the others but where they are small.
///
/// ```text
/// item ─▶ ItemHash ─▶ fingerprint 1 … 255, and two buckets, cut to the size of each table
///
///   table 0  │ 1f 0a │ 3e  · │ 11 c4 │ aa 9c │                                    full but for one slot
///   table 1  │ 7f  · │  ·  · │ 2a  · │  ·  · │ 90  · │  ·  · │  ·  · │  ·  · │     expansion 2
/// ```
///
/// ```
/// use mayhap::ScalableCuckoo;
///
/// let mut online = ScalableCuckoo::for_capacity(1_000, 0)?;
/// assert!(online.insert("ada")?); // new, certainly
/// assert!(!online.insert("ada")?); // a second copy
/// assert!(!online.insert_unique("ada")?); // none more
/// assert_eq!(online.count("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// for id in 0..5_000_u64 {
///     online.insert(&id)?;
/// }
/// assert!(online.tables() > 4 && online.may_contain("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A number as scheme is the seed of our fast hash. `codec::redis_cuckoo` makes and reads filters with RedisBloom's own; those it can write, too.
#[derive(Debug)]
pub struct ScalableCuckoo {
    shape: ScalableCuckooShape,
    scheme: HashScheme,
    tables: Tables,
    inserted: u64,
    /// Since the last compaction.
    removed: u64,
}

/// When removals exceed this share of what is left, the newest table is emptied into the others.
const COMPACT_FROM: f64 = 0.1;
/// Items whose buckets are on their way at once.
const CHUNK: usize = 32;

impl ScalableCuckoo {
    /// A filter whose first table is for about `capacity` items; see [`ScalableCuckooShape::for_capacity`].
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or past the limit, and for memory the system refuses.
    pub fn for_capacity(capacity: u64, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::with_shape(ScalableCuckooShape::for_capacity(capacity)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: ScalableCuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let (shape, tables) = (shape.settled(), Tables::new(&shape, 1)?);
        Ok(Self { shape, scheme: scheme.into(), tables, inserted: 0, removed: 0 })
    }

    /// An empty filter of so many tables that counts so many items: another program fills the slots.
    #[cfg(feature = "formats")]
    pub(crate) fn of_tables(
        shape: ScalableCuckooShape,
        scheme: HashScheme,
        tables: u64,
        inserted: u64,
        removed: u64,
    ) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme, tables: Tables::new(&shape, tables)?, inserted, removed })
    }

    /// The slots of table `index`, the oldest being 0.
    #[cfg(feature = "formats")]
    pub(crate) fn table_range(&self, index: usize) -> (usize, usize) {
        self.tables.range(index)
    }

    /// The first slot of the table that has this one, and how many it has.
    #[cfg(feature = "formats")]
    pub(crate) fn table_around(&self, slot: u64) -> Option<(usize, usize)> {
        self.tables.table_of(slot).map(|index| self.tables.range(index))
    }

    /// Slots from `at` on, over all tables.
    #[cfg(feature = "formats")]
    pub(crate) fn slot_bytes(&self, at: usize, count: usize) -> Vec<u8> {
        let count = count.min(self.tables.len().saturating_sub(at));
        let mut slots = Vec::with_capacity(count);
        self.tables.slots().extend_le_bytes(at, count, &mut slots);
        slots
    }

    /// Puts `slots` from `at` on, over all tables; there are so many.
    #[cfg(feature = "formats")]
    pub(crate) fn put_slots(&mut self, at: usize, slots: &[u8]) {
        self.tables.slots_mut().put_le_bytes(at, slots);
    }

    /// Copies as RedisBloom counts them: twice where both buckets are one.
    #[cfg(feature = "formats")]
    pub(crate) fn count_bucket_by_bucket(&self, hash: ItemHash) -> u64 {
        self.tables.count_of(Place::of(hash), true)
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Puts one copy of `item` in, growing if that takes more room. `true`: it was certainly not in before.
    /// `false`: mayhap it was; there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if it may not grow, [`InsertError::CannotGrow`] if a growth is refused. Nothing changed.
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

    /// Puts one copy of `item` in without asking whether it was: as [`insert`](Self::insert), and faster the more tables there are. `CF.ADD`.
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
        let place = Place::of(hash);
        while !self.tables.put(place) && !self.tables.put_by_moving(place, self.shape.max_iterations()) {
            // The table this adds is empty: the next round ends it.
            self.add_table()?;
        }
        self.inserted = (self.inserted + 1).min(self.capacity());
        Ok(())
    }

    /// [`insert_copy_hash`](Self::insert_copy_hash), but looks for the shortest way to a free slot before the filter grows, which RedisBloom does not: its order of
    /// moves ends in a circle. Tables fill to 0.85 with buckets of two and 0.95 with buckets of four, so that a filter takes half the memory. Everything else reads
    /// such filters as any other, and both ways of inserting may be mixed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_copy_hash_thorough(&mut self, hash: ItemHash) -> Result<(), InsertError> {
        let place = Place::of(hash);
        while !self.tables.put(place) && !self.tables.put_by_searching(place) {
            // The table this adds is empty: the next round ends it.
            self.add_table()?;
        }
        self.inserted = (self.inserted + 1).min(self.capacity());
        Ok(())
    }

    /// Puts one copy in if one of its buckets has a free slot: nothing is moved, and the filter does not grow. `false`: nothing changed.
    pub fn insert_copy_hash_if_free(&mut self, hash: ItemHash) -> bool {
        let is_in = self.tables.put(Place::of(hash));
        if is_in {
            self.inserted = (self.inserted + 1).min(self.capacity());
        }
        is_in
    }

    /// Puts `item` in unless mayhap it is in already. `true`: it was certainly not, and is now. `false`: nothing changed. `CF.ADDNX`.
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

    /// Puts one copy of each of `items` in and says how many of them were certainly not in before. Faster than one by one once the
    /// filter is larger than the cache.
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
        let mut new = 0;
        let mut hashes = Vec::with_capacity(CHUNK.min(items.len()));
        for chunk in items.chunks(CHUNK) {
            hashes.clear();
            hashes.extend(chunk.iter().map(|item| item.hashed(&self.scheme)));
            for index in 0..self.tables() {
                hashes.iter().for_each(|&hash| self.tables.prefetch(index, Place::of(hash)));
            }
            for &hash in &hashes {
                new += u64::from(self.insert_hash(hash)?);
            }
        }
        Ok(new)
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
        self.tables.holds(Place::of(hash))
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it faster than asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer_all(hashes, answers);
    }

    /// The oldest table one chunk behind; the others, if there are any, for whoever is not found yet.
    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        answers.reset(items.len());
        let start = |hash| {
            let place = Place::of(hash);
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

    /// How many copies of `item` are in: never fewer than there are, and 0 is certain. Copies of others with the same
    /// fingerprint and buckets count too.
    #[must_use]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.scheme.hash(item))
    }

    /// [`count`](Self::count) for an item already hashed.
    #[must_use]
    pub fn count_hash(&self, hash: ItemHash) -> u64 {
        self.tables.count_of(Place::of(hash), false)
    }

    /// Takes one copy of `item` out. **Only for items that were inserted**: one that was not, but answers *mayhap*, takes the
    /// fingerprint of another, which is lost. Where that cannot be ruled out, use [`remove_verified`](Self::remove_verified).
    ///
    /// `true`: a copy was taken out; when many were, the newest table is emptied into the others, which takes a pass over it.
    /// `false`: it was certainly not in, and nothing changed.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        if !self.tables.take(Place::of(hash)) {
            return false;
        }
        self.inserted = self.inserted.saturating_sub(1);
        self.removed = self.removed.saturating_add(1).min(MAX_INSERTED);
        if self.tables() > 1 && self.removed as f64 > self.inserted as f64 * COMPACT_FROM {
            self.compact_tables(false);
        }
        true
    }

    /// Takes one copy of `item` out if the caller's own store confirms that it was in; as [`Cuckoo::remove_verified`](crate::Cuckoo::remove_verified).
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

    /// Moves what is in newer tables into free slots of older ones, and gives tables back that are empty then. `CF.COMPACT`.
    ///
    /// `false`: nothing could be moved or given back, no removals were counted, and nothing changed.
    pub fn compact(&mut self) -> bool {
        self.compact_tables(true)
    }

    fn compact_tables(&mut self, all: bool) -> bool {
        let changed = self.tables.compact(all) || self.removed > 0;
        self.removed = 0;
        // A count that came from elsewhere may be wrong, but never says more than there is room for.
        self.inserted = self.inserted.min(self.capacity());
        changed
    }

    /// One more table now, rather than when an item next needs it.
    ///
    /// # Errors
    /// [`InsertError::Full`] if it may not grow, [`InsertError::CannotGrow`] if a growth is refused. Nothing changed.
    #[cold]
    pub fn add_table(&mut self) -> Result<(), InsertError> {
        if self.shape.expansion() == 0 {
            return Err(InsertError::Full { inserted: self.inserted, capacity: self.capacity() });
        }
        let (capacity, layers) = (self.capacity(), self.tables());
        self.tables.grow(&self.shape).map_err(|cause| InsertError::CannotGrow { capacity, layers, cause })
    }

    /// Forgets everything, and gives all tables but the first back.
    pub fn clear(&mut self) {
        self.tables.clear();
        (self.inserted, self.removed) = (0, 0);
    }

    /// From now on all tables together may take `limit_bytes`, or any amount. A filter that is larger already stays as it is.
    pub const fn limit_memory(&mut self, limit_bytes: Option<u64>) {
        self.shape = self.shape.limited(limit_bytes);
    }

    /// The measurements: buckets, slots, moves, expansion.
    #[must_use]
    pub const fn shape(&self) -> &ScalableCuckooShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// How many tables there are.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.count()
    }

    /// Slots in all its tables. It grows, as a rule, when half of the newest are taken.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.tables.len() as u64
    }

    /// The share of non-members one full table takes for members; there is no other promise.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Copies in it: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Removals since the last compaction, by hand or by itself.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }

    /// How many items inserts have moved to other buckets so far, those moved back included: what they cost. Where they
    /// [searched](Self::insert_copy_hash_thorough) for room, the buckets searched. A copy, and what is decoded, begins at 0.
    #[must_use]
    pub const fn moves(&self) -> u64 {
        self.tables.moves()
    }

    /// What inserts have cost so far, whether they found room or not: words of eight slots looked at, where a [move](Self::moves) counts as 16
    /// of them, because it waits for memory. To limit what one request may take. A copy, and what is decoded, begins at 0.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.tables.work()
    }

    /// What a question about an item that is not in costs, in units of [`work`](Self::work): it looks at all tables.
    #[must_use]
    pub fn lookup_work(&self) -> u64 {
        self.tables.lookup_work(self.tables())
    }

    /// The rate by the model, for the slots taken now. Takes a pass over the tables.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        scalable::chain_fpr((0..self.tables()).map(|index| {
            let (_, slots) = self.tables.range(index);
            self.shape.full_table_fpr(self.tables.taken(index) as f64 / slots as f64)
        }))
    }

    /// The share of slots taken in all tables, by its own count.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted as f64 / self.capacity() as f64
    }

    /// Memory the slots take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.tables.slots().memory_bytes()
    }

    /// Bits of memory per item counted so far; infinite while there are none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted as f64
    }

    /// Has its memory put elsewhere, where that is better.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        self.tables.relocate(by);
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { tables: self.tables.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `ScalableCuckoo`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// Placement scheme 1: RedisBloom's.
const PLACEMENT: u16 = 1;
/// How "no limit" travels.
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
        // As far as logarithms agree: the last digit of one depends on the system that computed it.
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
        let tables = Tables::of_slots(&shape, tables, lines)?;
        let shape = shape.limited((limit != NO_LIMIT).then_some(limit));
        Ok(Self { shape, scheme, tables, inserted: header.inserted, removed })
    }
}
