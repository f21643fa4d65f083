//! Bits that many threads set at once.

use super::sync::{AtomicU64, Ordering};

/// Sets these bits, each with a locked instruction; did this call change one of them? Of threads that set the same bit at once, one did.
#[inline(always)]
pub(crate) fn set_bits(words: &[AtomicU64], positions: impl Iterator<Item = u64>) -> bool {
    let mut changed = 0;
    for position in positions {
        let bit = 1 << (position % 64);
        changed |= bit & !words[(position / 64) as usize].fetch_or(bit, Ordering::Relaxed);
    }
    changed != 0
}

/// Sets the bits of `masks` in the first of `words`, with a locked instruction for every word that has any; did this change one?
#[inline(always)]
pub(crate) fn set_masks(words: &[AtomicU64], masks: &[u64]) -> bool {
    let mut changed = 0;
    for (word, &mask) in words.iter().zip(masks) {
        if mask != 0 {
            changed |= mask & !word.fetch_or(mask, Ordering::Relaxed);
        }
    }
    changed != 0
}
