//! The cost of memory access alone: reading one word from random 64-byte lines in as many bytes as a filter has, with nothing to compute. A batched
//! lookup in a blocked filter is one such access and cannot be cheaper.
//!
//! ```text
//! indexes  i₀ i₁ … i₃₁ i₃₂ …      prefetch line i₃₂ while reading line i₀, then i₃₃ and i₁, …
//! ```
//!
//! The only unsafe code of this crate is the prefetch instruction in this module.
#![allow(unsafe_code)]

use memmap2::MmapMut;

use crate::items::fmix64;

/// The prefetch distance in lines.
const AHEAD: usize = 32;

/// Maps of at least this size request huge pages, as our own filters do.
const HUGE_FROM: usize = 4 << 20;

const HUGE_PAGE: usize = 2 << 20;

/// One cache line.
type Line = [u8; 64];

/// Empty memory of a filter's size.
pub(crate) struct Gather {
    map: MmapMut,
    lines: usize,
}

impl Gather {
    /// Maps and touches at least `bytes`.
    pub(crate) fn new(bytes: u64) -> std::io::Result<Gather> {
        let lines = (bytes as usize).div_ceil(size_of::<Line>()).max(AHEAD);
        let mut length = lines * size_of::<Line>();
        if length >= HUGE_FROM {
            length = length.next_multiple_of(HUGE_PAGE);
        }
        let mut map = MmapMut::map_anon(length)?;
        #[cfg(target_os = "linux")]
        if length >= HUGE_FROM {
            // A failure costs speed but does not falsify the comparison: the filters would meet the same failure.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        // Untouched pages would all map to the one zero page, which is always in cache.
        map.fill(1);
        Ok(Gather { map, lines })
    }

    /// The number of bytes that indexes can reach.
    pub(crate) fn bytes(&self) -> u64 {
        (self.lines * size_of::<Line>()) as u64
    }

    /// The line for a hash, by multiply and shift.
    #[inline]
    pub(crate) fn line_of(&self, hash: u64) -> u32 {
        ((u128::from(hash) * self.lines as u128) >> 64) as u32
    }

    /// Reads the lines in order and leaves overlapping to the CPU.
    #[inline(never)]
    pub(crate) fn plain(&self, indexes: &[u32]) -> u64 {
        let lines = self.lines();
        indexes.iter().fold(0, |sum, &index| sum.wrapping_add(word(&lines[index as usize])))
    }

    /// Reads the lines, each prefetched [`AHEAD`] steps before.
    #[inline(never)]
    pub(crate) fn rolling(&self, indexes: &[u32]) -> u64 {
        let lines = self.lines();
        let ahead = &indexes[AHEAD.min(indexes.len())..];
        indexes.iter().take(AHEAD).for_each(|&index| prefetch(&lines[index as usize]));
        let (early, late) = indexes.split_at(ahead.len());
        let mut sum = 0u64;
        for (&index, &later) in early.iter().zip(ahead) {
            prefetch(&lines[later as usize]);
            sum = sum.wrapping_add(word(&lines[index as usize]));
        }
        late.iter().fold(sum, |sum, &index| sum.wrapping_add(word(&lines[index as usize])))
    }

    /// Like [`Gather::plain`], but computes each line by hashing an item.
    #[inline(never)]
    pub(crate) fn plain_mixed(&self, items: &[u64]) -> u64 {
        let lines = self.lines();
        items.iter().fold(0, |sum, &item| sum.wrapping_add(word(&lines[self.line_of(fmix64(item)) as usize])))
    }

    /// Like [`Gather::rolling`], but computes each line by hashing an item.
    #[inline(never)]
    pub(crate) fn rolling_mixed(&self, items: &[u64]) -> u64 {
        let lines = self.lines();
        let mut waiting = [0u32; AHEAD];
        for (slot, &item) in waiting.iter_mut().zip(items) {
            *slot = self.line_of(fmix64(item));
            prefetch(&lines[*slot as usize]);
        }
        let mut sum = 0u64;
        let mut turn = 0;
        for &item in items.get(AHEAD..).unwrap_or_default() {
            let later = self.line_of(fmix64(item));
            prefetch(&lines[later as usize]);
            let index = std::mem::replace(&mut waiting[turn % AHEAD], later);
            sum = sum.wrapping_add(word(&lines[index as usize]));
            turn += 1;
        }
        for step in 0..items.len().min(AHEAD) {
            sum = sum.wrapping_add(word(&lines[waiting[(turn + step) % AHEAD] as usize]));
        }
        sum
    }

    #[inline]
    fn lines(&self) -> &[Line] {
        &self.map.as_chunks().0[..self.lines]
    }
}

/// The first word of a line.
#[inline]
fn word(line: &Line) -> u64 {
    u64::from_ne_bytes(*line.first_chunk().expect("a line is longer than a word"))
}

/// Prefetches `line` into the cache.
#[inline]
fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: needs SSE, which every x86-64 CPU has; a prefetch reads nothing and `line` is a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line; // no stable prefetch here: the figure is that of the plain loop
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every method must read the same lines, each exactly once.
    #[test]
    fn all_methods_read_the_same_lines() {
        let mut gather = Gather::new(1 << 16).unwrap();
        for (at, byte) in gather.map.iter_mut().enumerate() {
            *byte = fmix64(at as u64) as u8;
        }
        for length in [0, 1, 31, 32, 33, 64, 1_000] {
            let items: Vec<u64> = (0..length).map(|id| fmix64(id ^ 77)).collect();
            let indexes: Vec<u32> = items.iter().map(|&item| gather.line_of(fmix64(item))).collect();
            let expected = gather.plain(&indexes);
            assert_eq!(gather.rolling(&indexes), expected, "rolling over {length}");
            assert_eq!(gather.plain_mixed(&items), expected, "plain with mix over {length}");
            assert_eq!(gather.rolling_mixed(&items), expected, "rolling with mix over {length}");
        }
    }

    #[test]
    fn large_maps_are_whole_huge_pages_and_keep_their_footprint() {
        let gather = Gather::new(5_000_000).unwrap();
        assert_eq!(gather.map.len(), 6 << 20);
        assert_eq!(gather.bytes(), 5_000_000u64.next_multiple_of(64));
        assert_eq!(u64::from(gather.line_of(u64::MAX)) + 1, gather.bytes() / 64);
    }
}
