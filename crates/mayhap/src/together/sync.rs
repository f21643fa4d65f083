//! The synchronisation types that the files in this folder use; a test replaces them with loom's.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the value of `number` and sets it to 0. Needs exclusive access.
pub(super) fn take(number: &mut AtomicU64) -> u64 {
    std::mem::take(number.get_mut())
}
