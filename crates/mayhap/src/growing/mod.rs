//! The growing filter.

mod explain;
mod lookup;
mod shape;
mod slot;
#[cfg(test)]
mod twin;

pub use shape::GrowingShape;

use self::slot::SlotPlace;
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::run_table::{Appender, RunTable, RunTableFull};
use crate::simd::select::Plain;
use crate::sizing::growing::{self, MAX_FINGERPRINT_BITS, MAX_HOMES, MIN_GROWING_RATE, slot_limit};
use crate::store::LINE_BYTES;

/// A filter that doubles when it is full, without needing the items again. Lookup cost and false-positive
/// rate stay the same after any number of doublings.
///
/// * **Only remove items you inserted.** Calling [`remove`](Self::remove) with an item that was never
///   inserted but answers *maybe* deletes another item's fingerprint and causes a false negative. An item
///   that answers *no* is rejected, and nothing changes.
/// * Under that condition **no** is certain after any insertions, removals and growth. **maybe** can be a
///   false positive: the false-positive rate is always at most `target_fpr`, for any number of items.
/// * 12.4 bits per item at its initial capacity, at 1 %; 15 to 16 when full again later, and twice that right
///   after a doubling. See the table below.
/// * A lookup reads one run of slots, usually one to three, in two cache lines. That is the same after twenty
///   doublings as before the first. (A [`ScalableBloom`](crate::ScalableBloom) reads one more layer after
///   every growth.)
/// * Growing reads the table once and writes a second one of twice the size. Until it is done, both tables
///   take 1.5 times the memory of the new one, and the insertion that causes it waits.
/// * It counts copies, up to 255 of one item; the next one is rejected. If you never remove items, use
///   [`insert_if_absent`](Self::insert_if_absent): it keeps one copy of each and has no such limit.
/// * It cannot shrink, list items, or merge with another filter.
///
/// ```text
/// ItemHash ─▶ home 5 ─▶ key …1011 0110 1        a slot matches if the key begins with its fingerprint
///
/// home     4     5            6     7           full: twice the homes
///        ┌─────┬─────┬─────┬─────┬─────┐       ┌─────┬────┄┄┬─────┬─────┬────┄
/// slots  │  11 │  01 │1101 │ 001 │     │  ──▶  │ 4   │      │ 5   │ 5   │       4 + 8, 5 + 8 …
///        └─────┴─────┴─────┴─────┴─────┘       └─────┴────┄┄┴─────┴─────┴────┄
///                 ▲     ▲ inserted recently     the first bit of every fingerprint moved to its home;
///                 └ two doublings old           new ones are as long as they need to be
/// ```
///
/// ```
/// use mayhap::Growing;
///
/// let mut online = Growing::new(1_000, 0.01)?.with_seed(0);
/// for id in 0..100_000_u64 {
///     online.insert(&id)?;
/// }
/// assert_eq!(online.doublings(), 7);
/// assert!((0..100_000_u64).all(|id| online.may_contain(&id)));
/// assert!(online.expected_fpr() <= 0.01);
/// assert!(online.remove(&7_u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Why the rate stays the same
///
/// A fingerprint of ℓ bits in a table of H homes matches a share `2^-ℓ / H` of all hashes. A doubling takes
/// one bit from ℓ and doubles H, so the share does not change. The shares of all slots add up to an upper
/// bound of the rate. Growing never changes this bound; only new items add to it. At each doubling the filter
/// sums what its table covers. It then chooses the length of new fingerprints so that they cover an eighth of
/// the remaining rate, or less while the table is small. The first ones get half of it.
///
/// A fingerprint with no bit left is *void*: from then on it is stored in both homes, and matches every item
/// with one of them. The shares stay the same. Void slots never exceed the share `target_fpr` of the table,
/// because each of them is part of the rate ([`void_slots`](Self::void_slots) counts them). Removing an item
/// whose slot is void removes the slot in its home. Its duplicates in other homes remain, and remain part of
/// the rate, until the filter is empty.
///
/// Bits of memory per item when it is full, by the number of doublings; right after a doubling, twice as
/// many:
///
/// | initial capacity | rate | 0 | 1 | 2 | 5 | 10 | 20 |
/// |---|---|---|---|---|---|---|---|
/// | 14 | 1 % | 109.7 | 109.7 | 62.9 | 27.8 | 16.1 | 15.8 |
/// | 14 | 0.1 % | 109.7 | 109.7 | 71.9 | 32.3 | 19.4 | 20.2 |
/// | 1_000 | 1 % | 15.9 | 19.4 | 18.0 | 14.7 | 14.6 | 16.9 |
/// | 1_000 | 0.1 % | 20.0 | 23.0 | 21.6 | 18.1 | 19.0 | 20.2 |
/// | 1_000_000 | 1 % | 12.4 | 14.6 | 14.6 | 14.6 | 15.7 | 15.8 |
/// | 1_000_000 | 0.1 % | 15.7 | 17.9 | 17.9 | 19.0 | 19.0 | 20.2 |
///
/// Alternatives: fingerprints of one length, long enough for forty doublings, take 4 bits more from the first
/// item on. A share that shrinks as 1/j² takes fingerprints of 15 bits after twenty doublings at 1 %, where
/// this takes 11.
///
/// N. Dayan, I. Bercea, P. Reviriego, R. Pagh, *InfiniFilter: Expanding Filters to Infinity and Beyond*,
/// SIGMOD 2023; N. Dayan, I. Bercea, R. Pagh, *Aleph Filter: To Infinity in Constant Time*, VLDB 2024.
/// Variable lengths and void slots in both homes come from these papers. Sizes that are not powers of two,
/// and lengths computed from what the table covers, do not.
#[derive(Debug)]
pub struct Growing {
    shape: GrowingShape,
    scheme: HashScheme,
    table: RunTable,
    /// Bits of newly inserted fingerprints.
    fingerprint_bits: u32,
    doublings: u32,
    /// The number of stored copies.
    inserted: u64,
    lengths: Lengths,
}

/// Slots by the length of their fingerprints.
type Lengths = [u64; MAX_FINGERPRINT_BITS as usize + 1];
const NO_SLOTS: Lengths = [0; MAX_FINGERPRINT_BITS as usize + 1];

/// The most slots that may cover one item. A lookup reads them all.
const MAX_COPIES: u64 = 255;

impl Growing {
    /// Creates a filter with initial room for `capacity` items, which keeps `target_fpr` after any growth.
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
        Self::with_shape(GrowingShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter that begins with exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: GrowingShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let fingerprint_bits = shape.fingerprint_bits();
        let table = RunTable::with_homes(shape.homes(), fingerprint_bits + 1)?;
        let scheme = scheme.into();
        Ok(Self { shape, scheme, table, fingerprint_bits, doublings: 0, inserted: 0, lengths: NO_SLOTS })
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

    /// Inserts one copy of `item` and grows if necessary. `true`: it was certainly not a member before.
    /// `false`: it may have been one. Either way there is one copy more now.
    ///
    /// # Errors
    /// On error, nothing has changed.
    /// * [`InsertError::CannotGrow`] if it is full and cannot grow because of the memory limit, the system's
    ///   memory or the largest table size.
    /// * [`InsertError::TooManyCopies`] if it holds 255 copies of the item, or of other items with matching
    ///   fingerprints.
    /// * [`InsertError::Full`] if copies of a few items crowd the end of a table that is less than half full:
    ///   growing would not help.
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
        self.put(hash, Repeat::AnotherCopy)
    }

    /// Inserts `item` unless it answers *maybe* already. `true`: it was new and is a member now. `false`: it
    /// may have been a member before, and nothing changed.
    ///
    /// Use this for filters from which nothing is ever removed: they need no copies and never reach the limit
    /// of copies. With removals it causes false negatives: a new item that answers *maybe* by chance is not
    /// inserted, and it is lost when the other item is removed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), except for too many copies.
    #[inline]
    pub fn insert_if_absent<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash_if_absent(self.scheme.hash(item))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert_if_absent`](Self::insert_if_absent).
    #[inline]
    pub fn insert_hash_if_absent(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        self.put(hash, Repeat::Nothing)
    }

    /// Inserts one copy of each of `items` in order and returns how many were certainly not members before.
    /// If the filter is larger than the cache, this is faster than single inserts.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), at the first item that fails. All items before it are inserted, and none
    /// after it. The increase of [`inserted`](Self::inserted) shows which one it was.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        self.put_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        self.put_all(hashes)
    }

    fn put_all<H: Hashed>(&mut self, items: &[H]) -> Result<u64, InsertError> {
        const CHUNK: usize = 16;
        let mut new = 0;
        let mut hashes = [ItemHash::default(); CHUNK];
        for chunk in items.chunks(CHUNK) {
            for (hash, item) in hashes.iter_mut().zip(chunk) {
                *hash = item.hashed(&self.scheme);
                self.table.prefetch(self.place(*hash).home);
            }
            // The table may grow before an item is inserted; then its line was prefetched for nothing.
            for &hash in &hashes[..chunk.len()] {
                new += u64::from(self.put(hash, Repeat::AnotherCopy)?);
            }
        }
        Ok(new)
    }

    fn put(&mut self, hash: ItemHash, repeat: Repeat) -> Result<bool, InsertError> {
        let mut before = None;
        let put = self.put_growing(hash, repeat, &mut before);
        if put.is_err()
            && let Some(before) = before
        {
            // It grew, and that did not help. An error must change nothing.
            *self = before;
        }
        put
    }

    /// Same as [`put`](Self::put), but it may have grown when it fails. `before` is then the filter before it
    /// grew.
    fn put_growing(
        &mut self,
        hash: ItemHash,
        repeat: Repeat,
        before: &mut Option<Self>,
    ) -> Result<bool, InsertError> {
        loop {
            let place = self.place(hash);
            let run = self.table.run_or_gap(place.home);
            let new = place.fingerprint(self.fingerprint_bits);
            let seen = lookup::look(&self.table, &run, place.key, new);
            if seen.covering > 0 && repeat == Repeat::Nothing {
                return Ok(false);
            }
            if seen.covering >= MAX_COPIES {
                return Err(InsertError::TooManyCopies { limit: MAX_COPIES });
            }
            let limit = slot_limit(self.table.homes());
            if self.table.used() < limit {
                match self.table.insert(place.home, &run, seen.at, new) {
                    Ok(()) => {
                        self.inserted += 1;
                        self.lengths[self.fingerprint_bits as usize] += 1;
                        return Ok(seen.covering == 0);
                    }
                    // The runs reach the end of a table with room elsewhere. By chance, this happens only if
                    // it is nearly full. In a table less than half full it is an attack, which could
                    // otherwise make it grow forever.
                    Err(RunTableFull) if self.table.used() < limit / 2 => return Err(self.full()),
                    Err(RunTableFull) => {}
                }
            }
            let small = self.grow()?;
            before.get_or_insert(small);
        }
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
        lookup::covers(&self.table, self.place(hash))
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        lookup::covers_batch(&self.table, &self.scheme, items, |hash| self.place(hash), answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        lookup::covers_batch(&self.table, &self.scheme, hashes, |hash| self.place(hash), answers);
    }

    /// Returns the number of copies of `item`. It is never too low, and 0 is certain. It is too high as
    /// rarely as a non-member answers *maybe*.
    #[inline]
    #[must_use]
    pub fn count_estimate<I: Item + ?Sized>(&self, item: &I) -> u64 {
        self.count_estimate_hash(self.scheme.hash(item))
    }

    /// [`count_estimate`](Self::count_estimate) for an item already hashed.
    #[must_use]
    pub fn count_estimate_hash(&self, hash: ItemHash) -> u64 {
        let place = self.place(hash);
        let run = self.table.run_or_gap(place.home);
        lookup::look(&self.table, &run, place.key, 0).covering
    }

    /// Removes one copy of `item`. Only remove items that were inserted: removing any other item that answers
    /// *maybe* removes another item.
    ///
    /// `true`: a copy was removed. `false`: it was certainly not a member, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        let place = self.place(hash);
        // Removes the longest fingerprint that covers the item. It may belong to another item. Then the
        // fingerprint of this item, which stays, is a prefix of it and also covers the other item: the two
        // trade slots. Removing a shorter one could leave only the longer one for an item that it does not
        // cover.
        let Some(run) = self.table.run(place.home) else { return false };
        let seen = lookup::look(&self.table, &run, place.key, 0);
        let Some((at, content)) = seen.longest else { return false };
        let length = &mut self.lengths[slot::length(content) as usize];
        *length = length.saturating_sub(1);
        self.table.remove(place.home, &run, at);
        self.inserted = self.inserted.saturating_sub(1);
        if self.inserted == 0 && self.table.used() > 0 {
            // The remaining slots belong to no item: they are void slots in further homes of removed items.
            self.table.clear();
            self.lengths = NO_SLOTS;
        }
        true
    }

    /// Removes all items and returns to the initial size.
    pub fn clear(&mut self) {
        match Self::with_shape(self.shape, self.scheme) {
            Ok(small) => *self = small,
            // If there is no memory even for that, the table keeps its size.
            Err(_) => {
                self.table.clear();
                (self.inserted, self.lengths) = (0, NO_SLOTS);
            }
        }
    }

    /// Sets the memory limit of the table; `None` removes it. A table that is already larger stays and
    /// accepts items until it is full.
    pub const fn limit_memory(&mut self, limit_bytes: Option<u64>) {
        self.shape = self.shape.limited(limit_bytes);
    }

    /// Returns the initial shape.
    #[must_use]
    pub const fn shape(&self) -> &GrowingShape {
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

    /// Returns the number of copies it holds before it doubles again.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.inserted + slot_limit(self.table.homes()).saturating_sub(self.table.used())
    }

    /// Returns the promised false-positive rate, which holds after any growth.
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

    /// Returns the bits of newly inserted fingerprints.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns the false-positive rate that the model predicts from the fingerprints in the table. It counts
    /// copies as different items, so with many copies the actual rate is lower.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        growing::expected_fpr(self.covered()).min(1.0)
    }

    /// Returns the number of slots whose fingerprint has no bit left: every item with their home answers
    /// *maybe*. They are part of the promised rate, so they never exceed that share of the table.
    #[must_use]
    pub const fn void_slots(&self) -> u64 {
        self.lengths[0]
    }

    /// Returns the slots in use per home. The filter doubles at nine tenths.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.table.used() as f64 / self.table.homes() as f64
    }

    /// Returns the memory that the table takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Returns the bits of memory per stored copy, or infinity if it holds none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted as f64
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
    /// [`DecodeError`] unless `bytes` is an intact encoded `Growing`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn place(&self, hash: ItemHash) -> SlotPlace {
        SlotPlace::of(hash, self.shape.homes(), self.doublings)
    }

    /// Returns the share of all hashes that its slots cover.
    fn covered(&self) -> f64 {
        let homes = self.table.homes();
        self.lengths.iter().zip(0..).map(|(&slots, len)| growing::covered(slots as f64, len, homes)).sum()
    }

    fn full(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.capacity() }
    }

    /// Doubles the table and returns the filter as it was before. On error, nothing has changed.
    #[cold]
    fn grow(&mut self) -> Result<Self, InsertError> {
        let refused = |cause| InsertError::CannotGrow { capacity: self.capacity(), layers: 1, cause };
        let (homes, fingerprint_bits) = self.next_table().map_err(refused)?;
        let mut grown = Appender::with_homes(homes, fingerprint_bits + 1).map_err(refused)?;
        let lengths = self.pour_into(&mut grown).map_err(|RunTableFull| self.full())?;
        let (table, doublings) = (grown.finish(), self.doublings + 1);
        let grown = Self { table, fingerprint_bits, doublings, lengths, ..*self };
        Ok(std::mem::replace(self, grown))
    }

    /// Returns the homes and the fingerprint bits of the next table, which is twice the size.
    fn next_table(&self) -> Result<(u64, u32), BuildError> {
        let homes = self.table.homes() * 2;
        if homes > MAX_HOMES {
            return Err(BuildError::CapacityOutOfRange {
                got: slot_limit(homes),
                limit: slot_limit(MAX_HOMES),
            });
        }
        let room = slot_limit(homes).saturating_sub(self.table.used() + self.void_slots());
        let (target_fpr, longest) = (self.shape.target_fpr(), self.fingerprint_bits.saturating_sub(1));
        let bits = growing::next_fingerprint_bits(homes, room, self.covered(), target_fpr, longest)
            .ok_or(BuildError::RateTooLow { got: target_fpr, limit: MIN_GROWING_RATE })?;
        self.shape.check_table(homes, bits)?;
        Ok((homes, bits))
    }

    /// Writes every slot into the table of twice the size: the first bit of its fingerprint chooses the half.
    fn pour_into(&self, grown: &mut Appender) -> Result<Lengths, RunTableFull> {
        let (view, mut lengths) = (self.table.view(Plain), NO_SLOTS);
        for half in 0..2 {
            for (home, run) in self.table.runs() {
                for content in run.map(|at| view.get(at)) {
                    // A void slot has no bit to choose the half, so it goes to both. This also keeps the
                    // order of a run.
                    let void = content == slot::VOID;
                    if void || content & 1 == half {
                        let rest = if void { content } else { content >> 1 };
                        lengths[slot::length(rest) as usize] += 1;
                        grown.push(half * self.table.homes() + home, rest)?;
                    }
                }
            }
        }
        Ok(lengths)
    }
}

/// The action for an item that already answers *maybe*.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    AnotherCopy,
    Nothing,
}

/// Placement scheme 1: [`SlotPlace`], and runs in the order of their slots' contents.
const PLACEMENT: u16 = 1;
/// The encoding of "no limit".
const NO_LIMIT: u64 = u64::MAX;

impl codec::sealed::Sealed for Growing {}

impl Storable for Growing {
    const KIND: Option<Kind> = Some(Kind::Growing);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Growing, PLACEMENT, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.homes();
        header.parameters[1] = u64::from(self.doublings);
        header.parameters[2] = u64::from(self.fingerprint_bits);
        header.parameters[3] = self.shape.limit_bytes().unwrap_or(NO_LIMIT);
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(self.table.lines())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(4)?;
        let scheme = header.scheme()?;
        let [first_homes, got, _, limit, ..] = header.parameters;
        let limit = (limit != NO_LIMIT).then_some(limit);
        let shape = GrowingShape::from_parts(first_homes, header.capacity, header.target_fpr, limit)?;
        let most_doublings = (MAX_HOMES / first_homes).ilog2();
        let doublings = header.parameter_u32(1, "doublings")?;
        if doublings > most_doublings {
            return Err(DecodeError::BadField { field: "doublings", got });
        }
        let fingerprint_bits = header.parameter_u32(2, "fingerprint bits")?;
        let possible = 1..=MAX_FINGERPRINT_BITS;
        if !possible.contains(&fingerprint_bits)
            || (doublings == 0 && fingerprint_bits != shape.fingerprint_bits())
        {
            let got = u64::from(fingerprint_bits);
            return Err(DecodeError::BadField { field: "fingerprint bits", got });
        }
        let (homes, bits) = (first_homes << doublings, fingerprint_bits + 1);
        let lines = body.lines(RunTable::lines_for(homes, bits)? * LINE_BYTES as u64)?;
        let table = RunTable::from_lines(lines, homes, bits)?;
        let lengths = check_slots(&table)?;
        if table.used() > slot_limit(homes) {
            return Err(DecodeError::BadField { field: "slots in use", got: table.used() });
        }
        let inserted = header.inserted;
        if inserted > table.used() || (inserted == 0 && table.used() > 0) {
            return Err(DecodeError::BadField { field: "inserted", got: inserted });
        }
        Ok(Self { shape, scheme, table, fingerprint_bits, doublings, inserted, lengths })
    }
}

/// Returns the lengths of all fingerprints. Checks that every slot has one and every run is sorted.
fn check_slots(table: &RunTable) -> Result<Lengths, DecodeError> {
    let (view, mut lengths) = (table.view(Plain), NO_SLOTS);
    for (home, run) in table.runs() {
        let mut last = 1;
        for at in run {
            let content = view.get(at);
            if content < last {
                return Err(DecodeError::BadField { field: "run of home", got: home });
            }
            last = content;
            lengths[slot::length(content) as usize] += 1;
        }
    }
    Ok(lengths)
}
