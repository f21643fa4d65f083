//! The counting Bloom filter.

mod counters;
mod explain;
mod lookup;
mod shape;

pub use shape::CountingShape;

use std::sync::atomic::Ordering;

use self::lookup::CounterArray;
use crate::answers::Answers;
use crate::batch::{Hashed, one_chunk_behind};
use crate::bloom::{Bloom, BloomShape};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, MergeError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::probe::{PositionStream as _, Probes, Range};
use crate::simd::prefetch_words;
use crate::sizing::classic;
use crate::sizing::counting::COUNTER_BITS;
use crate::store::Lines;

/// A Bloom filter that can remove items: it has a 4-bit counter in place of every bit.
///
/// * **Only remove items you inserted.** Calling [`remove`](Self::remove) with an item that was never
///   inserted but answers *maybe* lowers the counters of other items and can cause false negatives. An item
///   that answers *no* is rejected, and nothing changes.
/// * Under that condition **no** is certain after any insertions and removals. **maybe** can be a false
///   positive: the false-positive rate is at most `target_fpr` while the filter holds at most `capacity`
///   different items. Past that it rises; [`expected_fpr`](Self::expected_fpr) returns the current rate.
/// * It counts copies: an item inserted three times must be removed three times.
/// * Counters stick at 15 and never wrap. A stuck counter is never lowered again, so an item with more than
///   about fourteen copies may answer *maybe* forever, but this never loses another item.
///   [`saturated`](Self::saturated) and [`overflows`](Self::overflows) count such cases. At capacity three
///   counters in 10^15 are stuck; with three copies of every item, one in a thousand.
/// * Four times the memory of [`Bloom`](crate::Bloom): 38.4 bits per item at 1 %, 57.5 at 0.1 %. A lookup
///   touches up to `k` cache lines, about three for a non-member.
/// * It cannot list items and cannot grow.
///
/// ```text
///            ┌──────────── k positions ───────────┐
/// item ─▶ ItemHash                                ▼
///          0 1 0 0 2 0 1 1 0 0 0 3 0 …  0 1 0 0 1 0     all above zero: maybe; one zero: no
/// ```
///
/// ```
/// use mayhap::CountingBloom;
///
/// let mut online = CountingBloom::new(1_000_000, 0.01)?;
/// assert!(online.insert("ada")); // certainly new
/// assert!(!online.insert("ada")); // a second copy
/// assert_eq!(online.count_estimate("ada"), 2);
/// assert!(online.remove("ada") && online.may_contain("ada"));
/// assert!(online.remove("ada") && !online.may_contain("ada"));
/// assert!(!online.remove("ada")); // certainly a non-member: nothing changed
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// L. Fan, P. Cao, J. Almeida, A. Broder, *Summary cache: a scalable wide-area web cache sharing protocol*,
/// IEEE/ACM ToN 2000.
#[derive(Debug)]
pub struct CountingBloom {
    shape: CountingShape,
    scheme: HashScheme,
    counters: Lines,
    inserted: u64,
    /// Counters above zero.
    occupied: u64,
    overflows: u64,
}

impl CountingBloom {
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
        Self::with_shape(CountingShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: CountingShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let counters = Lines::zeroed(shape.lines())?;
        Ok(Self { shape, scheme: scheme.into(), counters, inserted: 0, occupied: 0, overflows: 0 })
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

    /// Inserts one copy of `item`. `true`: it was certainly not a member before.
    /// `false`: it may have been one. Either way there is one copy more now.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    #[inline]
    pub fn insert_hash(&mut self, hash: ItemHash) -> bool {
        let (counters, probes) = (self.shape.counters(), self.shape.probes());
        let raised = counters::raise(self.counters.words_mut(), Probes::new(hash), counters, probes);
        self.inserted = self.inserted.saturating_add(1);
        self.occupied += raised.fresh;
        self.overflows = self.overflows.saturating_add(raised.lost);
        raised.fresh > 0
    }

    /// Inserts one copy of each of `items` and returns how many of them were certainly not members before. If
    /// the filter is larger than the cache, this is much faster than single inserts.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> u64 {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> u64 {
        self.insert_all(hashes)
    }

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> u64 {
        /// Each item prefetches `k` lines; with more items they evict each other.
        const CHUNK: usize = 8;
        let (scheme, counters, probes) = (self.scheme, self.shape.counters(), self.shape.probes());
        let words = self.counters.words_mut();
        let prefetch = prefetch_words(words);
        let (mut new, mut fresh, mut lost) = (0, 0, 0);
        let start = |item: &H| {
            let stream = Probes::new(item.hashed(&scheme));
            let mut ahead = stream;
            for _ in 0..probes {
                prefetch.at(counters::word_of(ahead.next(Range::of(counters))));
            }
            stream
        };
        one_chunk_behind::<CHUNK, _, _>(items, start, |_, streams| {
            for &stream in streams {
                let raised = counters::raise(words, stream, counters, probes);
                new += u64::from(raised.fresh > 0);
                fresh += raised.fresh;
                lost += raised.lost;
            }
        });
        self.inserted = self.inserted.saturating_add(items.len() as u64);
        self.occupied += fresh;
        self.overflows = self.overflows.saturating_add(lost);
        new
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
        self.array().covers(hash)
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.array().covers_batch(&self.scheme, items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.array().covers_batch(&self.scheme, hashes, answers);
    }

    /// Returns the number of copies of `item`. It is never too low up to 15, which means 15 or more. 0 is
    /// certain.
    #[inline]
    #[must_use]
    pub fn count_estimate<I: Item + ?Sized>(&self, item: &I) -> u8 {
        self.count_estimate_hash(self.scheme.hash(item))
    }

    /// [`count_estimate`](Self::count_estimate) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn count_estimate_hash(&self, hash: ItemHash) -> u8 {
        self.array().lowest(hash) as u8
    }

    /// Removes one copy of `item`. Only remove items that were inserted: removing any other item that answers
    /// *maybe* can cause false negatives for other items.
    ///
    /// `true`: a copy was removed. If all its counters are stuck, the item still answers *maybe*, forever.
    /// `false`: it was certainly not a member, and nothing changed. `remove` is stricter than `may_contain`:
    /// it also rejects an item with two probes on one counter that is at one.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.scheme.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        if !self.may_contain_hash(hash) {
            return false;
        }
        let (counters, probes) = (self.shape.counters(), self.shape.probes());
        let lowered = counters::lower(self.counters.words_mut(), Probes::new(hash), counters, probes);
        let Some(freed) = lowered else { return false };
        self.inserted = self.inserted.saturating_sub(1);
        self.occupied = self.occupied.saturating_sub(freed);
        true
    }

    /// Adds all copies of `other`, as if each had been inserted here.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same counters, probes and hash scheme. On error, nothing has
    /// changed.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        let (mut occupied, mut lost) = (0, other.overflows);
        for (ours, theirs) in self.counters.words_mut().iter_mut().zip(other.counters.words()) {
            let (sums, cut) = counters::add(*ours, theirs.load(Ordering::Relaxed));
            *ours = sums;
            occupied += u64::from(counters::occupied(sums).count_ones());
            lost = lost.saturating_add(cut);
        }
        self.inserted = self.inserted.saturating_add(other.inserted);
        self.occupied = occupied;
        self.overflows = self.overflows.saturating_add(lost);
        Ok(())
    }

    /// Removes all items and resets stuck counters.
    pub fn clear(&mut self) {
        self.counters.words_mut().fill(0);
        (self.inserted, self.occupied, self.overflows) = (0, 0, 0);
    }

    /// Returns the plain filter that gives the same answers: one bit for every counter above zero, in a
    /// quarter of the memory.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn to_bloom(&self) -> Result<Bloom, BuildError> {
        /// Words of counters that become one word of bits.
        const WORDS: usize = COUNTER_BITS as usize;
        let shape = &self.shape;
        let shape =
            BloomShape::from_parts(shape.counters(), shape.probes(), shape.capacity(), shape.target_fpr())?;
        let mut bits = Lines::zeroed(shape.lines())?;
        for (to, from) in bits.words_mut().iter_mut().zip(self.counters.words().chunks_exact(WORDS)) {
            let highest_first = from.iter().rev().map(|word| counters::to_bits(word.load(Ordering::Relaxed)));
            *to = highest_first.fold(0, |word, bits| word << counters::COUNTERS_PER_WORD | bits);
        }
        Ok(Bloom::of_bits(shape, self.scheme, bits))
    }

    /// Returns the shape: counters, probes, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &CountingShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items that the filter was sized for.
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

    /// Returns the false-positive rate that the model predicts from the counters above zero. Copies of an
    /// item do not raise it; stuck counters of removed items do.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.fill().min(1.0).powi(self.shape.probes() as i32)
    }

    /// Returns the share of counters above zero: half of them at capacity. A higher fill than
    /// [`inserted`](Self::inserted) explains means that items were chosen in order to fill the filter.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.occupied as f64 / self.shape.counters() as f64
    }

    /// Estimates the number of different items from the fill, independent of the count.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        classic::items_from_fill(self.shape.counters(), self.shape.probes(), self.occupied)
    }

    /// Returns the number of stuck counters: those at 15. This reads all counters: the time is proportional
    /// to the filter's memory.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        let stuck = |word: u64| u64::from(counters::stuck(word).count_ones());
        self.counters.words().iter().map(|word| stuck(word.load(Ordering::Relaxed))).sum()
    }

    /// Returns the number of probes that hit a stuck counter and were not counted.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Returns the memory that the counters take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.counters.memory_bytes()
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
        Ok(Self { counters: self.counters.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `CountingBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn array(&self) -> CounterArray<'_> {
        let (counters, probes) = (self.shape.counters(), self.shape.probes());
        CounterArray { words: self.counters.words(), counters, probes }
    }
}

/// Placement scheme 1: [`Probes`] over all counters, every probe counted.
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for CountingBloom {}

impl Storable for CountingBloom {
    const KIND: Option<Kind> = Some(Kind::CountingBloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::CountingBloom, PLACEMENT, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.counters();
        header.parameters[1] = u64::from(self.shape.probes());
        header.parameters[2] = self.occupied;
        header.parameters[3] = self.overflows;
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.counters)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(4)?;
        let scheme = header.scheme()?;
        let probes = header.parameter_u32(1, "probes")?;
        let [size, _, occupied, overflows, ..] = header.parameters;
        let shape = CountingShape::from_parts(size, probes, header.capacity, header.target_fpr)?;
        if occupied > size {
            return Err(DecodeError::BadField { field: "occupied counters", got: occupied });
        }
        let counters = body.lines(shape.memory_bytes())?;
        let end = size * u64::from(COUNTER_BITS);
        counters.check_zero_from(end).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self { shape, scheme, counters, inserted: header.inserted, occupied, overflows })
    }
}
