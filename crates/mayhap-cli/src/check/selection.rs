//! A selection of the records of a block, one bit per record.

use std::ops::Range;

/// A subset of `len` records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// Record 0 is the lowest bit of word 0. Bits after the last record are clear.
    words: Vec<u64>,
    len: usize,
}

impl Selection {
    /// No records.
    pub(super) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// The records whose bit is set.
    pub(super) fn of_words(words: &[u64], len: usize) -> Self {
        Self { words: words.to_vec(), len }
    }

    pub(super) fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// All other records.
    pub(super) fn inverted(&self) -> Self {
        let mut words: Vec<u64> = self.words.iter().map(|word| !word).collect();
        if let Some(last) = words.last_mut()
            && !self.len.is_multiple_of(64)
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
        Self { words, len: self.len }
    }

    /// These records except `others`.
    pub(super) fn without(&self, others: &Self) -> Self {
        let words = self.words.iter().zip(&others.words).map(|(word, other)| word & !other).collect();
        Self { words, len: self.len }
    }

    /// The number of selected records among the first `records`.
    pub(super) fn count_first(&self, records: usize) -> u64 {
        let whole = &self.words[..records / 64];
        let ones: u64 = whole.iter().map(|word| u64::from(word.count_ones())).sum();
        match records % 64 {
            0 => ones,
            bits => ones + u64::from((self.words[records / 64] & ((1 << bits) - 1)).count_ones()),
        }
    }

    /// Keeps only the first `most` selected records. Returns how many records were needed for that; all records if there
    /// are fewer.
    pub(super) fn cut_after(&mut self, most: u64) -> usize {
        if self.count_first(self.len) < most {
            return self.len;
        }
        let mut left = most;
        for index in 0..self.len {
            if left == 0 {
                (index..self.len).for_each(|index| self.words[index / 64] &= !(1 << (index % 64)));
                return index;
            }
            left -= u64::from(self.contains(index));
        }
        self.len
    }

    /// The runs of consecutive selected records, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, 0)?;
            let end = self.next(start, u64::MAX).unwrap_or(self.len);
            at = end;
            Some(start..end)
        })
    }

    /// The first record from `at` on that is selected, or not selected if `flip` is all ones.
    fn next(&self, at: usize, flip: u64) -> Option<usize> {
        if at >= self.len {
            return None;
        }
        let first = (self.words[at / 64] ^ flip) & (u64::MAX << (at % 64));
        let words = self.words[at / 64 + 1..].iter().map(|word| word ^ flip);
        let found = std::iter::once(first).chain(words).enumerate().find(|&(_, word)| word != 0);
        let (word, bits) = found?;
        let index = (at / 64 + word) * 64 + bits.trailing_zeros() as usize;
        (index < self.len).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(indexes: &[usize], len: usize) -> Selection {
        let mut selection = Selection::none(len);
        indexes.iter().for_each(|&index| selection.insert(index));
        selection
    }

    #[test]
    fn runs_match_a_simple_loop() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            for every in [1, 2, 3, 5, 64, 70] {
                for invert in [false, true] {
                    let chosen: Vec<usize> = (0..len).filter(|index| (index / every) % 2 == 0).collect();
                    let mut selection = of(&chosen, len);
                    if invert {
                        selection = selection.inverted();
                    }
                    let plain: Vec<usize> =
                        (0..len).filter(|index| ((index / every) % 2 == 0) != invert).collect();
                    let runs: Vec<Range<usize>> = selection.runs().collect();
                    assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{runs:?}");
                    assert_eq!(
                        runs.into_iter().flatten().collect::<Vec<_>>(),
                        plain,
                        "{len} {every} {invert}"
                    );
                    assert_eq!(selection.count_first(len), plain.len() as u64);
                }
            }
        }
    }

    #[test]
    fn records_of_another_selection_are_excluded() {
        assert_eq!(of(&[1, 64, 70, 130], 140).without(&of(&[64, 131], 140)), of(&[1, 70, 130], 140));
    }

    #[test]
    fn the_first_records_are_kept() {
        let chosen = [3, 64, 65, 130];
        for (most, records, kept) in [(0, 0, 0), (1, 4, 1), (2, 65, 2), (3, 66, 3), (4, 131, 4), (9, 140, 4)]
        {
            let mut selection = of(&chosen, 140);
            assert_eq!(selection.cut_after(most), records, "{most}");
            assert_eq!(selection, of(&chosen[..kept], 140), "{most}");
        }
    }
}
