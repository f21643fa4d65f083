//! The log: every change, in order, on the disk. A change that a reply acknowledged survives a crash.
//!
//! ```text
//! append ─▶ pending (memory) ─▶ one frame, one write ─▶ segment (file) ─▶ sync
//!                                 commit: no, everysec        commit and wait: always
//! ```
//!
//! * A **record** is a sequence of bytes that the log does not interpret. Records are numbered from 0, for
//!   ever.
//! * A **frame** is one write: a header with checksums, and all records that were pending. A frame is
//!   complete or ignored.
//! * A **segment** is a file of frames, named after the number of its first record. `docs/format.md` draws
//!   the bytes.
//!
//! A segment begins only when everything before it is safe, so only the end of the last one can be torn. The
//! module `recover` describes what is read after a crash.
//!
//! Locks, in this order: `syncing` (held while syncing), `writer` (held while writing), then those of the
//! hand-over, each for a moment. A client that writes waits for no sync, unless it takes longer than two
//! seconds.

mod error;
mod figures;
mod frame;
mod handover;
mod newest;
mod policy;
mod recover;
mod shared;
mod sync {
    //! The primitives of the hand-over. A test replaces them by loom's.
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
use handover::{BACKLOG, CLOSED, FAILED, Handover, NO_SPACE};
pub use newest::FILE as NEWEST_FILE;
pub use policy::{Policy, UnknownPolicy};
pub(crate) use recover::{Piece, salvage};
use shared::Shared;
pub use writer::Salts;

/// The maximum number of pending bytes. Above it, changes wait until they are written.
pub const PENDING_BYTES: usize = 64 << 20;
/// The size in bytes after which a new segment begins.
pub const SEGMENT_BYTES: u64 = 64 << 20;

const PREFIX: &str = "log-";
const DIGITS: usize = 20;

/// The name of the segment that begins with record `first`.
fn name(first: u64) -> String {
    format!("{PREFIX}{first:0DIGITS$}")
}

/// Returns the number of the first record of the segment with this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    (digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> LogError {
    move |source| LogError::Disk { doing, source }
}

/// What a log must contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    /// The number of the first record to replay.
    pub(crate) from: u64,
    /// All records below this number were safe once: a snapshot contains their changes.
    pub(crate) seen: u64,
    /// Whether the newest file is recorded, so that it is noticed if it is missing.
    pub(crate) tracked: bool,
}

/// What was found when a log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The number of the first replayed record.
    pub from: u64,
    /// The number of the next record.
    pub next: u64,
    /// Everything below this number is safe. That is everything, unless there was no space for a new file.
    pub safe: u64,
    /// The number of replayed records.
    pub played: u64,
    /// Bytes at the end that are incomplete and not known to have been safe: they were cut off. With
    /// `always`, the last write may have been safe and damaged later; this cannot be distinguished from a
    /// torn write.
    pub cut_bytes: u64,
    /// The file that contained them.
    pub cut_file: Option<String>,
    /// Whether the log was closed properly.
    pub clean: bool,
}

/// The state of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Changes are accepted.
    Writing,
    /// The disk is full: changes are refused until there is space.
    NoSpace,
    /// The disk failed: changes are refused until a restart.
    Failed,
    /// It was closed.
    Closed,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Commit {
    /// The records are as safe as the policy demands: replies may leave.
    Done,
    /// [`Log::poll_synced`] tells when they are safe.
    Wait,
}

/// See the module documentation.
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
    /// Opens the log on `disk`: replays all records from number `from` on and continues after them. Starts a
    /// thread that syncs. If the disk is full, the log begins in the state [`State::NoSpace`].
    ///
    /// # Errors
    /// [`LogError::Damaged`] and [`LogError::Missing`] if data that was safe is damaged or missing. Nothing
    /// on the disk was changed in that case. [`LogError::Play`] if `play` rejects a record.
    pub fn open<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        from: u64,
        policy: Policy,
        play: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(Arc<Self>, Recovered), LogError> {
        Self::open_needed(disk, Needed { from, seen: from, tracked: false }, policy, play)
    }

    /// As [`open`](Self::open), for a snapshot that contains later changes.
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

    /// As [`open`](Self::open), without a thread, for tests that control the order of events. [`Log::sync`]
    /// does the work of the thread.
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

    /// As [`open_quiet`](Self::open_quiet), for a snapshot that contains later changes.
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

    /// Starts the thread that syncs, if the log was opened without one.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn start(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("mayhap-log".into()).spawn(move || shared.run())?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Gives `record` a number. The record is only in memory until a commit, or for about a second without
    /// one. The caller has checked [`Log::may_change`] and holds the lock of the data that the record is
    /// about.
    pub fn append(&self, record: &[u8]) -> u64 {
        let number = self.shared.handover.append(record);
        if self.shared.handover.flags() & BACKLOG != 0 {
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

    /// Begins a group: its records, up to [`Log::end_group`], are in the log all or none. No other thread may
    /// append meanwhile.
    pub fn begin_group(&self) {
        self.shared.handover.begin_group();
    }

    /// Ends the group: its records may be written.
    pub fn end_group(&self) {
        self.shared.handover.end_group();
    }

    /// Checks that a change may be made now. Called before every change; costs one relaxed load. If too much
    /// is pending, writes it first.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline]
    pub fn may_change(&self) -> Result<(), Refused> {
        if self.shared.handover.flags() == 0 { Ok(()) } else { self.shared.may_change_now() }
    }

    /// Makes all records below `next` (one more than the number of the caller's last record) as safe as the
    /// policy demands before the replies leave. With [`Policy::Always`] it does not wait for a sync but
    /// returns [`Commit::Wait`].
    ///
    /// # Errors
    /// [`Refused`]: the changes were made in memory and must not be acknowledged. Those that found no space
    /// are written when there is space; those that failed may be lost at a restart, or not.
    pub fn commit(&self, next: u64) -> Result<Commit, Refused> {
        self.shared.commit(next)
    }

    /// As [`commit`](Self::commit), but writes nothing: [`Log::poll_synced`] does, whatever the policy. If
    /// other threads append before that, the first call writes the records of all and saves writes.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_later(&self, next: u64) -> Result<Commit, Refused> {
        self.shared.commit_later(next)
    }

    /// Returns whether all records below `next` are as safe as the policy demands. If not, the task is woken
    /// when they are, or when that has failed. Never completes for records that were not appended and
    /// committed.
    pub fn poll_synced(&self, next: u64, context: &Context<'_>) -> Poll<Result<(), Refused>> {
        self.shared.handover.poll(next, context, || self.shared.look(next))
    }

    /// As [`Log::poll_synced`], but blocks.
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

    /// Writes and syncs everything that is pending. Tries again if the disk was full.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn sync(&self) -> Result<(), Refused> {
        let _syncing = self.shared.syncing.lock();
        self.shared.sync()
    }

    /// Begins a new segment and returns its first number. All records below are in older segments, and safe.
    /// If nothing was written since the last segment began, returns that one.
    ///
    /// # Errors
    /// [`Refused::NoNewFile`]: the log continues in the old segment. Any other error: it does not continue.
    pub fn rotate(&self) -> Result<u64, Refused> {
        let _syncing = self.shared.syncing.lock();
        self.shared.rotate()
    }

    /// Removes the segments that only have records below `number`, because a snapshot contains their changes.
    ///
    /// # Errors
    /// [`LogError::Disk`]. The segments that are left are removed next time.
    pub fn forget_before(&self, number: u64) -> Result<(), LogError> {
        // Removing a large file takes time. No lock is held meanwhile.
        let mut old = self.shared.writer.lock().take_before(number);
        while let Some(extent) = old.first() {
            match self.shared.disk.remove(&name(extent.first)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.shared.writer.lock().older.splice(..0, old);
                    return Err(failed("remove an old log file")(error));
                }
                _ => _ = old.remove(0),
            }
        }
        Ok(())
    }

    /// Size in bytes of the segments with records from `number` on, which are read after a crash.
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

    /// The state of the log.
    #[must_use]
    pub fn state(&self) -> State {
        match self.shared.handover.flags() {
            flags if flags & FAILED != 0 => State::Failed,
            flags if flags & CLOSED != 0 => State::Closed,
            flags if flags & NO_SPACE != 0 => State::NoSpace,
            _ => State::Writing,
        }
    }

    /// The reason of the failure, if the log failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().clone()
    }

    /// The fsync policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.shared.policy()
    }

    /// Changes the fsync policy.
    pub fn set_policy(&self, policy: Policy) {
        self.shared.policy.store(policy as u8, Relaxed);
        if policy == Policy::Always {
            self.shared.handover.ring(self.next());
        }
        self.shared.handover.poke();
        self.shared.handover.wake_all();
    }

    /// Figures of the log.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures()
    }

    /// Makes everything safe and marks the log as closed, so that any damage is found when it is opened
    /// again. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn close(&self) -> Result<(), Refused> {
        let shared = &*self.shared;
        if shared.refused() == Some(Refused::Closed) {
            return Ok(());
        }
        // If this fails, everything continues as before, including the thread.
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
            // The thread does not panic. If it did, the log is already closed.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Limits, which tests lower, and the source of salts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`PENDING_BYTES`].
    pub pending_bytes: usize,
    /// See [`SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// The source of salts.
    pub salts: Salts,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pending_bytes: PENDING_BYTES, segment_bytes: SEGMENT_BYTES, salts: Salts::Random }
    }
}
