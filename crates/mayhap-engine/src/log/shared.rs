//! The state that the thread of the log shares with all others: writing, syncing, beginning files, and
//! reporting failures.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::Refused;
use super::figures::Figures;
use super::handover::{BACKLOG, CLOSED, Call, FAILED, Handover, NO_SPACE};
use super::policy::Policy;
use super::writer::{NotBegun, NotWritten, Writer};
use super::{Commit, Limits, name, newest};
use crate::disk::{AppendFile, Disk};

/// The time between attempts to write to a full disk.
const RETRY: Duration = Duration::from_millis(100);
/// The time between the beginnings of two syncs with `everysec`. A power loss takes the changes since the
/// last completed sync; with the duration of the sync itself, that should be less than a second.
const SYNC_EVERY: Duration = Duration::from_millis(500);
/// The time the thread waits for the group of another thread to end.
const UNFINISHED_GROUP: Duration = Duration::from_micros(200);
/// The number of tasks waiting for one sync from which on the next sync is delayed: most of them will soon
/// ask for another.
const MANY_WAITED: usize = 8;
/// The maximum delay.
const GATHER: Duration = Duration::from_millis(1);
/// With `everysec`, a request that writes waits for a sync that has been running for longer than this, as in
/// Redis.
const SLOW_SYNC_MS: u64 = 2000;

/// The time after a failed attempt to begin a file until the next attempt.
const ROTATE_AGAIN_MS: u64 = 200;

/// All of a log except its thread.
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) handover: Handover,
    /// Held while syncing; see the order of locks in the module documentation.
    pub(super) syncing: Mutex<()>,
    pub(super) writer: Mutex<Writer>,
    pub(super) policy: AtomicU8,
    /// The reason of the failure.
    pub(super) failure: Mutex<Option<String>>,
    pub(super) began: Instant,
    /// When the running sync began, as [`Shared::ms`] counts; 0 if none is running.
    pub(super) sync_began: AtomicU64,
    pub(super) syncs: AtomicU64,
    /// The number of tasks that waited for the last sync.
    pub(super) waited: AtomicUsize,
    pub(super) last_sync_micros: AtomicU64,
    pub(super) longest_sync_micros: AtomicU64,
    pub(super) delayed: AtomicU64,
    pub(super) rotations_failed: AtomicU64,
    /// The time, as [`Shared::ms`] counts, before which no new file is begun.
    pub(super) rotate_after_ms: AtomicU64,
    /// The number of the newest recorded file, if it is recorded.
    pub(super) newest: Option<AtomicU64>,
    pub(super) limits: Limits,
}

impl Shared {
    pub(super) fn policy(&self) -> Policy {
        Policy::from_number(self.policy.load(Relaxed))
    }

    /// The refusal for the first flag that forbids changes.
    pub(super) fn refused(&self) -> Option<Refused> {
        match self.handover.flags() {
            flags if flags & FAILED != 0 => Some(Refused::Failed),
            flags if flags & CLOSED != 0 => Some(Refused::Closed),
            flags if flags & NO_SPACE != 0 => Some(Refused::NoSpace),
            _ => None,
        }
    }

    #[cold]
    pub(super) fn may_change_now(&self) -> Result<(), Refused> {
        if let Some(refused) = self.refused() {
            return Err(refused);
        }
        if self.handover.flags() & BACKLOG != 0 {
            self.write(&mut self.writer.lock())?;
        }
        Ok(())
    }

    pub(super) fn commit(&self, next: u64) -> Result<Commit, Refused> {
        if self.policy() == Policy::Always {
            return self.commit_later(next);
        }
        self.write_as_asked(next)?;
        Ok(Commit::Done)
    }

    pub(super) fn commit_later(&self, next: u64) -> Result<Commit, Refused> {
        let always = self.policy() == Policy::Always;
        if next <= if always { self.handover.synced() } else { self.handover.written() } {
            return Ok(Commit::Done);
        }
        if let Some(refused) = self.refused() {
            return Err(refused);
        }
        if always {
            self.handover.ring(next);
        }
        Ok(Commit::Wait)
    }

    /// Writes everything below `next` to the file. With `everysec`, also waits for a slow sync.
    fn write_as_asked(&self, next: u64) -> Result<(), Refused> {
        self.write_up_to(next)?;
        if self.policy() == Policy::EverySec {
            self.wait_for_a_slow_sync();
        }
        Ok(())
    }

    pub(super) fn wait_for_a_slow_sync(&self) {
        if self.running_sync_ms() > SLOW_SYNC_MS {
            self.delayed.fetch_add(1, Relaxed);
            drop(self.syncing.lock());
        }
    }

    /// The time since the running sync began.
    fn running_sync_ms(&self) -> u64 {
        match self.sync_began.load(Relaxed) {
            0 => 0,
            began => self.ms().saturating_sub(began),
        }
    }

    /// Milliseconds since the log was opened, plus one.
    pub(super) fn ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    pub(super) fn look(&self, next: u64) -> Poll<Result<(), Refused>> {
        if self.policy() != Policy::Always {
            // No other thread writes it.
            return Poll::Ready(self.write_as_asked(next));
        }
        match self.refused() {
            _ if self.handover.synced() >= next => Poll::Ready(Ok(())),
            Some(refused) => Poll::Ready(Err(refused)),
            None => Poll::Pending,
        }
    }

    /// Writes everything below `next` to the file.
    pub(super) fn write_up_to(&self, next: u64) -> Result<(), Refused> {
        if self.handover.written() >= next {
            return Ok(());
        }
        let mut writer = self.writer.lock();
        // The previous holder of the lock may have written it.
        if self.handover.written() >= next {
            return Ok(());
        }
        if let Some(refused) = self.refused() {
            return Err(refused);
        }
        self.write(&mut writer)?;
        if writer.bytes() > self.limits.segment_bytes {
            self.handover.poke();
        }
        Ok(())
    }

    /// Marks the log as failed.
    pub(super) fn fail(&self, doing: &'static str, error: &io::Error) -> Refused {
        self.failure.lock().get_or_insert_with(|| format!("cannot {doing}: {error}"));
        self.handover.raise(FAILED);
        Refused::Failed
    }

    /// Writes pending records to the file.
    pub(super) fn write(&self, writer: &mut Writer) -> Result<(), Refused> {
        if self.handover.flags() & FAILED != 0 {
            return Err(Refused::Failed);
        }
        match writer.write(&self.handover, &*self.disk) {
            Ok(()) => {
                if self.handover.flags() & NO_SPACE != 0 {
                    self.handover.lower(NO_SPACE);
                }
                Ok(())
            }
            Err(NotWritten::NoSpace) => {
                self.handover.raise(NO_SPACE);
                Err(Refused::NoSpace)
            }
            Err(NotWritten::Failed(doing, error)) => Err(self.fail(doing, &error)),
        }
    }

    /// Writes pending records and syncs everything. The caller holds `syncing`.
    pub(super) fn sync(&self) -> Result<(), Refused> {
        let mut writer = self.writer.lock();
        self.write(&mut writer)?;
        let (file, first, written) = (writer.file(), writer.first(), self.handover.written());
        drop(writer);
        if written == self.handover.synced() {
            return self.is_kept(file.as_deref(), first);
        }
        self.sync_file(file.as_deref(), first, written)
    }

    /// Checks that the current file is still in the folder. If it was removed, nothing in it is safe.
    pub(super) fn is_kept(&self, file: Option<&dyn AppendFile>, first: u64) -> Result<(), Refused> {
        match file.map_or(Ok(()), |file| file.is_called(&name(first))) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail("find the current log file in the data folder", &error)),
        }
    }

    /// Records the newest file. If that fails, the previous record stays, which is correct as well.
    pub(super) fn note_newest(&self) {
        let Some(noted) = &self.newest else { return };
        let first = {
            let writer = self.writer.lock();
            if writer.file().is_none() {
                return;
            }
            writer.first()
        };
        if noted.load(Relaxed) != first && newest::write(&*self.disk, first).is_ok() {
            noted.store(first, Relaxed);
        }
    }

    /// Syncs `file`, which begins with record `first`. Everything below `written` is in it, or safe already.
    fn sync_file(&self, file: Option<&dyn AppendFile>, first: u64, written: u64) -> Result<(), Refused> {
        let Some(file) = file else { return Err(Refused::NoSpace) };
        self.sync_began.store(self.ms(), Relaxed);
        let began = Instant::now();
        let done = file.sync_data();
        let micros = began.elapsed().as_micros() as u64;
        self.sync_began.store(0, Relaxed);
        self.syncs.fetch_add(1, Relaxed);
        self.last_sync_micros.store(micros, Relaxed);
        self.longest_sync_micros.fetch_max(micros, Relaxed);
        match done {
            Ok(()) => {
                self.is_kept(Some(file), first)?;
                self.waited.store(self.handover.safe(written), Relaxed);
                Ok(())
            }
            Err(error) => Err(self.fail("sync the log", &error)),
        }
    }

    /// If many tasks waited for the last sync, waits for their next requests for half the time that the sync
    /// took. Another sync would cost more.
    fn gather(&self) {
        if self.waited.load(Relaxed) >= MANY_WAITED {
            thread::sleep(Duration::from_micros(self.last_sync_micros.load(Relaxed) / 2).min(GATHER));
        }
    }

    /// See [`Log::rotate`]. The caller holds `syncing`.
    pub(super) fn rotate(&self) -> Result<u64, Refused> {
        // Sync most of it while others write. Only records since then are synced while they wait.
        self.sync()?;
        let mut writer = self.writer.lock();
        self.write(&mut writer)?;
        let next = self.handover.written();
        if next != self.handover.synced() {
            self.sync_file(writer.file().as_deref(), writer.first(), next)?;
        }
        if writer.first() != next {
            let begun = writer.rotate(next, &*self.disk);
            self.rotate_after_ms.store(if begun.is_err() { self.ms() + ROTATE_AGAIN_MS } else { 0 }, Relaxed);
            match begun {
                Ok(()) => {}
                // The old file continues. If the disk is full or failed, its next write or sync will show
                // that.
                Err(NotBegun::Unfinished(_)) => {
                    self.rotations_failed.fetch_add(1, Relaxed);
                    return Err(Refused::NoNewFile);
                }
                Err(NotBegun::Unnamed(error)) => {
                    return Err(self.fail("rename a new log file into place", &error));
                }
            }
        }
        drop(writer);
        self.note_newest();
        Ok(next)
    }

    pub(super) fn figures(&self) -> Figures {
        let writer = self.writer.lock();
        Figures {
            segments: writer.extents().count(),
            bytes: writer.extents().map(|extent| extent.bytes).sum(),
            pending_bytes: writer.stuck_bytes() + self.handover.pending_bytes(),
            next: self.handover.next(),
            written: self.handover.written(),
            synced: self.handover.synced(),
            syncs: self.syncs.load(Relaxed),
            last_sync_micros: self.last_sync_micros.load(Relaxed),
            longest_sync_micros: self.longest_sync_micros.load(Relaxed),
            running_sync_millis: self.running_sync_ms(),
            delayed: self.delayed.load(Relaxed),
            rotations_failed: self.rotations_failed.load(Relaxed),
        }
    }

    /// The loop of the thread.
    pub(super) fn run(&self) {
        let mut due = Instant::now() + SYNC_EVERY;
        loop {
            let policy = self.policy();
            let call = match self.refused() {
                Some(Refused::NoSpace) => self.handover.wait(false, Some(RETRY)),
                Some(_) => self.handover.wait(false, None),
                None => match policy {
                    Policy::Always => self.handover.wait(true, None),
                    Policy::EverySec | Policy::No => {
                        self.handover.wait(false, Some(due.saturating_duration_since(Instant::now())))
                    }
                },
            };
            let late = due <= Instant::now();
            let retry = self.refused() == Some(Refused::NoSpace);
            let wanted = match call {
                Call::Stop => return,
                Call::Wanted => true,
                Call::Look => retry || policy == Policy::Always || policy == Policy::EverySec && late,
            };
            let _syncing = self.syncing.lock();
            if late || wanted {
                due = Instant::now() + SYNC_EVERY;
            }
            // Waiting tasks see a failure in the state.
            if wanted {
                let before = self.handover.synced();
                if call == Call::Wanted {
                    self.gather();
                }
                if self.sync().is_ok() && call == Call::Wanted && self.handover.synced() == before {
                    // The wanted records are in a group that has not ended.
                    thread::sleep(UNFINISHED_GROUP);
                }
            } else if self.refused().is_none() {
                // Records that no thread commits are written as well.
                let mut writer = self.writer.lock();
                let written = self.write(&mut writer);
                let (file, first) = (writer.file(), writer.first());
                drop(writer);
                if late && written.is_ok() {
                    let _ = self.is_kept(file.as_deref(), first);
                }
            }
            if self.refused().is_none() && self.writer.lock().bytes() > self.limits.segment_bytes {
                // If no new file can be created, the old one continues, and the next attempt comes later.
                if self.rotate_after_ms.load(Relaxed) <= self.ms() {
                    let _ = self.rotate();
                }
            }
        }
    }
}
