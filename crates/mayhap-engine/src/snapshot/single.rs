//! A single file with everything, for an engine without a log.

use std::io;

use super::file::{Head, Input, Output, SINGLE};
use super::load::{lose, lose_if_absent, put};
use super::{Done, FILE, MANIFEST, SnapshotError, UNFINISHED, failed};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::salvage::Damage;
use crate::unknown_losses;

/// A value buffer larger than this is freed after use.
const KEPT_BYTES: usize = 16 << 20;
/// The number of names that are looked up together.
const AT_ONCE: u64 = 100;

/// Writes everything to [`FILE`]. Requests continue meanwhile. If it fails, the previous file stays.
///
/// # Errors
/// [`SnapshotError::Disk`]; [`SnapshotError::Log`] for an engine with a log: use [`Engine::snapshot`].
pub fn save(engine: &Engine, disk: &dyn Disk) -> Result<Done, SnapshotError> {
    if engine.log().is_some() {
        return Err(SnapshotError::Log(None));
    }
    let done = write_all(engine, disk);
    if done.is_err() {
        // The unfinished file is useless. If it cannot be removed, the next one replaces it.
        let _ = disk.remove(UNFINISHED);
    }
    done
}

fn write_all(engine: &Engine, disk: &dyn Disk) -> Result<Done, SnapshotError> {
    let file = disk.create(UNFINISHED).map_err(failed("create the new snapshot"))?;
    let mut out = Output::begin(file, SINGLE, 0, engine.now().ms, engine.unknown_losses.parts())
        .map_err(failed("write the snapshot"))?;
    write_records(engine, &mut out).map_err(failed("write the snapshot"))?;
    let names = out.names;
    let (bytes, _) = out.finish().map_err(failed("sync the snapshot"))?;
    disk.rename(UNFINISHED, FILE).map_err(failed("rename the new snapshot into place"))?;
    disk.sync_dir().map_err(failed("sync the folder of the snapshot"))?;
    Ok(Done { names, bytes, written_bytes: bytes, ..Done::default() })
}

fn write_records(engine: &Engine, out: &mut Output) -> io::Result<()> {
    let (mut cursor, mut buffer) = (0, Vec::new());
    loop {
        let (next, entries) = engine.walk(cursor, AT_ONCE, None, engine.now(), |_| true);
        for entry in &entries {
            write_entry(engine, entry, &mut buffer, out)?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}

fn write_entry(engine: &Engine, entry: &Entry, buffer: &mut Vec<u8>, out: &mut Output) -> io::Result<()> {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
    let head = {
        let _open = engine.gate.pass();
        let mut held = entry.write();
        let is_gone = !entry.is_linked() || engine.is_due(entry, engine.now());
        let Some(value) = held.as_mut().filter(|_| !is_gone) else { return Ok(()) };
        value.store(buffer)?;
        Head::of(entry, value.form(), engine.expiries.get(entry))
    };
    out.record(&head, buffer)
}

/// Reads [`FILE`] into an empty engine. `None` if there is no such file.
///
/// # Errors
/// [`SnapshotError`]; the engine is empty then. A file with any damage is rejected as a whole, and the error
/// names the first damage. [`SnapshotError::Log`] if there is a manifest: [`Engine::recover`] reads that.
pub fn load(engine: &Engine, disk: &dyn Disk) -> Result<Option<Done>, SnapshotError> {
    if Input::open(disk, MANIFEST)?.is_some() {
        return Err(SnapshotError::Log(None));
    }
    let Some(mut input) = Input::open(disk, FILE)? else { return Ok(None) };
    let now = engine.now();
    let done = read_all(engine, &mut input, |deadline| deadline <= now.ms);
    if done.is_err() {
        let _closed = engine.gate.close();
        engine.flush();
    }
    done.map(Some)
}

/// Reads everything except names whose deadlines are `over`.
pub(super) fn read_all(
    engine: &Engine,
    input: &mut Input,
    over: impl Fn(u64) -> bool,
) -> Result<Done, SnapshotError> {
    let header = input.header(SINGLE)?;
    engine.unknown_losses.set(header.position);
    let mut done = Done::default();
    input.records(header.version, |file, at, head, value| {
        if head.deadline.is_some_and(&over) {
            done.skipped += 1;
            return Ok(());
        }
        done.names += 1;
        put(engine, file, at, &head, value)
    })?;
    input.end()?;
    Ok(Done { bytes: input.offset, ..done })
}

/// Reads everything that is undamaged.
pub(super) fn salvage(
    engine: &Engine,
    input: &mut Input,
    damage: &mut Vec<Damage>,
) -> Result<(), SnapshotError> {
    let header = input.header(SINGLE)?;
    engine.unknown_losses.add(header.position);
    let mut put_or_lose = |file: &str, at: u64, head: Head, value: &mut Vec<u8>| {
        if let Err(error) = put(engine, file, at, &head, value) {
            lose(engine, &head);
            damage.push(Damage { name: Some(head.name), ..Damage::from(error) });
        }
        Ok(())
    };
    let mut mistaken = Vec::new();
    let read = input.records_but(header.version, &mut put_or_lose, |name, error| {
        mistaken.push((name, error));
        Ok(())
    });
    if !mistaken.is_empty() {
        // The name itself may be the damaged part.
        engine.unknown_losses.add(unknown_losses::ALL);
    }
    for (name, error) in mistaken {
        lose_if_absent(engine, &name);
        damage.push(Damage { name: Some(name), ..Damage::from(error) });
    }
    read?;
    input.end().map(drop)
}
