//! Room for items that threads take before they use it.

use super::sync::{self, AtomicU64, Ordering};

/// Items that were taken through `&self`, or that a thread has claimed room for.
#[derive(Debug)]
pub(crate) struct Room(AtomicU64);

impl Room {
    /// Nothing is taken.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes room for at most `items` where there is room for `all`. All threads together never have more than that.
    #[inline]
    pub(crate) fn claim(&self, items: u64, all: u64) -> u64 {
        let mut claimed = 0;
        // Never fails: the closure always has an answer.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            claimed = items.min(all.saturating_sub(taken));
            Some(taken + claimed)
        });
        claimed
    }

    /// Gives back what was claimed and not used.
    #[inline]
    pub(crate) fn give_back(&self, items: u64) {
        self.0.fetch_sub(items, Ordering::Relaxed);
    }

    /// What is taken now.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What was taken, now that nobody shares it. From then on nothing is.
    pub(crate) fn take(&mut self) -> u64 {
        sync::take(&mut self.0)
    }
}
