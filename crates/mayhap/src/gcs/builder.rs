//! Builds a coded set from sorted hashes, with no more memory than the set itself.

use super::Gcs;
use super::index::{self, BUCKETS_PER_LINE};
use super::rice::{self, Packer};
use super::shape::{GcsPlacement, GcsShape, stream_lines};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::sizing::MAX_BITS;
use crate::statics;
use crate::store::{Lines, WORDS_PER_LINE};

/// Builds a [`Gcs`] from hashes in ascending order, and keeps only the resulting set in memory.
///
/// Use it for sets that were sorted elsewhere: on disk, in a database, by a merge of other sorted lists.
/// Hashes of the same scheme are sorted by the order of [`ItemHash`]. Duplicates are allowed.
///
/// ```
/// use mayhap::{Gcs, GcsBuilder, GcsShape, HashScheme};
///
/// let scheme = HashScheme::fast(0);
/// let mut hashes: Vec<_> = (0..1_000_u64).map(|id| scheme.hash(&id)).collect();
/// hashes.sort_unstable();
/// let mut builder = GcsBuilder::new(GcsShape::for_capacity(1_000, 0.01)?, scheme)?;
/// for hash in hashes {
///     builder.push(hash)?;
/// }
/// let ids: Gcs = builder.finish()?;
/// assert!(ids.may_contain(&7_u64));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Debug)]
pub struct GcsBuilder {
    shape: GcsShape,
    scheme: HashScheme,
    /// The index, with its known length, followed by the growing stream.
    lines: Lines,
    packer: Packer,
    /// Full words of the stream.
    words: usize,
    bits: u64,
    /// The bucket being filled, the start of the first bucket of its index line, and the ends of the buckets
    /// before it.
    bucket: u64,
    base: u64,
    ends: [u64; BUCKETS_PER_LINE],
    /// One past the last value's position in the bucket, 0 before the first.
    free: u64,
    last_key: Option<u64>,
    inserted: u64,
    values: u64,
    failed: Option<BuildError>,
}

impl GcsBuilder {
    /// Creates an empty builder. `shape` fixes the range of the values, so the number of items should be
    /// known. With more items the rate rises; with fewer, the set takes more bits for each.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory of the index.
    /// [`BuildError::ForeignShape`] if the shape was read from another program's filter, because such a shape
    /// fits its own items only.
    pub fn new(shape: GcsShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        match shape.placement() {
            GcsPlacement::InBuckets => Self::placed(shape, scheme.into()),
            GcsPlacement::InOneRange(_) => Err(BuildError::ForeignShape { kind: crate::kind::Kind::Gcs }),
        }
    }

    /// [`new`](Self::new) for a shape of any placement.
    pub(super) fn placed(shape: GcsShape, scheme: HashScheme) -> Result<Self, BuildError> {
        let lines = Lines::zeroed(usize::try_from(shape.index_lines()).unwrap_or(usize::MAX))?;
        Ok(Self {
            shape,
            scheme,
            lines,
            packer: Packer::default(),
            words: 0,
            bits: 0,
            bucket: 0,
            base: 0,
            ends: [0; BUCKETS_PER_LINE],
            free: 0,
            last_key: None,
            inserted: 0,
            values: 0,
            failed: None,
        })
    }

    /// Adds an item hashed with the scheme of the set. `true`: it differs from the one before, so it is new.
    ///
    /// # Errors
    /// [`BuildError::Unsorted`] if it is smaller than the hash before. Nothing has changed then, and you can
    /// continue with the next hash. After any other error the builder is unusable, and every call returns the
    /// same error.
    #[inline]
    pub fn push(&mut self, hash: ItemHash) -> Result<bool, BuildError> {
        self.push_key(statics::key(hash))
    }

    #[inline]
    pub(super) fn push_key(&mut self, key: u64) -> Result<bool, BuildError> {
        if let Some(last) = self.last_key {
            if key < last {
                return Err(BuildError::Unsorted { index: self.inserted });
            }
            if key == last {
                return Ok(false);
            }
        }
        let (bucket, place) = self.shape.place(key);
        self.put(bucket, place)?;
        self.last_key = Some(key);
        self.inserted += 1;
        Ok(true)
    }

    /// Encodes the value at `place` of `bucket`, unless it equals the last one and values are kept only once.
    /// Values must ascend.
    #[inline]
    pub(super) fn put(&mut self, bucket: u64, place: u64) -> Result<(), BuildError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.bucket < bucket {
            self.close_until(bucket)?;
        }
        let step = self.shape.least_step();
        let Some(gap) = (place + 1).checked_sub(self.free + step) else { return Ok(()) };
        let low = self.shape.remainder_bits();
        self.make_room(rice::length(gap, low))?;
        let (stream, words) = (self.shape.index_lines() as usize * WORDS_PER_LINE, &mut self.words);
        let memory = self.lines.words_mut();
        self.packer.put_rice(gap, low, &mut |word| {
            memory[stream + *words] = rice::stored(word);
            *words += 1;
        });
        self.bits += rice::length(gap, low);
        self.free = place + 1;
        // A difference of 0 is the same value again.
        self.values += u64::from(gap + step > 0);
        Ok(())
    }

    /// Allocates memory for `more` bits of the stream.
    #[inline]
    fn make_room(&mut self, more: u64) -> Result<(), BuildError> {
        let bits = self.bits.saturating_add(more);
        let have = self.lines.words().len() as u64 / WORDS_PER_LINE as u64 - self.shape.index_lines();
        if bits <= MAX_BITS && stream_lines(bits) <= have {
            return Ok(());
        }
        self.grow(bits)
    }

    #[cold]
    fn grow(&mut self, bits: u64) -> Result<(), BuildError> {
        if bits > MAX_BITS {
            return self.fail(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
        }
        let lines = self.shape.index_lines() + stream_lines(bits);
        // The expected memory of the whole set, and a little more. Few sets become longer; those are moved
        // once more.
        let whole = self.shape.memory_bytes().max(bits / 8) / 64;
        let room = whole + whole / 512 + 2;
        let as_usize = |lines: u64| usize::try_from(lines).unwrap_or(usize::MAX);
        let grown = self.lines.grow(as_usize(lines), as_usize(room));
        grown.or_else(|error| self.fail(error))
    }

    #[cold]
    fn fail(&mut self, error: BuildError) -> Result<(), BuildError> {
        self.failed = Some(error.clone());
        Err(error)
    }

    /// Ends the buckets before `bucket`, and writes the index lines that are complete.
    fn close_until(&mut self, bucket: u64) -> Result<(), BuildError> {
        while self.bucket < bucket {
            let number = (self.bucket % BUCKETS_PER_LINE as u64) as usize;
            self.ends[number] = self.bits;
            if number + 1 == BUCKETS_PER_LINE || self.bucket + 1 == self.shape.buckets() {
                let Some(line) = index::line(self.base, &self.ends[..=number]) else {
                    return self.fail(BuildError::Unsolvable { attempts: 1, items: self.inserted + 1 });
                };
                let at = index::line_of(self.bucket);
                self.lines.words_mut()[at..at + WORDS_PER_LINE].copy_from_slice(&line);
                self.base = self.bits;
            }
            self.bucket += 1;
        }
        self.free = 0;
        Ok(())
    }

    /// Returns the set of all pushed items.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`], or the earlier error of [`push`](Self::push). [`BuildError::Unsolvable`]
    /// if hashes are crowded into a small part of their range, which happens only if they were chosen for it.
    pub fn finish(self) -> Result<Gcs, BuildError> {
        let inserted = self.inserted;
        self.finish_with(inserted)
    }

    pub(super) fn finish_with(mut self, inserted: u64) -> Result<Gcs, BuildError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.close_until(self.shape.buckets())?;
        self.make_room(0)?;
        let at = self.shape.index_lines() as usize * WORDS_PER_LINE + self.words;
        if let Some(word) = self.packer.finish() {
            self.lines.words_mut()[at] = rice::stored(word);
        }
        Ok(Gcs {
            shape: self.shape,
            scheme: self.scheme,
            lines: self.lines,
            stream_bits: self.bits,
            inserted,
            values: self.values,
        })
    }
}
