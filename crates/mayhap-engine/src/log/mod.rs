//! Every change, in order, on the disk: what a reply says was changed is changed after a crash, too.
//!
//! ```text
//! append ─▶ pending (memory) ─▶ one frame, one write ─▶ segment (file) ─▶ sync
//!                                 commit: no, everysec        commit and wait: always
//! ```
//!
//! * A **record** is bytes, of which the log knows nothing. Records have numbers, from 0 on and for ever.
//! * A **frame** is what is written at once: a header with checksums, and all records that were pending. It is whole or it is nothing.
//! * A **segment** is a file of frames, called by the number of its first record. `docs/format.md` draws the bytes.
//!
//! A segment is begun only when everything before it is safe; so only the end of the last one can be torn. The module `recover` tells what
//! is read again after a crash.
//!
//! Locks, in this order: `syncing` (who makes things safe), `writer` (who writes), then those of the hand-over, each for a moment.
//! A client that only writes waits for no sync, unless that takes longer than two seconds.

mod error;
mod figures;
mod frame;
mod handover;
mod newest;
mod policy;
mod recover;
mod shared;
mod sync {
    //! What the hand-over is made of; a test puts loom's in its place.
    pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
}
mod writer;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::Mutex;

use crate::disk::Disk;
pub use error::{LogError, Refused};
pub use figures::Figures;
use handover::{BEHIND, CLOSED, FAILED, Handover, NO_SPACE};
pub use newest::FILE as NEWEST_FILE;
pub use policy::{Policy, UnknownPolicy};
pub(crate) use recover::{Piece, salvage};
use shared::Shared;
pub use writer::Salts;

/// When more than this is pending, changes wait until it is written.
pub const PENDING_BYTES: usize = 64 << 20;
/// A segment that is longer than this is followed by another.
pub const SEGMENT_BYTES: u64 = 64 << 20;

const PREFIX: &str = "log-";
const DIGITS: usize = 20;

/// The file of the segment that begins with record `first`.
fn name(first: u64) -> String {
    format!("{PREFIX}{first:0DIGITS$}")
}

/// The number of the first record of the segment that is called so.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    (digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::Disk { doing, source }
}

/// What a log must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    /// From this number on it is played.
    pub(crate) from: u64,
    /// All records below this number were safe once: a snapshot has seen what they did.
    pub(crate) seen: u64,
    /// Is the newest file written down, so that it is missed if it is not there?
    pub(crate) tracked: bool,
}

/// What was found when a log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The number from which on records were played.
    pub from: u64,
    /// The number of the next record.
    pub next: u64,
    /// Everything below this number is safe: all of it, unless there was no room for a new file.
    pub safe: u64,
    /// Records that were played.
    pub played: u64,
    /// Bytes at the end that are not whole, and of which nothing says that they were safe: cut off. With `always` the last write may have been
    /// safe and damaged since: that cannot be told from one that was torn.
    pub cut_bytes: u64,
    /// The file that had them.
    pub cut_file: Option<String>,
    /// Was the log closed by whoever wrote it last?
    pub clean: bool,
}

/// What a log can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Everything.
    Writing,
    /// The disk is full: changes are refused until there is room again.
    NoSpace,
    /// The disk failed: changes are refused until a restart.
    Failed,
    /// It was closed.
    Closed,
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Commit {
    /// The records are as safe as the policy asks: replies may leave.
    Done,
    /// They are safe when [`Log::poll_synced`] says so.
    Wait,
}

/// See the module.
pub struct Log {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl Log {
    /// Reads the log on `disk`, plays all records from number `from` on, and goes on behind them. A thread syncs from then on.
    /// On a disk that is full the log begins as one that found no space.
    ///
    /// # Errors
    /// [`LogError::Damaged`] and [`LogError::Missing`] if something that was safe is not there or not as it was written: nothing on the
    /// disk was changed then. [`LogError::Play`] if `play` refuses a record.
    pub fn open<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        from: u64,
        policy: Policy,
        play: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Arc<Self>, Recovered), LogError> {
        Self::open_needed(disk, Needed { from, seen: from, tracked: false }, policy, play)
    }

    /// The same for a snapshot that has seen more.
    pub(crate) fn open_needed<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        needed: Needed,
        policy: Policy,
        play: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Arc<Self>, Recovered), LogError> {
        let (log, recovered) = Self::open_needed_quiet(disk, needed, policy, Limits::default(), play)?;
        log.start().map_err(failed("start the thread of the log"))?;
        Ok((log, recovered))
    }

    /// The same without a thread, for tests that say when what is done: [`Log::sync`] does what the thread would.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_quiet<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        from: u64,
        policy: Policy,
        limits: Limits,
        play: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Arc<Self>, Recovered), LogError> {
        Self::open_needed_quiet(disk, Needed { from, seen: from, tracked: false }, policy, limits, play)
    }

    /// The same for a snapshot that has seen more.
    pub(crate) fn open_needed_quiet<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        needed: Needed,
        policy: Policy,
        limits: Limits,
        play: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Arc<Self>, Recovered), LogError> {
        let newest = if needed.tracked { newest::read(&*disk)? } else { None };
        let (writer, recovered) = recover::recover(&*disk, needed, newest, limits.salts, play)?;
        let handover = Handover::new(recovered.next, recovered.safe, limits.pending_bytes);
        if writer.file().is_none() {
            handover.raise(NO_SPACE);
        }
        let shared = Shared {
            disk,
            handover,
            syncing: Mutex::new(()),
            writer: Mutex::new(writer),
            policy: AtomicU8::new(policy as u8),
            failure: Mutex::new(None),
            began: Instant::now(),
            sync_began: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            waited: AtomicUsize::new(0),
            last_sync_micros: AtomicU64::new(0),
            longest_sync_micros: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            rotations_failed: AtomicU64::new(0),
            rotate_after_ms: AtomicU64::new(0),
            newest: needed.tracked.then(|| AtomicU64::new(newest.unwrap_or(newest::NONE))),
            limits,
        };
        shared.note_newest();
        Ok((Arc::new(Self { shared: Arc::new(shared), thread: Mutex::new(None) }), recovered))
    }

    /// Starts the thread that syncs, if it was opened without.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("mayhap-log".into()).spawn(move || shared.run())?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Gives `record` a number. It is in memory only, until a commit; if nobody commits, about a second.
    /// Whoever appends has asked [`Log::may_change`] before, and has the lock of what the record is about.
    pub fn append(&self, record: &[u8]) -> u64 {
        let number = self.shared.handover.append(record);
        if self.shared.handover.flags() & BEHIND != 0 {
            self.shared.handover.poke();
        }
        number
    }

    /// The number that the next record gets.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.shared.handover.next()
    }

    /// Everything below this number is safe from a power loss.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.shared.handover.synced()
    }

    /// Records from here to [`Log::end_group`] are in the log all or none. The caller is the only one who appends meanwhile.
    pub fn begin_group(&self) {
        self.shared.handover.begin_group();
    }

    /// The records since [`Log::begin_group`] may be written.
    pub fn end_group(&self) {
        self.shared.handover.end_group();
    }

    /// May something be changed now? Asked before every change; one relaxed load if so. When too much is pending it is written first.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline]
    pub fn may_change(&self) -> Result<(), Refused> {
        if self.shared.handover.flags() == 0 { Ok(()) } else { self.shared.may_change_now() }
    }

    /// Has all records with numbers below `next` (the number of the caller's last record, and one) made as safe as the policy asks, before
    /// the replies leave. Does not wait for a sync with [`Policy::Always`]: the answer is [`Commit::Wait`] then.
    ///
    /// # Errors
    /// [`Refused`]: the changes were made in memory, and must not be acknowledged. Those that found no space are written when there
    /// is room; those that failed may be lost at a restart, or not.
    pub fn commit(&self, next: u64) -> Result<Commit, Refused> {
        self.shared.commit(next)
    }

    /// The same, and writes nothing: [`Log::poll_synced`] does, whatever the policy. Who lets others append before it asks saves writes,
    /// for the first who asks writes the records of all.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_later(&self, next: u64) -> Result<Commit, Refused> {
        self.shared.commit_later(next)
    }

    /// Are all records below `next` as safe as the policy asks? If not, the task is woken when they are, or when they cannot be.
    /// What was not appended and committed yet is waited for in vain.
    pub fn poll_synced(&self, next: u64, context: &Context<'_>) -> Poll<Result<(), Refused>> {
        self.shared.handover.poll(next, context, || self.shared.look(next))
    }

    /// Waits for what [`Log::poll_synced`] tells.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn wait_synced(&self, next: u64) -> Result<(), Refused> {
        struct Unpark(thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.poll_synced(next, &Context::from_waker(&waker)) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Writes and syncs everything that is pending; asks a full disk again.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn sync(&self) -> Result<(), Refused> {
        let _syncing = self.shared.syncing.lock();
        self.shared.sync()
    }

    /// Goes on in a new segment, and tells its first number: all records below are in others, and safe.
    /// If nothing was written since the last one was begun, that one is it.
    ///
    /// # Errors
    /// [`Refused::NoNewFile`]: the log goes on where it was. Any other: it does not.
    pub fn rotate(&self) -> Result<u64, Refused> {
        let _syncing = self.shared.syncing.lock();
        self.shared.rotate()
    }

    /// Removes the segments that have only records below `number`: a snapshot has what they say.
    ///
    /// # Errors
    /// [`LogError::Disk`]; the segments that are left are removed the next time.
    pub fn forget_before(&self, number: u64) -> Result<(), LogError> {
        // Removing a large file takes its time, and nobody waits for that.
        let mut old = self.shared.writer.lock().take_before(number);
        while let Some(extent) = old.first() {
            match self.shared.disk.remove(&name(extent.first)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.shared.writer.lock().older.splice(..0, old);
                    return Err(failed("remove an old file of the log")(error));
                }
                _ => _ = old.remove(0),
            }
        }
        Ok(())
    }

    /// Bytes of the segments with records from `number` on: what is to be read after a crash.
    #[must_use]
    pub fn bytes_since(&self, number: u64) -> u64 {
        let writer = self.shared.writer.lock();
        let mut bytes = 0;
        for extent in writer.extents().rev() {
            bytes += extent.bytes;
            if extent.first <= number {
                break;
            }
        }
        bytes
    }

    /// What it can do now.
    #[must_use]
    pub fn state(&self) -> State {
        match self.shared.handover.flags() {
            flags if flags & FAILED != 0 => State::Failed,
            flags if flags & CLOSED != 0 => State::Closed,
            flags if flags & NO_SPACE != 0 => State::NoSpace,
            _ => State::Writing,
        }
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().clone()
    }

    /// When records are made safe.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.shared.policy()
    }

    /// Changes when records are made safe, from now on.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.policy.store(policy as u8, Relaxed);
        if policy == Policy::Always {
            self.shared.handover.ring(self.next());
        }
        self.shared.handover.poke();
        self.shared.handover.wake_all();
    }

    /// What there is to tell about it.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures()
    }

    /// Makes everything safe, and says so in the log: damage anywhere is found when it is opened again. Nothing can be appended after that.
    ///
    /// # Errors
    /// [`Refused`]: it could not.
    pub fn close(&self) -> Result<(), Refused> {
        let shared = &*self.shared;
        if shared.refused() == Some(Refused::Closed) {
            return Ok(());
        }
        // If this fails everything goes on as before, the thread too.
        self.sync()?;
        self.stop();
        let _syncing = shared.syncing.lock();
        shared.sync()?;
        let mut writer = shared.writer.lock();
        shared.handover.raise(CLOSED);
        writer.mark_clean(shared.handover.written()).map_err(|error| shared.fail("close the log", &error))?;
        shared.is_kept(writer.file().as_deref(), writer.first())
    }

    fn stop(&self) {
        if let Some(thread) = self.thread.lock().take() {
            self.shared.handover.stop();
            // It does not panic; and if it did, the log is none the worse for being stopped.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sizes, which tests make smaller, and where salts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`PENDING_BYTES`].
    pub pending_bytes: usize,
    /// See [`SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Where salts come from.
    pub salts: Salts,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pending_bytes: PENDING_BYTES, segment_bytes: SEGMENT_BYTES, salts: Salts::Random }
    }
}
