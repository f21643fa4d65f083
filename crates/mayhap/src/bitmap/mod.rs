//! The plain bitmap.

mod explain;

use std::iter;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::answers::Answers;
use crate::batch::one_chunk_behind;
use crate::codec::{self, Body, DecodeError, Header, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::fill::{Fill, Sampling};
use crate::kind::Kind;
use crate::simd::{prefetch, prefetch_words};
use crate::sizing::MAX_BITS;
use crate::store::{LINE_BYTES, Lines};

/// An exact set of small integers: one bit for every possible id.
///
/// * Both answers are certain, **no** and *yes*. There is no false-positive rate and no hash. Only the range
///   of the ids matters.
/// * One bit per *possible* id, set or not: 125 MB for ids below a billion. If fewer than one id in ten is
///   set, a [`Bloom`](crate::Bloom) filter at 1 % takes less.
/// * A lookup touches one cache line.
/// * Its length is fixed until you [`grow`](Self::grow) it. Past its end every bit reads as clear, and
///   setting one is an error, except with [`set_growing`](Self::set_growing).
/// * It can count, find and list set bits, and combine with other bitmaps. It holds integers only.
///
/// ```text
/// id 67 ─▶ word 67 / 64 = 1, bit 67 % 64 = 3
///          0 0 0 0 …  0 0 0 1 0 0 …
/// ```
///
/// ```
/// use mayhap::Bitmap;
///
/// let mut taken = Bitmap::new(1_000_000)?;
/// assert_eq!(taken.set(13), Ok(true)); // it was clear
/// assert_eq!(taken.set(13), Ok(false));
/// assert!(taken.get(13) && !taken.get(14));
/// assert!(!taken.get(u64::MAX)); // certainly not
/// assert!(taken.set(1_000_000).is_err()); // past the end
/// assert_eq!((taken.count(), taken.first_clear(13..)), (1, Some(14)));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Bitmap {
    /// Bits from `len` on are clear.
    words: Lines,
    len: u64,
    /// The number of bit 0.
    first: u64,
}

impl Bitmap {
    /// Creates a bitmap of `bits` clear bits, for the ids `0..bits`. `bits` may be 0.
    ///
    /// # Errors
    /// [`BuildError`] for more than 2^49 bits, or if the system refuses the memory.
    pub fn new(bits: u64) -> Result<Self, BuildError> {
        check_len(bits)?;
        Ok(Self { words: Lines::zeroed(lines_for(bits))?, len: bits, first: 0 })
    }

    /// Creates a bitmap with a clear bit for every number from `low` to `high`, both included. Its bits are
    /// still counted from 0: [`index_of`](Self::index_of) returns the bit of a number. A
    /// [`Filter`](crate::Filter) accepts the numbers themselves.
    ///
    /// ```
    /// use mayhap::Bitmap;
    ///
    /// let mut phones = Bitmap::of_range(13_000_000_000, 13_000_999_999)?;
    /// let bit = phones.index_of(13_000_138_000).unwrap();
    /// assert_eq!((bit, phones.set(bit)), (138_000, Ok(true)));
    /// assert_eq!(phones.index_of(12_999_999_999), None); // certainly not a member
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError`] as [`new`](Self::new), and for an empty range.
    pub fn of_range(low: u64, high: u64) -> Result<Self, BuildError> {
        let bits = high.checked_sub(low).map_or(0, |more| more.saturating_add(1));
        if bits == 0 {
            return Err(BuildError::BitsOutOfRange { got: 0, limit: MAX_BITS });
        }
        Ok(Self { first: low, ..Self::new(bits)? })
    }

    /// Returns the number of bit 0. It is 0 unless the bitmap was made for a [range](Self::of_range).
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Returns the bit of `number`, or `None` if it is outside the range.
    #[inline]
    #[must_use]
    pub fn index_of(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.first).filter(|&index| index < self.len)
    }

    /// Extends the bitmap to `bits` bits, if it is shorter. The new bits are clear.
    ///
    /// # Errors
    /// [`BuildError`] for more than 2^49 bits, or if the system refuses the memory. On error, nothing has
    /// changed.
    pub fn grow(&mut self, bits: u64) -> Result<(), BuildError> {
        self.grow_with_room(bits, 0)
    }

    fn grow_with_room(&mut self, bits: u64, room_bits: u64) -> Result<(), BuildError> {
        check_len(bits)?;
        self.words.grow(lines_for(bits), lines_for(room_bits.min(MAX_BITS)))?;
        self.len = self.len.max(bits);
        Ok(())
    }

    /// Sets bit `index`. `true`: it was clear.
    ///
    /// # Errors
    /// [`InsertError::PastTheEnd`]. On error, nothing has changed.
    #[inline]
    pub fn set(&mut self, index: u64) -> Result<bool, InsertError> {
        self.check_index(index)?;
        Ok(set_bit(self.words.words_mut(), index))
    }

    /// Sets bit `index`, and grows exactly that far if it is past the end. `true`: it was clear.
    ///
    /// # Errors
    /// [`BuildError`] as [`grow`](Self::grow). On error, nothing has changed.
    #[inline]
    pub fn set_growing(&mut self, index: u64) -> Result<bool, BuildError> {
        if index >= self.len {
            // Reserves twice the memory, so ids in rising order do not copy everything each time.
            self.grow_with_room(index.saturating_add(1), self.len.saturating_mul(2))?;
        }
        Ok(set_bit(self.words.words_mut(), index))
    }

    /// Sets all bits of `indexes` and returns how many of them were clear. If the bitmap is larger than the
    /// cache, this is much faster than setting one by one.
    ///
    /// # Errors
    /// [`InsertError::PastTheEnd`] with the first index past the end. On error, nothing has changed.
    pub fn set_batch(&mut self, indexes: &[u64]) -> Result<u64, InsertError> {
        indexes.iter().try_for_each(|&index| self.check_index(index))?;
        let words = self.words.words_mut();
        let prefetch = prefetch_words(words);
        let mut changed = 0;
        let start = |&index: &u64| {
            prefetch.at((index / 64) as usize);
            index
        };
        one_chunk_behind::<CHUNK, _, _>(indexes, start, |_, chunk| {
            for &index in chunk {
                changed += u64::from(set_bit(words, index));
            }
        });
        Ok(changed)
    }

    /// Returns whether bit `index` is set. Past the end it is certainly not.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u64) -> bool {
        bit(self.words.words(), index) == 1
    }

    /// Looks up all `indexes` together. Their memory loads overlap: if the bitmap is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn get_batch(&self, indexes: &[u64], answers: &mut Answers) {
        answers.reset(indexes.len());
        let words = self.words.words();
        let start = |&index: &u64| {
            prefetch(words, (index / 64) as usize);
            index
        };
        one_chunk_behind::<CHUNK, _, _>(indexes, start, |first, chunk| {
            let set = chunk.iter().rev().fold(0, |set, &index| set << 1 | bit(words, index));
            answers.words_mut()[first / CHUNK] = set;
        });
    }

    /// Clears bit `index`. `true`: it was set. Bits past the end are always clear.
    #[inline]
    pub fn clear(&mut self, index: u64) -> bool {
        let was_set = self.get(index);
        if was_set {
            self.words.words_mut()[(index / 64) as usize] &= !(1 << (index % 64));
        }
        was_set
    }

    /// Clears all bits; the length stays.
    pub fn clear_all(&mut self) {
        self.words.words_mut().fill(0);
    }

    /// Keeps the bits that are set in both. The shorter bitmap counts as extended with clear bits, and the
    /// result is as long as the longer one. The same holds for [`or`](Self::or), [`xor`](Self::xor) and
    /// [`and_not`](Self::and_not).
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory to extend it. On error, nothing has
    /// changed.
    pub fn and(&mut self, other: &Self) -> Result<(), BuildError> {
        self.combine(other, |ours, theirs| ours & theirs)
    }

    /// Sets the bits that are set in `other`.
    ///
    /// # Errors
    /// As [`and`](Self::and).
    pub fn or(&mut self, other: &Self) -> Result<(), BuildError> {
        self.combine(other, |ours, theirs| ours | theirs)
    }

    /// Keeps the bits that are set in exactly one of the two.
    ///
    /// # Errors
    /// As [`and`](Self::and).
    pub fn xor(&mut self, other: &Self) -> Result<(), BuildError> {
        self.combine(other, |ours, theirs| ours ^ theirs)
    }

    /// Clears the bits that are set in `other`.
    ///
    /// # Errors
    /// As [`and`](Self::and).
    pub fn and_not(&mut self, other: &Self) -> Result<(), BuildError> {
        self.combine(other, |ours, theirs| ours & !theirs)
    }

    /// `join` must return 0 for two zero bits.
    #[inline(always)]
    fn combine(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Result<(), BuildError> {
        self.grow(other.len)?;
        let theirs = other.words.words();
        let (both, ours_alone) = self.words.words_mut().split_at_mut(theirs.len());
        for (ours, theirs) in both.iter_mut().zip(theirs) {
            *ours = join(*ours, theirs.load(Ordering::Relaxed));
        }
        for ours in ours_alone {
            *ours = join(*ours, 0);
        }
        Ok(())
    }

    /// Flips every bit.
    pub fn not(&mut self) {
        let (whole, rest) = ((self.len / 64) as usize, self.len % 64);
        let words = self.words.words_mut();
        for word in &mut words[..whole] {
            *word = !*word;
        }
        if rest > 0 {
            words[whole] ^= low_bits(rest);
        }
    }

    /// Returns the number of bits, set or clear.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether its length is 0. It is not about set bits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of set bits. This reads all bits: the time is proportional to the filter's memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words.ones()
    }

    /// Measures the share of set bits, from all bits or a sample. There is no false-positive rate: both
    /// answers are certain.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill { expected_fpr: 0.0, ..Fill::of_bits(self.words.words(), self.len, 1, sampling) }
    }

    /// Returns the number of set bits in `range`. Bits past the end count as clear.
    #[must_use]
    pub fn count_range(&self, range: impl RangeBounds<u64>) -> u64 {
        let Some((start, end)) = self.clip(range) else { return 0 };
        let words = &self.words.words()[(start / 64) as usize..=((end - 1) / 64) as usize];
        let all: u64 = words.iter().map(|word| u64::from(load(word).count_ones())).sum();
        let before = load(&words[0]) & low_bits(start % 64);
        let after = load(&words[words.len() - 1]) & !low_bits((end - 1) % 64 + 1);
        all - u64::from(before.count_ones()) - u64::from(after.count_ones())
    }

    /// Returns the first set bit in `range`. `first_set(7..)` searches from bit 7 on.
    #[must_use]
    pub fn first_set(&self, range: impl RangeBounds<u64>) -> Option<u64> {
        self.first_unlike(0, range)
    }

    /// Returns the first clear bit in `range`. Bits past the end are not considered.
    #[must_use]
    pub fn first_clear(&self, range: impl RangeBounds<u64>) -> Option<u64> {
        self.first_unlike(u64::MAX, range)
    }

    /// Returns the first bit in `range` that differs from `pattern`.
    fn first_unlike(&self, pattern: u64, range: impl RangeBounds<u64>) -> Option<u64> {
        let (start, end) = self.clip(range)?;
        let mut looked_at = !low_bits(start % 64);
        for (word, first) in self.words.words().iter().zip((0..end).step_by(64)).skip((start / 64) as usize) {
            let unlike = (load(word) ^ pattern) & looked_at;
            looked_at = u64::MAX;
            if unlike != 0 {
                let index = first + u64::from(unlike.trailing_zeros());
                return (index < end).then_some(index);
            }
        }
        None
    }

    /// Returns the set bits in rising order.
    pub fn iter_ones(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.words().iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
            let mut left = load(word);
            iter::from_fn(move || {
                let index = (left != 0).then(|| first + u64::from(left.trailing_zeros()));
                left &= left.wrapping_sub(1);
                index
            })
        })
    }

    /// Returns the memory that the bits take, including what [`set_growing`](Self::set_growing) reserves
    /// after them.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.room_bytes()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { words: self.words.try_clone()?, len: self.len, first: self.first })
    }

    /// Encodes the bitmap as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a bitmap and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `Bitmap`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn check_index(&self, index: u64) -> Result<(), InsertError> {
        if index < self.len {
            return Ok(());
        }
        Err(InsertError::PastTheEnd { index, bits: self.len })
    }

    /// Returns the start and end of `range`, cut at the end of the bitmap, or `None` if that is empty.
    fn clip(&self, range: impl RangeBounds<u64>) -> Option<(u64, u64)> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        let end = end.min(self.len);
        (start < end).then_some((start, end))
    }
}

/// Bits looked up together: one word of answers, and enough to hide the memory latency.
const CHUNK: usize = 64;

fn check_len(bits: u64) -> Result<(), BuildError> {
    if bits > MAX_BITS {
        return Err(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS });
    }
    Ok(())
}

/// Returns the number of whole lines for `bits` bits.
fn lines_for(bits: u64) -> usize {
    usize::try_from(bits.div_ceil(LINE_BYTES as u64 * 8)).unwrap_or(usize::MAX)
}

/// Returns a word with the lowest `count` bits set, at most 64.
const fn low_bits(count: u64) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Returns 1 if bit `index` is set, and 0 if it is clear or past the end. The bits after the end, up to the
/// end of the words, are clear.
#[inline(always)]
fn bit(words: &[AtomicU64], index: u64) -> u64 {
    let word = usize::try_from(index / 64).ok().and_then(|word| words.get(word));
    word.map_or(0, |word| load(word) >> (index % 64) & 1)
}

/// Sets bit `index`. Returns whether it was clear.
#[inline(always)]
fn set_bit(words: &mut [u64], index: u64) -> bool {
    let word = &mut words[(index / 64) as usize];
    let clear = *word >> (index % 64) & 1 == 0;
    *word |= 1 << (index % 64);
    clear
}

/// Bitmaps are equal if they have the same length, the same first number and the same bits.
impl PartialEq for Bitmap {
    fn eq(&self, other: &Self) -> bool {
        let same = |(ours, theirs)| load(ours) == load(theirs);
        (self.len, self.first) == (other.len, other.first)
            && self.words.words().iter().zip(other.words.words()).all(same)
    }
}

impl Eq for Bitmap {}

/// Placement scheme 1: bit `i` is bit `i % 64` of word `i / 64`.
const PLACEMENT: u16 = 1;
/// The parameter with the number of bit 0.
const FIRST: usize = 0;

impl codec::sealed::Sealed for Bitmap {}

impl Storable for Bitmap {
    const KIND: Option<Kind> = Some(Kind::Bitmap);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Bitmap, PLACEMENT, None);
        header.capacity = self.len;
        header.parameters[FIRST] = self.first;
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.words)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_no_scheme()?;
        header.expect_parameters(1)?;
        let unused = [("inserted", header.inserted), ("target rate", header.target_fpr.to_bits())];
        if let Some((field, got)) = unused.into_iter().find(|&(_, got)| got != 0) {
            return Err(DecodeError::BadField { field, got });
        }
        let len = header.capacity;
        check_len(len)?;
        let first = header.parameters[FIRST];
        if first.checked_add(len.saturating_sub(1)).is_none() {
            return Err(DecodeError::BadField { field: "first number", got: first });
        }
        let words = body.lines(len.div_ceil(LINE_BYTES as u64 * 8) * LINE_BYTES as u64)?;
        words.check_zero_from(len).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self { words, len, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::HEADER_BYTES;
    use crate::hash::HashScheme;

    #[test]
    fn intact_bytes_of_an_invalid_bitmap_are_refused() {
        let mut stray = Bitmap::new(100).unwrap();
        stray.words.words_mut()[7] = 1 << 63;
        assert_eq!(Bitmap::decode(&stray.encode()).err(), Some(DecodeError::StrayBit { bit: 511 }));

        let bytes = Bitmap::new(100).unwrap().encode();
        let forged = |forge: &dyn Fn(&mut Header)| {
            let mut bytes = bytes.clone();
            let header: &mut [u8; HEADER_BYTES] = bytes.first_chunk_mut().unwrap();
            let mut said = Header::from_bytes(header).unwrap();
            forge(&mut said);
            *header = said.to_bytes();
            Bitmap::decode(&bytes)
        };
        assert!(forged(&|_| {}).is_ok());
        assert!(forged(&|header| header.capacity = 513).is_err());
        assert!(forged(&|header| header.capacity = u64::MAX).is_err());
        assert!(forged(&|header| header.inserted = 1).is_err());
        assert!(forged(&|header| header.target_fpr = 0.01).is_err());
        assert!(forged(&|header| header.parameters[0] = u64::MAX - 98).is_err());
        assert_eq!(
            forged(&|header| header.parameters[0] = u64::MAX - 99).unwrap().index_of(u64::MAX),
            Some(99)
        );
        assert!(forged(&|header| header.parameters[1] = 1).is_err());
        assert!(forged(&|header| header.placement = 2).is_err());
        assert!(forged(&|header| header.hash_scheme = HashScheme::fast(0).number()).is_err());
        assert!(forged(&|header| header.secret[3] = 1).is_err());
    }
}
