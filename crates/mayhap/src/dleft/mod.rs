//! The d-left counting filter.

mod bucket;
mod explain;
mod found;
mod lookup;
mod place;
mod shape;

pub use shape::DLeftShape;

use self::bucket::Bucket;
use self::found::{DLeftPut, Found, Taken};
use self::lookup::DLeftTables;
use self::place::DLeftPlace;
use crate::answers::Answers;
use crate::batch::{Hashed, one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::simd::prefetch_words;
use crate::sizing::dleft::{self, MAX_COPIES, MAX_SLOTS, SLOTS, TABLES};
use crate::store::Lines;

/// **Take a [`Cuckoo`](crate::Cuckoo) or a [`Quotient`](crate::Quotient) instead**: both are faster, in about half the
/// memory.
///
/// A filter that removes and counts in less than half of a [`CountingBloom`](crate::CountingBloom)'s memory:
/// a table of short fingerprints.
///
/// * **Only remove items you inserted.** Calling [`remove`](Self::remove) with an item that was never
///   inserted but answers *maybe* removes a copy of another item and can cause a false negative. An item that
///   answers *no* is rejected, and nothing changes.
/// * Under that condition **no** is certain after any insertions and removals. **maybe** can be a false
///   positive: the false-positive rate is at most `target_fpr` while the filter holds at most `capacity`
///   different items. [`expected_fpr`](Self::expected_fpr) returns the current rate exactly.
/// * **It can be full**, unlike a Bloom filter: if all four buckets of an item are full,
///   [`insert`](Self::insert) returns [`InsertError::Full`] and changes nothing. Up to `capacity` different
///   items, this happens once in 4·10^17 insertions, even if items are inserted and removed all the time. At
///   10 % above capacity, it happens once in some thousands.
/// * It counts copies, up to three in the room of one item. Further copies take one more slot for each three.
///   At 15 the count sticks forever, as in `CountingBloom`: the item answers *maybe* from then on, but this
///   never loses another item. [`saturated`](Self::saturated) and [`overflows`](Self::overflows) count such
///   cases.
/// * 18.2 bits per item at 1 %, 22.1 at 0.1 %, 35.1 at 1e-6. A lookup reads four buckets, each in one cache
///   line, sometimes in two.
/// * It cannot list items and cannot grow.
///
/// ```text
///                      ┌─▶ sub-table 0   [▪▪▪▪▪▪▪·]
///                      ├─▶ sub-table 1   [▪▪▪▪▪▪··]  ◀─ a new item goes to the emptiest bucket, the leftmost of several
/// item ─▶ ItemHash ─▶ fingerprint, home bucket
///                      ├─▶ sub-table 2   [▪▪▪▪▪▪··]
///                      └─▶ sub-table 3   [▪▪▪▪▪▪··]     a slot ▪ is a fingerprint and a counter; in no bucket: no
/// ```
///
/// The buckets of an item in the four sub-tables follow from each other and its fingerprint. So two items
/// that share a bucket and a fingerprint in one sub-table share them in all, and an item never mistakes a
/// slot of another item for its own. This makes removing safe.
///
/// ```
/// use mayhap::DLeft;
///
/// let mut online = DLeft::new(1_000_000, 0.01)?;
/// assert!(online.insert("ada")?); // certainly new
/// assert!(!online.insert("ada")?); // a second copy
/// assert_eq!(online.count_estimate("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// assert!(online.remove("ada") && !online.may_contain("ada"));
/// assert!(!online.remove("ada")); // certainly a non-member: nothing changed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, *An Improved Construction for Counting
/// Bloom Filters*, ESA 2006. In this implementation the fingerprint of an item is the same in all sub-tables,
/// its bucket in each is shifted by an amount that depends on the fingerprint, and the eight slots of a
/// bucket are compared together.
#[derive(Debug)]
pub struct DLeft {
    shape: DLeftShape,
    scheme: HashScheme,
    tables: Lines,
    inserted: u64,
    /// Slots taken.
    occupied: u64,
    /// Different pairs of home bucket and fingerprint among them.
    distinct: u64,
    /// Pairs whose count is stuck.
    saturated: u64,
    overflows: u64,
}

/// Calls a method with the number of words of a bucket as a constant, so its loops are unrolled.
macro_rules! by_words {
    ($receiver:ident.$method:ident($($argument:expr),*)) => {
        match $receiver.shape.slot_bits().div_ceil(8) {
            0..=1 => $receiver.$method::<1>($($argument),*),
            2 => $receiver.$method::<2>($($argument),*),
            3 => $receiver.$method::<3>($($argument),*),
            4 => $receiver.$method::<4>($($argument),*),
            _ => $receiver.$method::<5>($($argument),*),
        }
    };
}
use by_words;

impl DLeft {
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
        Self::with_shape(DLeftShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: DLeftShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let (tables, scheme) = (Lines::zeroed(shape.lines())?, scheme.into());
        Ok(Self { shape, scheme, tables, inserted: 0, occupied: 0, distinct: 0, saturated: 0, overflows: 0 })
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

    /// Inserts one copy of `item`. `true`: it was certainly not a member before. `false`: it may have been
    /// one. Either way there is one copy more now.
    ///
    /// # Errors
    /// [`InsertError::Full`] if its four buckets have no free slot. On error, nothing has changed.
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
        let place = DLeftPlace::of(hash, &self.shape);
        let put = by_words!(self.put_at(place)).ok_or_else(|| self.refusal())?;
        self.inserted = self.inserted.saturating_add(1);
        Ok(put == DLeftPut::New)
    }

    /// Inserts one copy of each of `items`, in order, and returns how many of them were certainly not members
    /// before. If the filter is larger than the cache, this is much faster than single inserts.
    ///
    /// # Errors
    /// [`InsertError::Full`] at the first item that finds no room. All items before it are inserted, and none
    /// after it; [`inserted`](Self::inserted) has grown by their number. Insert only the rest again, or they
    /// are inserted twice.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        by_words!(self.insert_all(items))
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        by_words!(self.insert_all(hashes))
    }

    fn insert_all<const N: usize>(&mut self, items: &[impl Hashed]) -> Result<u64, InsertError> {
        /// Each item prefetches four lines or more; with more items they evict each other.
        const CHUNK: usize = 8;
        let (scheme, shape) = (self.scheme, self.shape);
        let prefetch = prefetch_words(self.tables.words_mut());
        let start = |item: &_| {
            let place = DLeftPlace::of(Hashed::hashed(item, &scheme), &shape);
            place.for_each_line(&shape, |word| prefetch.at(word));
            place
        };
        let (mut new, mut put_in, mut refused) = (0, 0, false);
        one_chunk_behind::<CHUNK, _, _>(items, start, |_, places| {
            for &place in places {
                if refused {
                    return;
                }
                match self.put_at::<N>(place) {
                    Some(put) => {
                        put_in += 1;
                        new += u64::from(put == DLeftPut::New);
                    }
                    None => refused = true,
                }
            }
        });
        self.inserted = self.inserted.saturating_add(put_in);
        if refused { Err(self.refusal()) } else { Ok(new) }
    }

    /// Inserts one copy and updates all counts except `inserted`. `None`: no room, nothing changed.
    #[inline(always)]
    fn put_at<const N: usize>(&mut self, place: DLeftPlace) -> Option<DLeftPut> {
        let found = Found::<N>::look(self.tables.words(), place, self.shape.slot_bits());
        let put = found.put(self.tables.words_mut())?;
        match put {
            DLeftPut::New => {
                self.occupied += 1;
                self.distinct += 1;
            }
            DLeftPut::FurtherSlot => self.occupied += 1,
            DLeftPut::Counted { sticks } => self.saturated += u64::from(sticks),
            DLeftPut::Stuck => self.overflows = self.overflows.saturating_add(1),
        }
        Some(put)
    }

    #[cold]
    fn refusal(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.shape.capacity() }
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
        let tables = self.tables();
        by_words!(tables.holds(hash))
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let tables = self.tables();
        by_words!(tables.holds_batch(&self.scheme, items, answers));
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        let tables = self.tables();
        by_words!(tables.holds_batch(&self.scheme, hashes, answers));
    }

    /// Returns the number of copies of `item`. It is never too low up to 15, which means 15 or more. 0 is
    /// certain.
    #[inline]
    #[must_use]
    pub fn count_estimate<I: Item + ?Sized>(&self, item: &I) -> u8 {
        self.count_estimate_hash(self.scheme.hash(item))
    }

    /// [`count_estimate`](Self::count_estimate) for an item already hashed.
    #[must_use]
    pub fn count_estimate_hash(&self, hash: ItemHash) -> u8 {
        let tables = self.tables();
        by_words!(tables.copies(hash)).min(MAX_COPIES) as u8
    }

    /// Removes one copy of `item`. Only remove items that were inserted: removing any other item that answers
    /// *maybe* removes a copy of another item.
    ///
    /// `true`: a copy was removed. If its count is stuck, the item still answers *maybe*, forever.
    /// `false`: it was certainly not a member, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        let place = DLeftPlace::of(hash, &self.shape);
        match by_words!(self.take_at(place)) {
            Taken::Absent => return false,
            Taken::Stuck | Taken::Counted => {}
            Taken::Slot { last } => {
                self.occupied = self.occupied.saturating_sub(1);
                self.distinct = self.distinct.saturating_sub(u64::from(last));
            }
        }
        self.inserted = self.inserted.saturating_sub(1);
        true
    }

    #[inline(always)]
    fn take_at<const N: usize>(&mut self, place: DLeftPlace) -> Taken {
        let found = Found::<N>::look(self.tables.words(), place, self.shape.slot_bits());
        found.take(self.tables.words_mut())
    }

    /// Adds all copies of `other`, as if each had been inserted here. The order affects which slots are
    /// taken, but not the content.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same buckets, fingerprints and hash scheme, and everything fits.
    /// On error, nothing has changed. It works on a copy, which needs memory.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        let mut both = self.try_clone().map_err(MergeError::Unbuildable)?;
        let (inserted, capacity) = (self.inserted.saturating_add(other.inserted), self.shape.capacity());
        by_words!(both.put_all(other)).ok_or(MergeError::Full { inserted, capacity })?;
        both.inserted = inserted;
        both.overflows = both.overflows.saturating_add(other.overflows);
        *self = both;
        Ok(())
    }

    /// Inserts every copy in the slots of `other`, which has the same shape. `None`: some found no room.
    fn put_all<const N: usize>(&mut self, other: &Self) -> Option<()> {
        let (shape, width) = (other.shape, other.shape.slot_bits());
        for (table, bucket) in (0..TABLES).flat_map(|table| (0..shape.buckets()).map(move |b| (table, b))) {
            let byte = (table * shape.buckets() + bucket) as usize * width as usize;
            let content = Bucket::<N>::read(other.tables.words(), byte);
            for slot in (0..SLOTS as u32).filter(|slot| content.taken() >> slot & 1 == 1) {
                let (fingerprint, count) = content.slot(slot, width);
                let place = DLeftPlace::found_in(table as usize, bucket, fingerprint, &shape);
                (0..count).try_for_each(|_| self.put_at::<N>(place).map(|_| ()))?;
            }
        }
        Some(())
    }

    /// Removes all items and resets stuck counts.
    pub fn clear(&mut self) {
        self.tables.words_mut().fill(0);
        (self.inserted, self.occupied, self.distinct, self.saturated, self.overflows) = (0, 0, 0, 0, 0);
    }

    /// Returns the shape: buckets, fingerprints, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &DLeftShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items that the filter was sized for, with up to three copies each.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of stored copies by the filter's own count: insertions, duplicates included, less
    /// removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the present false-positive rate. It is exact: the share of all possible pairs of home bucket
    /// and fingerprint that are stored.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        (self.distinct as f64 / dleft::pairs(self.shape.buckets(), self.shape.fingerprint_bits())).min(1.0)
    }

    /// Returns the share of slots in use: 77 % at capacity, or less if a lower rate needs more buckets.
    #[must_use]
    pub fn fill(&self) -> f64 {
        (self.occupied as f64 / self.shape.slots() as f64).min(1.0)
    }

    /// Estimates the number of different items from the fingerprints. It is a little higher than their
    /// number, because some items share one.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        dleft::items_from_pairs(self.shape.buckets(), self.shape.fingerprint_bits(), self.distinct)
    }

    /// Returns the number of items whose count is stuck at 15. Items that share a fingerprint and buckets
    /// count as one.
    #[must_use]
    pub const fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Returns the number of insertions that were not counted because the count was stuck.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Returns the memory that the buckets take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.tables.memory_bytes()
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
    /// [`DecodeError`] unless `bytes` is an intact encoded `DLeft`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// Returns the slots in use, the fingerprints in them and the stuck counts, each limited by the one
    /// before. A decoded filter's counts are not verified and may be wrong, but an encoded filter must always
    /// be decodable again.
    fn counts(&self) -> [u64; 3] {
        let occupied = self.occupied.min(self.shape.slots());
        let distinct = self.distinct.min(occupied);
        [occupied, distinct, self.saturated.min(distinct).min(occupied / u64::from(MAX_SLOTS))]
    }

    #[inline(always)]
    fn tables(&self) -> DLeftTables<'_> {
        DLeftTables { words: self.tables.words(), shape: &self.shape }
    }
}

/// Placement scheme 1: [`DLeftPlace`], and the bit-sliced buckets of [`Bucket`].
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for DLeft {}

impl Storable for DLeft {
    const KIND: Option<Kind> = Some(Kind::DLeft);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::DLeft, PLACEMENT, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.buckets();
        header.parameters[1] = u64::from(self.shape.fingerprint_bits());
        let counts = self.counts();
        header.parameters[2..6].copy_from_slice(&[counts[0], counts[1], counts[2], self.overflows]);
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.tables)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(6)?;
        let scheme = header.scheme()?;
        let fingerprint_bits = header.parameter_u32(1, "fingerprint bits")?;
        let [buckets, _, occupied, distinct, saturated, overflows, ..] = header.parameters;
        let shape = DLeftShape::from_parts(buckets, fingerprint_bits, header.capacity, header.target_fpr)?;
        let tables = body.lines(shape.memory_bytes())?;
        let end = shape.bucket_bytes() * 8;
        tables.check_zero_from(end).map_err(|bit| DecodeError::StrayBit { bit })?;
        let inserted = header.inserted;
        let filter = Self { shape, scheme, tables, inserted, occupied, distinct, saturated, overflows };
        let (said, possible) = ([occupied, distinct, saturated], filter.counts());
        let names = ["slots taken", "fingerprints", "stuck counts"];
        match (0..names.len()).find(|&index| said[index] != possible[index]) {
            Some(index) => Err(DecodeError::BadField { field: names[index], got: said[index] }),
            None => Ok(filter),
        }
    }
}
