//! The growing filter.

mod explain;
mod lookup;
mod shape;
mod slot;
#[cfg(test)]
mod twin;

pub use shape::GrowingShape;

use self::slot::Place;
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::run_table::{Appender, NoRoom, RunTable};
use crate::simd::select::Plain;
use crate::sizing::growing::{self, MAX_FINGERPRINT_BITS, MAX_HOMES, MIN_GROWING_RATE, slot_limit};
use crate::store::LINE_BYTES;

/// A filter that doubles when it is full, without the items: lookups cost the same and the rate stays, however often.
///
/// * **Remove only what was inserted.** [`remove`](Self::remove) of an item that was never in, but answers *mayhap*, takes the
///   fingerprint of another, and that one is lost. An item that answers *no* is turned away and harms nobody.
/// * Keeping to that, **no** is certain, whatever was inserted, removed and grown. **mayhap** is wrong for at most `target_fpr` of
///   the non-members, always: there is no number of items past which that ends.
/// * 12.4 bits per item at its initial capacity, at 1 %; 15 to 16 when full again later, and twice that right after a doubling.
///   The table below has more.
/// * A lookup looks at one run of slots, one to three as a rule, in two cache lines: as many after twenty doublings as before the
///   first. (A [`ScalableBloom`](crate::ScalableBloom) asks a layer more for every growth.)
/// * A growth reads the table once and writes another of twice the size beside it: for that moment it takes half as much memory
///   again as it will have then, and the insertion that causes it waits for all of it.
/// * It counts copies, up to 255 of one item; the next is refused. Where nothing is ever removed,
///   [`insert_if_absent`](Self::insert_if_absent) keeps one copy of each and knows no such limit.
/// * It cannot shrink, list items, or merge with another.
///
/// ```text
/// ItemHash ─▶ home 5 ─▶ key …1011 0110 1        a slot matches if the key begins with its fingerprint
///
/// home     4     5            6     7           full: twice the homes
///        ┌─────┬─────┬─────┬─────┬─────┐       ┌─────┬────┄┄┬─────┬─────┬────┄
/// slots  │  11 │  01 │1101 │ 001 │     │  ──▶  │ 4   │      │ 5   │ 5   │       4 + 8, 5 + 8 …
///        └─────┴─────┴─────┴─────┴─────┘       └─────┴────┄┄┴─────┴─────┴────┄
///                 ▲     ▲ inserted lately       every fingerprint gave its first bit to the home;
///                 └ two doublings old           new ones are as long as they need to be
/// ```
///
/// ```
/// use mayhap::Growing;
///
/// let mut online = Growing::for_capacity(1_000, 0.01, 0)?;
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
/// # Why the rate stays
///
/// A fingerprint of ℓ bits in a table of H homes matches a share `2^-ℓ / H` of all hashes. A doubling takes one bit from ℓ and
/// doubles H: the share is what it was. So the shares add up to a bound of the rate that growing never changes; only what comes in
/// adds to it. At each doubling the filter looks at what its table really covers, and makes the next fingerprints so long that
/// they cover an eighth of what is left of the promise, less while the table is small. The first ones get half of it.
///
/// A fingerprint with no bit left is *void*: it stands in both homes from then on, and matches whatever has one of them. The
/// shares stay the same. Void slots are never more than `target_fpr` of the table, as each of them is part of the rate
/// ([`void_slots`](Self::void_slots) counts them). Removing an item whose slot is void takes the one in its home; those that stood
/// in for it elsewhere remain, in the rate as before, until the filter is empty.
///
/// Bits of memory per item when it is full, by how often it doubled; right after a doubling, twice as many:
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
/// The alternatives: fingerprints of one length for all, long enough for forty doublings, take 4 bits more from the first item on; a share that
/// dwindles as 1/j² takes 15 bits of fingerprint after twenty doublings at 1 %, where this takes 11.
///
/// N. Dayan, I. Bercea, P. Reviriego, R. Pagh, *InfiniFilter: Expanding Filters to Infinity and Beyond*, SIGMOD 2023; N. Dayan, I. Bercea,
/// R. Pagh, *Aleph Filter: To Infinity in Constant Time*, VLDB 2024. From those are variable lengths and void slots in both homes; sizes
/// free of powers of two, and lengths that follow from what the table covers, are not.
#[derive(Debug)]
pub struct Growing {
    shape: GrowingShape,
    scheme: HashScheme,
    table: RunTable,
    /// Bits of the fingerprints that go in now.
    fingerprint_bits: u32,
    doublings: u32,
    /// Copies in it.
    inserted: u64,
    lengths: Lengths,
}

/// Slots by the length of their fingerprints.
type Lengths = [u64; MAX_FINGERPRINT_BITS as usize + 1];
const NO_SLOTS: Lengths = [0; MAX_FINGERPRINT_BITS as usize + 1];

/// Slots that may cover one item. A lookup has to pass them all.
const MAX_COPIES: u64 = 255;

impl Growing {
    /// A filter that begins with room for `capacity` items and keeps `target_fpr` however much it grows.
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
        Self::with_shape(GrowingShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// A filter that begins with exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: GrowingShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let fingerprint_bits = shape.fingerprint_bits();
        let table = RunTable::with_homes(shape.homes(), fingerprint_bits + 1)?;
        let scheme = scheme.into();
        Ok(Self { shape, scheme, table, fingerprint_bits, doublings: 0, inserted: 0, lengths: NO_SLOTS })
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Puts one copy of `item` in, growing if that takes more room. `true`: it was certainly not in before. `false`: mayhap it
    /// was; there is one copy more now.
    ///
    /// # Errors
    /// Nothing is lost, whichever it is, and nothing changed.
    /// * [`InsertError::CannotGrow`] if it is full, and the memory limit, the system or the size of the world forbid growing.
    /// * [`InsertError::TooManyCopies`] if 255 copies of the item, or of others it cannot be told from, are in.
    /// * [`InsertError::Full`] if copies of a few items crowd the end of a table that is not even half full: growing is no
    ///   help against that.
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

    /// Puts `item` in unless it answers *mayhap* already. `true`: it was new and is in now. `false`: mayhap it was here, and
    /// nothing changed.
    ///
    /// For filters nothing is ever removed from: they need no copies, and never meet their limit. Where items are removed it
    /// loses some: a new item that answers *mayhap* by chance is not put in, and is gone when the other one is removed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but for too many copies.
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

    /// Puts one copy of each of `items` in, one after the other, and says how many were certainly not in before. Faster than
    /// one by one once the filter is larger than the cache.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), at the first item that is refused. All items before it are in, and none behind it: by how
    /// much [`inserted`](Self::inserted) rose says which one it was.
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
            // By the time it is their turn the table may have grown, and the lines been fetched in vain.
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
            // It grew, and that was no help: a refusal changes nothing.
            *self = before;
        }
        put
    }

    /// [`put`](Self::put), which may have grown in vain when it fails; `before` is what it was then.
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
                    // The runs reach the very end of a table with room elsewhere. By chance, that is as good as full; in a
                    // table that is not half full it is no chance, and whoever did that could make it grow for ever.
                    Err(NoRoom) if self.table.used() < limit / 2 => return Err(self.full()),
                    Err(NoRoom) => {}
                }
            }
            let small = self.grow()?;
            before.get_or_insert(small);
        }
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
        lookup::covers(&self.table, self.place(hash))
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it several times faster than
    /// asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        lookup::covers_batch(&self.table, &self.scheme, items, |hash| self.place(hash), answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        lookup::covers_batch(&self.table, &self.scheme, hashes, |hash| self.place(hash), answers);
    }

    /// How many copies of `item` are in: never fewer than there are. 0 is certain; more than there are, as seldom as a non-member
    /// answers *mayhap*.
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

    /// Takes one copy of `item` out. Only for items that were inserted: one that was not, but answers *mayhap*, takes another
    /// along.
    ///
    /// `true`: a copy was taken out. `false`: it was certainly not in, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        let place = self.place(hash);
        // The longest fingerprint that covers the item may be that of another item, which begins alike for all of its bits.
        // The one of this item, which stays then, is a beginning of it, so it covers the other just as well: they trade
        // places. Taking the shorter one would leave the longer to stand in for it, and that covers less.
        let Some(run) = self.table.run(place.home) else { return false };
        let seen = lookup::look(&self.table, &run, place.key, 0);
        let Some((at, content)) = seen.longest else { return false };
        let length = &mut self.lengths[slot::length(content) as usize];
        *length = length.saturating_sub(1);
        self.table.remove(place.home, &run, at);
        self.inserted = self.inserted.saturating_sub(1);
        if self.inserted == 0 && self.table.used() > 0 {
            // What is left stood in for nobody: void slots in homes their item does not have.
            self.table.clear();
            self.lengths = NO_SLOTS;
        }
        true
    }

    /// Forgets everything, and is as small as it was at first.
    pub fn clear(&mut self) {
        match Self::with_shape(self.shape, self.scheme) {
            Ok(small) => *self = small,
            // Without memory even for that it stays as large as it is.
            Err(_) => {
                self.table.clear();
                (self.inserted, self.lengths) = (0, NO_SLOTS);
            }
        }
    }

    /// From now on the table may take `limit_bytes`, or any amount. One that is larger already stays, until it is full.
    pub const fn limit_memory(&mut self, limit_bytes: Option<u64>) {
        self.shape = self.shape.limited(limit_bytes);
    }

    /// What it began with.
    #[must_use]
    pub const fn shape(&self) -> &GrowingShape {
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

    /// Copies it has room for before it doubles again.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.inserted + slot_limit(self.table.homes()).saturating_sub(self.table.used())
    }

    /// The rate it promised, after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Copies in it by its own count: insertions, duplicates included, less removals.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Bits of the fingerprints that go in now.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// The rate by the model, from the fingerprints that are really in the table. Copies count as different items do, so with
    /// many of them it is lower.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        growing::expected_fpr(self.covered()).min(1.0)
    }

    /// Slots whose fingerprint has no bit left: whatever has their home answers *mayhap*. They are part of the promised rate, as
    /// which they never take more than that share of the table.
    #[must_use]
    pub const fn void_slots(&self) -> u64 {
        self.lengths[0]
    }

    /// The share of slots that are taken, of those it has homes for. It doubles at nine tenths.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.table.used() as f64 / self.table.homes() as f64
    }

    /// Memory the table takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Bits of memory per copy in it; infinite while there are none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted as f64
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
    /// [`DecodeError`] for anything but an intact encoded `Growing`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn place(&self, hash: ItemHash) -> Place {
        Place::of(hash, self.shape.homes(), self.doublings)
    }

    /// The share of all hashes its slots cover.
    fn covered(&self) -> f64 {
        let homes = self.table.homes();
        self.lengths.iter().zip(0..).map(|(&slots, len)| growing::covered(slots as f64, len, homes)).sum()
    }

    fn full(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.capacity() }
    }

    /// Twice the table, or everything as it was. Hands back the filter as it was before.
    #[cold]
    fn grow(&mut self) -> Result<Self, InsertError> {
        let refused = |cause| InsertError::CannotGrow { capacity: self.capacity(), layers: 1, cause };
        let (homes, fingerprint_bits) = self.next_table().map_err(refused)?;
        let mut grown = Appender::with_homes(homes, fingerprint_bits + 1).map_err(refused)?;
        let lengths = self.pour_into(&mut grown).map_err(|NoRoom| self.full())?;
        let (table, doublings) = (grown.finish(), self.doublings + 1);
        let grown = Self { table, fingerprint_bits, doublings, lengths, ..*self };
        Ok(std::mem::replace(self, grown))
    }

    /// Homes and fingerprints of the table twice this size.
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

    /// Writes every slot into the table twice the size: the first bit of its fingerprint says into which half.
    fn pour_into(&self, grown: &mut Appender) -> Result<Lengths, NoRoom> {
        let (view, mut lengths) = (self.table.view(Plain), NO_SLOTS);
        for half in 0..2 {
            for (home, run) in self.table.runs() {
                for content in run.map(|at| view.get(at)) {
                    // No bit says in which half the item of a void slot is: it stays in both. The order of a run stays too.
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

/// What to do about an item that answers *mayhap* already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    AnotherCopy,
    Nothing,
}

/// Placement scheme 1: [`Place`], and runs in the order of their slots' contents.
const PLACEMENT: u16 = 1;
/// How "no limit" travels.
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

/// The lengths of all fingerprints, if there is one in every slot and every run is in order.
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
