//! Routines that use special CPU instructions: prefetching, and the block kernels of the blocked filter.
//!
//! Each fast routine has a plain twin in [`generic`]. The twin is always compiled, is the reference in tests,
//! and is the one to read first. The choice is made here, once per call: one call looks up one item or a
//! whole chunk.
#![allow(unsafe_code)]

pub(crate) mod fuse;
mod gcs;
pub(crate) mod generic;
pub(crate) mod ribbon;
pub(crate) mod select;
pub(crate) mod side_by_side;
pub(crate) mod unaligned;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

pub(crate) use unaligned::word_at_byte;

use std::sync::atomic::AtomicU64;

use crate::blocked::{BlockPlace, place};
use crate::hash::ItemHash;

pub(crate) use self::gcs::stretch_holds;

/// Starts loading the cache line of `words[index]`. Harmless for any index.
#[inline(always)]
pub(crate) fn prefetch(words: &[AtomicU64], index: usize) {
    prefetch_address(words.as_ptr().wrapping_add(index).cast());
}

#[inline(always)]
fn prefetch_address(address: *const i8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// [`prefetch`] for words that are being written: keeps their address and does not borrow them.
pub(crate) fn prefetch_words(words: &mut [u64]) -> Prefetch {
    Prefetch(words.as_ptr())
}

/// The address of an array, for prefetching only.
#[derive(Clone, Copy)]
pub(crate) struct Prefetch(*const u64);

impl Prefetch {
    /// Starts loading the cache line of word `index`. Harmless for any index.
    #[inline(always)]
    pub(crate) fn at(self, index: usize) {
        prefetch_address(self.0.wrapping_add(index).cast());
    }
}

/// Proof that this CPU has AVX2. Only the check of the CPU creates one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx2") {
            return Some(Self(()));
        }
        None
    }
}

/// Returns whether all eight bits of the item are set in its 256-bit split block. The proof of AVX2 was
/// obtained when the filter was created.
///
/// # Panics
/// If `words` has fewer words than `blocks` blocks need.
#[inline(always)]
pub(crate) fn split_covers_avx2(_: Avx2, words: &[AtomicU64], blocks: u64, hash: ItemHash) -> bool {
    // Checks the whole array, not this block: in a loop over items the check is done only once.
    assert!(blocks > 0 && blocks <= (words.len() / generic::SPLIT_WORDS) as u64);
    let place = place::split(hash, blocks);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let block = words.as_ptr().wrapping_add(place.word).cast();
        // SAFETY: the proof guarantees AVX2; `place::split` returns a block below `blocks`, all of which are
        // in `words`, which is aligned.
        unsafe { x86_64::split_covers(block, place.bits) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    generic::split_covers(words, place)
}

/// Sets the item's eight bits in its split block and returns whether any of them changed.
///
/// # Panics
/// If `words` has fewer words than `blocks` blocks need.
#[inline(always)]
pub(crate) fn split_set_avx2(_: Avx2, words: &mut [u64], blocks: u64, place: BlockPlace) -> bool {
    assert!(blocks <= (words.len() / generic::SPLIT_WORDS) as u64 && place.word as u64 / 4 < blocks);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: the proof guarantees AVX2; the block of `place` is one of `blocks`, all of which are in
        // `words`, which is aligned and borrowed exclusively.
        !unsafe { x86_64::split_set(words.as_mut_ptr().wrapping_add(place.word), place.bits) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    generic::split_set(words, place)
}

/// [`split_set_avx2`] without a proof: checks for AVX2 first.
pub(crate) fn split_set(words: &mut [u64], blocks: u64, place: BlockPlace) -> bool {
    match Avx2::detect() {
        Some(avx2) => split_set_avx2(avx2, words, blocks, place),
        None => generic::split_set(words, place),
    }
}

/// Returns whether all `probes` bits of the item are set in its 512-bit line.
#[inline(always)]
pub(crate) fn line_covers(words: &[AtomicU64], place: BlockPlace, probes: u32) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        let line = &words[place.word..place.word + generic::LINE_WORDS];
        // SAFETY: `line_covers` requires AVX2, checked on the line above, and eight readable words: `line`
        // has them.
        return unsafe { x86_64::line_covers(line.as_ptr().cast(), place.bits, probes) };
    }
    generic::line_covers(words, place, probes)
}

/// [`split_covers`] for up to 64 items: bit `i` of the result is the answer for item `i`.
#[inline(always)]
pub(crate) fn split_covers_chunk(words: &[AtomicU64], places: &[BlockPlace]) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only AVX2, checked on the line above.
        return unsafe { x86_64::split_covers_chunk(words, places) };
    }
    generic::chunk(places, |&place| generic::split_covers(words, place))
}

/// [`line_covers`] for up to 64 items with `R` lines each: bit `i` of the result is the answer for item `i`.
#[inline(always)]
pub(crate) fn line_covers_chunk<const R: usize>(
    words: &[AtomicU64],
    places: &[[BlockPlace; R]],
    probes: u32,
) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only AVX2, checked on the line above.
        return unsafe { x86_64::line_covers_chunk(words, places, probes) };
    }
    generic::chunk(places, |lines| lines.iter().all(|&place| generic::line_covers(words, place, probes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Lines;

    /// `./test` sets this on CPUs with AVX2, so that the fast twins cannot be skipped unnoticed.
    fn avx2() -> Option<Avx2> {
        let proof = Avx2::detect();
        assert!(
            proof.is_some() || std::env::var_os("MAYHAP_REQUIRE_AVX2").is_none(),
            "AVX2 is required but not there"
        );
        proof
    }

    /// Blocks from empty to full, and random items to look up.
    fn blocks_and_places() -> (Lines, Vec<BlockPlace>) {
        const BLOCKS: u64 = 64;
        let mut lines = Lines::zeroed(BLOCKS as usize).unwrap();
        for (index, word) in lines.words_mut().iter_mut().enumerate() {
            let random = |salt| ItemHash::from_unmixed((index * 4 + salt) as u64).low;
            // Blocks become denser: in the last quarter a bit is clear only if all three words have it clear.
            *word = match index / 128 {
                0 => random(0) & random(1),
                1 => random(0),
                2 => random(0) | random(1) | random(2),
                _ => random(0) | random(1) | random(2) | random(3) | !(1 << (index % 64)),
            };
        }
        let places = (0..20_000).map(|i| {
            let hash = ItemHash::from_unmixed(i << 32);
            BlockPlace { word: crate::hash::reduce(hash.high, BLOCKS) as usize * 8, bits: hash.low as u32 }
        });
        (lines, places.collect())
    }

    #[test]
    fn split_blocks_are_the_same_with_and_without_avx2() {
        let Some(proof) = avx2() else { return };
        let (mut lines, places) = blocks_and_places();
        let mut covered = 0;
        for chunk in places.chunks(64) {
            let plain = generic::chunk(chunk, |&place| generic::split_covers(lines.words(), place));
            assert_eq!(split_covers_chunk(lines.words(), chunk), plain);
            covered += plain.count_ones();
        }
        assert!((100..19_900).contains(&covered), "{covered} of 20000: both answers must occur");
        for item in 0..5_000 {
            let (hash, blocks) = (ItemHash::from_unmixed(item), 128);
            let place = place::split(hash, blocks);
            let plain = generic::split_covers(lines.words(), place);
            assert_eq!(split_covers_avx2(proof, lines.words(), blocks, hash), plain);
            let mut twin = lines.try_clone().unwrap();
            let changed = generic::split_set(twin.words_mut(), place);
            assert_eq!(split_set_avx2(proof, lines.words_mut(), blocks, place), changed);
            assert_eq!(changed, !plain);
            assert_eq!(lines.checksum(), twin.checksum(), "item {item}");
        }
    }

    #[test]
    fn lines_are_the_same_with_and_without_avx2() {
        if avx2().is_none() {
            return;
        }
        let (lines, places) = blocks_and_places();
        for probes in 1..=16 {
            let pairs: Vec<[BlockPlace; 2]> = places.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
            for chunk in pairs.chunks(64) {
                let covers = |place: &BlockPlace| generic::line_covers(lines.words(), *place, probes);
                let plain = generic::chunk(chunk, |pair| pair.iter().all(covers));
                assert_eq!(line_covers_chunk(lines.words(), chunk, probes), plain);
            }
            let covered =
                places.iter().filter(|place| generic::line_covers(lines.words(), **place, probes)).count();
            assert!(covered > 0 && covered < places.len(), "{covered}: both answers must occur");
            assert!(places[..2_000].iter().all(|place| {
                line_covers(lines.words(), *place, probes)
                    == generic::line_covers(lines.words(), *place, probes)
            }));
        }
    }
}
