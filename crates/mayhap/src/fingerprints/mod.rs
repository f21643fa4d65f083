//! A set of fingerprints that grows, and shortens its fingerprints when the memory is used up.

mod explain;
mod line;
mod table;

use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind, one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::simd::prefetch;
use crate::store::{LINE_BYTES, Lines, WORDS_PER_LINE};
use table::{HALF_BITS, LinePut, LineTable, Width, not_zero};

/// A set of 64-bit fingerprints: practically exact, growing with its items, and able to halve its
/// fingerprints when it reaches a memory limit.
///
/// * **no** is certain. **maybe** is a false positive for one non-member in 2^64 / items: with a billion
///   items, one in 18 billion.
/// * It takes 9.2 to 10.6 bytes per item, for any items, also while it grows; 8.6 if it fills its limit
///   completely.
/// * If there is a [limit](Self::within) and it is reached, [`insert`](Self::insert) returns an error and
///   changes nothing. Then [`cut`](Self::cut) halves every fingerprint in place, which makes room for as many
///   items again. Cut once (to 32 bits, 28 of them from the hash), the false-positive rate is at most 5.6e-8,
///   at 4.3 bytes per item. Cut twice (to 16 bits), it is at most 8e-4, at 2.3 bytes.
/// * A lookup touches one cache line, sometimes the next.
/// * It cannot remove or count items. After a cut it can no longer grow.
///
/// ```text
///  64 bits  ┃ a        b        c        d        e        f        g        h        ┃   a cache line, full
///  cut      ┃ a    b    c    d    e    f    g    h    ·    ·    ·    ·    ·    ·    ·    ·    ┃   the same line, half full
/// ```
///
/// ```
/// use mayhap::{FingerprintSet, HashScheme};
///
/// let mut seen = FingerprintSet::within(1 << 20, HashScheme::random())?; // a mebibyte
/// assert!(seen.insert("https://example.org/")?); // certainly new
/// assert!(!seen.insert("https://example.org/")?);
/// assert_eq!(seen.capacity(), 122_880); // with 64 bits each
/// seen.cut()?;
/// assert!(seen.may_contain("https://example.org/"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The table uses linear probing in buckets of one cache line. Keeping it ordered by hash, to move it in one
/// pass, follows O. Amble, D. Knuth, *Ordered hash tables*, 1974.
#[derive(Debug)]
pub struct FingerprintSet {
    scheme: HashScheme,
    width: Width,
    lines: Lines,
    inserted: u64,
    limit_bytes: u64,
}

/// The lines of an empty set.
const FIRST_LINES: usize = 16;
/// A smaller set doubles; a larger one grows by 3 in 20.
const DOUBLES_UP_TO_LINES: u64 = (1 << 20) / LINE_BYTES as u64;
/// The most lines. The bits that choose a line must differ from those that remain of a fingerprint.
const MAX_LINES: u64 = 1 << 36;
/// Items prefetched together.
const CHUNK: usize = 32;
/// Items for which room is made together.
const STRETCH: usize = 1024;
/// The number of lines that [`FingerprintSet::expected_fpr`] samples.
const SAMPLED_LINES: usize = 4096;
/// The rate of fingerprints cut twice in a full set: a non-member is compared with 51 of them, those of its
/// own line and of the lines after full ones.
const FULL_QUARTER_RATE: f64 = 8e-4;

impl FingerprintSet {
    /// Creates an empty set that grows while the system grants memory.
    ///
    /// The hash is the fast one with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) takes a secret key, and [`with_scheme`](Self::with_scheme) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the first kibibyte.
    pub fn new() -> Result<Self, BuildError> {
        Self::within(u64::MAX, HashScheme::random())
    }

    /// Creates an empty set that takes at most `limit_bytes` for its fingerprints. When they are used up,
    /// inserts return [`InsertError::CannotGrow`].
    ///
    /// A number as `scheme` is the seed of the fast hash. Use [`HashScheme::keyed_random`] if untrusted users
    /// choose the items.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] for a limit below a kibibyte, which the smallest set takes.
    pub fn within(limit_bytes: u64, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        crate::sizing::check_memory((FIRST_LINES * LINE_BYTES) as u64, limit_bytes)?;
        let lines = Lines::zeroed(FIRST_LINES)?;
        Ok(Self { scheme: scheme.into(), width: Width::Whole, lines, inserted: 0, limit_bytes })
    }

    pub(crate) const fn set_scheme(&mut self, scheme: HashScheme) {
        self.scheme = scheme;
    }

    /// Returns the hash of `item` for the `_hash` methods of this set and of filters with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Inserts `item`. `true`: it was certainly not a member before. `false`: it may have been one, and
    /// nothing changed.
    ///
    /// # Errors
    /// [`InsertError::CannotGrow`] if it needs more memory than the limit or the system allows,
    /// [`InsertError::Full`] if it is full after a cut. On error, nothing has changed, and [`cut`](Self::cut)
    /// may make room.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        if let (0, refused) = self.make_room(1) {
            // An item that is already stored needs no room.
            return if self.may_contain_hash(hash) { Ok(false) } else { Err(refused) };
        }
        let mut answers = Answers::new();
        answers.reset(1);
        match self.insert_into_lines(&[hash], 0, &mut answers) {
            1 => Ok(answers.maybe_count() == 0),
            _ => Err(self.full()),
        }
    }

    /// Inserts all `items` and returns how many of them were certainly not members before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). All items before the failing one are inserted.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        let (scheme, before) = (self.scheme, self.inserted);
        let mut answers = Answers::new();
        for stretch in items.chunks(STRETCH) {
            let hashes: Vec<ItemHash> = stretch.iter().map(|item| scheme.hash(item)).collect();
            self.insert_hash_batch(&hashes, &mut answers)?;
        }
        Ok(self.inserted - before)
    }

    /// Inserts the items with these hashes in order and answers for each whether it was a member before:
    /// clear means *certainly not*, set means *maybe*. Among duplicates in the batch only the first can be
    /// new.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). There are answers for the inserted items only, so the length of `answers`
    /// is the index of the one that failed. A batch may fail up to 1,023 items before the set is full,
    /// because it is not known in advance how many of them are new.
    pub fn insert_hash_batch(
        &mut self,
        hashes: &[ItemHash],
        answers: &mut Answers,
    ) -> Result<(), InsertError> {
        answers.reset(hashes.len());
        let mut done = 0;
        for stretch in hashes.chunks(STRETCH) {
            let (room, refused) = self.make_room(stretch.len() as u64);
            let fitting = stretch.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let inserted = self.insert_into_lines(&stretch[..fitting], done, answers);
            done += inserted;
            if inserted < stretch.len() {
                answers.truncate(done);
                return Err(if inserted < fitting { self.full() } else { refused });
            }
        }
        Ok(())
    }

    /// Inserts all of `hashes`, for which there must be room, and writes their answers from index `first` on.
    /// Returns how many found room.
    fn insert_into_lines(&mut self, hashes: &[ItemHash], first: usize, answers: &mut Answers) -> usize {
        match self.width {
            Width::Whole => self.insert_cut::<64>(hashes, first, answers),
            Width::Half => self.insert_cut::<32>(hashes, first, answers),
            Width::Quarter => self.insert_cut::<16>(hashes, first, answers),
        }
    }

    fn insert_cut<const BITS: u32>(
        &mut self,
        hashes: &[ItemHash],
        first: usize,
        answers: &mut Answers,
    ) -> usize {
        let (prefetch, lines) =
            (table::prefetcher(&mut self.lines), self.lines.words().len() / WORDS_PER_LINE);
        let mut table = LineTable::<'_, BITS>::of(&mut self.lines);
        let start = |hash: &ItemHash| {
            let fingerprint = fingerprint(*hash);
            let home = table::home(fingerprint, lines);
            prefetch(home);
            (home, fingerprint)
        };
        let (mut new, mut placed) = (0, hashes.len());
        one_chunk_behind::<CHUNK, _, _>(hashes, start, |chunk_first, chunk: &[(usize, u64)]| {
            for (index, &(home, fingerprint)) in chunk.iter().enumerate() {
                let index = chunk_first + index;
                // After an item that found no room, insert no more.
                if index > placed {
                    return;
                }
                match table.insert(home, fingerprint) {
                    LinePut::New => new += 1,
                    LinePut::Held => answers.set(first + index),
                    LinePut::NoRoom => placed = index,
                }
            }
        });
        self.inserted += new;
        placed
    }

    /// Makes room for `more` items, or for as many as possible. Returns the number of items that fit, and the
    /// error for any beyond that.
    fn make_room(&mut self, more: u64) -> (u64, InsertError) {
        let needed = self.inserted.saturating_add(more);
        if self.width != Width::Whole {
            return (self.room(), self.full());
        }
        let mut cause = None;
        if self.width.comfortable_in(self.line_count()) < needed {
            let mut wanted = self.line_count();
            while self.width.comfortable_in(wanted) < needed {
                wanted = if wanted < DOUBLES_UP_TO_LINES {
                    2 * wanted
                } else {
                    wanted.saturating_add(wanted / 20 * 3)
                };
            }
            let bytes = wanted.saturating_mul(LINE_BYTES as u64);
            let refused = self.grow(wanted.min(self.most_lines())).err();
            cause = Some(refused.unwrap_or(BuildError::TooLarge { bytes, limit: self.limit_bytes }));
        }
        let capacity = self.width.most_in(self.line_count());
        match cause {
            Some(cause) => (self.room(), InsertError::CannotGrow { capacity, layers: 1, cause }),
            None => (self.room(), self.full()),
        }
    }

    /// Returns how many more items fit in the present lines.
    fn room(&self) -> u64 {
        self.width.most_in(self.line_count()).saturating_sub(self.inserted)
    }

    fn grow(&mut self, lines: u64) -> Result<(), BuildError> {
        if lines > self.line_count() {
            let mut larger = Lines::zeroed(usize::try_from(lines).unwrap_or(usize::MAX))?;
            table::move_into(&mut self.lines, &mut larger)?;
            self.lines = larger;
        }
        Ok(())
    }

    fn full(&self) -> InsertError {
        InsertError::Full { inserted: self.inserted, capacity: self.capacity() }
    }

    /// Halves every fingerprint in place: from 64 bits to 32, then to 16. This makes room for as many items
    /// again; [`expected_fpr`](Self::expected_fpr) returns the resulting rate. It takes one pass over the
    /// memory and almost no additional memory.
    ///
    /// After the first cut the set cannot grow, so cut it only when it is as large as it may be.
    ///
    /// # Errors
    /// [`BuildError::FingerprintOutOfRange`] for fingerprints of 16 bits, [`BuildError::Unsolvable`] if too
    /// many items have nearly the same hash. That does not happen by chance. On error, nothing has changed.
    pub fn cut(&mut self) -> Result<(), BuildError> {
        let Some(width) = self.width.cut() else {
            return Err(BuildError::FingerprintOutOfRange { got: 8, least: 16, limit: 64 });
        };
        let unsolvable = BuildError::Unsolvable { attempts: 1, items: self.inserted };
        if !table::can_be_cut(&mut self.lines, self.width)? || !table::cut(&mut self.lines, self.width) {
            return Err(unsolvable);
        }
        self.width = width;
        Ok(())
    }

    /// `false`: never inserted. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.holds(fingerprint(hash))
    }

    fn holds(&self, fingerprint: u64) -> bool {
        match self.width {
            Width::Whole => table::holds::<64>(&self.lines, fingerprint),
            Width::Half => table::holds::<32>(&self.lines, fingerprint),
            Width::Quarter => table::holds::<16>(&self.lines, fingerprint),
        }
    }

    /// Looks up all `items` together; their memory loads overlap.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer_all(hashes, answers);
    }

    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        answers.reset(items.len());
        let (words, lines) = (self.lines.words(), self.line_count() as usize);
        let start = |hash| {
            let fingerprint = fingerprint(hash);
            prefetch(words, table::home(fingerprint, lines) * WORDS_PER_LINE);
            fingerprint
        };
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, chunk: &[u64]| {
            for (index, &fingerprint) in chunk.iter().enumerate() {
                if self.holds(fingerprint) {
                    answers.set(first + index);
                }
            }
        });
    }

    /// Adds all items of `other`.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same hash scheme, neither was ever cut, and there is memory for
    /// both. On error, nothing has changed.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        if self.width != Width::Whole || other.width != Width::Whole {
            return Err(MergeError::NeverMerges { kind: Kind::Fingerprints });
        }
        let (room, refused) = self.make_room(other.inserted);
        if room < other.inserted {
            let cause = match refused {
                InsertError::CannotGrow { cause, .. } => cause,
                _ => BuildError::TooLarge { bytes: u64::MAX, limit: self.limit_bytes },
            };
            return Err(MergeError::Unbuildable(cause));
        }
        let lines = self.line_count() as usize;
        let mut table = LineTable::<'_, 64>::of(&mut self.lines);
        for fingerprint in other.fingerprints() {
            self.inserted +=
                u64::from(table.insert(table::home(fingerprint, lines), fingerprint) == LinePut::New);
        }
        Ok(())
    }

    /// Returns the fingerprints in no particular order: the low halves of the hashes. A set that was cut
    /// returns none.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + '_ {
        let whole = self.width == Width::Whole;
        let words = self.lines.words().iter().filter(move |_| whole);
        words.map(|word| word.load(std::sync::atomic::Ordering::Relaxed)).filter(|&word| word != 0)
    }

    /// Removes all items and returns to fingerprints of 64 bits.
    pub fn clear(&mut self) {
        self.lines.words_mut().fill(0);
        (self.inserted, self.width) = (0, Width::Whole);
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the bits of each fingerprint: 64, or 32 or 16 after a [cut](Self::cut). Of 32 bits, 28 are
    /// from the hash.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.width.bits()
    }

    /// Returns the number of items that fit in the limit or, after a cut, in the present memory.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match self.width {
            Width::Whole => self.width.most_in(self.most_lines().max(self.line_count())),
            _ => self.width.most_in(self.line_count()),
        }
    }

    /// Returns the number of items in the set.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the false-positive rate of the set when full.
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        match self.width {
            Width::Whole => self.capacity() as f64 / 2_f64.powi(64),
            _ => Self::highest_fpr(self.width.bits()),
        }
    }

    /// Returns the highest false-positive rate of a set with fingerprints of `bits` bits: that of a full one.
    #[must_use]
    pub fn highest_fpr(fingerprint_bits: u32) -> f64 {
        match fingerprint_bits {
            33.. => Width::Whole.most_in(MAX_LINES) as f64 / (1_u128 << 64) as f64,
            17..=32 => 15.0 / (1_u64 << HALF_BITS) as f64,
            _ => FULL_QUARTER_RATE,
        }
    }

    /// Returns the present false-positive rate. For fingerprints cut twice it is measured on up to 4,096
    /// lines, accurate within a few per cent.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let per_line = self.inserted as f64 / self.line_count() as f64;
        match self.width {
            Width::Whole => self.inserted as f64 / 2_f64.powi(64),
            // Only with fingerprints of the same home: the distance is compared as well.
            Width::Half => per_line / 2_f64.powi(HALF_BITS as i32),
            Width::Quarter => {
                let (lines, sampled) =
                    (self.line_count() as usize, (self.line_count() as usize).min(SAMPLED_LINES));
                let homes =
                    (0..sampled).map(|index| (index as u128 * lines as u128 / sampled as u128) as usize);
                let compared: u64 = homes.map(|home| table::compared_with::<16>(&self.lines, home)).sum();
                1.0 - (1.0 - 2_f64.powi(-16)).powf(compared as f64 / sampled as f64)
            }
        }
    }

    /// Returns the memory that the fingerprints take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// Returns the memory limit.
    #[must_use]
    pub const fn memory_limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Sets the memory limit. Memory already in use is kept.
    pub const fn set_memory_limit_bytes(&mut self, limit_bytes: u64) {
        self.limit_bytes = limit_bytes;
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    /// Encodes the set as the bytes of a `.mayhap` file, laid out as in `docs/format.md`. The limit is not
    /// included.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a set. Its only limit is the system's memory.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `FingerprintSet`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    fn line_count(&self) -> u64 {
        (self.lines.words().len() / WORDS_PER_LINE) as u64
    }

    fn most_lines(&self) -> u64 {
        (self.limit_bytes / LINE_BYTES as u64).min(MAX_LINES)
    }
}

/// Returns the fingerprint of an item: the low half of its hash. Frozen.
#[inline(always)]
const fn fingerprint(hash: ItemHash) -> u64 {
    not_zero(hash.low)
}

/// The only placement scheme.
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for FingerprintSet {}

impl Storable for FingerprintSet {
    const KIND: Option<Kind> = Some(Kind::Fingerprints);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Fingerprints, PLACEMENT, Some(&self.scheme));
        // The capacity of the present lines: the limit belongs to the process, not to the set.
        header.capacity = self.width.most_in(self.line_count());
        header.inserted = self.inserted;
        header.target_fpr = Self::highest_fpr(self.width.bits());
        header.parameters[0] = self.line_count();
        header.parameters[1] = u64::from(self.width.bits());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.lines)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(2)?;
        let scheme = header.scheme()?;
        let [lines, got, ..] = header.parameters;
        let width = Width::from_bits(got).ok_or(DecodeError::BadField { field: "fingerprint bits", got })?;
        if lines == 0 || lines > MAX_LINES {
            return Err(DecodeError::BadField { field: "lines", got: lines });
        }
        let capacity = width.most_in(lines);
        if header.capacity != capacity {
            return Err(DecodeError::BadField { field: "capacity", got: header.capacity });
        }
        if header.inserted > capacity {
            return Err(DecodeError::BadField { field: "inserted", got: header.inserted });
        }
        let target_fpr = Self::highest_fpr(width.bits());
        if header.target_fpr != target_fpr {
            let got = header.target_fpr.to_bits();
            return Err(DecodeError::BadField { field: "target rate", got });
        }
        let lines = body.lines(lines * LINE_BYTES as u64)?;
        Ok(Self { scheme, width, lines, inserted: header.inserted, limit_bytes: u64::MAX })
    }
}
