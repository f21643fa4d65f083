//! The quotient filter.

mod bulk;
mod explain;
mod groups;
mod lookup;
mod place;
mod shape;

pub use shape::QuotientShape;

use self::bulk::{Made, Refused};
use self::groups::{MAX_COPIES, Written};
use self::lookup::{RunSpot, groups_of, holds, holds_batch, spot};
use self::place::{RunPlace, place};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::run_table::{RunTable, RunTableFull};
use crate::sizing::quotient;

/// A table of short fingerprints that counts, removes, merges and doubles, all without needing the items
/// again.
///
/// * **Only remove items you inserted.** Calling [`remove`](Self::remove) with an item that was never
///   inserted but answers *maybe* removes a copy of another item with the same fingerprint and can cause a
///   false negative. An item that answers *no* is rejected, and nothing changes.
/// * Under that condition **no** is certain after any insertions and removals. **maybe** can be a false
///   positive: the false-positive rate is at most `target_fpr` while the filter holds at most `capacity`
///   different items.
/// * It can be full. [`insert`](Self::insert) then returns an error, and nothing is changed or lost.
///   [`double`](Self::double) makes room. It also doubles the rate, unless the filter was made [for
///   doublings](QuotientShape::for_capacity_with_doublings).
/// * It counts any number of copies: a million copies of one item take a few slots.
///   [`count`](Self::count) is never too low, and too high only for items that share a fingerprint.
/// * `(r + 2.13) / 0.95` bits per item for a rate of `0.95 / 2^r`: 9.61 bits at 0.74 %, 12.8 at 0.093 %. The
///   number of items is not rounded up to a power of two.
/// * A lookup touches two cache lines, or one if the home of the item is empty. It slows down as the filter
///   fills up.
/// * It cannot list items, only their [fingerprints](Self::fingerprints).
///
/// ```text
///               ┌ home ─┐┌ remainder ┐
/// item ─▶ ItemHash · homes: 2 · 0110…             0 1 2 3 4 5 6     occupied and run-end bits mark the slots
///                               │        slots    · a b c · d ·     of home 2's run: b and c, ascending
///                               └─── is it b or c? maybe; neither: no
/// ```
///
/// ```
/// use mayhap::Quotient;
///
/// let mut words = Quotient::new(100_000, 0.001)?;
/// assert!(words.insert("whale")?); // certainly new
/// assert!(!words.insert("whale")?); // a second copy
/// assert_eq!(words.count("whale"), 2);
/// assert!(words.remove("whale") && words.may_contain("whale"));
/// assert!(words.remove("whale") && !words.may_contain("whale"));
///
/// let mut more = Quotient::with_shape(*words.shape(), *words.scheme())?; // shape and hash of `words`
/// more.insert("squid")?;
/// words.union(&more)?; // without reading any item again
/// words.double()?; // here too
/// assert!(words.may_contain("squid"));
/// assert_eq!(words.capacity(), 200_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// P. Pandey, M. Bender, R. Johnson, R. Patro, *A General-Purpose Counting Filter: Making Every Bit Count*,
/// SIGMOD 2017.
#[derive(Debug)]
pub struct Quotient {
    shape: QuotientShape,
    scheme: HashScheme,
    table: RunTable,
    inserted: u64,
    /// Different fingerprints in the table.
    distinct: u64,
}

/// A fingerprint in a [`Quotient`] filter, and the number of its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct QuotientFingerprint {
    /// The home it belongs to.
    pub home: u64,
    /// The part that is stored there.
    pub remainder: u64,
    /// The number of copies.
    pub count: u64,
}

impl Quotient {
    /// Creates the smallest filter for `capacity` different items at `target_fpr`.
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
        Self::with_shape(QuotientShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: QuotientShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let table = RunTable::with_homes(shape.homes(), shape.remainder_bits())?;
        Ok(Self { shape, scheme: scheme.into(), table, inserted: 0, distinct: 0 })
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
    /// [`InsertError::Full`] if there is no room for it, [`InsertError::TooManyCopies`] past 2^62 copies. On
    /// error, nothing has changed.
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
        self.insert_place(self.place(hash))
    }

    fn insert_place(&mut self, place: RunPlace) -> Result<bool, InsertError> {
        if self.inserted >= MAX_COPIES {
            return Err(InsertError::TooManyCopies { limit: MAX_COPIES });
        }
        let found = spot(&self.table, place);
        let new = found.group.is_none();
        let written = match found.group {
            None if self.table.used() < self.shape.max_slots() => {
                self.table.insert(place.home, &found.run, found.at, place.remainder)
            }
            None => Err(RunTableFull),
            Some(group) => self.rewrite(place, found, group.copies + 1),
        };
        written.map_err(|RunTableFull| self.full())?;
        self.inserted += 1;
        self.distinct += u64::from(new);
        Ok(new)
    }

    /// Rewrites the group that was found with `copies` copies, if there is room.
    fn rewrite(&mut self, place: RunPlace, found: RunSpot, copies: u64) -> Result<(), RunTableFull> {
        let RunSpot { mut run, at, group } = found;
        let written = Written::new(place.remainder, copies, self.table.bits());
        let old_end = group.map_or(at, |group| group.end);
        let new_end = at + written.slots().len() as u64;
        if self.table.used() + new_end.saturating_sub(old_end) > self.shape.max_slots() {
            return Err(RunTableFull);
        }
        let mut end = old_end;
        while end < new_end {
            if let Err(RunTableFull) = self.table.insert(place.home, &run, end, 0) {
                // Remove the slots inserted so far: the table is as it was.
                while end > old_end {
                    end -= 1;
                    self.table.remove(place.home, &run, end);
                    run.end -= 1;
                }
                return Err(RunTableFull);
            }
            end += 1;
            run.end += 1;
        }
        while end > new_end {
            end -= 1;
            self.table.remove(place.home, &run, end);
            run.end -= 1;
        }
        for (slot, &value) in (at..).zip(written.slots()) {
            self.table.set(slot, value);
        }
        Ok(())
    }

    const fn full(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.shape.capacity() }
    }

    /// Inserts one copy of each of `items` and returns how many of them were certainly not members before.
    /// This is faster than single inserts, above all if they are many compared with the present content. They
    /// are then sorted and the table is rewritten, which temporarily takes eight bytes per item and the
    /// memory of a second table.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), at the first item that finds no room. All items before it are inserted,
    /// and none after it; [`inserted`](Self::inserted) shows how many.
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
        /// Few enough for the lines of a chunk to stay in the nearest cache until they are used.
        const CHUNK: usize = 32;
        let before = self.distinct;
        if bulk::worth_sorting(&self.table, items.len())
            && let Some(made) = bulk::with_sorted(&self.table, &self.scheme, self.shape.max_slots(), items)
        {
            self.take(made);
            return Ok(self.distinct - before);
        }
        let mut places = [RunPlace::default(); CHUNK];
        for items in items.chunks(CHUNK) {
            for (place, item) in places.iter_mut().zip(items) {
                *place = self.place(item.hashed(&self.scheme));
                self.table.prefetch(place.home);
            }
            for place in &places[..items.len()] {
                self.insert_place(*place)?;
            }
        }
        Ok(self.distinct - before)
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
        holds(&self.table, self.place(hash))
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        holds_batch(&self.table, &self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        holds_batch(&self.table, &self.scheme, hashes, answers);
    }

    /// Returns the number of copies of `item`. It is never too low, and too high only if another item has the
    /// same fingerprint.
    #[inline]
    #[must_use]
    pub fn count<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_hash(self.scheme.hash(item))
    }

    /// [`count`](Self::count) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn count_hash(&self, hash: ItemHash) -> u64 {
        spot(&self.table, self.place(hash)).group.map_or(0, |group| group.copies)
    }

    /// Removes one copy of `item`. Only remove items that were inserted: removing any other item that answers
    /// *maybe* removes a copy of another item.
    ///
    /// `true`: a copy was removed. `false`: it was certainly not a member, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        let place = self.place(hash);
        let found = spot(&self.table, place);
        let Some(group) = found.group else { return false };
        if group.copies == 1 {
            self.table.remove(place.home, &found.run, found.at);
            self.distinct -= 1;
        } else {
            // Fewer copies never take more slots, so this cannot fail.
            let written = self.rewrite(place, found, group.copies - 1);
            debug_assert_eq!(written, Ok(()));
        }
        self.inserted -= 1;
        true
    }

    /// Adds all copies of `other`, as if each had been inserted here. It takes one pass over both tables.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same homes, remainder bits and hash scheme, and the result fits
    /// ([`double`](Self::double) both if it does not). On error, nothing has changed.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        let groups = bulk::merged(groups_of(&self.table), groups_of(&other.table));
        let limit = self.shape.max_slots();
        let made = bulk::write(self.shape.homes(), self.shape.remainder_bits(), limit, groups);
        let made = made.map_err(|refused| match refused {
            Refused::Full => MergeError::Full {
                inserted: self.inserted.saturating_add(other.inserted),
                capacity: self.shape.capacity(),
            },
            Refused::Build(error) => MergeError::Unbuildable(error),
        })?;
        self.take(made);
        Ok(())
    }

    /// Doubles the homes and the capacity without needing the items: one bit of every remainder becomes part
    /// of its home. It takes one pass over the table, and the memory of both tables while it runs.
    ///
    /// One bit less in every slot doubles the rate of a full filter. [`target_fpr`](Self::target_fpr) stays
    /// the same while the spare bits of
    /// [`for_capacity_with_doublings`](QuotientShape::for_capacity_with_doublings) last, and then becomes the
    /// rate that the filter can keep.
    ///
    /// # Errors
    /// [`BuildError`] if there are only two remainder bits left, the table becomes too large, or the system
    /// refuses the memory. On error, nothing has changed.
    pub fn double(&mut self) -> Result<(), BuildError> {
        let shape = self.shape.doubled()?;
        let made = bulk::doubled(&self.table, shape.max_slots()).map_err(|refused| match refused {
            Refused::Build(error) => error,
            // Twice the homes always have room, unless all items are crowded into the last few homes.
            Refused::Full => BuildError::Unsolvable { attempts: 1, items: self.distinct },
        })?;
        self.take(made);
        self.shape = shape;
        Ok(())
    }

    fn take(&mut self, made: Made) {
        (self.table, self.distinct, self.inserted) = (made.table, made.distinct, made.copies);
    }

    /// Returns all fingerprints in ascending order, with their counts.
    pub fn fingerprints(&self) -> impl Iterator<Item = QuotientFingerprint> + '_ {
        groups_of(&self.table).map(|(RunPlace { home, remainder }, count)| QuotientFingerprint {
            home,
            remainder,
            count,
        })
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.table.clear();
        (self.inserted, self.distinct) = (0, 0);
    }

    /// Returns the shape: homes, remainder bits, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &QuotientShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items that the filter was sized for, or has room for after doublings.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of stored copies: insertions less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the number of different fingerprints: different items, less those that share one.
    #[must_use]
    pub const fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Estimates the number of different items from the fingerprints.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        quotient::items_from_fingerprints(self.shape.homes(), self.shape.remainder_bits(), self.distinct)
    }

    /// Returns the present false-positive rate: the share of all possible fingerprints that are stored. It is
    /// exact, not a model.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let homes = self.shape.homes() as f64;
        self.distinct as f64 / homes / f64::powi(2.0, self.shape.remainder_bits() as i32)
    }

    /// Returns the slots in use per home. The filter is full at 0.95.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.table.used() as f64 / self.shape.homes() as f64
    }

    /// Returns the memory that the table takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
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
    /// [`DecodeError`] unless `bytes` is an intact encoded `Quotient`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn place(&self, hash: ItemHash) -> RunPlace {
        place(hash, self.table.homes(), self.table.bits())
    }
}

/// Placement scheme 1: the hash as a fraction times the homes ([`place`](fn@place)), and groups as in
/// [`groups`].
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for Quotient {}

impl Storable for Quotient {
    const KIND: Option<Kind> = Some(Kind::Quotient);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Quotient, PLACEMENT, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.homes();
        header.parameters[1] = u64::from(self.shape.remainder_bits());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(2)?;
        let scheme = header.scheme()?;
        let (homes, bits) = (header.parameters[0], header.parameter_u32(1, "remainder bits")?);
        let shape = QuotientShape::from_parts(homes, bits, header.capacity, header.target_fpr)?;
        let table = RunTable::from_lines(body.lines(shape.memory_bytes())?, homes, bits)?;
        if table.used() > shape.max_slots() {
            return Err(DecodeError::BadField { field: "slots in use", got: table.used() });
        }
        let distinct = groups::check(&table, header.inserted)?;
        Ok(Self { shape, scheme, table, inserted: header.inserted, distinct })
    }
}
