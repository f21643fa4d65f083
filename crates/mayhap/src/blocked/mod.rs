//! The blocked Bloom filter.

mod atomic;
mod explain;
pub(crate) mod place;
mod placement;
mod rocksdb;
mod shape;

pub(crate) use place::BlockPlace;
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
/// * **no** is certain. **maybe** can be a false positive: the false-positive rate is at most `target_fpr`
///   while the filter holds at most `capacity` items. Past that it rises;
///   [`expected_fpr`](Self::expected_fpr) returns the current rate.
/// * A tenth more memory than [`Bloom`](crate::Bloom) in the fast layout (10.5 bits per item at 1 %), 3 %
///   more in the dense one (9.9 bits). The extra memory makes up for unevenly filled blocks, so the rate
///   stays as promised. See [`BlockedLayout`].
/// * A lookup touches one cache line, or two or three for rates below 5e-4. It uses AVX2 if the CPU has it.
/// * It cannot remove, count or list items, and cannot grow. The lowest rate is 1e-9.
///
/// ```text
/// item ─▶ ItemHash ─▶ block ─┐
///                            ▼
///   … ┃ 0 1 0 0 1 0 1 1 ┃ 0 1 1 0 … 0 1 0 0 ┃ 0 1 0 …     all its bits set in its block: maybe
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
/// F. Putze, P. Sanders, J. Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, WEA 2007. The split
/// layout is that of Impala and Parquet.
#[derive(Debug)]
pub struct BlockedBloom {
    shape: BlockedShape,
    scheme: HashScheme,
    placement: BlockedPlacement,
    words: Lines,
    inserted: u64,
    single: Single,
}

/// The code path for single items. It is chosen when the filter is created, so a lookup checks only once.
#[derive(Clone, Copy, Debug)]
enum Single {
    /// The fast layout on a CPU with AVX2, with our own placement or one that always agrees with it.
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

/// Items prefetched together: enough to hide the memory latency, few enough to fit its queues.
const CHUNK: usize = 32;

impl BlockedBloom {
    /// Creates the smallest filter for `capacity` items at `target_fpr`, in the layout that suits the rate.
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
        Self::with_shape(BlockedShape::for_capacity(capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory. [`BuildError::ProbesOutOfRange`] if the
    /// shape was read from another program's filter and has more probes per line than our filters may have.
    pub fn with_shape(shape: BlockedShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        Self::placed(shape.checked()?, scheme.into(), BlockedPlacement::ours(shape.layout()))
    }

    /// Creates an empty filter with this placement.
    pub(crate) fn placed(
        shape: BlockedShape,
        scheme: HashScheme,
        placement: BlockedPlacement,
    ) -> Result<Self, BuildError> {
        let words = Lines::zeroed(shape.lines())?;
        Ok(Self { shape, scheme, placement, words, inserted: 0, single: Single::of(&shape, placement) })
    }

    /// Creates a filter from blocks that another program has filled. Estimates the number of inserted items
    /// from the fill.
    ///
    /// `words` has the length of the shape and is clear after its last block.
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

    /// Returns the words of all blocks, to write them in another program's format.
    pub(crate) const fn words(&self) -> &Lines {
        &self.words
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

    /// Out of line, to keep the inlined code of the fast layout small.
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

    /// Inserts all `items` and returns how many of them changed the filter. If the filter is larger than the
    /// cache, this is much faster than single inserts.
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
                let set =
                    |words: &mut [u64], [place]: [BlockPlace; 1]| rule.set(words, place, shape.probes());
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
        locate: impl Fn(ItemHash) -> [BlockPlace; 1],
    ) -> u64 {
        let (blocks, avx2) = (self.shape.blocks(), Avx2::detect());
        let set = |words: &mut [u64], [place]: [BlockPlace; 1]| match avx2 {
            Some(avx2) => simd::split_set_avx2(avx2, words, blocks, place),
            None => generic::split_set(words, place),
        };
        self.insert_located(items, locate, set)
    }

    fn insert_in_lines<const R: usize, H: Hashed>(&mut self, items: &[H]) -> u64
    where
        [BlockPlace; R]: Default,
    {
        let shape = self.shape;
        let set = |words: &mut [u64], places| generic::lines_set(words, places, shape.probes());
        self.insert_located(items, |hash| place::lines::<R>(hash, &shape), set)
    }

    #[inline(always)]
    fn insert_located<const R: usize, H: Hashed>(
        &mut self,
        items: &[H],
        locate: impl Fn(ItemHash) -> [BlockPlace; R],
        set: impl Fn(&mut [u64], [BlockPlace; R]) -> bool,
    ) -> u64
    where
        [BlockPlace; R]: Default,
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
        match self.single {
            Single::Split(avx2) => {
                simd::split_covers_avx2(avx2, self.words.words(), self.shape.blocks(), hash)
            }
            Single::Other => self.covers_otherwise(hash),
        }
    }

    /// Out of line, to keep the inlined code of the fast layout small.
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

    /// Returns the block of an item in the fast layout, for any placement.
    #[inline(always)]
    fn split_place(&self, hash: ItemHash) -> BlockPlace {
        match self.placement {
            BlockedPlacement::Parquet => place::parquet(hash, self.shape.blocks()),
            _ => place::split(hash, self.shape.blocks()),
        }
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
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
                let covers = |words: &[AtomicU64], places: &[[BlockPlace; 1]]| {
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
        [BlockPlace; R]: Default,
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
        locate: impl Fn(ItemHash) -> [BlockPlace; R],
        covers: impl Fn(&[AtomicU64], &[[BlockPlace; R]]) -> u64,
    ) where
        [BlockPlace; R]: Default,
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

    /// Adds all items of `other`, as if each had been inserted here.
    ///
    /// The number of common items is unknown, so [`inserted`](Self::inserted) becomes an estimate from the
    /// fill.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same layout, blocks, probes, hash scheme and placement. On error,
    /// nothing has changed.
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

    /// Returns a filter with the same items in half of the memory, for a filter that turned out too large.
    /// Every two blocks become one, exactly as if the items had been inserted into a filter of that size. The
    /// capacity is halved too. The current rate is [`expected_fpr`](Self::expected_fpr).
    ///
    /// # Errors
    /// [`BuildError::OddBlocks`] if the number of blocks is odd, [`BuildError::OutOfMemory`] if the system
    /// refuses the memory.
    pub fn halved(&self) -> Result<Self, BuildError> {
        let mut half = Self::placed(self.shape.halved()?, self.scheme, self.placement)?;
        let (block_words, blocks) = (self.shape.block_words(), half.shape.blocks() as usize);
        let words = half.words.words_mut();
        for (index, word) in self.words.words().iter().enumerate() {
            let block = match self.placement {
                // The block is a remainder: take it modulo half as many blocks.
                BlockedPlacement::RocksDbLegacy => index / block_words % blocks,
                // The block is a scaled hash: two neighbours merge.
                _ => index / block_words / 2,
            };
            words[block * block_words + index % block_words] |= word.load(Ordering::Relaxed);
        }
        half.inserted = half.estimated_count();
        Ok(half)
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.inserted = 0;
    }

    /// Returns the shape: layout, blocks, probes, capacity and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &BlockedShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the rule that chooses an item's block: ours, or that of the program that wrote the filter.
    #[must_use]
    pub const fn placement(&self) -> BlockedPlacement {
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
        self.shape.expected_fpr_when_counted(self.inserted)
    }

    /// Returns the number of set bits. This reads all bits: the time is proportional to the filter's memory.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.words.ones()
    }

    /// Returns the share of set bits. A higher fill than [`inserted`](Self::inserted) explains means that
    /// items were chosen in order to fill the filter.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.bits() as f64
    }

    /// Measures the fill from all bits or a sample, and the false-positive rate that follows from it.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill::of_blocks(self.words.words(), &self.shape, sampling)
    }

    /// Estimates the number of items from the fill, independent of the count.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        // Every bit is equally likely to be set, with or without blocks, so the classic estimate holds.
        let probes = self.shape.probes() * self.shape.lines_per_item();
        classic::items_from_fill(self.shape.bits(), probes, self.ones())
    }

    /// Estimates from the fill how many insertions changed the filter, which is what
    /// [`inserted`](Self::inserted) counts.
    fn estimated_count(&self) -> u64 {
        self.shape.counted(self.estimated_items())
    }

    /// Returns the memory that the blocks take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.memory_bytes()
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
        Ok(Self { words: self.words.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `BlockedBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

/// Returns whether all bits are set in all of the item's lines.
#[inline(always)]
fn covers_lines<const R: usize>(words: &[AtomicU64], places: [BlockPlace; R], probes: u32) -> bool {
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
