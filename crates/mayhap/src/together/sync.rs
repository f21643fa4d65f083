//! What the files beside this one take of the system; a test puts loom's in its place.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

/// What `number` is, which nobody shares; from then on it is 0.
pub(super) fn take(number: &mut AtomicU64) -> u64 {
    std::mem::take(number.get_mut())
}
