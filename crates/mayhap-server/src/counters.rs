//! What a worker counts, besides what the engine does. Each has its own, so that no two write to the same memory; readers add them up.

use std::sync::atomic::{AtomicU64, Ordering};

/// What one worker counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    requests: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    refused: AtomicU64,
}

/// Counters of all workers, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that came.
    pub read_bytes: u64,
    /// Bytes that left.
    pub written_bytes: u64,
    /// Requests that were refused: no such command, not so many words, a stranger.
    pub refused: u64,
}

/// Only its own worker writes a counter: no need for an operation that others cannot get between.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn read(&self, bytes: usize) {
        add(&self.read_bytes, bytes as u64);
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        add(&self.written_bytes, bytes as u64);
    }

    pub(crate) fn refused(&self) {
        add(&self.requests, 1);
        add(&self.refused, 1);
    }

    pub(crate) fn ran(&self, requests: usize) {
        add(&self.requests, requests as u64);
    }

    /// What was counted.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            requests: get(&self.requests),
            read_bytes: get(&self.read_bytes),
            written_bytes: get(&self.written_bytes),
            refused: get(&self.refused),
        }
    }
}
