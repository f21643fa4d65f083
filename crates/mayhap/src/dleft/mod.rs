//! The d-left counting filter.

mod bucket;
mod explain;
mod found;
mod lookup;
mod place;
mod shape;

pub use shape::DLeftShape;

use self::bucket::Bucket;
use self::found::{Found, Put, Taken};
use self::lookup::Tables;
use self::place::Place;
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

/// A filter that removes and counts in less than half of a [`CountingBloom`](crate::CountingBloom)'s memory: a table of short fingerprints.
///
/// * **Remove only what was inserted.** [`remove`](Self::remove) of an item that was never in, but answers *mayhap*, takes out a
///   copy of another, which may be lost. An item that answers *no* is turned away and harms nobody.
/// * Keeping to that, **no** is certain, whatever was inserted and removed. **mayhap** is wrong for at most `target_fpr` of
///   the non-members while no more than `capacity` different items are in, and [`expected_fpr`](Self::expected_fpr) is exact.
/// * **It can be full**, unlike a Bloom filter: an item whose four buckets are full is refused with [`InsertError::Full`], and nothing
///   changed. Up to `capacity` different items that does not happen, nor when they come and go for ever: once in
///   4·10^17 insertions. A tenth past capacity it is once in some thousands.
/// * It counts copies, up to three in the room of one item. Further copies take room of their own, by threes. At 15 the
///   count sticks for ever, as in `CountingBloom`: the item answers *mayhap* from then on, and no other is ever lost by it.
///   [`saturated`](Self::saturated) and [`overflows`](Self::overflows) say how far that went.
/// * 18.2 bits per item at 1 %, 22.1 at 0.1 %, 35.1 at 1e-6. A lookup looks at four buckets, each in one cache line, now and then two.
/// * It cannot list items and cannot grow.
///
/// ```text
///                      ┌─▶ sub-table 0   [▪▪▪▪▪▪▪·]
///                      ├─▶ sub-table 1   [▪▪▪▪▪▪··]  ◀─ a new item goes where most is free, of several to the left
/// item ─▶ ItemHash ─▶ fingerprint, home bucket
///                      ├─▶ sub-table 2   [▪▪▪▪▪▪··]
///                      └─▶ sub-table 3   [▪▪▪▪▪▪··]     a slot ▪ is a fingerprint and a counter; in no bucket: no
/// ```
///
/// The buckets of an item in the four sub-tables follow from each other by its fingerprint. So two items that meet in one sub-table
/// meet in all, and no item ever takes a slot for its own that another put there: that is what makes removing safe.
///
/// ```
/// use mayhap::DLeft;
///
/// let mut online = DLeft::for_capacity(1_000_000, 0.01, 0)?;
/// assert!(online.insert("ada")?); // new, certainly
/// assert!(!online.insert("ada")?); // a second copy
/// assert_eq!(online.count_estimate("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// assert!(online.remove("ada") && !online.may_contain("ada"));
/// assert!(!online.remove("ada")); // certainly not in: nothing changed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, *An Improved Construction for Counting Bloom Filters*, ESA 2006.
/// Here the fingerprint of an item is the same in all sub-tables, its bucket in each is shifted by an amount that depends on the
/// fingerprint, and the eight slots of a bucket are compared at once.
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
    /// Pairs whose count stuck.
    saturated: u64,
    overflows: u64,
}

/// Calls a method with the number of words a bucket needs, as a constant: the loops over them disappear.
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
    /// The smallest filter for `capacity` items at `target_fpr`.
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose: with
    /// a known seed they can fill four buckets on purpose.
    ///
    /// # Errors
    /// [`BuildError`] for parameters that make no sense, and for memory the system refuses.
    pub fn for_capacity(
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(DLeftShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: DLeftShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let (tables, scheme) = (Lines::zeroed(shape.lines())?, scheme.into());
        Ok(Self { shape, scheme, tables, inserted: 0, occupied: 0, distinct: 0, saturated: 0, overflows: 0 })
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
    /// [`InsertError::Full`] if its four buckets have no slot left. Nothing changed.
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
        let place = Place::of(hash, &self.shape);
        let put = by_words!(self.put_at(place)).ok_or_else(|| self.refusal())?;
        self.inserted = self.inserted.saturating_add(1);
        Ok(put == Put::New)
    }

    /// Puts one copy of each of `items` in, in their order, and says how many of them were certainly not in before. Much
    /// faster than one by one once the filter is larger than the cache.
    ///
    /// # Errors
    /// [`InsertError::Full`] at the first item that finds no room. All before it are in, and none behind it: as many as
    /// [`inserted`](Self::inserted) is now higher than it was. Give only the rest again, or those are in twice.
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
        /// Every item has four lines or more on their way: more items at once only crowd them out.
        const CHUNK: usize = 8;
        let (scheme, shape) = (self.scheme, self.shape);
        let prefetch = prefetch_words(self.tables.words_mut());
        let start = |item: &_| {
            let place = Place::of(Hashed::hashed(item, &scheme), &shape);
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
                        new += u64::from(put == Put::New);
                    }
                    None => refused = true,
                }
            }
        });
        self.inserted = self.inserted.saturating_add(put_in);
        if refused { Err(self.refusal()) } else { Ok(new) }
    }

    /// Puts one copy in and keeps the accounts, but for `inserted`. `None`: no room, nothing changed.
    #[inline(always)]
    fn put_at<const N: usize>(&mut self, place: Place) -> Option<Put> {
        let found = Found::<N>::look(self.tables.words(), place, self.shape.slot_bits());
        let put = found.put(self.tables.words_mut())?;
        match put {
            Put::New => {
                self.occupied += 1;
                self.distinct += 1;
            }
            Put::FurtherSlot => self.occupied += 1,
            Put::Counted { sticks } => self.saturated += u64::from(sticks),
            Put::Stuck => self.overflows = self.overflows.saturating_add(1),
        }
        Some(put)
    }

    #[cold]
    fn refusal(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.shape.capacity() }
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
        let tables = self.tables();
        by_words!(tables.holds(hash))
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it several times faster
    /// than asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let tables = self.tables();
        by_words!(tables.holds_batch(&self.scheme, items, answers));
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        let tables = self.tables();
        by_words!(tables.holds_batch(&self.scheme, hashes, answers));
    }

    /// How many copies of `item` are in: never fewer than there are, up to 15, which means 15 or more. 0 is certain.
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

    /// Takes one copy of `item` out. Only for items that were inserted: one that was not, but answers *mayhap*, takes
    /// a copy of another along.
    ///
    /// `true`: a copy was taken out. If its count is stuck, it answers *mayhap* all the same, for ever.
    /// `false`: it was certainly not in, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        let place = Place::of(hash, &self.shape);
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
    fn take_at<const N: usize>(&mut self, place: Place) -> Taken {
        let found = Found::<N>::look(self.tables.words(), place, self.shape.slot_bits());
        found.take(self.tables.words_mut())
    }

    /// Adds everything `other` holds, copy by copy, as if each had been inserted here. (Which slots are taken depends on the
    /// order; what is in does not.)
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same buckets, fingerprints and hash scheme, and there is room for all of it; nothing has
    /// changed then. It works on a copy, for which there must be memory.
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

    /// Puts every copy that `other`, of the same shape, has in its slots in. `None`: some found no room.
    fn put_all<const N: usize>(&mut self, other: &Self) -> Option<()> {
        let (shape, width) = (other.shape, other.shape.slot_bits());
        for (table, bucket) in (0..TABLES).flat_map(|table| (0..shape.buckets()).map(move |b| (table, b))) {
            let byte = (table * shape.buckets() + bucket) as usize * width as usize;
            let content = Bucket::<N>::read(other.tables.words(), byte);
            for slot in (0..SLOTS as u32).filter(|slot| content.taken() >> slot & 1 == 1) {
                let (fingerprint, count) = content.slot(slot, width);
                let place = Place::found_in(table as usize, bucket, fingerprint, &shape);
                (0..count).try_for_each(|_| self.put_at::<N>(place).map(|_| ()))?;
            }
        }
        Some(())
    }

    /// Forgets everything, stuck counts too.
    pub fn clear(&mut self) {
        self.tables.words_mut().fill(0);
        (self.inserted, self.occupied, self.distinct, self.saturated, self.overflows) = (0, 0, 0, 0, 0);
    }

    /// The measurements: buckets, fingerprints, capacity, promise.
    #[must_use]
    pub const fn shape(&self) -> &DLeftShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Different items it was sized for, of up to three copies each.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Copies in it by its own count: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The share of non-members that is answered *mayhap* now. No estimate: the filter knows how many of all the fingerprints in all
    /// the buckets it holds.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        (self.distinct as f64 / dleft::pairs(self.shape.buckets(), self.shape.fingerprint_bits())).min(1.0)
    }

    /// The share of slots taken: 77 % at capacity, or less where a lower rate asks for more buckets.
    #[must_use]
    pub fn fill(&self) -> f64 {
        (self.occupied as f64 / self.shape.slots() as f64).min(1.0)
    }

    /// How many different items are in, by the fingerprints: a little more than those, since some are shared.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        dleft::items_from_pairs(self.shape.buckets(), self.shape.fingerprint_bits(), self.distinct)
    }

    /// Items whose count has stuck at 15. Items that share a fingerprint and buckets are one here.
    #[must_use]
    pub const fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Insertions that met a stuck count and so were not counted in it.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Memory the buckets take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.tables.memory_bytes()
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
    /// [`DecodeError`] for anything but an intact encoded `DLeft`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// Slots taken, fingerprints in them and stuck counts among those, none more than the one before has room for. Counts are
    /// believed when a filter is decoded, so they may be lies; but never such that the filter could not be decoded again.
    fn counts(&self) -> [u64; 3] {
        let occupied = self.occupied.min(self.shape.slots());
        let distinct = self.distinct.min(occupied);
        [occupied, distinct, self.saturated.min(distinct).min(occupied / u64::from(MAX_SLOTS))]
    }

    #[inline(always)]
    fn tables(&self) -> Tables<'_> {
        Tables { words: self.tables.words(), shape: &self.shape }
    }
}

/// Placement scheme 1: [`Place`], and the bit-sliced buckets of [`Bucket`].
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
