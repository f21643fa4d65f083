//! The block kernels in plain Rust: the definition of where bits land, and the twin of every fast routine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::blocked::BlockPlace;

/// Words in a 256-bit split block.
pub(crate) const SPLIT_WORDS: usize = 4;
/// Words in a 512-bit line.
pub(crate) const LINE_WORDS: usize = 8;

/// The multipliers of the split block, one per 32-bit lane: those of Parquet and Impala.
pub(crate) const SPLIT_SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The multiplier between two probes of a line: 2^32 divided by the golden ratio, made odd.
pub(crate) const LINE_MULTIPLIER: u32 = 0x9e37_79b9;

/// Word `index` of a split block with the item's two bits of that word set: one in each 32-bit lane.
#[inline(always)]
pub(crate) fn split_mask(bits: u32, index: usize) -> u64 {
    let lane = |lane: usize| 1_u64 << (bits.wrapping_mul(SPLIT_SALTS[lane]) >> 27);
    lane(2 * index) | lane(2 * index + 1) << 32
}

/// Returns the positions of the item's `probes` bits in its line: each is the top nine bits of a
/// multiplicative sequence.
#[inline(always)]
pub(crate) fn line_positions(bits: u32, probes: u32) -> impl Iterator<Item = u32> {
    let mut state = bits;
    (0..probes).map(move |_| {
        state = state.wrapping_mul(LINE_MULTIPLIER);
        state >> 23
    })
}

/// A line with the item's `probes` bits set.
#[inline(always)]
pub(crate) fn line_mask(bits: u32, probes: u32) -> [u64; LINE_WORDS] {
    let mut mask = [0; LINE_WORDS];
    for position in line_positions(bits, probes) {
        mask[(position / 64) as usize] |= 1 << (position % 64);
    }
    mask
}

pub(crate) fn split_covers(words: &[AtomicU64], place: BlockPlace) -> bool {
    let block = &words[place.word..place.word + SPLIT_WORDS];
    block.iter().enumerate().all(|(index, word)| {
        let mask = split_mask(place.bits, index);
        word.load(Ordering::Relaxed) & mask == mask
    })
}

/// Sets the item's eight bits in its split block and returns whether any of them changed.
#[inline(always)]
pub(crate) fn split_set(words: &mut [u64], place: BlockPlace) -> bool {
    let mut clear = 0;
    for (index, word) in words[place.word..place.word + SPLIT_WORDS].iter_mut().enumerate() {
        let mask = split_mask(place.bits, index);
        clear |= mask & !*word;
        *word |= mask;
    }
    clear != 0
}

/// Sets the item's bits in all of its lines and returns whether any of them changed.
#[inline(always)]
pub(crate) fn lines_set<const R: usize>(words: &mut [u64], places: [BlockPlace; R], probes: u32) -> bool {
    let mut clear = 0;
    for place in places {
        let mask = line_mask(place.bits, probes);
        for (word, mask) in words[place.word..place.word + LINE_WORDS].iter_mut().zip(mask) {
            clear |= mask & !*word;
            *word |= mask;
        }
    }
    clear != 0
}

pub(crate) fn line_covers(words: &[AtomicU64], place: BlockPlace, probes: u32) -> bool {
    let line = &words[place.word..place.word + LINE_WORDS];
    let mask = line_mask(place.bits, probes);
    line.iter().zip(mask).all(|(word, mask)| word.load(Ordering::Relaxed) & mask == mask)
}

/// Returns the answers for up to 64 places as bits.
pub(crate) fn chunk<P>(places: &[P], covers: impl Fn(&P) -> bool) -> u64 {
    places.iter().enumerate().fold(0, |answers, (index, place)| answers | u64::from(covers(place)) << index)
}
