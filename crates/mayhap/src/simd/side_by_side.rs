//! Several adjacent split blocks, looked up for the same item: the generations of a window.

use std::sync::atomic::AtomicU64;

use super::generic::{self, SPLIT_WORDS};
use crate::blocked::BlockPlace;

/// Returns one bit for each of the `count` blocks, at most 64, that begin at `place`: set if all eight bits
/// of the item are set in that block.
///
/// # Panics
/// If `words` does not contain all of them.
#[inline(always)]
pub(crate) fn covering(words: &[AtomicU64], place: BlockPlace, count: usize) -> u64 {
    let blocks = &words[place.word..place.word + count * SPLIT_WORDS];
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires AVX2, checked on the line above.
        return unsafe { x86_64::covering(blocks, place.bits) };
    }
    plain(blocks, place.bits)
}

/// [`covering`] for up to 64 items: bit `i` of the result is set if one of the blocks in `asked` covers item
/// `i`.
#[inline(always)]
pub(crate) fn covered_chunk(words: &[AtomicU64], places: &[BlockPlace], count: usize, asked: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires AVX2, checked on the line above.
        return unsafe { x86_64::covered_chunk(words, places, count, asked) };
    }
    generic::chunk(places, |place| covering(words, *place, count) & asked != 0)
}

/// The plain twin of [`covering`], for these blocks.
fn plain(blocks: &[AtomicU64], bits: u32) -> u64 {
    let numbers = 0..blocks.len() / SPLIT_WORDS;
    let covers = |index| generic::split_covers(blocks, BlockPlace { word: index * SPLIT_WORDS, bits });
    numbers.fold(0, |mask, index| mask | u64::from(covers(index)) << index)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::x86_64::*;
    use std::sync::atomic::AtomicU64;

    use super::super::generic::{SPLIT_SALTS, SPLIT_WORDS};
    use crate::blocked::BlockPlace;

    /// # Safety
    /// AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn covering(blocks: &[AtomicU64], bits: u32) -> u64 {
        // SAFETY: `SPLIT_SALTS` has eight lanes of 32 bits, which is the size of the load.
        let salts = unsafe { _mm256_loadu_si256(SPLIT_SALTS.as_ptr().cast()) };
        let lanes = _mm256_srli_epi32::<27>(_mm256_mullo_epi32(_mm256_set1_epi32(bits as i32), salts));
        let mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), lanes);
        let mut covering = 0;
        for (index, block) in blocks.as_chunks::<SPLIT_WORDS>().0.iter().enumerate() {
            // SAFETY: a chunk is four words. Windows are never written through `&self`, so no other thread
            // changes them meanwhile.
            let block = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
            covering |= (_mm256_testc_si256(block, mask) as u64) << index;
        }
        covering
    }

    /// # Safety
    /// AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn covered_chunk(
        words: &[AtomicU64],
        places: &[BlockPlace],
        count: usize,
        asked: u64,
    ) -> u64 {
        let mut answers = 0;
        for (index, place) in places.iter().enumerate() {
            let blocks = &words[place.word..place.word + count * SPLIT_WORDS];
            // SAFETY: the caller guarantees AVX2.
            let covering = unsafe { covering(blocks, place.bits) };
            answers |= u64::from(covering & asked != 0) << index;
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;

    #[test]
    fn fast_and_plain_twins_agree() {
        let random = |i: usize| ItemHash::from_unmixed(i as u64).to_u128() as u64;
        // Denser and denser, so that both answers occur.
        let word = |i: usize| {
            (0..i / 4 % 12).fold(0, |bits, j| bits | random(1_000 * i + j) & random(1_000 * i + j + 500))
        };
        let words: Vec<AtomicU64> = (0..2_048).map(|i| AtomicU64::new(word(i))).collect();
        let mut seen = [0_u32; 2];
        for count in [1, 2, 4, 7, 16] {
            let place = |i: usize| BlockPlace {
                word: random(i) as usize % (512 - count) * SPLIT_WORDS,
                bits: random(i) as u32,
            };
            let places: Vec<BlockPlace> = (0..2_000).map(place).collect();
            for chunk in places.chunks(64) {
                let asked = random(chunk.len()) | 1;
                let mut answers = 0;
                for (index, place) in chunk.iter().enumerate() {
                    let mask = plain(&words[place.word..place.word + count * SPLIT_WORDS], place.bits);
                    assert_eq!(covering(&words, *place, count), mask);
                    answers |= u64::from(mask & asked != 0) << index;
                    seen[usize::from(mask != 0)] += 1;
                }
                assert_eq!(covered_chunk(&words, chunk, count, asked), answers);
            }
        }
        assert!(seen[0] > 1_000 && seen[1] > 1_000, "both answers must occur: {seen:?}");
    }
}
