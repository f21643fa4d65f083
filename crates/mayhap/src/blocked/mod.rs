//! The blocked Bloom filter.

mod atomic;
mod explain;
pub(crate) mod place;
mod placement;
mod rocksdb;
mod shape;

pub(crate) use place::Place;
pub use placement::BlockedPlacement;
pub(crate) use placement::MAX_PARQUET_BLOCKS;
pub use shape::{BlockedLayout, BlockedShape};

use std::sync::atomic::{AtomicU64, Ordering};

use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, MergeError};
use crate::fill::{Fill, Sampling};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::simd::{self, Avx2, generic, prefetch, prefetch_words};
use crate::sizing::classic;
use crate::store::Lines;

/// A Bloom filter whose lookups touch one cache line.
///
/// * **no** is certain. **mayhap** is wrong for at most `target_fpr` of the non-members while no more than `capacity`
///   items are in; past that the rate climbs and [`expected_fpr`](Self::expected_fpr) says to what.
/// * A tenth more memory than [`Bloom`](crate::Bloom) in the fast layout (10.5 bits per item at 1 %), 3 % more in the
///   dense one (9.9 bits): the price of uneven blocks is in the size, not in the rate. See [`BlockedLayout`].
/// * A lookup touches one cache line, two or three for rates below 5e-4, and is tested with AVX2 where the CPU has it.
/// * It cannot remove, count or list items, and cannot grow. Rates go down to 1e-9.
///
/// ```text
/// item ─▶ ItemHash ─▶ block ─┐
///                            ▼
///   … ┃ 0 1 0 0 1 0 1 1 ┃ 0 1 1 0 … 0 1 0 0 ┃ 0 1 0 …     all its bits set in its block: mayhap
/// ```
///
/// ```
/// use mayhap::{Answers, BlockedBloom};
///
/// let mut seen = BlockedBloom::for_capacity(1_000_000, 0.01, 0)?;
/// seen.insert_batch(&["a", "b", "c"]);
/// let mut answers = Answers::new();
/// seen.may_contain_batch(&["a", "c", "x"], &mut answers);
/// assert_eq!(answers.get(0), Some(true));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// F. Putze, P. Sanders, J. Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, WEA 2007; the split layout is
/// that of Impala and Parquet.
#[derive(Debug)]
pub struct BlockedBloom {
    shape: BlockedShape,
    scheme: HashScheme,
    placement: BlockedPlacement,
    words: Lines,
    inserted: u64,
    single: Single,
}

/// How one item is looked up: settled when the filter is made, so that a lookup asks once.
#[derive(Clone, Copy, Debug)]
enum Single {
    /// The fast layout on a CPU with AVX2, by our own rule or one that always agrees with it.
    Split(Avx2),
    /// Anything else.
    Other,
}

impl Single {
    fn of(shape: &BlockedShape, placement: BlockedPlacement) -> Self {
        let like_ours = match placement {
            BlockedPlacement::Split => true,
            BlockedPlacement::Parquet => shape.blocks().is_power_of_two(),
            BlockedPlacement::Line | BlockedPlacement::RocksDbLegacy | BlockedPlacement::RocksDbFastLocal => {
                false
            }
        };
        match Avx2::detect() {
            Some(avx2) if like_ours => Self::Split(avx2),
            _ => Self::Other,
        }
    }
}

/// Items on their way at once: enough to hide the memory's latency, few enough to stay in its queues.
const CHUNK: usize = 32;

impl BlockedBloom {
    /// The smallest filter for `capacity` items at `target_fpr`, in the layout that suits the rate.
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
        Self::with_shape(BlockedShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory; [`BuildError::ProbesOutOfRange`] for the shape of another program's
    /// filter that has more probes in a line than ours may.
    pub fn with_shape(shape: BlockedShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::placed(shape.checked()?, scheme.into(), BlockedPlacement::ours(shape.layout()))
    }

    /// An empty filter that places its items by this rule.
    pub(crate) fn placed(
        shape: BlockedShape,
        scheme: HashScheme,
        placement: BlockedPlacement,
    ) -> Result<Self, BuildError> {
        let words = Lines::zeroed(shape.lines())?;
        Ok(Self { shape, scheme, placement, words, inserted: 0, single: Single::of(&shape, placement) })
    }

    /// The filter with these blocks, which another program has filled. Takes as many for inserted as the fill speaks of.
    ///
    /// `words` is as long as the shape asks for, and clear behind its last block.
    #[cfg(feature = "formats")]
    pub(crate) fn of_placed_blocks(
        shape: BlockedShape,
        scheme: HashScheme,
        placement: BlockedPlacement,
        words: Lines,
    ) -> Self {
        let single = Single::of(&shape, placement);
        let filter = Self { shape, scheme, placement, words, inserted: 0, single };
        Self { inserted: filter.estimated_items().min(codec::MAX_INSERTED), ..filter }
    }

    /// The words of all blocks, for writing them in another program's form.
    #[cfg(feature = "formats")]
    pub(crate) const fn words(&self) -> &Lines {
        &self.words
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
        let changed = match self.single {
            Single::Split(avx2) => {
                let (blocks, words) = (self.shape.blocks(), self.words.words_mut());
                simd::split_set_avx2(avx2, words, blocks, place::split(hash, blocks))
            }
            Single::Other => self.set_otherwise(hash),
        };
        self.inserted += u64::from(changed);
        changed
    }

    /// Out of line, so that the fast layout stays small where it is inlined.
    #[inline(never)]
    fn set_otherwise(&mut self, hash: ItemHash) -> bool {
        let split = self.split_place(hash);
        let (shape, words) = (&self.shape, self.words.words_mut());
        let rule = self.placement;
        if rule.is_rocksdbs() {
            return rule.set(words, rule.line(hash, shape.blocks()), shape.probes());
        }
        match (shape.layout(), shape.lines_per_item()) {
            (BlockedLayout::Split256, _) => simd::split_set(words, shape.blocks(), split),
            (BlockedLayout::Line512, 1) => {
                generic::lines_set(words, place::lines::<1>(hash, shape), shape.probes())
            }
            (BlockedLayout::Line512, 2) => {
                generic::lines_set(words, place::lines::<2>(hash, shape), shape.probes())
            }
            (BlockedLayout::Line512, _) => {
                generic::lines_set(words, place::lines::<3>(hash, shape), shape.probes())
            }
        }
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

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> u64 {
        let (shape, rule) = (self.shape, self.placement);
        let changed = match (shape.layout(), shape.lines_per_item()) {
            _ if rule.is_rocksdbs() => {
                let set = |words: &mut [u64], [place]: [Place; 1]| rule.set(words, place, shape.probes());
                self.insert_located(items, |hash| [rule.line(hash, shape.blocks())], set)
            }
            (BlockedLayout::Split256, _) => {
                let blocks = shape.blocks();
                match self.placement {
                    BlockedPlacement::Parquet => {
                        self.insert_in_split_blocks(items, |hash| [place::parquet(hash, blocks)])
                    }
                    _ => self.insert_in_split_blocks(items, |hash| [place::split(hash, blocks)]),
                }
            }
            (BlockedLayout::Line512, 1) => self.insert_in_lines::<1, H>(items),
            (BlockedLayout::Line512, 2) => self.insert_in_lines::<2, H>(items),
            (BlockedLayout::Line512, _) => self.insert_in_lines::<3, H>(items),
        };
        self.inserted += changed;
        changed
    }

    #[inline(always)]
    fn insert_in_split_blocks<H: Hashed>(
        &mut self,
        items: &[H],
        locate: impl Fn(ItemHash) -> [Place; 1],
    ) -> u64 {
        let (blocks, avx2) = (self.shape.blocks(), Avx2::detect());
        let set = |words: &mut [u64], [place]: [Place; 1]| match avx2 {
            Some(avx2) => simd::split_set_avx2(avx2, words, blocks, place),
            None => generic::split_set(words, place),
        };
        self.insert_located(items, locate, set)
    }

    fn insert_in_lines<const R: usize, H: Hashed>(&mut self, items: &[H]) -> u64
    where
        [Place; R]: Default,
    {
        let shape = self.shape;
        let set = |words: &mut [u64], places| generic::lines_set(words, places, shape.probes());
        self.insert_located(items, |hash| place::lines::<R>(hash, &shape), set)
    }

    #[inline(always)]
    fn insert_located<const R: usize, H: Hashed>(
        &mut self,
        items: &[H],
        locate: impl Fn(ItemHash) -> [Place; R],
        set: impl Fn(&mut [u64], [Place; R]) -> bool,
    ) -> u64
    where
        [Place; R]: Default,
    {
        let (scheme, words) = (self.scheme, self.words.words_mut());
        let prefetch = prefetch_words(words);
        let start = |hash| {
            let places = locate(hash);
            places.iter().for_each(|place| prefetch.at(place.word));
            places
        };
        let mut changed = 0;
        hash_one_chunk_behind::<CHUNK, _, _>(items, &scheme, start, |_, located| {
            for &places in located {
                changed += u64::from(set(words, places));
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
        match self.single {
            Single::Split(avx2) => {
                simd::split_covers_avx2(avx2, self.words.words(), self.shape.blocks(), hash)
            }
            Single::Other => self.covers_otherwise(hash),
        }
    }

    /// Out of line, so that the fast layout stays small where it is inlined.
    #[inline(never)]
    fn covers_otherwise(&self, hash: ItemHash) -> bool {
        let (shape, words) = (&self.shape, self.words.words());
        let rule = self.placement;
        if rule.is_rocksdbs() {
            return rule.covers(words, rule.line(hash, shape.blocks()), shape.probes());
        }
        match (shape.layout(), shape.lines_per_item()) {
            (BlockedLayout::Split256, _) => simd::split_covers_chunk(words, &[self.split_place(hash)]) == 1,
            (BlockedLayout::Line512, 1) => {
                covers_lines(words, place::lines::<1>(hash, shape), shape.probes())
            }
            (BlockedLayout::Line512, 2) => {
                covers_lines(words, place::lines::<2>(hash, shape), shape.probes())
            }
            (BlockedLayout::Line512, _) => {
                covers_lines(words, place::lines::<3>(hash, shape), shape.probes())
            }
        }
    }

    /// The block of an item in the fast layout, by whichever rule.
    #[inline(always)]
    fn split_place(&self, hash: ItemHash) -> Place {
        match self.placement {
            BlockedPlacement::Parquet => place::parquet(hash, self.shape.blocks()),
            _ => place::split(hash, self.shape.blocks()),
        }
    }

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it several times faster
    /// than asking one by one.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer_all(hashes, answers);
    }

    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        let (shape, rule) = (&self.shape, self.placement);
        match (shape.layout(), shape.lines_per_item()) {
            _ if rule.is_rocksdbs() => {
                let locate = |hash| [rule.line(hash, shape.blocks())];
                self.answer_located(items, answers, locate, |words, places| {
                    generic::chunk(places, |&[place]| rule.covers(words, place, shape.probes()))
                });
            }
            (BlockedLayout::Split256, _) => {
                let covers = |words: &[AtomicU64], places: &[[Place; 1]]| {
                    simd::split_covers_chunk(words, places.as_flattened())
                };
                match self.placement {
                    BlockedPlacement::Parquet => {
                        let locate = |hash| [place::parquet(hash, shape.blocks())];
                        self.answer_located(items, answers, locate, covers);
                    }
                    _ => {
                        let locate = |hash| [place::split(hash, shape.blocks())];
                        self.answer_located(items, answers, locate, covers);
                    }
                }
            }
            (BlockedLayout::Line512, 1) => self.answer_in_lines::<1, H>(items, answers),
            (BlockedLayout::Line512, 2) => self.answer_in_lines::<2, H>(items, answers),
            (BlockedLayout::Line512, _) => self.answer_in_lines::<3, H>(items, answers),
        }
    }

    fn answer_in_lines<const R: usize, H: Hashed>(&self, items: &[H], answers: &mut Answers)
    where
        [Place; R]: Default,
    {
        let probes = self.shape.probes();
        self.answer_located(
            items,
            answers,
            |hash| place::lines::<R>(hash, &self.shape),
            |words, places| simd::line_covers_chunk(words, places, probes),
        );
    }

    #[inline(always)]
    fn answer_located<const R: usize, H: Hashed>(
        &self,
        items: &[H],
        answers: &mut Answers,
        locate: impl Fn(ItemHash) -> [Place; R],
        covers: impl Fn(&[AtomicU64], &[[Place; R]]) -> u64,
    ) where
        [Place; R]: Default,
    {
        let words = self.words.words();
        answers.reset(items.len());
        let start = |hash| {
            let places = locate(hash);
            places.iter().for_each(|place| prefetch(words, place.word));
            places
        };
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, located| {
            answers.words_mut()[first / 64] |= covers(words, located) << (first % 64);
        });
    }

    /// Adds everything `other` holds, as if each of its items had been inserted here.
    ///
    /// How many items both held is not known: [`inserted`](Self::inserted) becomes the estimate from the fill.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same layout, blocks, probes, hash scheme and placement; nothing has changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        if self.placement != other.placement {
            return Err(MergeError::BlocksDiffer { ours: self.placement, theirs: other.placement });
        }
        for (ours, theirs) in self.words.words_mut().iter_mut().zip(other.words.words()) {
            *ours |= theirs.load(Ordering::Relaxed);
        }
        self.inserted = self.estimated_count();
        Ok(())
    }

    /// The same items in half of the memory: every two blocks become one, exactly as if the items had been inserted into a filter of that
    /// size. For a filter that turned out too large: it is made for half as many items from then on, and its rate is
    /// [`expected_fpr`](Self::expected_fpr).
    ///
    /// # Errors
    /// [`BuildError::OddBlocks`] unless it has an even number of blocks, [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn halved(&self) -> Result<Self, BuildError> {
        let mut half = Self::placed(self.shape.halved()?, self.scheme, self.placement)?;
        let (block_words, blocks) = (self.shape.block_words(), half.shape.blocks() as usize);
        let words = half.words.words_mut();
        for (index, word) in self.words.words().iter().enumerate() {
            let block = match self.placement {
                // A remainder: whatever is left of half as many.
                BlockedPlacement::RocksDbLegacy => index / block_words % blocks,
                // A scaled hash: two neighbours.
                _ => index / block_words / 2,
            };
            words[block * block_words + index % block_words] |= word.load(Ordering::Relaxed);
        }
        half.inserted = half.estimated_count();
        Ok(half)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.inserted = 0;
    }

    /// The measurements: layout, blocks, probes, capacity, promise.
    #[must_use]
    pub const fn shape(&self) -> &BlockedShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Whose rule chooses the block of an item: ours, or that of the program the filter was read from.
    #[must_use]
    pub const fn placement(&self) -> BlockedPlacement {
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
        self.shape.expected_fpr_when_counted(self.inserted)
    }

    /// Set bits. Counts all of them, so it takes time in proportion to the size.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.words.ones()
    }

    /// The share of set bits. More than [`inserted`](Self::inserted) explains means somebody chose items in order to fill the
    /// filter.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.bits() as f64
    }

    /// How full it is by its bits, or by a sample of them, and the rate that follows.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill::of_blocks(self.words.words(), &self.shape, sampling)
    }

    /// How many items the fill speaks of, whatever was counted.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        // Every bit is as likely to be set as any other, block or not, so the classic estimate holds.
        let probes = self.shape.probes() * self.shape.lines_per_item();
        classic::items_from_fill(self.shape.bits(), probes, self.ones())
    }

    /// How many insertions the fill says changed something: what [`inserted`](Self::inserted) counts.
    fn estimated_count(&self) -> u64 {
        self.shape.counted(self.estimated_items())
    }

    /// Memory the blocks take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.memory_bytes()
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
        Ok(Self { words: self.words.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `BlockedBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// Are all bits set in all of the item's lines?
#[inline(always)]
fn covers_lines<const R: usize>(words: &[AtomicU64], places: [Place; R], probes: u32) -> bool {
    places.iter().all(|&place| simd::line_covers(words, place, probes))
}

impl codec::sealed::Sealed for BlockedBloom {}

impl Storable for BlockedBloom {
    const KIND: Option<Kind> = Some(Kind::BlockedBloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::BlockedBloom, self.placement.number(), Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.blocks();
        header.parameters[1] = u64::from(self.shape.probes());
        header.parameters[2] = u64::from(self.shape.lines_per_item());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.words)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let got = header.placement;
        let placement = BlockedPlacement::from_number(got).ok_or(DecodeError::UnknownPlacement { got })?;
        header.expect_parameters(3)?;
        let scheme = header.scheme()?;
        if !placement.suits(&scheme) {
            return Err(DecodeError::UnknownPlacement { got });
        }
        let probes = header.parameter_u32(1, "probes")?;
        let regions = header.parameter_u32(2, "lines per item")?;
        let (layout, blocks) = (placement.layout(), header.parameters[0]);
        if placement == BlockedPlacement::Parquet && blocks > MAX_PARQUET_BLOCKS {
            return Err(DecodeError::BadField { field: "blocks", got: blocks });
        }
        let (capacity, target_fpr) = (header.capacity, header.target_fpr);
        let shape = if placement.is_rocksdbs() {
            if regions != 1 {
                return Err(DecodeError::BadField { field: "lines per item", got: regions.into() });
            }
            BlockedShape::rocksdb_lines(blocks, probes, capacity, target_fpr)?
        } else {
            BlockedShape::from_parts(layout, [regions, probes], blocks, capacity, target_fpr)?
        };
        let words = body.lines(shape.memory_bytes())?;
        if layout == BlockedLayout::Split256 {
            words.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
        }
        let single = Single::of(&shape, placement);
        Ok(Self { shape, scheme, placement, words, inserted: header.inserted, single })
    }
}
