//! The Golomb–Rice coded set.

mod builder;
mod explain;
mod index;
#[cfg(feature = "formats")]
mod one_range;
mod rice;
mod shape;
mod stretch;
mod values;

pub use builder::GcsBuilder;
pub use shape::GcsShape;
pub use values::GcsValues;

pub(crate) use index::Stretch;
#[cfg(feature = "formats")]
pub(crate) use one_range::suits;
pub(crate) use stretch::stretch_holds;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::shape::GcsPlacement;
use self::shape::stream_lines;
use self::stretch::Cursor;
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, MergeError};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::simd::{self, prefetch};
use crate::sizing::MAX_BITS;
use crate::statics;
use crate::store::{LINE_BYTES, Lines, WORDS_PER_LINE};

/// A set that does not change, coded in few bytes: sorted hashes, of which only the gaps are kept.
///
/// * **It is slow to ask**: a lookup decodes some thirty values one after the other, which takes four to eight times as long as asking
///   a [`Bloom`](crate::Bloom).
/// * **It is built once.** Nothing can be inserted or removed; two sets of the same shape can be [united](Self::union).
/// * **no** is certain. **mayhap** is wrong for at most `target_fpr` of the non-members, and [`expected_fpr`](Self::expected_fpr) knows
///   for how many exactly: the share of possible values that are taken.
/// * `log2(1/target_fpr)` bits per item, about 1.5 more for the code and 0.29 for the index: 8.3 at 1 %, 9.8 at 1/256, 11.8 at
///   0.1 %. A Bloom filter has 9.6, 11.5 and 14.4. The rate cannot be below `capacity / 2^62`.
/// * It can be built from a sorted stream that fits in no memory ([`GcsBuilder`]), be read back in order
///   ([`values`](Self::values)), and be merged with a sorted batch of questions
///   ([`may_contain_hash_batch`](Self::may_contain_hash_batch)).
/// * Items chosen by somebody who knows the seed can crowd into one bucket: such a set is refused, or slow to ask. Use a keyed scheme
///   for items of non-members.
///
/// ```text
/// item ─▶ ItemHash ─▶ value, 0 to range - 1 ─▶ bucket and place in it
///                                                │
/// index   │ base │ +off │ +off │ +off │ …      where each bucket's codes begin: one line for 28 buckets
///            │      └─────┐
/// stream  110 0101 0 1100 10 0011 0 …          gap after gap: unary, a zero, low bits
/// ```
///
/// ```
/// use mayhap::Gcs;
///
/// let revoked = Gcs::build(["serial 17", "serial 23", "serial 99"], 0.001, 0)?;
/// assert!(revoked.may_contain("serial 23"));
/// assert!(!revoked.may_contain("serial 24"));
/// assert_eq!(revoked.inserted(), 3);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// F. Putze, P. Sanders, J. Singler, *Cache-, hash- and space-efficient Bloom filters*, WEA 2007 (section 5, on compressed hash
/// values); the coding is R. F. Rice's of 1971.
#[derive(Debug)]
pub struct Gcs {
    shape: GcsShape,
    scheme: HashScheme,
    /// The index, then the stream.
    lines: Lines,
    stream_bits: u64,
    /// Different items it was built from.
    inserted: u64,
    /// Different values they have.
    values: u64,
}

impl Gcs {
    /// The set of `items`, wrong for at most `target_fpr` of the non-members. The same item may come several times; there may
    /// be none.
    ///
    /// Takes 8 bytes an item besides the set itself, until it is built. A number as `scheme` is the seed of the fast hash;
    /// [`HashScheme::keyed_random`] is for items that non-members choose.
    ///
    /// # Errors
    /// [`BuildError`] for a rate that makes no sense or too many items, and for memory the system refuses.
    pub fn build<I: Item>(
        items: impl IntoIterator<Item = I>,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        Self::of_keys(statics::collect(items, &scheme)?, target_fpr, scheme)
    }

    /// [`build`](Self::build) for items already hashed with `scheme`.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_hashes(
        hashes: impl IntoIterator<Item = ItemHash>,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        Self::of_keys(statics::collect(hashes, &scheme)?, target_fpr, scheme)
    }

    fn of_keys(mut keys: Vec<u64>, target_fpr: f64, scheme: HashScheme) -> Result<Self, BuildError> {
        statics::sort_and_dedup(&mut keys);
        let shape = GcsShape::for_capacity((keys.len() as u64).max(1), target_fpr)?;
        Self::of_sorted_keys(keys, shape, scheme)
    }

    /// The set of `items` in exactly this shape, whatever their number: sets that are to be [united](Self::union) must share one.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory; [`BuildError::Unsolvable`] for many times more items than the shape is meant
    /// for.
    pub fn with_shape<I: Item>(
        items: impl IntoIterator<Item = I>,
        shape: GcsShape,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        let mut keys = statics::collect(items, &scheme)?;
        statics::sort_and_dedup(&mut keys);
        Self::of_sorted_keys(keys, shape, scheme)
    }

    fn of_sorted_keys(keys: Vec<u64>, shape: GcsShape, scheme: HashScheme) -> Result<Self, BuildError> {
        let mut builder = GcsBuilder::new(shape, scheme)?;
        for key in keys {
            builder.push_key(key)?;
        }
        builder.finish()
    }

    /// The set of hashes that come in ascending order; holds nothing but the set. [`GcsBuilder`] is the same, step by step.
    ///
    /// # Errors
    /// [`BuildError::Unsorted`] for a hash smaller than the one before it, otherwise as [`with_shape`](Self::with_shape).
    pub fn from_sorted_hashes(
        hashes: impl IntoIterator<Item = ItemHash>,
        shape: GcsShape,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        let mut builder = GcsBuilder::new(shape, scheme)?;
        for hash in hashes {
            builder.push(hash)?;
        }
        builder.finish()
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// `false`: not in the set. `true`: mayhap.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        #[cfg(feature = "formats")]
        if self.shape.placement() != GcsPlacement::InBuckets {
            return self.has_in_one_range(hash);
        }
        let (bucket, place) = self.shape.place(statics::key(hash));
        let (index, stream) = self.sections();
        let stretch = index::stretch(index, bucket);
        // Most stretches go on in a second line.
        prefetch(stream, (stretch.start / 64) as usize + WORDS_PER_LINE);
        simd::stretch_holds(stream, stretch, self.shape.remainder_bits(), place)
    }

    /// Asks about all `items` at once. Their memory loads overlap, and where hashes ascend (see
    /// [`may_contain_hash_batch`](Self::may_contain_hash_batch)) nothing is decoded twice.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    ///
    /// A batch that is sorted is merged with the set, bucket by bucket: if it is about as large as the set, that is several times faster.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer(hashes, answers);
    }

    #[inline(always)]
    fn answer<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        const CHUNK: usize = 64;
        answers.reset(items.len());
        #[cfg(feature = "formats")]
        if self.shape.placement() != GcsPlacement::InBuckets {
            return self.answer_in_one_range(items, answers);
        }
        let (shape, low) = (self.shape, self.shape.remainder_bits());
        let (index, stream) = self.sections();
        let start = |hash: ItemHash| {
            let (bucket, place) = shape.place(statics::key(hash));
            prefetch(index, index::line_of(bucket));
            (bucket, place)
        };
        // In no bucket yet.
        let mut cursor = Cursor::<1>::new(stream, u64::MAX, Stretch::default());
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, places| {
            let mut stretches = [Stretch::default(); CHUNK];
            for (stretch, (bucket, _)) in stretches.iter_mut().zip(places) {
                *stretch = index::stretch(index, *bucket);
                let word = (stretch.start / 64) as usize;
                prefetch(stream, word);
                prefetch(stream, word + WORDS_PER_LINE);
            }
            for (i, (&(bucket, place), &stretch)) in places.iter().zip(&stretches).enumerate() {
                // Where the neighbour is in the same bucket, one walk serves both.
                let going_on = cursor.bucket == bucket && cursor.reaches(place);
                let neighbour = places.get(i + 1).is_some_and(|&(next, _)| next == bucket);
                let held = if going_on || neighbour {
                    if !going_on {
                        cursor = Cursor::new(stream, bucket, stretch);
                    }
                    cursor.holds(low, place)
                } else {
                    simd::stretch_holds(stream, stretch, low, place)
                };
                if held {
                    answers.set(first + i);
                }
            }
        });
    }

    /// The values of the set in ascending order, each once: numbers below [`GcsShape::range`]. In a set read from another program's
    /// bytes, a value that several items share comes as often.
    ///
    /// ```
    /// let set = mayhap::Gcs::build(0..1_000_u64, 0.01, 0)?;
    /// assert!(set.values().is_sorted());
    /// assert!(set.values().all(|value| value < set.shape().range()));
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    #[must_use]
    pub fn values(&self) -> GcsValues<'_> {
        let (index, stream) = self.sections();
        GcsValues::new(self.shape, index, stream, self.stream_bits)
    }

    /// Adds everything `other` holds, as if both had been built together in this shape.
    ///
    /// Values are numbers in a range that depends on the capacity, so sets built for different numbers of items cannot be united:
    /// build both [with the shape](Self::with_shape) of the union.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same buckets, code and hash scheme, or if the union cannot be built; nothing has changed then.
    /// Sets of other programs cannot be united at all: their range follows from the number of items.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        // Says so for the shapes of other programs.
        let united = self.united(other);
        *self = united.map_err(MergeError::Unbuildable)?;
        Ok(())
    }

    fn united(&self, other: &Self) -> Result<Self, BuildError> {
        let mut builder = GcsBuilder::new(self.shape, self.scheme)?;
        let (mut ours, mut theirs) = (self.values(), other.values());
        let mut heads = [ours.next_place(), theirs.next_place()];
        while let Some(smallest) = heads.into_iter().flatten().min() {
            builder.put(smallest.0, smallest.1)?;
            let [our, their] = &mut heads;
            if *our == Some(smallest) {
                *our = ours.next_place();
            }
            if *their == Some(smallest) {
                *their = theirs.next_place();
            }
        }
        builder.finish_with(self.inserted.saturating_add(other.inserted))
    }

    /// The measurements: range, buckets, code, promise.
    #[must_use]
    pub const fn shape(&self) -> &GcsShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Different items it was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Different items it was built from; after a union, the sum.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The share of non-members it answers *mayhap*: not an estimate, but the share of possible values that are taken.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.values as f64 / self.shape.range() as f64
    }

    /// Memory the index and the codes take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// Bits of memory per item it was built from; for an empty set, all bits.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted.max(1) as f64
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `Gcs`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// The index and the stream.
    #[inline(always)]
    fn sections(&self) -> (&[AtomicU64], &[AtomicU64]) {
        let words = self.lines.words();
        words.split_at((self.shape.index_lines() as usize * WORDS_PER_LINE).min(words.len()))
    }
}

/// Placement scheme 1: with `x` the product of the key (`low` of the hash) and the number of buckets, the bucket is `x / 2^64`, the
/// place in it `reduce(x mod 2^64, bucket range)`; codes and index as in `rice` and `index`.
const IN_BUCKETS: u16 = 1;
/// Placement scheme 2: `reduce(key, range)`, cut into buckets afterwards; see `one_range`.
#[cfg(feature = "formats")]
const IN_ONE_RANGE: u16 = 2;

impl codec::sealed::Sealed for Gcs {}

impl Storable for Gcs {
    const KIND: Option<Kind> = Some(Kind::Gcs);

    fn header(&self) -> Header {
        let placement = match self.shape.placement() {
            GcsPlacement::InBuckets => IN_BUCKETS,
            #[cfg(feature = "formats")]
            GcsPlacement::InOneRange(_) => IN_ONE_RANGE,
        };
        let mut header = Header::new(Kind::Gcs, placement, Some(&self.scheme));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.buckets();
        header.parameters[1] = self.shape.bucket_range();
        header.parameters[2] = u64::from(self.shape.remainder_bits());
        header.parameters[3] = self.stream_bits;
        header.parameters[4] = self.values;
        #[cfg(feature = "formats")]
        if let GcsPlacement::InOneRange(range) = self.shape.placement() {
            header.parameters[5] = range;
        }
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.lines)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        #[cfg(feature = "formats")]
        if header.placement == IN_ONE_RANGE {
            return Self::restore_in_one_range(header, body);
        }
        header.expect_placement(IN_BUCKETS)?;
        header.expect_parameters(5)?;
        let scheme = header.scheme()?;
        let low = header.parameter_u32(2, "low bits")?;
        let [buckets, bucket_range, ..] = header.parameters;
        let shape = GcsShape::from_parts(buckets, bucket_range, low, header.capacity, header.target_fpr)?;
        Self::of_parts(shape, scheme, header, body)
    }
}

impl Gcs {
    /// The set of this shape and scheme, checked but for what is between the ends of its words.
    fn of_parts(
        shape: GcsShape,
        scheme: HashScheme,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<Self, DecodeError> {
        let low = shape.remainder_bits();
        let [_, _, _, stream_bits, values, ..] = header.parameters;
        // Every value has a code, and a code has its low bits and one more at least.
        let most = (stream_bits / (1 + u64::from(low))).min(shape.range()).min(header.inserted);
        if stream_bits > MAX_BITS {
            return Err(DecodeError::BadField { field: "bits of the stream", got: stream_bits });
        }
        if values > most || (values == 0) != (header.inserted == 0) {
            return Err(DecodeError::BadField { field: "values", got: values });
        }
        let lines = body.lines(shape.bytes_with(stream_bits))?;
        let filter = Self { shape, scheme, lines, stream_bits, inserted: header.inserted, values };
        filter.check_ends()?;
        Ok(filter)
    }

    /// `Ok` if nothing is set behind the last bucket of the index, nor behind the last code of the stream, and the one says where the
    /// other ends. Looks at the ends only, so that opening a file stays fast: lookups are bounded whatever the words between hold.
    fn check_ends(&self) -> Result<(), DecodeError> {
        let (index, stream) = self.sections();
        let stray = |word: usize| Err(DecodeError::StrayBit { bit: word as u64 * 64 });
        let last = self.shape.buckets() - 1;
        if index::stretch(index, last).end != self.stream_bits {
            return Err(DecodeError::BadField { field: "bits of the stream", got: self.stream_bits });
        }
        let at = index::line_of(last);
        if index::stray_offsets(&index[at..], last) {
            return stray(at);
        }
        let first = (self.stream_bits / 64) as usize;
        for (number, word) in stream.iter().enumerate().skip(first) {
            let used = if number == first { self.stream_bits % 64 } else { 0 };
            if rice::stored(word.load(Ordering::Relaxed)) << used != 0 {
                return stray(index.len() + number);
            }
        }
        Ok(())
    }
}

const _: () = assert!(stream_lines(MAX_BITS) < u64::MAX / LINE_BYTES as u64);
