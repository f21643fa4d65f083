//! The cuckoo filter that doubles.

use super::growable_shape::GrowableCuckooShape;
use super::table::{NoRoom, Table};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::explain::{BucketLookup, Density};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;

/// A cuckoo filter that doubles when it is full, without the items, up to a size told beforehand.
///
/// * **Remove only what was inserted.** As for [`Cuckoo`](crate::Cuckoo): [`remove`](Self::remove) of an item that was never in, but answers
///   *mayhap*, loses another. [`remove_verified`](Self::remove_verified) asks somebody who knows.
/// * Keeping to that, **no** is certain, through any number of doublings. **mayhap** is wrong for at most `target_fpr` of the non-members,
///   at every size; past the largest capacity insertions are refused, so that this stays so.
/// * A lookup is two buckets, however often it has doubled. There is never a chain of filters to ask.
/// * It pays in advance: to double ten times takes fingerprints that begin ten bits longer, and lose one each time. At its largest it takes
///   what a [`Cuckoo`](crate::Cuckoo) of that size takes.
/// * Doubling goes over the whole table, and needs the memory of both sizes while it does: one insertion now and then takes long. If the
///   memory cannot be had, nothing changes, and items go on going in as long as there is room.
/// * It takes at most `2 · bucket_size` copies of one item, at any size.
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
/// let mut seen = GrowableCuckoo::for_growth(1_000, 1_000_000, 0.01, 0)?;
/// for item in 0..10_000_u64 {
///     seen.insert(&item)?;
/// }
/// assert_eq!(seen.doublings(), 3);
/// assert!((0..10_000_u64).all(|item| seen.may_contain(&item)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT 2014; the bits that move follow
/// J. Apple, *Stretching Your Data With Taffy Filters*, 2022.
#[derive(Debug)]
pub struct GrowableCuckoo {
    shape: GrowableCuckooShape,
    scheme: HashScheme,
    doublings: u32,
    /// What the plan says for so many doublings.
    capacity_now: u64,
    table: Table,
}

impl GrowableCuckoo {
    /// A filter with room for `initial_capacity` items that can grow until it has room for `largest_capacity`, always at
    /// `target_fpr`.
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose.
    ///
    /// # Errors
    /// [`BuildError`] for parameters that make no sense, and for memory the system refuses.
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

    /// A filter that grows by this plan.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: GrowableCuckooShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let table = Table::new(shape.placement(0), shape.layout(0))?;
        Ok(Self { shape, scheme: scheme.into(), doublings: 0, capacity_now: shape.capacity_after(0), table })
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Puts one copy of `item` in, doubling if that takes more room. `true`: it was certainly not in before.
    /// `false`: mayhap it was; there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] once it is as large as it can be and full, or if items were chosen to collide;
    /// [`InsertError::CannotGrow`] if the memory to double was refused and there is no room without;
    /// [`InsertError::TooManyCopies`] if the two buckets of the item hold nothing but copies of it. Nothing that was in is lost.
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

    /// The insertion for which there was no room, or no room should be left.
    #[cold]
    fn insert_growing(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        let full = InsertError::Full { inserted: self.inserted(), capacity: self.capacity() };
        if self.inserted() >= self.capacity() {
            return Err(full);
        }
        // However large the table, copies of one item have only two buckets.
        let limit = 2 * u64::from(self.shape.bucket_size());
        if self.count_hash(hash) >= limit {
            return Err(InsertError::TooManyCopies { limit });
        }
        loop {
            // With items that were not chosen to collide there is room until it is nearly full. Others shall not make it grow, but for a
            // small table: there nine may want the same two buckets by chance, and growing costs next to nothing.
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

    /// Twice as many buckets, if the plan has them.
    fn double(&mut self) -> Result<(), BuildError> {
        if self.doublings < self.shape.max_doublings() {
            self.table.double()?;
            self.doublings += 1;
            self.capacity_now = self.shape.capacity_after(self.doublings);
        }
        Ok(())
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

    /// What [`may_contain_hash`](Self::may_contain_hash) looks at.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        self.table.trace(hash)
    }

    /// How full it is, part by part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        self.table.density(name, parts)
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
    /// `true`: a copy was taken out. `false`: it was certainly not in, and nothing changed. The filter never shrinks.
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        self.table.remove(hash)
    }

    /// Takes one copy of `item` out if the caller's own store confirms that it was in, which is asked only if the filter says *mayhap*.
    /// `true`: it was taken out. [`Cuckoo::remove_verified`](crate::Cuckoo::remove_verified) says more.
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

    /// Forgets everything. It stays as large as it is.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// The plan it grows by.
    #[must_use]
    pub const fn shape(&self) -> &GrowableCuckooShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// How often it has doubled.
    #[must_use]
    pub const fn doublings(&self) -> u32 {
        self.doublings
    }

    /// Items it was planned for, when it has grown as far as it can.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Items it takes before it doubles.
    #[must_use]
    pub const fn capacity_now(&self) -> u64 {
        self.capacity_now
    }

    /// The rate it promised, at any size.
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

    /// The share of places taken, at its size now.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.inserted() as f64 / self.shape.slots(self.doublings) as f64
    }

    /// Memory the buckets take now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.lines().memory_bytes()
    }

    /// Bits of memory per item in it; infinite while there are none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted() as f64
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

    /// The filter in these bytes, checked to the last one. It grows on as the encoded one would have.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `GrowableCuckoo`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// A table with fewer buckets grows whenever an item finds no room: it takes a few kilobytes at most.
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
            Table::decoded(shape.placement(doublings), shape.layout(doublings), header.inserted, body)?;
        Ok(Self { shape, scheme, doublings, capacity_now: shape.capacity_after(doublings), table })
    }
}
