//! Bits that many threads set at the same time.

use super::sync::{AtomicU64, Ordering};

/// Sets these bits, each with a locked instruction, and returns whether this call changed one of them. Of
/// several threads that set the same bit at the same time, exactly one changes it.
#[inline(always)]
pub(crate) fn set_bits(words: &[AtomicU64], positions: impl Iterator<Item = u64>) -> bool {
    let mut changed = 0;
    for position in positions {
        let bit = 1 << (position % 64);
        changed |= bit & !words[(position / 64) as usize].fetch_or(bit, Ordering::Relaxed);
    }
    changed != 0
}

/// Sets the bits of `masks` in the first of `words`, with a locked instruction for every word that has any,
/// and returns whether this call changed one.
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
