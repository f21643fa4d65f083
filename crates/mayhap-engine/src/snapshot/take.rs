//! Writes a snapshot in parts.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;

use super::file::{Output, PART, PIECE_BYTES};
use super::manifest::{self, LATE, file_name};
use super::store::{GateState, LARGE_BYTES, Store};
use super::{Done, FILE, Large, MANIFEST, Manifest, PartFile, Saved, SnapshotError, UNFINISHED, failed};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::journal::{Journal, PARTS, part_of};
use crate::record;

/// The number of names that are looked up together.
const AT_ONCE: u64 = 100;
/// The number of late names that are written while requests run. After that, requests are stopped for short
/// times, in which more names are written than can be added in between.
const LATE_AT_WORK: usize = 10_000;
/// The time for which requests are stopped.
const LATE_NS: u64 = 40_000_000;
/// The maximum number of late large values. They are written while requests run, so a client that keeps
/// moving them would never let the snapshot end.
const LATE_LARGE: usize = 1_000;

impl Engine {
    /// Writes the changes since the last snapshot, and removes the log before it. Requests continue
    /// meanwhile. Only one snapshot is written at a time. If it fails, the previous one stays.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]; [`SnapshotError::Log`] if there is no log or it accepts no changes.
    pub fn snapshot(&self, disk: &dyn Disk) -> Result<Done, SnapshotError> {
        self.begin_snapshot(disk)?.finish()
    }

    /// As [`snapshot`](Self::snapshot), in steps, for tests that act in between.
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
            // Requests that take long continue. They mark a part before their record gets a number, and add
            // late names after that. So every change with a number below this one is marked, and a request
            // with a later number sees that late names are wanted.
            let _closed = self.gate.close_for_short();
            journal.begin_late();
            #[cfg(test)]
            if self.is_spoilt(crate::journal::Spoilt::Parts) && sequence > 1 {
                journal.take_changed();
            }
            let play_from = journal.log.next();
            (
                play_from,
                journal.take_changed(),
                record::parameters(&self.parameters(), self.unknown_losses.parts()),
            )
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
                gate: GateState::Open,
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

    /// Whether the log since the last snapshot is so long that another one is due: longer than 64 MiB and
    /// than the snapshot.
    #[must_use]
    pub fn is_snapshot_due(&self) -> bool {
        const LEAST_BYTES: u64 = 64 << 20;
        let Some(journal) = self.journal.get() else { return false };
        // Not while a snapshot is being written.
        let Some(saved) = self.saved.try_lock() else { return false };
        let bytes = saved.bytes();
        journal.log.bytes_since(saved.manifest.play_from) > bytes.max(LEAST_BYTES)
    }
}

impl Saved {
    /// Size of all files in bytes.
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

/// A snapshot while it is written. If it is dropped before [`finish`](Self::finish), it has no effect.
pub struct Snapshot<'a> {
    store: Store<'a>,
    journal: &'a Journal,
    saved: parking_lot::MutexGuard<'a, Saved>,
    /// The parts to write.
    changed: [bool; PARTS],
    manifest: Manifest,
    outputs: Vec<Option<Output>>,
    late: Option<Output>,
    /// The large values of the parts.
    large: HashMap<Box<[u8]>, Large>,
    /// The large values of late names.
    large_late: HashMap<Box<[u8]>, Large>,
    /// The large values of names that were written late again.
    superseded: Vec<Large>,
    /// The parts whose files were created.
    made: Vec<usize>,
    /// The cursor of the walk over all names.
    cursor: Option<u64>,
    /// The number of names per step.
    at_once: u64,
    /// Whether the manifest was replaced, or may have been.
    written: bool,
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl Snapshot<'_> {
    /// Sets, for tests, the size from which on values get files of their own (4 MiB otherwise), the size of a
    /// piece and the number of names per step.
    #[must_use]
    pub const fn with_sizes(mut self, large_bytes: u64, piece_bytes: usize, names: u64) -> Self {
        (self.store.large_bytes, self.store.piece_bytes) = (large_bytes, piece_bytes);
        self.at_once = names;
        self
    }

    /// Writes some names. Returns whether there are more.
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

    /// Writes everything that is left, and replaces the previous snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]; [`SnapshotError::Log`] if the log no longer accepts changes.
    pub fn finish(mut self) -> Result<Done, SnapshotError> {
        while self.step()? {}
        self.finish_late()?;
        let disk = self.store.disk;
        let mut done = Done { play_from: self.manifest.play_from, ..Done::default() };
        // Parts without a change keep their files, and so do the large values in them.
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
        // Names have numbers of the log. If the log lost those records, it would give their numbers to
        // others.
        self.journal.log.sync().map_err(|refused| SnapshotError::Log(Some(refused)))?;
        self.written = true;
        self.manifest.write(disk)?;
        self.saved.manifest = std::mem::take(&mut self.manifest);
        self.saved.large = std::mem::take(&mut self.large);
        self.saved.late = std::mem::take(&mut self.large_late);
        self.saved.superseded = std::mem::take(&mut self.superseded);
        self.changed = [false; PARTS];
        done.bytes = self.saved.bytes();
        // Files that cannot be removed now are removed next time.
        let _ = self.journal.log.forget_before(done.play_from);
        let _ = remove_stale(disk, &self.saved);
        Ok(done)
    }

    /// Writes the late names: those made from others meanwhile.
    fn finish_late(&mut self) -> Result<(), SnapshotError> {
        let engine = self.store.engine;
        let now_ns = || engine.environment.monotonic_ns();
        // The time until which the gate is closed, if it is.
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
                self.store.gate = GateState::Open;
                closed = None;
            }
            if count >= LATE_AT_WORK && !is_large && closed.is_none() {
                let gate = engine.gate.close();
                closed = Some((now_ns() + LATE_NS, gate));
                self.store.gate = GateState::Closed;
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
        // These files are useless. Those that cannot be removed now are removed next time.
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
    let file =
        disk.create(&file_name(part, manifest.sequence)).map_err(failed("create a new snapshot file"))?;
    Output::begin(file, PART, part as u32, manifest.made_ms, manifest.play_from)
        .map_err(failed("write the snapshot"))
}

/// Removes the files of snapshots that are no longer needed.
pub(crate) fn remove_stale(disk: &dyn Disk, saved: &Saved) -> io::Result<()> {
    let named = saved.files();
    let has_manifest = saved.manifest.sequence > 0;
    for file in disk.list()? {
        let ours = file.starts_with("part-") || file.starts_with("value-");
        let unfinished = file == manifest::UNFINISHED || file == UNFINISHED;
        // The contents of the single file are in the parts now.
        let old = file == FILE && has_manifest;
        if ours && !named.contains(&file) || unfinished || old {
            disk.remove(&file)?;
        }
    }
    debug_assert!(!named.contains(MANIFEST));
    Ok(())
}
