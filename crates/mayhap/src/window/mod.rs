//! The window filter: members of the last N items or the last N units of time.

mod clock;
mod explain;
mod ring;
mod shape;

pub use shape::{Pace, WindowShape};

use std::sync::atomic::{AtomicU64, Ordering};

use self::clock::{AHEAD, JUMPED, Jump, TURNED_FROM};
use self::shape::ACCOUNT_WORDS;
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::blocked::BlockedLayout;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::BuildError;
use crate::fill::{self, Blocks, Fill, Sampling};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::window::combined_rate;
use crate::store::Lines;

/// A filter for recent items: it forgets items older than the last N items or the last N units of time.
///
/// * **no** is certain for the whole window: the item was not among the last `window_items` items, or not
///   inserted in the last `span`.
/// * **maybe** is the answer for every item in the window, and for up to one generation longer: a third of a
///   window by default. Older items are forgotten. For all other items it is a false positive: the
///   false-positive rate is at most `target_fpr` at any time, even just before a generation is dropped.
/// * Inserting an item again refreshes it: its time in the window starts again.
/// * **It has no clock.** A window of time uses the times that the caller passes, in any unit. They may stand
///   still and jump in both directions:
///   * Back by at most two windows: the highest time so far counts. Nothing is forgotten, only kept longer.
///   * Back by more: the window continues from the lower time, and every generation keeps its age. If the
///     time returns, so does the window.
///   * Ahead by more than two windows and two generations: all items are forgotten at that time, for lookups
///     and insertions, but their memory is kept until `generations - 1` new generations have begun. If the
///     time returns before that, the items are there again: a clock that is ahead for a moment causes no
///     false negatives once it is right again.
///   * Ahead by less: this cannot be distinguished from time that passed. Items that are too old at that time
///     are forgotten.
///   * An item inserted while the time was wrong counts from the first insertion at the right time, or, if
///     there are only lookups, from the first lookup. It is forgotten at most two windows and two generations
///     after the time is right again. After a step back by at most two windows, it is forgotten at most one
///     generation later than three windows.
///   * Several wrong times close to each other look like one clock. A window of few generations may then drop
///     items that are still in the window by the right time. Fix a clock that jumps repeatedly.
///   * After [`clear`](Self::clear) the window accepts any next time as right.
/// * A window of time is sized for the expected number of items. It also accepts more, but then the rate
///   rises until their generation is dropped: see [`expected_fpr`](Self::expected_fpr) and
///   [`generations`](Self::generations).
/// * 18.8 bits per item of the window at 1 %, 23.6 at 0.1 %. A lookup reads all generations with one hash.
///   Their blocks are adjacent: two cache lines.
/// * It cannot remove or count items. Starting a generation takes a pass over the memory.
///
/// ```text
///             ┌───────────── the window, and a little more ─────────────┐
///  forgotten ◀─ generation 3 │ generation 2 │ generation 1 │ generation 0 ◀─ new items
///                                                            full or expired: the oldest is emptied and becomes the newest
/// ```
///
/// ```
/// use mayhap::{HashScheme, Window};
///
/// let mut recent = Window::new(1_000, 0.01)?; // the last thousand
/// assert!(recent.insert("event 17")); // certainly not seen recently
/// assert!(!recent.insert("event 17"));
///
/// let mut hour = Window::of_time(3_600, 100_000, 0.001, HashScheme::random())?; // the last hour, in seconds
/// hour.insert_at("login ada", 1_000);
/// assert!(hour.may_contain_at("login ada", 4_600));
/// assert!(!hour.may_contain_at("login ada", 1_000 + 2 * 3_600));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// Rotating generations of Bloom filters: F. Chang, W. Feng, K. Li, *Approximate caches for packet
/// classification*, INFOCOM 2004, with two generations; here with any number, in adjacent blocks.
#[derive(Debug)]
pub struct Window {
    shape: WindowShape,
    scheme: HashScheme,
    /// The counts of all generations, then their blocks, interleaved.
    lines: Lines,
    /// The index of the generation that receives new items.
    newest: usize,
    /// The highest time given, by the present clock.
    latest: u64,
    /// The clock before the last jump, while the ring still holds generations of that time.
    jump: Option<Jump>,
    /// One bit for every generation that is alive at the latest time.
    alive: u64,
    /// One more than the first time at which a lookup found the clock far behind the latest time, or 0. It is
    /// not encoded.
    found_behind: AtomicU64,
}

/// The present state of one generation of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generation {
    /// The number of items inserted while it was the newest, duplicates included.
    pub inserted: u64,
    /// The number of items it was sized for.
    pub capacity: u64,
    /// Its part of the window's false-positive rate, by the model.
    pub expected_fpr: f64,
}

impl Window {
    /// Creates a window of the last `window_items` items at `target_fpr`.
    ///
    /// The hash is the fast one with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) draws a secret key, and [`of_items`](Self::of_items) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn new(window_items: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::of_items(window_items, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_items(
        window_items: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(WindowShape::of_items(window_items, target_fpr)?, scheme)
    }

    /// Creates a window of the last `span` units of time at `target_fpr`, for about `expected_items_per_span`
    /// items in a span.
    ///
    /// # Errors
    /// As [`of_items`](Self::of_items).
    pub fn of_time(
        span: u64,
        expected_items_per_span: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(WindowShape::of_time(span, expected_items_per_span, target_fpr)?, scheme)
    }

    /// Creates an empty window of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: WindowShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let lines = Lines::zeroed(shape.lines())?;
        let found_behind = AtomicU64::new(0);
        Ok(Self {
            shape,
            scheme: scheme.into(),
            lines,
            newest: 0,
            latest: 0,
            jump: None,
            alive: u64::MAX,
            found_behind,
        })
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

    /// Inserts `item` as the newest of all. `true`: it was certainly not in the window. `false`: it may have
    /// been.
    ///
    /// In a window of time it is inserted at the latest time given so far.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    #[inline]
    pub fn insert_hash(&mut self, hash: ItemHash) -> bool {
        if self.room() == 0 {
            self.rotate();
        }
        let (held, changed) = ring::record(&mut self.lines, &self.shape, self.newest, hash);
        self.count(1, u64::from(changed));
        held & self.alive == 0
    }

    /// [`insert`](Self::insert) at time `now`. A window of items ignores the time.
    pub fn insert_at<I: Item + ?Sized>(&mut self, item: &I, now: u64) -> bool {
        self.insert_hash_at(self.scheme.hash(item), now)
    }

    /// [`insert_at`](Self::insert_at) for an item already hashed.
    pub fn insert_hash_at(&mut self, hash: ItemHash, now: u64) -> bool {
        self.advance(now);
        self.insert_hash(hash)
    }

    /// Inserts all `items` in order and returns how many of them were certainly not in the window. The result
    /// is the same as with single inserts. If the window is larger than the cache, this is much faster.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> u64 {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> u64 {
        self.insert_all(hashes)
    }

    /// [`insert_batch`](Self::insert_batch), all at time `now`.
    pub fn insert_batch_at<I: Item>(&mut self, items: &[I], now: u64) -> u64 {
        self.advance(now);
        self.insert_all(items)
    }

    /// [`insert_batch_at`](Self::insert_batch_at) for items already hashed.
    pub fn insert_hash_batch_at(&mut self, hashes: &[ItemHash], now: u64) -> u64 {
        self.advance(now);
        self.insert_all(hashes)
    }

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> u64 {
        let (mut left, mut new) = (items, 0);
        while !left.is_empty() {
            let room = self.room();
            if room == 0 {
                self.rotate();
                continue;
            }
            let (some, rest) = left.split_at(left.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            let (newest, alive) = (self.newest, self.alive);
            let recorded = ring::record_all(&mut self.lines, &self.shape, newest, alive, &self.scheme, some);
            self.count(some.len() as u64, recorded.changed);
            new += recorded.new;
            left = rest;
        }
        new
    }

    /// Adds `came` items to the count of the newest generation, of which `changed` changed a bit.
    #[inline(always)]
    fn count(&mut self, came: u64, changed: u64) {
        self.count_in(self.newest, came, changed);
    }

    #[inline(always)]
    fn count_in(&mut self, index: usize, came: u64, changed: u64) {
        let account = self.account_mut(index);
        account[0] = (account[0] + came).min(MAX_COUNTED);
        account[1] = (account[1] + changed).min(account[0]);
    }

    /// Returns how many more items the newest generation accepts before the next one begins.
    fn room(&self) -> u64 {
        match self.shape.pace() {
            Pace::Items => self.shape.generation_items().saturating_sub(self.account(self.newest)[0]),
            Pace::Time { .. } => u64::MAX,
        }
    }

    /// Empties the oldest generation and makes it the newest.
    #[cold]
    fn rotate(&mut self) {
        self.newest = (self.newest + 1) % self.shape.generations() as usize;
        self.empty(self.newest);
    }

    /// Empties generation `index`.
    fn empty(&mut self, index: usize) {
        let shape = self.shape;
        if self.account(index) != [0, 0] {
            ring::clear(&mut self.lines.words_mut()[shape.head_words()..], &shape, index);
            self.account_mut(index).fill(0);
        }
    }

    /// `false`: certainly not in the window. `true`: maybe. A window of time uses the latest time given so
    /// far.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        ring::holding(self.blocks(), &self.shape, hash) & self.alive != 0
    }

    /// [`may_contain`](Self::may_contain) at time `now`. If that is up to two windows before the latest time
    /// given so far, the latest time counts.
    #[must_use]
    pub fn may_contain_at<I: Item + ?Sized>(&self, item: &I, now: u64) -> bool {
        self.may_contain_hash_at(self.scheme.hash(item), now)
    }

    /// [`may_contain_at`](Self::may_contain_at) for an item already hashed.
    #[must_use]
    pub fn may_contain_hash_at(&self, hash: ItemHash, now: u64) -> bool {
        ring::holding(self.blocks(), &self.shape, hash) & self.alive_at(now) != 0
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.ask_all(items, self.alive, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.ask_all(hashes, self.alive, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) at time `now`. If that is up to two windows before the
    /// latest time given so far, the latest time counts.
    pub fn may_contain_batch_at<I: Item>(&self, items: &[I], now: u64, answers: &mut Answers) {
        self.ask_all(items, self.alive_at(now), answers);
    }

    /// [`may_contain_batch_at`](Self::may_contain_batch_at) for items already hashed.
    pub fn may_contain_hash_batch_at(&self, hashes: &[ItemHash], now: u64, answers: &mut Answers) {
        self.ask_all(hashes, self.alive_at(now), answers);
    }

    fn ask_all<H: Hashed>(&self, items: &[H], alive: u64, answers: &mut Answers) {
        ring::answer_all(self.blocks(), &self.shape, alive, &self.scheme, items, answers);
    }

    /// Removes all items. The next time given is accepted, no matter how far it is from the latest one.
    pub fn clear(&mut self) {
        self.lines.words_mut().fill(0);
        self.jump = None;
        self.set_alive();
    }

    /// Returns the shape: generations, window and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &WindowShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of items in a window: given, or expected in a span of time.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the promised false-positive rate.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the latest time given, or 0 if there was none or it is a window of items. After a jump back it
    /// is the time before the jump, until all generations have begun after it.
    #[must_use]
    pub const fn latest(&self) -> u64 {
        match self.jump {
            Some(jump) if jump.before > self.latest => jump.before,
            _ => self.latest,
        }
    }

    /// Returns the number of items inserted into the present generations, duplicates included: a window and
    /// up to one generation more.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.generations().map(|generation| generation.inserted).fold(0, u64::saturating_add)
    }

    /// Returns the number of items of all generations, including those that are alive only if the time
    /// returns.
    fn accounted(&self) -> u64 {
        (0..self.shape.generations() as usize)
            .map(|index| self.account(index)[0])
            .fold(0, u64::saturating_add)
    }

    const fn is_alive(&self, index: usize) -> bool {
        self.alive >> index & 1 == 1
    }

    /// Returns the generations, the newest first. In a window of time one may hold more items than its
    /// capacity; the rate is then higher than promised until that generation is dropped.
    pub fn generations(&self) -> impl ExactSizeIterator<Item = Generation> + '_ {
        let generations = self.shape.generations() as usize;
        (0..generations).map(move |age| {
            let index = (self.newest + generations - age) % generations;
            let [inserted, changed] = if self.is_alive(index) { self.account(index) } else { [0, 0] };
            let expected_fpr = self.shape.generation().expected_fpr_when_counted(changed);
            Generation { inserted, capacity: self.shape.generation_items(), expected_fpr }
        })
    }

    /// Returns the false-positive rate that the model predicts for the items in all generations.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        combined_rate(self.generations().map(|generation| generation.expected_fpr))
    }

    /// Returns the share of set bits in all generations together. This reads all bits: the time is
    /// proportional to the filter's memory.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let accounts = &self.lines.words()[..self.shape.head_words()];
        let of_accounts = accounts.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()));
        let forgotten = (0..self.shape.generations() as usize).filter(|&index| !self.is_alive(index));
        let of_forgotten = forgotten.map(|index| ring::ones(self.blocks(), &self.shape, index));
        let ones = self.lines.ones() - of_accounts.sum::<u64>() - of_forgotten.sum::<u64>();
        ones as f64 / (self.shape.generation().bits() * u64::from(self.shape.generations())) as f64
    }

    /// Measures the same share from a sample of the bits, and the false-positive rate that follows from it.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        let (generation, generations) = (self.shape.generation(), self.shape.generations() as usize);
        let block = self.shape.block_words();
        let mut read = vec![Blocks::default(); generations];
        let side_by_side = generations * block;
        let words = self.blocks().len() / side_by_side * side_by_side;
        let end = ((self.shape.end_bit() / 64) as usize - self.shape.head_words()).min(words);
        fill::each_piece(&self.blocks()[..end], side_by_side, sampling, |piece| {
            for (number, words) in piece.chunks_exact(block).enumerate() {
                let index = number % generations;
                if self.is_alive(index) {
                    read[index].add(words, generation);
                }
            }
        });
        Fill::of_any(read.iter().map(|blocks| (blocks.fill(generation), generation.bits())))
    }

    /// Returns the memory that all generations take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// Bits of memory per item of a window.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let found_behind = AtomicU64::new(0);
        Ok(Self { lines: self.lines.try_clone()?, found_behind, ..*self })
    }

    /// Encodes the window as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a window and checks every byte. It continues as the encoded one would have.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Window`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn blocks(&self) -> &[AtomicU64] {
        &self.lines.words()[self.shape.head_words()..]
    }

    /// Returns the number of items inserted into generation `index`, and how many of them changed a bit of
    /// it.
    fn account(&self, index: usize) -> [u64; ACCOUNT_WORDS] {
        let words = &self.lines.words()[index * ACCOUNT_WORDS..];
        std::array::from_fn(|i| words[i].load(Ordering::Relaxed))
    }

    fn account_mut(&mut self, index: usize) -> &mut [u64] {
        &mut self.lines.words_mut()[index * ACCOUNT_WORDS..(index + 1) * ACCOUNT_WORDS]
    }
}

/// The placement schemes are those of the blocked filter's layouts, with the blocks of all generations
/// interleaved.
const fn placement(layout: BlockedLayout) -> u16 {
    match layout {
        BlockedLayout::Split256 => 1,
        BlockedLayout::Line512 => 2,
    }
}

/// The most items that one generation counts. The sum over all generations then cannot overflow.
const MAX_COUNTED: u64 = 1 << 56;

impl codec::sealed::Sealed for Window {}

impl Storable for Window {
    const KIND: Option<Kind> = Some(Kind::Window);

    fn header(&self) -> Header {
        let generation = self.shape.generation();
        let mut header = Header::new(Kind::Window, placement(generation.layout()), Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.accounted();
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = u64::from(self.shape.generations());
        header.parameters[1] = generation.blocks();
        header.parameters[2] = u64::from(generation.probes());
        header.parameters[3] = u64::from(generation.lines_per_item());
        header.parameters[4] = match self.shape.pace() {
            Pace::Items => 0,
            Pace::Time { span } => span,
        };
        header.parameters[5] = self.newest as u64;
        header.parameters[6] = self.latest;
        if let Some(jump) = self.jump {
            header.parameters[5] |= JUMPED | u64::from(jump.turned) << TURNED_FROM;
            header.parameters[5] |= if jump.is_over { AHEAD } else { 0 };
            header.parameters[7] = jump.before;
        }
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.lines)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let layout = match header.placement {
            1 => BlockedLayout::Split256,
            2 => BlockedLayout::Line512,
            got => return Err(DecodeError::UnknownPlacement { got }),
        };
        let [generations, blocks, _, _, span, newest, latest, before] = header.parameters;
        let jumped = newest & JUMPED != 0 && span != 0;
        header.expect_parameters(if jumped { 8 } else { 7 })?;
        let scheme = header.scheme()?;
        let (turned, is_over) = (newest >> TURNED_FROM & 0xff, newest & AHEAD != 0);
        let newest = if jumped { newest & !(JUMPED | AHEAD | 0xff << TURNED_FROM) } else { newest };
        let small = |index, field| header.parameter_u32(index, field);
        let numbers = [small(0, "generations")?, small(3, "lines per item")?, small(2, "probes")?];
        let pace = if span == 0 { Pace::Items } else { Pace::Time { span } };
        let shape =
            WindowShape::from_parts(pace, [header.capacity, blocks], header.target_fpr, layout, numbers)?;
        if newest >= generations {
            return Err(DecodeError::BadField { field: "newest generation", got: newest });
        }
        if jumped && turned >= generations {
            return Err(DecodeError::BadField { field: "generations since a jump", got: turned });
        }
        if pace == Pace::Items && latest != 0 {
            return Err(DecodeError::BadField { field: "latest time", got: latest });
        }
        let lines = body.lines(shape.memory_bytes())?;
        lines.check_zero_from(shape.end_bit()).map_err(|bit| DecodeError::StrayBit { bit })?;
        let jump = jumped.then_some(Jump { before, is_over, turned: turned as u32 });
        let (newest, found_behind) = (newest as usize, AtomicU64::new(0));
        let mut window = Self { shape, scheme, lines, newest, latest, jump, alive: 0, found_behind };
        window.set_alive();
        window.check_accounts(header.inserted)?;
        Ok(window)
    }
}

impl Window {
    /// Checks that insertions can produce the counts before the blocks.
    fn check_accounts(&self, inserted: u64) -> Result<(), DecodeError> {
        let generations = self.shape.generations() as usize;
        let most = match self.shape.pace() {
            Pace::Items => self.shape.generation_items(),
            Pace::Time { .. } => MAX_COUNTED,
        };
        for index in 0..generations {
            let [came, changed] = self.account(index);
            if came > most {
                return Err(DecodeError::BadField { field: "items of a generation", got: came });
            }
            if changed > came {
                return Err(DecodeError::BadField { field: "changes of a generation", got: changed });
            }
        }
        let unused = &self.lines.words()[generations * ACCOUNT_WORDS..self.shape.head_words()];
        if let Some(word) = unused.iter().find(|word| word.load(Ordering::Relaxed) != 0) {
            let got = word.load(Ordering::Relaxed);
            return Err(DecodeError::BadField { field: "account of no generation", got });
        }
        if inserted != self.accounted() {
            return Err(DecodeError::BadField { field: "inserted", got: inserted });
        }
        Ok(())
    }
}
