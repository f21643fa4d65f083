//! The Golomb–Rice coded set.

mod builder;
mod explain;
mod index;
mod one_range;
mod rice;
mod shape;
mod stretch;
mod values;

pub use builder::GcsBuilder;
pub use shape::GcsShape;
pub use values::GcsValues;

pub(crate) use index::Stretch;
pub(crate) use one_range::suits;
pub(crate) use stretch::stretch_holds;

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::shape::GcsPlacement;
use self::shape::stream_lines;
use self::stretch::StretchCursor;
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

/// A compact set that does not change: sorted hashes, stored as gaps.
///
/// * **Lookups are slow**: each decodes about thirty values one after the other, which takes four to eight
///   times as long as in a [`Bloom`](crate::Bloom).
/// * **It is built once.** There is no insert and no remove. Two sets of the same shape can be
///   [merged](Self::union).
/// * **no** is certain. **maybe** can be a false positive: the false-positive rate is at most `target_fpr`.
///   [`expected_fpr`](Self::expected_fpr) returns it exactly: the share of possible values that are taken.
/// * `log2(1/target_fpr)` bits per item, about 1.5 more for the code and 0.29 for the index: 8.3 at 1 %, 9.8
///   at 1/256, 11.8 at 0.1 %. A Bloom filter takes 9.6, 11.5 and 14.4. The rate cannot be below
///   `capacity / 2^62`.
/// * It can be built from a sorted stream that does not fit in memory ([`GcsBuilder`]), be read back in order
///   ([`values`](Self::values)), and be merged with a sorted batch of lookups
///   ([`may_contain_hash_batch`](Self::may_contain_hash_batch)).
/// * An attacker who knows the seed can choose items that crowd into one bucket. Such a set cannot be built,
///   or its lookups are slow. Use a keyed scheme if untrusted users choose the items.
///
/// ```text
/// item ─▶ ItemHash ─▶ value, 0 to range - 1 ─▶ bucket and position in it
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
/// F. Putze, P. Sanders, J. Singler, *Cache-, hash- and space-efficient Bloom filters*, WEA 2007 (section 5,
/// on compressed hash values). The coding is by R. F. Rice, 1971.
#[derive(Debug)]
pub struct Gcs {
    shape: GcsShape,
    scheme: HashScheme,
    /// The index, then the stream.
    lines: Lines,
    stream_bits: u64,
    /// The number of different items it was built from.
    inserted: u64,
    /// The number of their different values.
    values: u64,
}

impl Gcs {
    /// Builds the set of `items` with a false-positive rate of at most `target_fpr`. Duplicates and an empty
    /// set are allowed.
    ///
    /// Building takes 8 bytes per item in addition to the set itself. A number as `scheme` is the seed of the
    /// fast hash. Use [`HashScheme::keyed_random`] if untrusted users choose the items.
    ///
    /// # Errors
    /// [`BuildError`] if the rate is out of range, there are too many items, or the system refuses the
    /// memory.
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

    /// Builds the set of `items` in exactly this shape, for any number of items. Sets to be
    /// [merged](Self::union) must have the same shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory. [`BuildError::Unsolvable`] for many
    /// times more items than the shape is meant for.
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

    /// Builds the set from hashes in ascending order and keeps only the set in memory. [`GcsBuilder`] does
    /// the same step by step.
    ///
    /// # Errors
    /// [`BuildError::Unsorted`] for a hash smaller than the one before it, otherwise as
    /// [`with_shape`](Self::with_shape).
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

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// `false`: not in the set. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        if self.shape.placement() != GcsPlacement::InBuckets {
            return self.has_in_one_range(hash);
        }
        let (bucket, place) = self.shape.place(statics::key(hash));
        let (index, stream) = self.sections();
        let stretch = index::stretch(index, bucket);
        // Most stretches continue in a second line.
        prefetch(stream, (stretch.start / 64) as usize + WORDS_PER_LINE);
        simd::stretch_holds(stream, stretch, self.shape.remainder_bits(), place)
    }

    /// Looks up all `items` together. Their memory loads overlap. If the hashes ascend (see
    /// [`may_contain_hash_batch`](Self::may_contain_hash_batch)), nothing is decoded twice.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    ///
    /// A sorted batch is merged with the set, bucket by bucket. If it is about as large as the set, this is
    /// several times faster.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer(hashes, answers);
    }

    #[inline(always)]
    fn answer<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        const CHUNK: usize = 64;
        answers.reset(items.len());
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
        let mut cursor = StretchCursor::<1>::new(stream, u64::MAX, Stretch::default());
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, places| {
            let mut stretches = [Stretch::default(); CHUNK];
            for (stretch, (bucket, _)) in stretches.iter_mut().zip(places) {
                *stretch = index::stretch(index, *bucket);
                let word = (stretch.start / 64) as usize;
                prefetch(stream, word);
                prefetch(stream, word + WORDS_PER_LINE);
            }
            for (i, (&(bucket, place), &stretch)) in places.iter().zip(&stretches).enumerate() {
                // If the next item is in the same bucket, one pass over the bucket answers both.
                let going_on = cursor.bucket == bucket && cursor.reaches(place);
                let neighbour = places.get(i + 1).is_some_and(|&(next, _)| next == bucket);
                let held = if going_on || neighbour {
                    if !going_on {
                        cursor = StretchCursor::new(stream, bucket, stretch);
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

    /// Returns the values of the set in ascending order, each once: numbers below [`GcsShape::range`]. In a
    /// set read from another program's bytes, a value shared by several items is returned that many times.
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

    /// Adds all items of `other`, as if both had been built together in this shape.
    ///
    /// The range of the values depends on the capacity, so sets built for different numbers of items cannot
    /// be merged. Build both [with the shape](Self::with_shape) of the union.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same buckets, code and hash scheme, or if the union cannot be
    /// built. On error, nothing has changed. Sets of other programs can never be merged: their range follows
    /// from the number of items.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        MergeError::check_schemes(&self.scheme, &other.scheme)?;
        // Fails for the shapes of other programs.
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

    /// Returns the shape: range, buckets, code and promised rate.
    #[must_use]
    pub const fn shape(&self) -> &GcsShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the number of different items that the set was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of different items it was built from; after a union, the sum.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the false-positive rate. It is exact, not an estimate: the share of possible values that are
    /// taken.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.values as f64 / self.shape.range() as f64
    }

    /// Returns the memory that the index and the codes take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// Returns the bits of memory per item it was built from; for an empty set, all bits.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted.max(1) as f64
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Gcs`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// Returns the index and the stream.
    #[inline(always)]
    fn sections(&self) -> (&[AtomicU64], &[AtomicU64]) {
        let words = self.lines.words();
        words.split_at((self.shape.index_lines() as usize * WORDS_PER_LINE).min(words.len()))
    }
}

/// Placement scheme 1: let `x` be the product of the key (`low` of the hash) and the number of buckets. The
/// bucket is `x / 2^64`, the position in it `reduce(x mod 2^64, bucket range)`. Codes and index are as in
/// `rice` and `index`.
const IN_BUCKETS: u16 = 1;
/// Placement scheme 2: `reduce(key, range)`, split into buckets afterwards; see `one_range`.
const IN_ONE_RANGE: u16 = 2;

impl codec::sealed::Sealed for Gcs {}

impl Storable for Gcs {
    const KIND: Option<Kind> = Some(Kind::Gcs);

    fn header(&self) -> Header {
        let placement = match self.shape.placement() {
            GcsPlacement::InBuckets => IN_BUCKETS,
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
        if let GcsPlacement::InOneRange(range) = self.shape.placement() {
            header.parameters[5] = range;
        }
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.lines)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
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
    /// Creates the set of this shape and scheme. Checks everything except the words between the ends.
    fn of_parts(
        shape: GcsShape,
        scheme: HashScheme,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<Self, DecodeError> {
        let low = shape.remainder_bits();
        let [_, _, _, stream_bits, values, ..] = header.parameters;
        // Every value has a code, and a code has at least its low bits and one more.
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

    /// Checks that no bit is set after the last bucket of the index or after the last code of the stream, and
    /// that the index ends where the stream does. It reads only the ends, to keep opening a file fast.
    /// Lookups are bounded for any words in between.
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
