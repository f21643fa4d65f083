//! An array of bits that is read at positions drawn from `0..bits`, without a bounds check for each one.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::probe::{PositionStream, Range};
use crate::simd::{Prefetch, prefetch, prefetch_words};

/// The first `bits` bits of `words`, for reading.
#[derive(Clone, Copy)]
pub(crate) struct Bits<'a> {
    words: &'a [AtomicU64],
    /// At most 64 per word: checked in `new`; the unchecked reads rely on it.
    bits: Range,
}

impl<'a> Bits<'a> {
    /// # Panics
    /// If there are fewer words than `bits` need.
    #[inline(always)]
    pub(crate) fn new(words: &'a [AtomicU64], bits: Range) -> Self {
        check(bits, words.len());
        Self { words, bits }
    }

    /// Returns the bit at the stream's current position, 1 or 0, and advances the stream.
    ///
    /// Returns a number and not a `bool`: then callers that combine several bits do so without a branch.
    #[inline(always)]
    pub(crate) fn next<P: PositionStream>(&self, stream: &mut P) -> u64 {
        let position = stream.next(self.bits);
        // SAFETY: `Stream::next(range)` returns a position in `range`, here `bits`, and `new` checked that
        // `words` has a word for every position in `bits`.
        let word = unsafe { self.words.get_unchecked((position / 64) as usize) };
        word.load(Ordering::Relaxed) >> (position % 64) & 1
    }

    /// Starts loading the line of the stream's current position.
    #[inline(always)]
    pub(crate) fn prefetch<P: PositionStream>(&self, stream: P) {
        prefetch(self.words, (stream.position(self.bits) / 64) as usize);
    }
}

/// # Panics
/// If there are fewer words than `bits` need.
#[inline(always)]
fn check(bits: Range, words: usize) {
    let bits = bits.len();
    assert!(bits > 0 && bits.div_ceil(64) <= words as u64, "{bits} bits need more words");
}

/// The first `bits` bits of `words`, for an exclusive writer.
pub(crate) struct BitsMut<'a> {
    words: &'a mut [u64],
    /// At most 64 per word: checked in `new`; the unchecked writes rely on it.
    bits: Range,
}

impl<'a> BitsMut<'a> {
    /// # Panics
    /// If there are fewer words than `bits` need.
    #[inline(always)]
    pub(crate) fn new(words: &'a mut [u64], bits: Range) -> Self {
        check(bits, words.len());
        Self { words, bits }
    }

    /// Sets the next `probes` bits of the stream. Returns whether any of them changed.
    ///
    /// Reads first, usually three bits, and then sets all: this way setting needs no value in a register,
    /// which lets the CPU run ahead. Keeping the old words for a comparison took a seventh longer.
    #[inline(always)]
    pub(crate) fn set_all<P: PositionStream>(&mut self, mut stream: P, probes: u32) -> bool {
        if stream.is_nowhere() {
            return false;
        }
        let mut ahead = stream;
        let (first, others) = (probes.min(3), probes.saturating_sub(3));
        let first_set = (0..first).fold(1, |all, _| all & self.next(&mut ahead));
        let changed = first_set == 0 || (0..others).fold(1, |all, _| all & self.next(&mut ahead)) == 0;
        for _ in 0..probes {
            let position = stream.next(self.bits);
            // SAFETY: as in `Bits::next`.
            *unsafe { self.words.get_unchecked_mut((position / 64) as usize) } |= 1 << (position % 64);
        }
        changed
    }

    /// Returns the bit at the stream's current position, 1 or 0, and advances the stream.
    #[inline(always)]
    fn next<P: PositionStream>(&self, stream: &mut P) -> u64 {
        let position = stream.next(self.bits);
        // SAFETY: as in `Bits::next`.
        *unsafe { self.words.get_unchecked((position / 64) as usize) } >> (position % 64) & 1
    }

    /// Returns a view for prefetching while the words are being written.
    pub(crate) fn prefetcher(&mut self) -> BitsPrefetch {
        BitsPrefetch { words: prefetch_words(self.words), bits: self.bits }
    }

    /// [`set_all`](Self::set_all) for positions that are already known.
    #[inline(always)]
    pub(crate) fn set_at<const K: usize>(&mut self, positions: &[u64; K]) -> bool {
        let (first, others) = positions.split_at(K.min(3));
        let words = &mut *self.words;
        let bit = |position: &u64| words[(position / 64) as usize] >> (position % 64) & 1;
        let first_set = first.iter().fold(1, |all, position| all & bit(position));
        let changed = first_set == 0 || others.iter().fold(1, |all, position| all & bit(position)) == 0;
        for position in positions {
            words[(position / 64) as usize] |= 1 << (position % 64);
        }
        changed
    }
}

/// The address of the bits of [`BitsMut`], for prefetching only.
#[derive(Clone, Copy)]
pub(crate) struct BitsPrefetch {
    words: Prefetch,
    bits: Range,
}

impl BitsPrefetch {
    /// Starts loading the lines of the next `probes` positions of the stream.
    #[inline(always)]
    pub(crate) fn all<P: PositionStream>(self, mut stream: P, probes: u32) {
        for _ in 0..probes {
            self.words.at((stream.next(self.bits) / 64) as usize);
        }
    }

    /// Returns the next `K` positions of the stream and starts loading their lines.
    #[inline(always)]
    pub(crate) fn locate<const K: usize, P: PositionStream>(self, mut stream: P) -> BitPositions<K> {
        BitPositions(std::array::from_fn(|_| {
            let position = stream.next(self.bits);
            self.words.at((position / 64) as usize);
            position
        }))
    }
}

/// The positions of the `K` bits of an item.
#[derive(Clone, Copy)]
pub(crate) struct BitPositions<const K: usize>(pub(crate) [u64; K]);

impl<const K: usize> Default for BitPositions<K> {
    fn default() -> Self {
        Self([0; K])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;
    use crate::probe::Probes;
    use crate::store::Lines;

    #[test]
    fn set_bits_are_read_back_at_any_size() {
        for bits in [1, 63, 64, 65, 511, 512, 1_000].map(Range::of) {
            let mut lines = Lines::zeroed(2).unwrap();
            for item in 0..20 {
                let stream = Probes::new(ItemHash::from_unmixed(item));
                BitsMut::new(lines.words_mut(), bits).set_all(stream, 5);
                let (view, mut again) = (Bits::new(lines.words(), bits), stream);
                assert!((0..5).all(|_| view.next(&mut again) == 1));
                assert!(!BitsMut::new(lines.words_mut(), bits).set_all(stream, 5), "set already");
                let mut twin = Lines::zeroed(2).unwrap();
                let mut view = BitsMut::new(twin.words_mut(), bits);
                let BitPositions(positions) = view.prefetcher().locate::<5, _>(stream);
                assert!(view.set_at(&positions) && !view.set_at(&positions));
                assert!(twin.words().iter().zip(lines.words()).all(|(ours, theirs)| {
                    let (ours, theirs) = (ours.load(Ordering::Relaxed), theirs.load(Ordering::Relaxed));
                    ours & theirs == ours
                }));
            }
            assert_eq!(lines.check_zero_from(bits.len()), Ok(()));
        }
    }

    #[test]
    #[should_panic(expected = "need more words")]
    fn more_bits_than_words_are_refused() {
        let lines = Lines::zeroed(1).unwrap();
        let _ = Bits::new(lines.words(), Range::of(513));
    }
}
