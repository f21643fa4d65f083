//! The hand-over from the threads that append to the thread that writes, and back to the tasks that wait. It
//! holds all state of the log that threads share, and does not touch the disk.
//!
//! ```text
//! append ─▶ pending ─ take ─▶ (write) ─ wrote ─▶ written ─▶ (sync) ─ synced ─▶ wakes tasks that wait for these numbers
//!                     ring ─▶ the thread that syncs
//! ```
//!
//! `tests/log_handover.rs` compiles this file again with loom's primitives in `super::sync` and tries all
//! interleavings of threads.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::frame::{HEADER_BYTES, put_record};
use super::sync::{AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, Ordering::Relaxed, Ordering::SeqCst};

/// The disk is full.
pub(super) const NO_SPACE: u32 = 1;
/// The disk failed.
pub(super) const FAILED: u32 = 2;
/// The log was closed.
pub(super) const CLOSED: u32 = 4;
/// More bytes are pending than allowed.
pub(super) const BACKLOG: u32 = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that no thread has taken yet.
#[derive(Debug)]
struct Pending {
    /// A frame without its header.
    frame: Vec<u8>,
    first: u64,
    count: u32,
    /// The start of the open group, and the number of records before it.
    group: Option<(usize, u32)>,
}

/// Records that are written together.
#[derive(Debug)]
pub(super) struct Taken {
    /// A frame without its header.
    pub(super) frame: Vec<u8>,
    /// The number of its first record.
    pub(super) first: u64,
    /// The number of records.
    pub(super) count: u32,
}

impl Taken {
    /// The number after its last record.
    pub(super) fn next(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// The waiting tasks, one entry per task; see [`Handover::poll`].
#[derive(Debug, Default)]
struct Waiting {
    tasks: HashMap<usize, (u64, Waker)>,
    /// Wakers that share their data with another one.
    more: Vec<(u64, Waker)>,
}

impl Waiting {
    fn add(&mut self, number: u64, waker: &Waker) {
        use std::collections::hash_map::Entry;
        match self.tasks.entry(waker.data() as usize) {
            Entry::Vacant(vacant) => drop(vacant.insert((number, waker.clone()))),
            Entry::Occupied(mut old) if old.get().1.will_wake(waker) => {
                let old = old.get_mut();
                old.0 = old.0.min(number);
            }
            Entry::Occupied(_) => self.more.push((number, waker.clone())),
        }
    }

    /// Removes and returns the tasks that wait for numbers up to `number`, in order.
    fn take(&mut self, number: u64) -> Vec<(u64, Waker)> {
        let mut woken: Vec<_> =
            self.tasks.extract_if(|_, waits| waits.0 <= number).map(|(_, waits)| waits).collect();
        woken.extend(self.more.extract_if(.., |waits| waits.0 <= number));
        woken.sort_unstable_by_key(|waits| waits.0);
        woken
    }
}

/// Requests to the thread that syncs.
#[derive(Debug, Default)]
struct Bell {
    /// Sync everything below this number.
    wanted: u64,
    /// Check once for other work.
    poked: bool,
    stop: bool,
}

/// Why the thread that syncs wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A task waits for a sync.
    Wanted,
    /// The timeout has passed, or the state has changed.
    Look,
    /// The thread must end.
    Stop,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Handover {
    pending: Mutex<Pending>,
    /// The number of pending bytes from which on [`BACKLOG`] is set.
    most_bytes: usize,
    next: AtomicU64,
    written: AtomicU64,
    synced: AtomicU64,
    flags: AtomicU32,
    waiting: Mutex<Waiting>,
    bell: Mutex<Bell>,
    rung: Condvar,
}

impl Handover {
    /// A hand-over where the next record has number `next` and all records below `safe` are safe.
    pub(super) fn new(next: u64, safe: u64, most_bytes: usize) -> Self {
        Self {
            pending: Mutex::new(Pending { frame: vec![0; HEADER_BYTES], first: next, count: 0, group: None }),
            most_bytes,
            next: AtomicU64::new(next),
            written: AtomicU64::new(next),
            synced: AtomicU64::new(safe),
            flags: AtomicU32::new(0),
            waiting: Mutex::new(Waiting::default()),
            bell: Mutex::new(Bell::default()),
            rung: Condvar::new(),
        }
    }

    /// Gives `record` the next number.
    pub(super) fn append(&self, record: &[u8]) -> u64 {
        let mut pending = lock(&self.pending);
        let number = pending.first + u64::from(pending.count);
        // After a failure nothing is written again. Numbers still increase, for threads that passed the check
        // before it.
        if self.flags.load(Relaxed) & (FAILED | CLOSED) == 0 {
            put_record(&mut pending.frame, record);
            pending.count += 1;
        } else {
            pending.first += 1;
        }
        if pending.frame.len() > self.most_bytes {
            self.flags.fetch_or(BACKLOG, SeqCst);
        }
        self.next.store(number + 1, SeqCst);
        number
    }

    /// Begins a group: its records stay together. Only one thread has a group at a time.
    pub(super) fn begin_group(&self) {
        let mut pending = lock(&self.pending);
        debug_assert!(pending.group.is_none(), "groups do not nest");
        pending.group = Some((pending.frame.len(), pending.count));
    }

    /// Ends the group.
    pub(super) fn end_group(&self) {
        lock(&self.pending).group = None;
    }

    /// Takes all pending records except an open group. `spare` becomes the buffer for the next ones.
    pub(super) fn take(&self, spare: Vec<u8>) -> Result<Taken, Vec<u8>> {
        let mut next = spare;
        next.clear();
        next.resize(HEADER_BYTES, 0);
        let mut pending = lock(&self.pending);
        let (bytes, count) = pending.group.unwrap_or((pending.frame.len(), pending.count));
        if count == 0 {
            return Err(next);
        }
        next.extend_from_slice(&pending.frame[bytes..]);
        pending.frame.truncate(bytes);
        let left = pending.count - count;
        let taken = Taken { frame: std::mem::replace(&mut pending.frame, next), first: pending.first, count };
        pending.first += u64::from(count);
        pending.count = left;
        pending.group = pending.group.map(|_| (HEADER_BYTES, 0));
        if pending.frame.len() <= self.most_bytes {
            self.flags.fetch_and(!BACKLOG, SeqCst);
        }
        Ok(taken)
    }

    /// Bytes that no thread has taken yet.
    pub(super) fn pending_bytes(&self) -> usize {
        lock(&self.pending).frame.len() - HEADER_BYTES
    }

    pub(super) fn next(&self) -> u64 {
        self.next.load(SeqCst)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(SeqCst)
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(SeqCst)
    }

    /// Records that everything below `number` was written to the file.
    pub(super) fn wrote(&self, number: u64) {
        self.written.store(number, SeqCst);
    }

    /// Records that everything below `number` is safe, wakes the tasks that waited for it and returns their
    /// number.
    pub(super) fn safe(&self, number: u64) -> usize {
        self.synced.store(number, SeqCst);
        let woken = lock(&self.waiting).take(number);
        let count = woken.len();
        woken.into_iter().for_each(|(_, waker)| waker.wake());
        count
    }

    /// The flags, without a lock.
    pub(super) fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Sets flags and wakes all waiting tasks, which check again.
    pub(super) fn raise(&self, flags: u32) {
        self.flags.fetch_or(flags, SeqCst);
        self.wake_all();
    }

    /// Clears flags.
    pub(super) fn lower(&self, flags: u32) {
        self.flags.fetch_and(!flags, SeqCst);
    }

    /// Wakes all waiting tasks, which check again.
    pub(super) fn wake_all(&self) {
        let woken = lock(&self.waiting).take(u64::MAX);
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Returns the result of `look`, or has the task woken when everything below `number` is safe or flags
    /// are raised.
    pub(super) fn poll<T>(
        &self,
        number: u64,
        context: &Context<'_>,
        mut look: impl FnMut() -> Poll<T>,
    ) -> Poll<T> {
        if let Poll::Ready(answer) = look() {
            return Poll::Ready(answer);
        }
        lock(&self.waiting).add(number, context.waker());
        // A change before the task was in the list did not wake it, so check again.
        look()
    }

    /// Wakes the thread that syncs, because a task waits for everything below `number`.
    pub(super) fn ring(&self, number: u64) {
        // Do not wait for records that were not appended.
        let number = number.min(self.next());
        let mut bell = lock(&self.bell);
        if bell.wanted < number {
            bell.wanted = number;
            self.rung.notify_one();
        }
    }

    /// Makes the thread that syncs check for work.
    pub(super) fn poke(&self) {
        lock(&self.bell).poked = true;
        self.rung.notify_one();
    }

    /// Ends the thread that syncs.
    pub(super) fn stop(&self) {
        lock(&self.bell).stop = true;
        self.rung.notify_one();
    }

    /// The thread that syncs waits here. [`Self::ring`] wakes it only if `heed` is set.
    pub(super) fn wait(&self, heed: bool, at_most: Option<Duration>) -> Call {
        let mut bell = lock(&self.bell);
        loop {
            if bell.stop {
                return Call::Stop;
            }
            if std::mem::take(&mut bell.poked) {
                return Call::Look;
            }
            if heed && bell.wanted > self.synced() {
                return Call::Wanted;
            }
            bell = match at_most {
                None => self.rung.wait(bell).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let (bell, late) =
                        self.rung.wait_timeout(bell, time).unwrap_or_else(PoisonError::into_inner);
                    if late.timed_out() {
                        return if bell.stop { Call::Stop } else { Call::Look };
                    }
                    bell
                }
            };
        }
    }
}
