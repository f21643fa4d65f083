//! From those who append to the one who writes, and back to those who wait: everything of the log that threads share, and no disk.
//!
//! ```text
//! append ─▶ pending ─ take ─▶ (write) ─ wrote ─▶ written ─▶ (sync) ─ synced ─▶ wakes who waits for these numbers
//!                     ring ─▶ the thread that syncs
//! ```
//!
//! `tests/log_handover.rs` compiles this file again with loom's primitives in `super::sync`, and tries all orders in which threads can
//! meet here.

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
/// More is pending than should be.
pub(super) const BEHIND: u32 = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that nobody has taken yet.
#[derive(Debug)]
struct Pending {
    /// A frame without its header.
    frame: Vec<u8>,
    first: u64,
    count: u32,
    /// Where the open group begins, and how many records are in front of it.
    group: Option<(usize, u32)>,
}

/// Records that are to be written together.
#[derive(Debug)]
pub(super) struct Taken {
    /// A frame without its header.
    pub(super) frame: Vec<u8>,
    /// The number of its first record.
    pub(super) first: u64,
    /// How many records.
    pub(super) count: u32,
}

impl Taken {
    /// The number behind its last record.
    pub(super) fn next(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// Who waits, one entry for each task; see [`Handover::poll`].
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

    /// Takes those who wait for numbers up to `number`, in their order.
    fn take(&mut self, number: u64) -> Vec<(u64, Waker)> {
        let mut woken: Vec<_> =
            self.tasks.extract_if(|_, waits| waits.0 <= number).map(|(_, waits)| waits).collect();
        woken.extend(self.more.extract_if(.., |waits| waits.0 <= number));
        woken.sort_unstable_by_key(|waits| waits.0);
        woken
    }
}

/// What the thread that syncs is asked for.
#[derive(Debug, Default)]
struct Bell {
    /// Everything below this number.
    wanted: u64,
    /// Something else than a sync, once.
    poked: bool,
    stop: bool,
}

/// Why the thread that syncs goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Somebody waits for a sync.
    Wanted,
    /// The time is over, or something changed.
    Look,
    /// It is to end.
    Stop,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Handover {
    pending: Mutex<Pending>,
    /// Bytes after which [`BEHIND`] is set.
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
    /// The next record has number `next`, and all below `safe` are safe.
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
        // Nothing is ever written again after a failure: only the numbers go on, for those who passed before it.
        if self.flags.load(Relaxed) & (FAILED | CLOSED) == 0 {
            put_record(&mut pending.frame, record);
            pending.count += 1;
        } else {
            pending.first += 1;
        }
        if pending.frame.len() > self.most_bytes {
            self.flags.fetch_or(BEHIND, SeqCst);
        }
        self.next.store(number + 1, SeqCst);
        number
    }

    /// From here on records stay together until the group ends. One thread at a time has a group.
    pub(super) fn begin_group(&self) {
        let mut pending = lock(&self.pending);
        debug_assert!(pending.group.is_none(), "groups do not nest");
        pending.group = Some((pending.frame.len(), pending.count));
    }

    /// The group is whole.
    pub(super) fn end_group(&self) {
        lock(&self.pending).group = None;
    }

    /// Takes what is pending, but for an open group. `spare` is used for what comes next.
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
            self.flags.fetch_and(!BEHIND, SeqCst);
        }
        Ok(taken)
    }

    /// Bytes that nobody has taken.
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

    /// Everything below `number` was handed to the system.
    pub(super) fn wrote(&self, number: u64) {
        self.written.store(number, SeqCst);
    }

    /// Everything below `number` is safe: wakes who waited for that, and tells how many did.
    pub(super) fn safe(&self, number: u64) -> usize {
        self.synced.store(number, SeqCst);
        let woken = lock(&self.waiting).take(number);
        let count = woken.len();
        woken.into_iter().for_each(|(_, waker)| waker.wake());
        count
    }

    /// The flags, for a fast look.
    pub(super) fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Sets flags; everybody who waits looks again.
    pub(super) fn raise(&self, flags: u32) {
        self.flags.fetch_or(flags, SeqCst);
        self.wake_all();
    }

    /// Clears flags.
    pub(super) fn lower(&self, flags: u32) {
        self.flags.fetch_and(!flags, SeqCst);
    }

    /// Everybody who waits looks again.
    pub(super) fn wake_all(&self) {
        let woken = lock(&self.waiting).take(u64::MAX);
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Answers what `look` answers, or has the task woken when everything below `number` is safe, and when flags are raised.
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
        // Whoever changed something before we stood in the list did not see us there; so we look once more.
        look()
    }

    /// Wakes the thread that syncs, because somebody waits for everything below `number`.
    pub(super) fn ring(&self, number: u64) {
        // What nobody appended would never come.
        let number = number.min(self.next());
        let mut bell = lock(&self.bell);
        if bell.wanted < number {
            bell.wanted = number;
            self.rung.notify_one();
        }
    }

    /// Has the thread that syncs look at what there is to do.
    pub(super) fn poke(&self) {
        lock(&self.bell).poked = true;
        self.rung.notify_one();
    }

    /// Ends the thread that syncs.
    pub(super) fn stop(&self) {
        lock(&self.bell).stop = true;
        self.rung.notify_one();
    }

    /// The thread that syncs waits here. It is not woken by [`Self::ring`] if it does not `heed` that.
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
