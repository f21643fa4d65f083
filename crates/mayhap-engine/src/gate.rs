//! A door that many pass at once, and that one may close behind itself.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Threads that pass do not share a line of memory unless there are more of them than this.
pub(crate) const LANES: usize = 16;

/// Something on two lines of memory of its own, so that neighbours do not fight over them.
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

/// Ordinary requests pass it open; a transaction closes it, and has everything for itself. Those that take long pass at the side:
/// whoever wants to close it waits for them first, and only for the others while these are kept out.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    lanes: [Apart<RwLock<()>>; LANES],
    long: RwLock<()>,
}

/// It is closed as long as this lives.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    _lanes: Vec<RwLockWriteGuard<'a, ()>>,
    _long: Option<RwLockWriteGuard<'a, ()>>,
}

impl Gate {
    /// Waits until it is not closed, and keeps it from being closed.
    pub(crate) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.lanes[lane()].0.read()
    }

    /// The same, for what takes long.
    pub(crate) fn pass_long(&self) -> RwLockReadGuard<'_, ()> {
        self.long.read()
    }

    /// Waits until nobody passes, and keeps everybody out. Who comes later waits behind, so that this is not put off for ever.
    pub(crate) fn close(&self) -> Closed<'_> {
        self.close_behind(Some(self.long.write()))
    }

    /// The same, unless something passes that takes long.
    pub(crate) fn try_close(&self) -> Option<Closed<'_>> {
        self.long.try_write().map(|long| self.close_behind(Some(long)))
    }

    /// The same for those alone who take no time, transactions among them: what takes long goes on, and nobody waits for it.
    pub(crate) fn close_for_short(&self) -> Closed<'_> {
        self.close_behind(None)
    }

    fn close_behind<'a>(&'a self, long: Option<RwLockWriteGuard<'a, ()>>) -> Closed<'a> {
        Closed { _lanes: self.lanes.iter().map(|lane| lane.0.write()).collect(), _long: long }
    }
}
