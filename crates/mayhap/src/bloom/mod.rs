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
use crate::probe::{BloomPlacement, ForeignProbes, Probes, RedisProbes, Stream};
use crate::sizing::{classic, counted};
use crate::store::{Bits, BitsMut, Lines, Positions, Relocate};

/// The classic Bloom filter: every item sets `k` bits of one large array.
///
/// * **no** is certain. **mayhap** is wrong for at most `target_fpr` of the non-members while no more than `capacity`
///   items are in; past that the rate climbs and [`expected_fpr`](Self::expected_fpr) says to what.
/// * 1.44 · log2(1/p) bits per item: 9.6 at 1 %, 14.4 at 0.1 %.
/// * A lookup touches up to `k` cache lines, about three for a non-member. [`BlockedBloom`](crate::BlockedBloom) touches one and
///   pays a tenth more memory.
/// * It cannot remove, count or list items, and cannot grow: see `CountingBloom`, `ScalableBloom`.
///
/// ```text
///            ┌──────────── k positions ───────────┐
/// item ─▶ ItemHash                                ▼
///          0 1 0 0 1 0 1 1 0 0 0 1 0 …  0 1 0 0 1 0     all set: mayhap; one clear: no
/// ```
///
/// ```
/// use mayhap::Bloom;
///
/// let mut seen = Bloom::for_capacity(1_000_000, 0.01, 0)?;
/// assert!(seen.insert("https://example.org/a")); // new, certainly
/// assert!(!seen.insert("https://example.org/a")); // mayhap seen before
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

/// Items whose lines are on their way at once while inserting: each has `k` of them, and more only crowd each other out.
const INSERT_CHUNK: usize = 8;

impl Bloom {
    /// The smallest filter for `capacity` items at `target_fpr`.
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
        Self::with_shape(BloomShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: BloomShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::placed(shape, scheme.into(), BloomPlacement::Mayhap)
    }

    /// An empty filter that places its items by another program's rule.
    pub(crate) fn placed(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
    ) -> Result<Self, BuildError> {
        Ok(Self { shape, scheme, placement, bits: Lines::zeroed(shape.lines())?, inserted: 0 })
    }

    /// The filter with these bits, which another kind has set by placement scheme 1.
    pub(crate) fn of_bits(shape: BloomShape, scheme: HashScheme, bits: Lines) -> Self {
        Self::of_placed_bits(shape, scheme, BloomPlacement::Mayhap, bits)
    }

    /// The filter with these bits, which another program has set. Takes as many for inserted as the fill speaks of.
    ///
    /// `bits` is as long as the shape asks for, and clear behind its last bit.
    pub(crate) fn of_placed_bits(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
        bits: Lines,
    ) -> Self {
        let filter = Self { shape, scheme, placement, bits, inserted: 0 };
        #[cfg(feature = "formats")]
        if placement != BloomPlacement::Mayhap {
            return Self {
                inserted: counted::from_fill(shape.bits(), shape.probes(), filter.ones()),
                ..filter
            };
        }
        Self { inserted: filter.estimated_count(), ..filter }
    }

    /// Counts `more` items, whose bits were set through a shared reference.
    pub(crate) const fn count(&mut self, more: u64) {
        self.inserted = self.inserted.saturating_add(more);
    }

    /// The same filter, for a program that counted its insertions.
    #[cfg(feature = "formats")]
    pub(crate) fn with_count(self, inserted: u64) -> Self {
        Self { inserted: inserted.min(codec::MAX_INSERTED), ..self }
    }

    /// The bits, for writing them in another program's form.
    #[cfg(feature = "formats")]
    pub(crate) const fn bits(&self) -> &Lines {
        &self.bits
    }

    /// The bits, to be set by another program's hand; those behind the last one stay clear.
    #[cfg(feature = "formats")]
    pub(crate) const fn bits_mut(&mut self) -> &mut Lines {
        &mut self.bits
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Records `item`. `true`: the filter changed, so the item was certainly new.
    /// `false`: mayhap it was here already, and nothing changed.
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
    fn set<P: Stream>(&mut self, stream: P) -> bool {
        BitsMut::new(self.bits.words_mut(), self.shape.range()).set_all(stream, self.shape.probes())
    }

    /// Out of line, so that our own placement stays small where it is inlined.
    #[inline(never)]
    fn set_redis(&mut self, stream: RedisProbes) -> bool {
        self.set(stream)
    }

    /// Likewise.
    #[inline(never)]
    fn set_foreign(&mut self, stream: ForeignProbes) -> bool {
        self.set(stream)
    }

    /// Records all `items` and says how many of them changed the filter. Much faster than one by one once the filter
    /// is larger than the cache.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> u64 {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> u64 {
        self.insert_all(hashes)
    }

    /// The common numbers of probes have unrolled code of their own.
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

    /// RedisBloom's numbers of probes at 1 %, 0.1 % and 0.01 %, with and without growth, and of the layers that grow from those.
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

    fn insert_fixed<const K: usize, H: Hashed, P: Stream>(
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
            for Positions(positions) in located {
                changed += u64::from(bits.set_at(positions));
            }
        });
        changed
    }

    fn insert_any<H: Hashed, P: Stream>(&mut self, items: &[H], positions: impl Fn(ItemHash) -> P) -> u64 {
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

    /// `false`: never inserted. `true`: mayhap.
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

    /// Out of line, so that our own placement stays small where it is inlined.
    #[inline(never)]
    fn covers_redis(&self, stream: RedisProbes) -> bool {
        self.array().covers(stream)
    }

    /// Likewise.
    #[inline(never)]
    fn covers_foreign(&self, stream: ForeignProbes) -> bool {
        self.array().covers(stream)
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it several times faster
    /// than asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        // Measured: past the cache so many are worth a round for each of their bits.
        let most = if self.distance() == Distance::Memory { WORD / 2 } else { WORD };
        if hashes.len() > most {
            return self.answer_all(hashes, answers);
        }
        answers.reset(hashes.len());
        if let Some(word) = answers.words_mut().first_mut() {
            *word = self.answer_word(hashes);
        }
    }

    /// The answers to the first 64 `hashes` at most, the first in the lowest bit.
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

    fn answer_placed<H: Hashed, P: Stream>(
        &self,
        items: &[H],
        positions: impl Fn(ItemHash) -> P,
        answers: &mut Answers,
    ) {
        // Measured: below this the two rounds cost fewer instructions, above it `k` rounds fetch fewer lines.
        if self.distance() != Distance::Memory {
            self.array().answer_in_two_rounds(positions, &self.scheme, items, answers);
        } else {
            self.array().answer_round_by_round(positions, &self.scheme, items, answers);
        }
    }

    /// Adds everything `other` holds, as if each of its items had been inserted here.
    ///
    /// How many items both held is not known: [`inserted`](Self::inserted) becomes the estimate from the fill.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes and hash scheme; nothing has changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.combine(other, |ours, theirs| ours | theirs)
    }

    /// Keeps what both hold. The result still answers *mayhap* for every item in both, but its rate is that of the fuller
    /// of the two at best, not that of a filter built from the common items alone.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes and hash scheme; nothing has changed then.
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

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.bits.words_mut().fill(0);
        self.inserted = 0;
    }

    /// The measurements: bits, probes, capacity, promise.
    #[must_use]
    pub const fn shape(&self) -> &BloomShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Whose rule turns a hash into positions: ours, or that of the program the filter was read from.
    #[must_use]
    pub const fn placement(&self) -> BloomPlacement {
        self.placement
    }

    /// Items it was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Items counted so far: insertions that changed something.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The rate by the model, for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        counted::expected_fpr(self.shape.bits(), self.shape.probes(), self.inserted)
    }

    /// Set bits. Counts all of them, so it takes time in proportion to the size.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.bits.ones()
    }

    /// The share of set bits: half of them at capacity. More than [`inserted`](Self::inserted) explains means somebody
    /// chose items in order to fill the filter.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.bits() as f64
    }

    /// How full it is by its bits, or by a sample of them, and the rate that follows.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill::of_bits(self.bits.words(), self.shape.bits(), self.shape.probes(), sampling)
    }

    /// How many items the fill speaks of, whatever was counted.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        classic::items_from_fill(self.shape.bits(), self.shape.probes(), self.ones())
    }

    /// How many insertions the fill says changed something: what [`inserted`](Self::inserted) counts.
    fn estimated_count(&self) -> u64 {
        let (bits, probes) = (self.shape.bits(), self.shape.probes());
        counted::counted(self.estimated_items(), |items| classic::quickly_expected_fpr(bits, probes, items))
    }

    /// Memory the bits take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bits.memory_bytes()
    }

    /// Bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Has its memory put elsewhere, where that is better.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        self.bits.relocate(by);
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { bits: self.bits.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `Bloom`.
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
