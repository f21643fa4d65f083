//! What the log's thread and everybody else do with it: writing, syncing, beginning files, and telling when that fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::Refused;
use super::figures::Figures;
use super::handover::{BEHIND, CLOSED, Call, FAILED, Handover, NO_SPACE};
use super::policy::Policy;
use super::writer::{NotBegun, NotWritten, Writer};
use super::{Commit, Limits, name, newest};
use crate::disk::{AppendFile, Disk};

/// How often a full disk is asked again.
const RETRY: Duration = Duration::from_millis(100);
/// From the beginning of one sync to the beginning of the next, with `everysec`: what a power loss takes is what was written
/// since the last sync that ended, and that is to be less than a second with the sync itself.
const SYNC_EVERY: Duration = Duration::from_millis(500);
/// How long the thread waits for somebody else's group to end.
const UNFINISHED_GROUP: Duration = Duration::from_micros(200);
/// So many that waited for one sync are worth waiting for: they are answered now, and most of them will ask for another at once.
const MANY_WAITED: usize = 8;
/// The longest that is waited for them.
const GATHER: Duration = Duration::from_millis(1);
/// With `everysec`, a request that writes waits for a sync that has been going on for longer than this, as in Redis.
const SLOW_SYNC_MS: u64 = 2000;

/// How long a file that could not be begun is not tried again.
const ROTATE_AGAIN_MS: u64 = 200;

/// All of a log but its thread.
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) handover: Handover,
    /// Who has it makes things safe; see the order in the module.
    pub(super) syncing: Mutex<()>,
    pub(super) writer: Mutex<Writer>,
    pub(super) policy: AtomicU8,
    /// Why it failed.
    pub(super) failure: Mutex<Option<String>>,
    pub(super) began: Instant,
    /// When the sync that is going on began, in milliseconds since `began` and one; 0: there is none.
    pub(super) sync_began: AtomicU64,
    pub(super) syncs: AtomicU64,
    /// How many waited for the last one.
    pub(super) waited: AtomicUsize,
    pub(super) last_sync_micros: AtomicU64,
    pub(super) longest_sync_micros: AtomicU64,
    pub(super) delayed: AtomicU64,
    pub(super) rotations_failed: AtomicU64,
    /// Until then, as [`Shared::ms`] tells, no file is begun because one is long.
    pub(super) rotate_after_ms: AtomicU64,
    /// The number of the newest file that is written down, if it is to be.
    pub(super) newest: Option<AtomicU64>,
    pub(super) limits: Limits,
}

impl Shared {
    pub(super) fn policy(&self) -> Policy {
        Policy::from_number(self.policy.load(Relaxed))
    }

    /// The first flag that forbids changes.
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
        if self.handover.flags() & BEHIND != 0 {
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

    /// Hands everything below `next` to the system; with `everysec`, that is not done while a sync takes long.
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

    /// For how long the sync that is going on has been.
    fn running_sync_ms(&self) -> u64 {
        match self.sync_began.load(Relaxed) {
            0 => 0,
            began => self.ms().saturating_sub(began),
        }
    }

    /// Milliseconds since the log was opened, and one.
    pub(super) fn ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    pub(super) fn look(&self, next: u64) -> Poll<Result<(), Refused>> {
        if self.policy() != Policy::Always {
            // Nobody else writes it.
            return Poll::Ready(self.write_as_asked(next));
        }
        match self.refused() {
            _ if self.handover.synced() >= next => Poll::Ready(Ok(())),
            Some(refused) => Poll::Ready(Err(refused)),
            None => Poll::Pending,
        }
    }

    /// Hands everything below `next` to the system.
    pub(super) fn write_up_to(&self, next: u64) -> Result<(), Refused> {
        if self.handover.written() >= next {
            return Ok(());
        }
        let mut writer = self.writer.lock();
        // Whoever had the writer before may have written it.
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

    /// Nothing goes on.
    pub(super) fn fail(&self, doing: &'static str, error: &io::Error) -> Refused {
        self.failure.lock().get_or_insert_with(|| format!("cannot {doing}: {error}"));
        self.handover.raise(FAILED);
        Refused::Failed
    }

    /// Writes what is pending.
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

    /// Writes what is pending, and makes everything safe. The caller has `syncing`.
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

    /// Is the file that is being written where it is looked for at the next start? If it was removed, nothing in it is safe.
    pub(super) fn is_kept(&self, file: Option<&dyn AppendFile>, first: u64) -> Result<(), Refused> {
        match file.map_or(Ok(()), |file| file.is_called(&name(first))) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail("keep the log", &error)),
        }
    }

    /// Writes down which file is the newest. If that fails the one before stays written down, which is true as well.
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

    /// Everything below `written` is in `file`, which begins with record `first`, or safe already.
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

    /// Lets those come who waited for the last sync, if they were many: half as long as it took. One more sync costs more than that.
    fn gather(&self) {
        if self.waited.load(Relaxed) >= MANY_WAITED {
            thread::sleep(Duration::from_micros(self.last_sync_micros.load(Relaxed) / 2).min(GATHER));
        }
    }

    /// See [`Log::rotate`]. The caller has `syncing`.
    pub(super) fn rotate(&self) -> Result<u64, Refused> {
        // Most of it is made safe while others write; only what came meanwhile is while they wait.
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
                // The old file goes on. If the disk is full or worse, its next write or sync will tell.
                Err(NotBegun::Unfinished(_)) => {
                    self.rotations_failed.fetch_add(1, Relaxed);
                    return Err(Refused::NoNewFile);
                }
                Err(NotBegun::Unnamed(error)) => {
                    return Err(self.fail("put a file of the log in its place", &error));
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

    /// What the thread does.
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
            // Whoever waits is told by the state.
            if wanted {
                let before = self.handover.synced();
                if call == Call::Wanted {
                    self.gather();
                }
                if self.sync().is_ok() && call == Call::Wanted && self.handover.synced() == before {
                    // What is wanted is in a group that is not whole yet.
                    thread::sleep(UNFINISHED_GROUP);
                }
            } else if self.refused().is_none() {
                // What nobody commits is written all the same.
                let mut writer = self.writer.lock();
                let written = self.write(&mut writer);
                let (file, first) = (writer.file(), writer.first());
                drop(writer);
                if late && written.is_ok() {
                    let _ = self.is_kept(file.as_deref(), first);
                }
            }
            if self.refused().is_none() && self.writer.lock().bytes() > self.limits.segment_bytes {
                // If there is no new file to be had, the old one goes on, and is asked for another one later.
                if self.rotate_after_ms.load(Relaxed) <= self.ms() {
                    let _ = self.rotate();
                }
            }
        }
    }
}
