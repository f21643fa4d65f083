//! The classic Bloom filter.

mod atomic;
pub(crate) mod explain;
mod lookup;
mod shape;

pub use shape::BloomShape;

use std::sync::atomic::Ordering;

pub(crate) use self::lookup::WORD;
use self::lookup::{BitArray, Distance};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, MergeError};
use crate::fill::{Fill, Sampling};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::probe::{BloomPlacement, ForeignProbes, PositionStream, Probes, RedisProbes};
use crate::sizing::{classic, counted};
use crate::store::{BitPositions, Bits, BitsMut, Lines, Relocate};

/// The classic Bloom filter: every item sets `k` bits of one large array.
///
/// * **no** is certain. **maybe** can be a false positive: the false-positive rate is at most `target_fpr`
///   while the filter holds at most `capacity` items. Past that it rises;
///   [`expected_fpr`](Self::expected_fpr) returns the current rate.
/// * 1.44 · log2(1/p) bits per item: 9.6 at 1 %, 14.4 at 0.1 %.
/// * A lookup touches up to `k` cache lines, about three for a non-member.
///   [`BlockedBloom`](crate::BlockedBloom) touches one and takes a tenth more memory.
/// * It cannot remove, count or list items, and cannot grow: see [`CountingBloom`](crate::CountingBloom) and
///   [`ScalableBloom`](crate::ScalableBloom).
///
/// ```text
///            ┌──────────── k positions ───────────┐
/// item ─▶ ItemHash                                ▼
///          0 1 0 0 1 0 1 1 0 0 0 1 0 …  0 1 0 0 1 0     all set: maybe; one clear: no
/// ```
///
/// ```
/// use mayhap::Bloom;
///
/// let mut seen = Bloom::for_capacity(1_000_000, 0.01, 0)?;
/// assert!(seen.insert("https://example.org/a")); // certainly new
/// assert!(!seen.insert("https://example.org/a")); // maybe seen before
/// assert!(seen.may_contain("https://example.org/a"));
/// assert_eq!(seen.inserted(), 1);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// B. H. Bloom, *Space/time trade-offs in hash coding with allowable errors*, CACM 1970.
#[derive(Debug)]
pub struct Bloom {
    shape: BloomShape,
    scheme: HashScheme,
    placement: BloomPlacement,
    bits: Lines,
    inserted: u64,
}

/// Items prefetched together while inserting. Each has `k` lines; with more items they evict each other.
const INSERT_CHUNK: usize = 8;

impl Bloom {
    /// Creates the smallest filter for `capacity` items at `target_fpr`.
    ///
    /// A number as `scheme` is the seed of the fast hash. Use [`HashScheme::keyed_random`] if untrusted users
    /// choose the items.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn for_capacity(
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(BloomShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: BloomShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::placed(shape, scheme.into(), BloomPlacement::Mayhap)
    }

    /// Creates an empty filter that uses another program's placement.
    pub(crate) fn placed(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
    ) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme, placement, bits: Lines::zeroed(shape.lines())?, inserted: 0 })
    }

    /// Creates a filter from bits that another kind has set by placement scheme 1.
    pub(crate) fn of_bits(shape: BloomShape, scheme: HashScheme, bits: Lines) -> Self {
        Self::of_placed_bits(shape, scheme, BloomPlacement::Mayhap, bits)
    }

    /// Creates a filter from bits that another program has set. Estimates the number of inserted items from
    /// the fill.
    ///
    /// `bits` has the length of the shape and is clear after its last bit.
    pub(crate) fn of_placed_bits(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
        bits: Lines,
    ) -> Self {
        let filter = Self { shape, scheme, placement, bits, inserted: 0 };
        if placement != BloomPlacement::Mayhap {
            return Self {
                inserted: counted::from_fill(shape.bits(), shape.probes(), filter.ones()),
                ..filter
            };
        }
        Self { inserted: filter.estimated_count(), ..filter }
    }

    /// Adds `more` to the count, for items inserted through a shared reference.
    pub(crate) const fn count(&mut self, more: u64) {
        self.inserted = self.inserted.saturating_add(more);
    }

    /// Sets the number of insertions, for a program that counted them.
    pub(crate) fn with_count(self, inserted: u64) -> Self {
        Self { inserted: inserted.min(codec::MAX_INSERTED), ..self }
    }

    /// Returns the bits, to write them in another program's format.
    pub(crate) const fn bits(&self) -> &Lines {
        &self.bits
    }

    /// Returns the bits for another program's insertions. Those after the last one must stay clear.
    pub(crate) const fn bits_mut(&mut self) -> &mut Lines {
        &mut self.bits
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Inserts `item`. `true`: the filter changed, so the item was certainly new. `false`: it may have been
    /// inserted before, and nothing changed.
    #[inline(always)]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: ItemHash) -> bool {
        let changed = match self.placement {
            BloomPlacement::Mayhap => self.set(Probes::new(hash)),
            BloomPlacement::RedisBloom => self.set_redis(RedisProbes::new(hash)),
            placement => self.set_foreign(ForeignProbes::new(placement, hash)),
        };
        self.inserted += u64::from(changed);
        changed
    }

    #[inline(always)]
    fn set<P: PositionStream>(&mut self, stream: P) -> bool {
        BitsMut::new(self.bits.words_mut(), self.shape.range()).set_all(stream, self.shape.probes())
    }

    /// Out of line, to keep the inlined code of our own placement small.
    #[inline(never)]
    fn set_redis(&mut self, stream: RedisProbes) -> bool {
        self.set(stream)
    }

    /// Likewise.
    #[inline(never)]
    fn set_foreign(&mut self, stream: ForeignProbes) -> bool {
        self.set(stream)
    }

    /// Inserts all `items` and returns how many of them changed the filter. If the filter is larger than the
    /// cache, this is much faster than single inserts.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> u64 {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> u64 {
        self.insert_all(hashes)
    }

    /// Common numbers of probes have unrolled code.
    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> u64 {
        let placement = self.placement;
        let changed = match self.shape.probes() {
            _ if placement == BloomPlacement::RedisBloom => self.insert_redis(items),
            _ if placement != BloomPlacement::Mayhap => {
                self.insert_any(items, |hash| ForeignProbes::new(placement, hash))
            }
            3 => self.insert_fixed::<3, H, _>(items, Probes::new),
            4 => self.insert_fixed::<4, H, _>(items, Probes::new),
            5 => self.insert_fixed::<5, H, _>(items, Probes::new),
            6 => self.insert_fixed::<6, H, _>(items, Probes::new),
            7 => self.insert_fixed::<7, H, _>(items, Probes::new),
            8 => self.insert_fixed::<8, H, _>(items, Probes::new),
            10 => self.insert_fixed::<10, H, _>(items, Probes::new),
            13 => self.insert_fixed::<13, H, _>(items, Probes::new),
            14 => self.insert_fixed::<14, H, _>(items, Probes::new),
            _ => self.insert_any(items, Probes::new),
        };
        self.inserted += changed;
        changed
    }

    /// Unrolls RedisBloom's numbers of probes at 1 %, 0.1 % and 0.01 %, with and without growth, and those of
    /// the layers that grow from them.
    fn insert_redis<H: Hashed>(&mut self, items: &[H]) -> u64 {
        match self.shape.probes() {
            7 => self.insert_fixed::<7, H, _>(items, RedisProbes::new),
            8 => self.insert_fixed::<8, H, _>(items, RedisProbes::new),
            9 => self.insert_fixed::<9, H, _>(items, RedisProbes::new),
            10 => self.insert_fixed::<10, H, _>(items, RedisProbes::new),
            11 => self.insert_fixed::<11, H, _>(items, RedisProbes::new),
            _ => self.insert_any(items, RedisProbes::new),
        }
    }

    fn insert_fixed<const K: usize, H: Hashed, P: PositionStream>(
        &mut self,
        items: &[H],
        positions: impl Fn(ItemHash) -> P,
    ) -> u64 {
        let scheme = self.scheme;
        let mut bits = BitsMut::new(self.bits.words_mut(), self.shape.range());
        let prefetch = bits.prefetcher();
        let start = |hash| prefetch.locate::<K, _>(positions(hash));
        let mut changed = 0;
        hash_one_chunk_behind::<INSERT_CHUNK, _, _>(items, &scheme, start, |_, located| {
            for BitPositions(positions) in located {
                changed += u64::from(bits.set_at(positions));
            }
        });
        changed
    }

    fn insert_any<H: Hashed, P: PositionStream>(
        &mut self,
        items: &[H],
        positions: impl Fn(ItemHash) -> P,
    ) -> u64 {
        let (scheme, probes) = (self.scheme, self.shape.probes());
        let mut bits = BitsMut::new(self.bits.words_mut(), self.shape.range());
        let prefetch = bits.prefetcher();
        let start = |hash| {
            let stream = positions(hash);
            prefetch.all(stream, probes);
            stream
        };
        let mut changed = 0;
        hash_one_chunk_behind::<INSERT_CHUNK, _, _>(items, &scheme, start, |_, streams| {
            for &stream in streams {
                changed += u64::from(bits.set_all(stream, probes));
            }
        });
        changed
    }

    /// `false`: never inserted. `true`: maybe.
    #[inline(always)]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline(always)]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        match self.placement {
            BloomPlacement::Mayhap => self.array().covers(Probes::new(hash)),
            BloomPlacement::RedisBloom => self.covers_redis(RedisProbes::new(hash)),
            placement => self.covers_foreign(ForeignProbes::new(placement, hash)),
        }
    }

    /// Out of line, to keep the inlined code of our own placement small.
    #[inline(never)]
    fn covers_redis(&self, stream: RedisProbes) -> bool {
        self.array().covers(stream)
    }

    /// Likewise.
    #[inline(never)]
    fn covers_foreign(&self, stream: ForeignProbes) -> bool {
        self.array().covers(stream)
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        // Measured: if the filter is larger than the cache, more hashes than this are worth one round per
        // bit.
        let most = if self.distance() == Distance::Memory { WORD / 2 } else { WORD };
        if hashes.len() > most {
            return self.answer_all(hashes, answers);
        }
        answers.reset(hashes.len());
        if let Some(word) = answers.words_mut().first_mut() {
            *word = self.answer_word(hashes);
        }
    }

    /// Returns the answers to at most the first 64 `hashes`, the first in the lowest bit.
    pub(crate) fn answer_word(&self, hashes: &[ItemHash]) -> u64 {
        let (array, distance) = (self.array(), self.distance());
        match self.placement {
            BloomPlacement::Mayhap => array.answer_word(Probes::new, hashes, distance),
            BloomPlacement::RedisBloom => array.answer_word(RedisProbes::new, hashes, distance),
            placement => array.answer_word(|hash| ForeignProbes::new(placement, hash), hashes, distance),
        }
    }

    #[inline(always)]
    fn distance(&self) -> Distance {
        match self.bits.memory_bytes() {
            0..0x4_0000 => Distance::Near,
            0x4_0000..0x100_0000 => Distance::Cache,
            _ => Distance::Memory,
        }
    }

    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        match self.placement {
            BloomPlacement::Mayhap => self.answer_placed(items, Probes::new, answers),
            BloomPlacement::RedisBloom => self.answer_placed(items, RedisProbes::new, answers),
            placement => self.answer_placed(items, |hash| ForeignProbes::new(placement, hash), answers),
        }
    }

    fn answer_placed<H: Hashed, P: PositionStream>(
        &self,
        items: &[H],
        positions: impl Fn(ItemHash) -> P,
        answers: &mut Answers,
    ) {
        // Measured: in the cache two rounds cost fewer instructions; in main memory `k` rounds fetch fewer
        // lines.
        if self.distance() != Distance::Memory {
            self.array().answer_in_two_rounds(positions, &self.scheme, items, answers);
        } else {
            self.array().answer_round_by_round(positions, &self.scheme, items, answers);
        }
    }

    /// Adds all items of `other`, as if each had been inserted here.
    ///
    /// The number of common items is unknown, so [`inserted`](Self::inserted) becomes an estimate from the
    /// fill.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes and hash scheme. On error, nothing has changed.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.combine(other, |ours, theirs| ours | theirs)
    }

    /// Keeps the items that both filters may contain. The result still answers *maybe* for every item of
    /// both. Its false-positive rate is at best that of the fuller filter, not that of a filter built from
    /// the common items alone.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes and hash scheme. On error, nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.combine(other, |ours, theirs| ours & theirs)
    }

    fn combine(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        if self.placement != other.placement {
            return Err(MergeError::PlacementDiffers { ours: self.placement, theirs: other.placement });
        }
        for (ours, theirs) in self.bits.words_mut().iter_mut().zip(other.bits.words()) {
            *ours = join(*ours, theirs.load(Ordering::Relaxed));
        }
        self.inserted = self.estimated_count();
        Ok(())
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.bits.words_mut().fill(0);
        self.inserted = 0;
    }

    /// Returns the shape: bits, probes, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &BloomShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the rule that turns a hash into positions: ours, or that of the program that wrote the filter.
    #[must_use]
    pub const fn placement(&self) -> BloomPlacement {
        self.placement
    }

    /// Returns the number of items the filter was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of items counted so far: insertions that changed the filter.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the false-positive rate that the model predicts for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        counted::expected_fpr(self.shape.bits(), self.shape.probes(), self.inserted)
    }

    /// Returns the number of set bits. This reads all bits: the time is proportional to the filter's memory.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.bits.ones()
    }

    /// Returns the share of set bits: half of them at capacity. A higher fill than
    /// [`inserted`](Self::inserted) explains means that items were chosen in order to fill the filter.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.bits() as f64
    }

    /// Measures the fill from all bits or a sample, and the false-positive rate that follows from it.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill::of_bits(self.bits.words(), self.shape.bits(), self.shape.probes(), sampling)
    }

    /// Estimates the number of items from the fill, independent of the count.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        classic::items_from_fill(self.shape.bits(), self.shape.probes(), self.ones())
    }

    /// Estimates from the fill how many insertions changed the filter, which is what
    /// [`inserted`](Self::inserted) counts.
    fn estimated_count(&self) -> u64 {
        let (bits, probes) = (self.shape.bits(), self.shape.probes());
        counted::counted(self.estimated_items(), |items| classic::quickly_expected_fpr(bits, probes, items))
    }

    /// Returns the memory that the bits take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bits.memory_bytes()
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Moves the filter's memory to where `by` places it.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        self.bits.relocate(by);
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { bits: self.bits.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Bloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn array(&self) -> BitArray<'_> {
        BitArray { bits: Bits::new(self.bits.words(), self.shape.range()), probes: self.shape.probes() }
    }
}

impl codec::sealed::Sealed for Bloom {}

impl Storable for Bloom {
    const KIND: Option<Kind> = Some(Kind::Bloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Bloom, self.placement.number(), Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.bits();
        header.parameters[1] = u64::from(self.shape.probes());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.bits)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let unknown = DecodeError::UnknownPlacement { got: header.placement };
        let placement = BloomPlacement::from_number(header.placement).ok_or(unknown.clone())?;
        let scheme = header.scheme()?;
        if !placement.suits(&scheme) {
            return Err(unknown);
        }
        header.expect_parameters(2)?;
        let probes = header.parameter_u32(1, "probes")?;
        let [bits, ..] = header.parameters;
        let shape = BloomShape::of_placement(placement, bits, probes, header.capacity, header.target_fpr)?;
        let bits = body.lines(shape.memory_bytes())?;
        bits.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self { shape, scheme, placement, bits, inserted: header.inserted })
    }
}
