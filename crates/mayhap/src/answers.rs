//! The answers to a batch of questions, one bit each.

/// One answer per item of a batch: set means *mayhap*, clear means *certainly not*.
///
/// Keep one and hand it to every batch: it reuses its memory.
///
/// ```
/// use mayhap::{Answers, Bloom};
///
/// let mut seen = Bloom::for_capacity(1_000, 0.001, 0)?;
/// seen.insert_batch(&["a", "b"]);
/// let mut answers = Answers::new();
/// seen.may_contain_batch(&["a", "x", "b"], &mut answers);
/// assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false, true]);
/// assert_eq!(answers.mayhaps(), 2);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    words: Vec<u64>,
    len: usize,
}

impl Answers {
    /// No answers yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), len: 0 }
    }

    /// How many questions were asked.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Was nothing asked?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The answer to question `index`, or `None` if there was no such question.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| self.words[index / 64] >> (index % 64) & 1 == 1)
    }

    /// How many answers are *mayhap*.
    #[must_use]
    pub fn mayhaps(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// All answers in the order of the questions.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        (0..self.len).map(|index| self.words[index / 64] >> (index % 64) & 1 == 1)
    }

    /// The answers to `len` questions from question `from` on, as answers of their own; none for questions that were not asked.
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

    /// The answers as bits, question 0 in the lowest bit of word 0; bits past the last answer are clear.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Forgets the old answers and makes room for `len` new ones, all *no*.
    pub(crate) fn reset(&mut self, len: usize) {
        let words = len.div_ceil(64);
        if self.words.len() != words {
            self.words.resize(words, 0);
        }
        self.words.fill(0);
        self.len = len;
    }

    /// Forgets all answers from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.words.truncate(len.div_ceil(64));
            if let Some(last) = self.words.last_mut().filter(|_| !len.is_multiple_of(64)) {
                *last &= (1 << (len % 64)) - 1;
            }
            self.len = len;
        }
    }

    /// The words to be filled in, question 0 in the lowest bit of word 0.
    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Answers *mayhap* to question `index`.
    #[inline]
    pub(crate) fn set(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::Answers;

    #[test]
    fn answers_are_forgotten_between_batches() {
        let mut answers = Answers::new();
        answers.reset(130);
        answers.set(0);
        answers.set(129);
        assert_eq!((answers.mayhaps(), answers.len(), answers.get(129)), (2, 130, Some(true)));
        answers.reset(130);
        assert_eq!((answers.mayhaps(), answers.get(130)), (0, None));
        (0..130).for_each(|index| answers.set(index));
        for (len, mayhaps) in [(500, 130), (129, 129), (128, 128), (70, 70), (64, 64), (3, 3), (0, 0)] {
            answers.truncate(len);
            assert_eq!((answers.mayhaps(), answers.len()), (mayhaps, mayhaps), "{len}");
        }
        answers.reset(200);
        (0..200).filter(|index| index % 3 == 0).for_each(|index| answers.set(index));
        for (from, len) in
            [(0, 200), (0, 64), (1, 1), (3, 61), (63, 66), (64, 128), (130, 500), (200, 1), (300, 9)]
        {
            let part = answers.part(from, len);
            let plain: Vec<bool> = answers.iter().skip(from).take(len).collect();
            assert_eq!(part.iter().collect::<Vec<_>>(), plain, "{len} from {from}");
            assert_eq!(part.mayhaps(), plain.iter().filter(|&&answer| answer).count());
        }
        answers.reset(0);
        assert!(answers.is_empty() && answers.iter().next().is_none());
    }
}
