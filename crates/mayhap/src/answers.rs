//! The results of a batch, one bit per item.

use std::ops::{Deref, DerefMut};

/// One bit per item of a batch, in the order of the items.
///
/// [`Answers`] and [`NewItems`] say what a set bit means. Both dereference to this type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchBits {
    words: Vec<u64>,
    len: usize,
}

impl BatchBits {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), len: 0 }
    }

    /// The number of items in the batch.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the batch had no items.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bit of item `index`, or `None` if the batch had no such item.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| self.words[index / 64] >> (index % 64) & 1 == 1)
    }

    /// The number of set bits.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// All bits in the order of the items.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|index| self.words[index / 64] >> (index % 64) & 1 == 1)
    }

    /// A copy of the `len` bits that start at item `from`. It is shorter if the batch ends earlier.
    #[must_use]
    pub fn part(&self, from: usize, len: usize) -> Self {
        let len = len.min(self.len.saturating_sub(from));
        let word = |index: usize| self.words.get(index).copied().unwrap_or(0);
        let (first, shift) = (from / 64, from % 64);
        let joined = |index: usize| match shift {
            0 => word(first + index),
            _ => word(first + index) >> shift | word(first + index + 1) << (64 - shift),
        };
        let mut part = Self { words: (0..len.div_ceil(64)).map(joined).collect(), len };
        if let Some(last) = part.words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last &= (1 << (len % 64)) - 1;
        }
        part
    }

    /// The bits as words: item 0 is the lowest bit of word 0. Bits past the last item are clear.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Replaces the list by `len` clear bits.
    pub(crate) fn reset(&mut self, len: usize) {
        let words = len.div_ceil(64);
        if self.words.len() != words {
            self.words.resize(words, 0);
        }
        self.words.fill(0);
        self.len = len;
    }

    /// Drops all bits from item `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.words.truncate(len.div_ceil(64));
            if let Some(last) = self.words.last_mut().filter(|_| !len.is_multiple_of(64)) {
                *last &= (1 << (len % 64)) - 1;
            }
            self.len = len;
        }
    }

    /// The words to fill in. Item 0 is the lowest bit of word 0.
    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Sets the bit of item `index`.
    #[inline]
    pub(crate) fn set(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }
}

/// The answers to a batch of lookups: a set bit means *maybe*, a clear bit means *no*.
///
/// Reuse one value for many batches. It keeps its memory.
///
/// ```
/// use mayhap::{Answers, Bloom};
///
/// let mut seen = Bloom::new(1_000, 0.001)?;
/// seen.insert_batch(&["a", "b"]);
/// let mut answers = Answers::new();
/// seen.may_contain_batch(&["a", "x", "b"], &mut answers);
/// assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false, true]);
/// assert_eq!(answers.maybe_count(), 2);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(BatchBits);

impl Answers {
    /// No answers yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(BatchBits::new())
    }

    /// The number of answers that are *maybe*.
    #[must_use]
    pub fn maybe_count(&self) -> usize {
        self.count_ones()
    }

    /// The bits without their meaning.
    #[must_use]
    pub fn into_bits(self) -> BatchBits {
        self.0
    }
}

/// The results of a batch of insertions: a set bit means that the item changed the filter, so it was certainly new.
///
/// Reuse one value for many batches. It keeps its memory.
///
/// ```
/// use mayhap::{AtomicBloom, NewItems};
///
/// let seen = AtomicBloom::new(1_000, 0.001)?;
/// let hashes = ["a", "b", "a"].map(|item| seen.hash(item));
/// let mut new = NewItems::new();
/// seen.insert_hash_batch_each(&hashes, &mut new);
/// assert_eq!(new.iter().collect::<Vec<_>>(), [true, true, false]);
/// assert_eq!(new.new_count(), 2);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewItems(BatchBits);

impl NewItems {
    /// No results yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(BatchBits::new())
    }

    /// The number of items that were certainly new.
    #[must_use]
    pub fn new_count(&self) -> usize {
        self.count_ones()
    }

    /// The bits without their meaning.
    #[must_use]
    pub fn into_bits(self) -> BatchBits {
        self.0
    }
}

impl Deref for Answers {
    type Target = BatchBits;

    #[inline]
    fn deref(&self) -> &BatchBits {
        &self.0
    }
}

impl DerefMut for Answers {
    #[inline]
    fn deref_mut(&mut self) -> &mut BatchBits {
        &mut self.0
    }
}

impl Deref for NewItems {
    type Target = BatchBits;

    #[inline]
    fn deref(&self) -> &BatchBits {
        &self.0
    }
}

impl DerefMut for NewItems {
    #[inline]
    fn deref_mut(&mut self) -> &mut BatchBits {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, BatchBits};

    #[test]
    fn no_answer_survives_into_the_next_batch() {
        let mut answers = Answers::new();
        answers.reset(130);
        answers.set(0);
        answers.set(129);
        assert_eq!((answers.maybe_count(), answers.len(), answers.get(129)), (2, 130, Some(true)));
        answers.reset(130);
        assert_eq!((answers.maybe_count(), answers.get(130)), (0, None));
        (0..130).for_each(|index| answers.set(index));
        for (len, kept) in [(500, 130), (129, 129), (128, 128), (70, 70), (64, 64), (3, 3), (0, 0)] {
            answers.truncate(len);
            assert_eq!((answers.maybe_count(), answers.len()), (kept, kept), "{len}");
        }
        answers.reset(200);
        (0..200).filter(|index| index % 3 == 0).for_each(|index| answers.set(index));
        for (from, len) in
            [(0, 200), (0, 64), (1, 1), (3, 61), (63, 66), (64, 128), (130, 500), (200, 1), (300, 9)]
        {
            let part: BatchBits = answers.part(from, len);
            let plain: Vec<bool> = answers.iter().skip(from).take(len).collect();
            assert_eq!(part.iter().collect::<Vec<_>>(), plain, "{len} from {from}");
            assert_eq!(part.count_ones(), plain.iter().filter(|&&answer| answer).count());
        }
        answers.reset(0);
        assert!(answers.is_empty() && answers.iter().next().is_none());
    }
}
