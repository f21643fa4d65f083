//! Reads the files that the manifest names.

use std::io::{self, Read};

use mayhap_command::stored::seal;
use mayhap_command::{Lost, Value};

use super::file::{Head, Input, PART};
use super::manifest::LATE;
use super::{Done, FILE, Large, MANIFEST, Manifest, PartFile, Saved, SnapshotError, single};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::journal::{PARTS, part_of};
use crate::salvage::Damage;
use crate::unknown_losses;

/// What was read, apart from the contents of the engine.
pub(crate) struct Loaded {
    pub(crate) saved: Saved,
    pub(crate) done: Done,
    /// Parts that the next snapshot must write again.
    pub(crate) changed: [bool; PARTS],
    /// A number higher than that of any name.
    pub(crate) numbers_below: u64,
}

/// Reads the files that the manifest names, or [`FILE`] if there is no manifest, into an empty engine.
/// Expired names are read as well: the log decides whether they are gone.
pub(crate) fn load_all(engine: &Engine, disk: &dyn Disk) -> Result<Loaded, SnapshotError> {
    let mut loaded =
        Loaded { saved: Saved::default(), done: Done::default(), changed: [false; PARTS], numbers_below: 0 };
    let Some(mut manifest) = Manifest::read(disk)? else {
        if let Some(mut input) = Input::open(disk, FILE)? {
            loaded.done = single::read_all(engine, &mut input, |_| false)?;
            loaded.changed = [true; PARTS];
        }
        return Ok(loaded);
    };
    loaded.saved.sequence = manifest.sequence;
    loaded.done.play_from = manifest.play_from;
    // Late names replace those that are already there.
    manifest.parts.sort_unstable_by_key(|part| part.part);
    for part in &manifest.parts {
        load_part(engine, disk, part, &mut loaded)?;
    }
    loaded.saved.manifest = manifest;
    Ok(loaded)
}

/// The readable part of a damaged snapshot.
#[derive(Debug, Default)]
pub(crate) struct SalvagedSnapshot {
    /// The number of the log record from which on to replay.
    pub(crate) from: u64,
    /// A number higher than that of any name.
    pub(crate) seen: u64,
    /// Whether any name may be wrong. Then all of them are lost.
    pub(crate) all_lost: bool,
    /// A record to replay first: the defaults for new filters at that time. Empty if they are unknown.
    pub(crate) parameters: Vec<u8>,
}

/// Reads everything that is undamaged into an empty engine. Lost names are marked in the engine, and so are
/// parts that lost an unknown set of names.
pub(crate) fn salvage(engine: &Engine, disk: &dyn Disk, damage: &mut Vec<Damage>) -> SalvagedSnapshot {
    let mut found = SalvagedSnapshot::default();
    let names = disk.list().unwrap_or_default();
    let newest = newest_parts(&names);
    let logs = || names.iter().filter_map(|name| crate::log::number_of(name));
    let manifest = match Manifest::read(disk) {
        Ok(Some(manifest)) => Some(manifest),
        // The first snapshot was never finished: the log has everything.
        Ok(None) if newest.is_empty() || logs().any(|first| first == 0) => {
            match Input::open(disk, FILE) {
                Ok(None) => {}
                Ok(Some(mut input)) => {
                    if let Err(error) = single::salvage(engine, &mut input, damage) {
                        damage.push(error.into());
                        engine.unknown_losses.add(unknown_losses::ALL);
                    }
                }
                Err(error) => {
                    damage.push(error.into());
                    engine.unknown_losses.add(unknown_losses::ALL);
                }
            }
            return found;
        }
        Ok(None) => {
            damage.push(SnapshotError::Missing { file: MANIFEST.into() }.into());
            None
        }
        Err(error) => {
            damage.push(error.into());
            None
        }
    };
    let is_known = manifest.is_some();
    let mut parts = manifest.as_ref().map_or(newest, |manifest| manifest.parts.clone());
    parts.sort_unstable_by_key(|part| part.part);
    let mut position = 0;
    for part in &parts {
        match salvage_part(engine, disk, part, damage, &mut found.seen) {
            Ok(written_at) => position = position.max(written_at),
            Err(error) => {
                damage.push(error.into());
                match part.part {
                    // They may be names of any part, and the parts contain outdated values for them.
                    LATE => found.all_lost = true,
                    part => engine.unknown_losses.add(unknown_losses::bit(part)),
                }
            }
        }
    }
    found.from = match manifest {
        Some(manifest) => {
            found.parameters = manifest.parameters;
            manifest.play_from
        }
        // Replay the whole log: it begins at or before the required record.
        None => logs().min().unwrap_or(u64::MAX),
    };
    if !is_known {
        // A part without a file may have had one.
        engine.unknown_losses.add(unknown_losses::ALL);
        found.all_lost |= found.from > position;
        found.from = found.from.min(position);
    }
    found
}

/// The newest file of every part among these names.
fn newest_parts(names: &[String]) -> Vec<PartFile> {
    let mut newest: Vec<PartFile> = Vec::new();
    for name in names {
        let Some((part, sequence)) = name.strip_prefix("part-").and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        let part = if part == "late" { Some(LATE) } else { part.parse().ok().filter(|part| *part < LATE) };
        let (Some(part), Ok(sequence)) = (part, sequence.parse()) else { continue };
        let file = PartFile { part, sequence, bytes: 0, names: 0, checksum: 0 };
        match newest.iter_mut().find(|there| there.part == part) {
            Some(there) if there.sequence < sequence => *there = file,
            Some(_) => {}
            None => newest.push(file),
        }
    }
    newest
}

/// Reads the names of a part. Damaged ones are lost. Returns the number of the log record from which on to
/// replay, as of when the part was written.
fn salvage_part(
    engine: &Engine,
    disk: &dyn Disk,
    part: &PartFile,
    damage: &mut Vec<Damage>,
    seen: &mut u64,
) -> Result<u64, SnapshotError> {
    let mut input = Input::must_open(disk, &part.file_name())?;
    let header = input.header(PART)?;
    if header.version != PART || header.part as usize != part.part {
        return input.damaged_at(8, "the file belongs to another part");
    }
    let mut mistaken = Vec::new();
    let each = |file: &str, at: u64, head: Head, value: &mut Vec<u8>| {
        *seen = (*seen).max(head.number);
        // Without a manifest, the newest file of late names may be older than that of a part.
        if engine.keyspace.get(&head.name).is_some_and(|entry| entry.number() > head.number) {
            return Ok(());
        }
        let had = match head.own_file {
            true => large(file, at, &head, value).and_then(|large| read_value(disk, &large, value)),
            false => Ok(()),
        };
        if let Err(error) = had.and_then(|()| put(engine, file, at, &head, value)) {
            lose(engine, &head);
            damage.push(Damage { name: Some(head.name), ..Damage::from(error) });
        }
        Ok(())
    };
    let read = input.records_but(header.version, each, |name, error| {
        mistaken.push((name, error));
        Ok(())
    });
    let read = read.and_then(|_| input.end());
    let had_mistakes = !mistaken.is_empty();
    for (name, error) in mistaken {
        // The name itself may be the damaged part. The parts contain outdated values of late names.
        if part.part == LATE || part_of(&name) == part.part {
            lose_if_absent(engine, &name);
        }
        damage.push(Damage { name: Some(name), ..Damage::from(error) });
    }
    read?;
    match (had_mistakes, part.part) {
        (true, LATE) => input.damaged_at(0, "names that were written late are damaged"),
        (true, part) => {
            engine.unknown_losses.add(unknown_losses::bit(part));
            Ok(header.position)
        }
        _ => Ok(header.position),
    }
}

/// Marks the value of a name as lost.
pub(super) fn lose(engine: &Engine, head: &Head) {
    place(engine, head, Value::Lost(Lost::Value));
}

/// Marks the value of a name as lost if the name does not exist.
pub(super) fn lose_if_absent(engine: &Engine, name: &[u8]) {
    if engine.keyspace.get(name).is_none() {
        let _open = engine.gate.pass();
        engine.hold(name, engine.now(), |hold| hold.put(Value::Lost(Lost::Value)));
    }
}

fn load_part(
    engine: &Engine,
    disk: &dyn Disk,
    part: &PartFile,
    loaded: &mut Loaded,
) -> Result<(), SnapshotError> {
    let mut input = Input::must_open(disk, &part.file_name())?;
    let header = input.header(PART)?;
    if header.version != PART || header.part as usize != part.part {
        return input.damaged_at(8, "the file belongs to another part");
    }
    let names = input.records(header.version, |file, at, head, value| {
        loaded.numbers_below = loaded.numbers_below.max(head.number);
        if part.part == LATE {
            loaded.changed[part_of(&head.name)] = true;
        }
        let mut read = None;
        if head.own_file {
            let large = large(file, at, &head, value)?;
            read = stream_value(engine, disk, &large, &head)?;
            if read.is_none() {
                read_value(disk, &large, value)?;
            }
            loaded.done.bytes += large.bytes;
            let saved = &mut loaded.saved;
            let files = if part.part == LATE { &mut saved.late } else { &mut saved.large };
            let before = files.insert(head.name.clone().into(), large);
            saved.superseded.extend(before);
        }
        match read {
            Some(value) => {
                place(engine, &head, value);
                Ok(())
            }
            None => put(engine, file, at, &head, value),
        }
    })?;
    let checksum = input.end()?;
    if (input.offset, names, checksum) != (part.bytes, part.names, part.checksum) {
        return input.damaged_at(0, "the file is not the one that the manifest names");
    }
    loaded.done.bytes += input.offset;
    loaded.done.names += names;
    Ok(())
}

/// Returns the file that the value of a record refers to.
fn large(file: &str, offset: u64, head: &Head, value: &[u8]) -> Result<Large, SnapshotError> {
    let damaged = SnapshotError::Damaged { file: file.into(), offset, what: "invalid reference to a file" };
    let (numbers, []) = value.as_chunks::<8>() else { return Err(damaged) };
    match numbers.iter().map(|number| u64::from_le_bytes(*number)).collect::<Vec<u64>>()[..] {
        [sequence, number, bytes, checksum] => {
            Ok(Large { file: (sequence, number), bytes, checksum, number: head.number })
        }
        _ => Err(damaged),
    }
}

/// Reads the file of a large value.
fn read_value(disk: &dyn Disk, large: &Large, value: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let mut input = Input::must_open(disk, &large.file_name())?;
    value.clear();
    input.append(usize::try_from(large.bytes).unwrap_or(usize::MAX), value)?;
    match input.end()? {
        checksum if checksum == large.checksum => Ok(()),
        _ => input.damaged_at(0, "the file does not match its checksum"),
    }
}

/// Reads the file of a large value straight into the memory of the value, which therefore needs the memory
/// only once. `None` if the form does not allow it or the file is damaged; [`read_value`] reports the error.
fn stream_value(
    engine: &Engine,
    disk: &dyn Disk,
    large: &Large,
    head: &Head,
) -> Result<Option<Value>, SnapshotError> {
    let mut input = Input::must_open(disk, &large.file_name())?;
    let read = engine.with_unlimited(|context| {
        let mut reader = Reader(&mut input);
        Value::read(head.form, &mut reader, large.bytes, !head.in_pieces, context)
    });
    let Some(Ok(value)) = read else { return Ok(None) };
    let is_whole = input.offset == large.bytes && input.end().is_ok_and(|sum| sum == large.checksum);
    Ok(is_whole.then_some(value))
}

/// The bytes of a file, as a plain reader.
struct Reader<'a>(&'a mut Input);

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.fill(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }
}

/// Stores a value that was read under its name.
pub(super) fn put(
    engine: &Engine,
    file: &str,
    offset: u64,
    head: &Head,
    value: &mut [u8],
) -> Result<(), SnapshotError> {
    if head.in_pieces {
        seal(head.form, value).map_err(SnapshotError::decode(file, offset))?;
    }
    let value = engine
        .with_unlimited(|context| Value::load(head.form, value, context))
        .map_err(|source| SnapshotError::Value { file: file.into(), offset, source })?;
    place(engine, head, value);
    Ok(())
}

fn place(engine: &Engine, head: &Head, value: Value) {
    let _open = engine.gate.pass();
    engine.hold(&head.name, engine.now(), |hold| {
        hold.put(value);
        engine.expiries.set(hold.entry(), head.deadline);
        hold.entry().set_made_secs(head.made_secs);
        if let Some(last) = head.number.checked_sub(1) {
            hold.log(Some(last));
        }
    });
}
