//! A gate that many requests pass in parallel and that one thread can close.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The number of locks. Up to this many threads pass without sharing a cache line.
pub(crate) const LANES: usize = 16;

/// A value on two cache lines of its own, so that neighbours do not share them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// The lane of this thread.
pub(crate) fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Relaxed) % LANES;
    }
    LANE.with(|lane| *lane)
}

/// Ordinary requests pass the gate while it is open. A transaction closes it and then runs alone. Long
/// requests use a separate lock: a thread that closes the gate waits for them first, and keeps out short
/// requests only after that.
#[derive(Debug, Default)]
pub(crate) struct RequestGate {
    lanes: [Apart<RwLock<()>>; LANES],
    long: RwLock<()>,
}

/// The gate is closed until this is dropped.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    _lanes: Vec<RwLockWriteGuard<'a, ()>>,
    _long: Option<RwLockWriteGuard<'a, ()>>,
}

impl RequestGate {
    /// Waits until the gate is open, and keeps it open.
    pub(crate) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.lanes[lane()].0.read()
    }

    /// As [`pass`](Self::pass), for long requests.
    pub(crate) fn pass_long(&self) -> RwLockReadGuard<'_, ()> {
        self.long.read()
    }

    /// Waits until no request is inside, and keeps all others out. Later requests queue after it, so it is
    /// not delayed for ever.
    pub(crate) fn close(&self) -> Closed<'_> {
        self.close_behind(Some(self.long.write()))
    }

    /// As [`close`](Self::close), unless a long request is inside.
    pub(crate) fn try_close(&self) -> Option<Closed<'_>> {
        self.long.try_write().map(|long| self.close_behind(Some(long)))
    }

    /// As [`close`](Self::close), but only for short requests, including transactions. Long requests
    /// continue, and the caller does not wait for them.
    pub(crate) fn close_for_short(&self) -> Closed<'_> {
        self.close_behind(None)
    }

    fn close_behind<'a>(&'a self, long: Option<RwLockWriteGuard<'a, ()>>) -> Closed<'a> {
        Closed { _lanes: self.lanes.iter().map(|lane| lane.0.write()).collect(), _long: long }
    }
}
