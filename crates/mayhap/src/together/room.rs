//! Room for items, which threads claim before they use it.

use super::sync::{self, AtomicU64, Ordering};

/// The number of items that were accepted through `&self`, or for which a thread has claimed room.
#[derive(Debug)]
pub(crate) struct Room(AtomicU64);

impl Room {
    /// Creates a counter of 0.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Claims room for up to `items` of `all`, and returns how many were claimed. All threads together never
    /// claim more than `all`.
    #[inline]
    pub(crate) fn claim(&self, items: u64, all: u64) -> u64 {
        let mut claimed = 0;
        // Never fails: the closure always returns a value.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            claimed = items.min(all.saturating_sub(taken));
            Some(taken + claimed)
        });
        claimed
    }

    /// Returns room that was claimed and not used.
    #[inline]
    pub(crate) fn give_back(&self, items: u64) {
        self.0.fetch_sub(items, Ordering::Relaxed);
    }

    /// Returns the number claimed now.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the number claimed and resets it to 0. Needs exclusive access.
    pub(crate) fn take(&mut self) -> u64 {
        sync::take(&mut self.0)
    }
}
