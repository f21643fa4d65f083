//! The results of a batch, one bit per item.

use std::ops::{Deref, DerefMut, Not, Range};

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

    /// The indexes of the set bits, in order.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.runs().flatten()
    }

    /// The runs of consecutive set bits, in order.
    ///
    /// ```
    /// use mayhap::BatchBits;
    ///
    /// let bits: BatchBits = [true, true, false, true].into_iter().collect();
    /// assert_eq!(bits.runs().collect::<Vec<_>>(), [0..2, 3..4]);
    /// ```
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, 0)?;
            let end = self.next(start, u64::MAX).unwrap_or(self.len);
            at = end;
            Some(start..end)
        })
    }

    /// The first index from `at` on whose bit is set, or clear if `flip` is all ones.
    fn next(&self, at: usize, flip: u64) -> Option<usize> {
        if at >= self.len {
            return None;
        }
        let first = (self.words[at / 64] ^ flip) & (u64::MAX << (at % 64));
        let words = self.words[at / 64 + 1..].iter().map(|word| word ^ flip);
        let (word, bits) = std::iter::once(first).chain(words).enumerate().find(|&(_, word)| word != 0)?;
        let index = (at / 64 + word) * 64 + bits.trailing_zeros() as usize;
        (index < self.len).then_some(index)
    }

    /// The number of set bits among the first `items`, or among all if there are fewer.
    #[must_use]
    pub fn count_first(&self, items: usize) -> usize {
        let items = items.min(self.len);
        let ones = |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        match items % 64 {
            0 => ones(&self.words[..items / 64]),
            bits => {
                let last = self.words[items / 64] & ((1 << bits) - 1);
                ones(&self.words[..items / 64]) + last.count_ones() as usize
            }
        }
    }

    /// Clears all set bits except the first `most`. Returns the number of items up to the last bit that was kept; all
    /// items if there are fewer than `most` set bits.
    pub fn keep_first(&mut self, most: usize) -> usize {
        let mut left = most;
        for at in 0..self.words.len() {
            let word = self.words[at];
            let ones = word.count_ones() as usize;
            if ones < left {
                left -= ones;
                continue;
            }
            // The end of the bits to keep: after the `left`th set bit of this word.
            let after = (1..left).fold(word, |word, _| word & (word - 1)).trailing_zeros() + 1;
            let kept = if left == 0 { 0 } else { after };
            self.words[at] &= u64::MAX.checked_shr(64 - kept).unwrap_or(0);
            self.words[at + 1..].fill(0);
            return at * 64 + kept as usize;
        }
        self.len
    }

    /// Clears the bits that are set in `others`, which belongs to the same batch.
    pub fn clear_those_in(&mut self, others: &Self) {
        self.words.iter_mut().zip(&others.words).for_each(|(word, other)| *word &= !other);
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
        part.clear_past_the_end();
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
            self.len = len;
            self.clear_past_the_end();
        }
    }

    fn clear_past_the_end(&mut self) {
        let len = self.len;
        if let Some(last) = self.words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last &= (1 << (len % 64)) - 1;
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

/// Inverts every bit.
impl Not for BatchBits {
    type Output = Self;

    fn not(mut self) -> Self {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.clear_past_the_end();
        self
    }
}

impl FromIterator<bool> for BatchBits {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut collected = Self::new();
        for bit in bits {
            if collected.len.is_multiple_of(64) {
                collected.words.push(0);
            }
            collected.len += 1;
            if bit {
                collected.set(collected.len - 1);
            }
        }
        collected
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

    fn of(indexes: &[usize], len: usize) -> BatchBits {
        (0..len).map(|index| indexes.contains(&index)).collect()
    }

    #[test]
    fn runs_match_a_simple_loop() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            for every in [1, 2, 3, 5, 64, 70] {
                for invert in [false, true] {
                    let chosen = |index: &usize| (index / every).is_multiple_of(2);
                    let bits: BatchBits = (0..len).map(|index| chosen(&index)).collect();
                    let bits = if invert { !bits } else { bits };
                    let plain: Vec<usize> = (0..len).filter(|index| chosen(index) != invert).collect();
                    let runs: Vec<_> = bits.runs().collect();
                    assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{runs:?}");
                    assert_eq!(bits.iter_ones().collect::<Vec<_>>(), plain, "{len} {every} {invert}");
                    assert_eq!((bits.len(), bits.count_ones()), (len, plain.len()));
                    for first in [0, 1, 63, 64, 65, 127, 128, 500] {
                        let those = plain.iter().filter(|&&index| index < first).count();
                        assert_eq!(bits.count_first(first), those, "{first} of {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn those_of_another_list_are_cleared() {
        let mut bits = of(&[1, 64, 70, 130], 140);
        bits.clear_those_in(&of(&[64, 131], 140));
        assert_eq!(bits, of(&[1, 70, 130], 140));
    }

    #[test]
    fn the_first_set_bits_are_kept() {
        let chosen = [3, 63, 64, 65, 130];
        for (most, items, kept) in [
            (0, 0, 0),
            (1, 4, 1),
            (2, 64, 2),
            (3, 65, 3),
            (4, 66, 4),
            (5, 131, 5),
            (9, 140, 5),
            (usize::MAX, 140, 5),
        ] {
            let mut bits = of(&chosen, 140);
            assert_eq!(bits.keep_first(most), items, "{most}");
            assert_eq!(bits, of(&chosen[..kept], 140), "{most}");
        }
        assert_eq!((BatchBits::new().keep_first(0), BatchBits::new().keep_first(1)), (0, 0));
        assert_eq!(of(&[127], 128).keep_first(1), 128);
        assert_eq!((!BatchBits::from_iter([false; 128])).keep_first(128), 128);
    }
}
