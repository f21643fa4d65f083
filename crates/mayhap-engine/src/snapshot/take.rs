//! Writing a snapshot in parts.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;

use super::file::{Output, PART, PIECE_BYTES};
use super::manifest::{self, LATE, file_name};
use super::store::{Gate, LARGE_BYTES, Store};
use super::{Done, FILE, Large, MANIFEST, Manifest, PartFile, Saved, SnapshotError, UNFINISHED, failed};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::journal::{Journal, PARTS, part_of};
use crate::record;

/// Names that are looked up together.
const AT_ONCE: u64 = 100;
/// So many names that came late are written with everybody at work. From then on everybody waits, for a while at a time: more are written in
/// that time than can come between two of them.
const LATE_AT_WORK: usize = 10_000;
/// How long everybody waits at a time.
const LATE_NS: u64 = 40_000_000;
/// So many large values that came late are written. Whoever moves them around goes on for ever, and they are written with everybody at work.
const LATE_LARGE: usize = 1_000;

impl Engine {
    /// Writes what changed since the last snapshot, and forgets the log before it. Requests go on meanwhile; one at a time is written. If it
    /// fails, the one before it stands.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]; [`SnapshotError::Log`] if there is no log, or it takes nothing.
    pub fn snapshot(&self, disk: &dyn Disk) -> Result<Done, SnapshotError> {
        self.begin_snapshot(disk)?.finish()
    }

    /// The same in steps, for tests that do something in between.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn begin_snapshot<'a>(&'a self, disk: &'a dyn Disk) -> Result<Snapshot<'a>, SnapshotError> {
        let journal = self.journal.get().ok_or(SnapshotError::Log(None))?;
        let mut saved = self.saved.lock();
        saved.sequence += 1;
        let sequence = saved.sequence;
        let refused = |refused| SnapshotError::Log(Some(refused));
        journal.log.rotate().map_err(refused)?;
        let (play_from, changed, parameters) = {
            // What takes long goes on meanwhile: it marks a part before its record gets a number, and remembers names that are made of others
            // behind that. So what has a number below this one is marked, and who makes a name with a later one sees that it is wanted.
            let _closed = self.gate.close_for_short();
            journal.begin_late();
            #[cfg(test)]
            if self.is_spoilt(crate::journal::Spoilt::Parts) && sequence > 1 {
                journal.take_changed();
            }
            let play_from = journal.log.next();
            (play_from, journal.take_changed(), record::parameters(&self.parameters(), self.doubt.parts()))
        };
        let made_ms = self.now().ms;
        let outputs = (0..PARTS).map(|_| None).collect();
        let manifest = Manifest { sequence, made_ms, play_from, parameters, parts: Vec::new() };
        Ok(Snapshot {
            store: Store {
                engine: self,
                disk,
                sequence,
                files: Vec::new(),
                buffer: Vec::new(),
                gate: Gate::Open,
                large_bytes: LARGE_BYTES,
                piece_bytes: PIECE_BYTES,
            },
            journal,
            saved,
            changed,
            manifest,
            outputs,
            late: None,
            large: HashMap::new(),
            large_late: HashMap::new(),
            superseded: Vec::new(),
            made: Vec::new(),
            cursor: Some(0),
            at_once: AT_ONCE,
            written: false,
        })
    }

    /// Is there so much in the log since the last snapshot that another is due? More than 64 MiB, and than the snapshot itself.
    #[must_use]
    pub fn is_snapshot_due(&self) -> bool {
        const LEAST_BYTES: u64 = 64 << 20;
        let Some(journal) = self.journal.get() else { return false };
        // Not while one is being written.
        let Some(saved) = self.saved.try_lock() else { return false };
        let bytes = saved.bytes();
        journal.log.bytes_since(saved.manifest.play_from) > bytes.max(LEAST_BYTES)
    }
}

impl Saved {
    /// Bytes of all files.
    fn bytes(&self) -> u64 {
        let parts: u64 = self.manifest.parts.iter().map(|part| part.bytes).sum();
        parts + self.values().map(|large| large.bytes).sum::<u64>()
    }

    /// The files of all large values.
    fn values(&self) -> impl Iterator<Item = &Large> {
        self.large.values().chain(self.late.values()).chain(&self.superseded)
    }

    /// The names of all files.
    fn files(&self) -> HashSet<String> {
        let parts = self.manifest.parts.iter().map(PartFile::file_name);
        parts.chain(self.values().map(Large::file_name)).collect()
    }
}

/// A snapshot that is being written. Dropped before it is finished, it has not been.
pub struct Snapshot<'a> {
    store: Store<'a>,
    journal: &'a Journal,
    saved: parking_lot::MutexGuard<'a, Saved>,
    /// The parts that are written.
    changed: [bool; PARTS],
    manifest: Manifest,
    outputs: Vec<Option<Output>>,
    late: Option<Output>,
    /// The large values of the parts.
    large: HashMap<Box<[u8]>, Large>,
    /// The large values that came late.
    large_late: HashMap<Box<[u8]>, Large>,
    /// Those that came late again.
    superseded: Vec<Large>,
    /// The parts whose files were made.
    made: Vec<usize>,
    /// Where the walk over all names goes on.
    cursor: Option<u64>,
    /// Names that a step writes.
    at_once: u64,
    /// Did the manifest take its place, or might it have?
    written: bool,
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl Snapshot<'_> {
    /// Values from this size on get files of their own, instead of from 4 MiB on, and are copied in pieces of so many bytes; a step is about
    /// so many names: for tests.
    #[must_use]
    pub const fn with_sizes(mut self, large_bytes: u64, piece_bytes: usize, names: u64) -> Self {
        (self.store.large_bytes, self.store.piece_bytes) = (large_bytes, piece_bytes);
        self.at_once = names;
        self
    }

    /// Writes some names. Are there more?
    ///
    /// # Errors
    /// [`SnapshotError::Disk`].
    pub fn step(&mut self) -> Result<bool, SnapshotError> {
        let Some(cursor) = self.cursor else { return Ok(false) };
        let engine = self.store.engine;
        if !self.changed.contains(&true) {
            self.cursor = None;
            return Ok(false);
        }
        let (next, entries) = engine.walk_all(cursor, self.at_once);
        for entry in &entries {
            let part = part_of(entry.name());
            if !self.changed[part] {
                continue;
            }
            let output = match &mut self.outputs[part] {
                Some(output) => output,
                none => none.insert(begin(self.store.disk, &self.manifest, part, &mut self.made)?),
            };
            let known = self.saved.late.get(entry.name()).or_else(|| self.saved.large.get(entry.name()));
            let stored = self.store.store(entry, known, output).map_err(failed("write the snapshot"))?;
            if let Some(Some(large)) = stored {
                self.large.insert(entry.name().into(), large);
            }
        }
        self.cursor = (next != 0).then_some(next);
        Ok(self.cursor.is_some())
    }

    /// Writes all that is left, and puts it in the place of the snapshot before.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]; [`SnapshotError::Log`] if the log takes nothing any more.
    pub fn finish(mut self) -> Result<Done, SnapshotError> {
        while self.step()? {}
        self.finish_late()?;
        let disk = self.store.disk;
        let mut done = Done { play_from: self.manifest.play_from, ..Done::default() };
        // Parts in which nothing changed stay what they are, and so do the large values in them.
        let kept = |part: &&PartFile| part.part != LATE && !self.changed[part.part];
        self.manifest.parts.extend(self.saved.manifest.parts.iter().filter(kept));
        for (name, large) in &self.saved.large {
            if !self.changed[part_of(name)] {
                self.large.insert(name.clone(), *large);
            }
        }
        let outputs = std::mem::take(&mut self.outputs).into_iter().enumerate();
        let outputs = outputs.filter_map(|(part, output)| Some((part, output?)));
        for (part, output) in outputs.chain(self.late.take().map(|late| (LATE, late))) {
            let names = output.names;
            let (bytes, checksum) = output.finish().map_err(failed("write the snapshot"))?;
            done.names += names;
            done.written_bytes += bytes;
            let sequence = self.manifest.sequence;
            self.manifest.parts.push(PartFile { part, sequence, bytes, names, checksum });
        }
        let new = |large: &&Large| large.file.0 == self.manifest.sequence;
        let values = self.large.values().chain(self.large_late.values()).chain(&self.superseded);
        done.written_bytes += values.filter(new).map(|large| large.bytes).sum::<u64>();
        disk.sync_dir().map_err(failed("sync the folder of the snapshot"))?;
        // Names have numbers of the log: if it lost them, it would give them to others.
        self.journal.log.sync().map_err(|refused| SnapshotError::Log(Some(refused)))?;
        self.written = true;
        self.manifest.write(disk)?;
        self.saved.manifest = std::mem::take(&mut self.manifest);
        self.saved.large = std::mem::take(&mut self.large);
        self.saved.late = std::mem::take(&mut self.large_late);
        self.saved.superseded = std::mem::take(&mut self.superseded);
        self.changed = [false; PARTS];
        done.bytes = self.saved.bytes();
        // What is left over now is removed the next time.
        let _ = self.journal.log.forget_before(done.play_from);
        let _ = remove_stale(disk, &self.saved);
        Ok(done)
    }

    /// Writes the names that were made of others meanwhile.
    fn finish_late(&mut self) -> Result<(), SnapshotError> {
        let engine = self.store.engine;
        let now_ns = || engine.environment.monotonic_ns();
        // Until when, if it is closed.
        let mut closed = None;
        let (mut count, mut large) = (0, 0);
        while let Some(name) = self.journal.next_late() {
            count += 1;
            let Some(entry) = engine.keyspace.get(&name) else { continue };
            let is_large = self.store.is_large(&entry);
            large += usize::from(is_large);
            if large > LATE_LARGE {
                return Err(SnapshotError::Restless { values: large });
            }
            if is_large || closed.as_ref().is_some_and(|(until_ns, _)| *until_ns <= now_ns()) {
                self.store.gate = Gate::Open;
                closed = None;
            }
            if count >= LATE_AT_WORK && !is_large && closed.is_none() {
                let gate = engine.gate.close();
                closed = Some((now_ns() + LATE_NS, gate));
                self.store.gate = Gate::Closed;
            }
            let late = match &mut self.late {
                Some(late) => late,
                none => none.insert(begin(self.store.disk, &self.manifest, LATE, &mut self.made)?),
            };
            let stored = self.store.store(&entry, None, late).map_err(failed("write the snapshot"))?;
            if let Some(Some(large)) = stored {
                let before = self.large_late.insert(name, large);
                self.superseded.extend(before);
            }
        }
        Ok(())
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.journal.end_late();
        self.journal.mark_parts(&self.changed);
        if self.written {
            return;
        }
        // They are of no use to anybody. What cannot be removed now is removed the next time.
        let files = self.made.iter().map(|&part| file_name(part, self.manifest.sequence));
        let files: Vec<String> = files.chain(self.store.files.iter().map(Large::file_name)).collect();
        for file in files {
            let _ = self.store.disk.remove(&file);
        }
    }
}

fn begin(
    disk: &dyn Disk,
    manifest: &Manifest,
    part: usize,
    made: &mut Vec<usize>,
) -> Result<Output, SnapshotError> {
    made.push(part);
    let file = disk
        .create(&file_name(part, manifest.sequence))
        .map_err(failed("make a new file of the snapshot"))?;
    Output::begin(file, PART, part as u32, manifest.made_ms, manifest.play_from)
        .map_err(failed("write the snapshot"))
}

/// Removes the files of snapshots that nobody needs any more.
pub(crate) fn remove_stale(disk: &dyn Disk, saved: &Saved) -> io::Result<()> {
    let named = saved.files();
    let has_manifest = saved.manifest.sequence > 0;
    for file in disk.list()? {
        let ours = file.starts_with("part-") || file.starts_with("value-");
        let unfinished = file == manifest::UNFINISHED || file == UNFINISHED;
        // What the one file said is in the parts.
        let old = file == FILE && has_manifest;
        if ours && !named.contains(&file) || unfinished || old {
            disk.remove(&file)?;
        }
    }
    debug_assert!(!named.contains(MANIFEST));
    Ok(())
}
