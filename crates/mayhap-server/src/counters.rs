//! Counters of the workers. Each worker has its own, so that no two write to the same memory. Readers add
//! them up.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    requests: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    refused: AtomicU64,
}

/// The sums of the counters of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Answered requests.
    pub requests: u64,
    /// Received bytes.
    pub read_bytes: u64,
    /// Sent bytes.
    pub written_bytes: u64,
    /// Requests refused before they ran: unknown command, wrong number of words, not authenticated, not
    /// permitted.
    pub refused: u64,
}

/// Only its own worker writes a counter, so a load and a store suffice.
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

    /// Returns the current values.
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
