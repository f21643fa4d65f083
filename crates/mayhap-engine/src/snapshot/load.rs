//! Reading what the manifest names.

use std::io::{self, Read};

use mayhap_command::Value;
use mayhap_command::stored::seal;

use super::file::{Head, Input, PART};
use super::manifest::LATE;
use super::{Done, FILE, Large, Manifest, PartFile, Saved, SnapshotError, single};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::journal::PARTS;
use crate::salvage::Damage;

/// What was read, beside what is in the engine now.
pub(crate) struct Loaded {
    pub(crate) saved: Saved,
    pub(crate) done: Done,
    /// Parts that the next snapshot has to write again.
    pub(crate) changed: [bool; PARTS],
    /// Higher than the number of any name.
    pub(crate) numbers_below: u64,
}

/// Reads what the manifest names, or [`FILE`] if there is none, into an engine that is empty. Names whose time is up are read as well: whether
/// they are gone is for the log to say.
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
    // What came late takes the place of what is there already.
    manifest.parts.sort_unstable_by_key(|part| part.part);
    for part in &manifest.parts {
        load_part(engine, disk, part, &mut loaded)?;
    }
    loaded.saved.manifest = manifest;
    Ok(loaded)
}

/// Reads whatever is as it was written, into an engine that is empty. From which number on is the log to be played?
pub(crate) fn salvage(engine: &Engine, disk: &dyn Disk, damage: &mut Vec<Damage>) -> u64 {
    let manifest = match Manifest::read(disk) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            match Input::open(disk, FILE) {
                Ok(None) => {}
                Ok(Some(mut input)) => {
                    damage.extend(single::read_all(engine, &mut input, |_| false).err().map(Damage::from));
                }
                Err(error) => damage.push(error.into()),
            }
            return 0;
        }
        Err(error) => {
            damage.push(error.into());
            // The newest file of every part, and all there is of the log.
            let names = disk.list().unwrap_or_default();
            Manifest { parts: newest_parts(&names), ..Manifest::default() }
        }
    };
    let mut parts = manifest.parts;
    parts.sort_unstable_by_key(|part| part.part);
    for part in &parts {
        if let Err(error) = salvage_part(engine, disk, part, damage) {
            damage.push(error.into());
        }
    }
    manifest.play_from
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

/// Reads the names of a part up to the first that is damaged; a value in a damaged file of its own is left out.
fn salvage_part(
    engine: &Engine,
    disk: &dyn Disk,
    part: &PartFile,
    damage: &mut Vec<Damage>,
) -> Result<(), SnapshotError> {
    let mut input = Input::must_open(disk, &part.file_name())?;
    let (version, number) = input.header(PART)?;
    if version != PART || number as usize != part.part {
        return input.damaged_at(8, "it is another part");
    }
    input.records(version, |file, at, head, value| {
        let had = match head.own_file {
            true => large(file, at, &head, value).and_then(|large| read_value(disk, &large, value)),
            false => Ok(()),
        };
        let had = had.and_then(|()| put(engine, file, at, &head, value));
        damage.extend(had.err().map(|error| Damage { name: Some(head.name), ..Damage::from(error) }));
        Ok(())
    })?;
    input.end().map(drop)
}

fn load_part(
    engine: &Engine,
    disk: &dyn Disk,
    part: &PartFile,
    loaded: &mut Loaded,
) -> Result<(), SnapshotError> {
    let mut input = Input::must_open(disk, &part.file_name())?;
    let (version, number) = input.header(PART)?;
    if version != PART || number as usize != part.part {
        return input.damaged_at(8, "it is another part");
    }
    let names = input.records(version, |file, at, head, value| {
        loaded.numbers_below = loaded.numbers_below.max(head.number);
        if part.part == LATE {
            loaded.changed[crate::journal::part_of(&head.name)] = true;
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
        return input.damaged_at(0, "it is not the file that the manifest names");
    }
    loaded.done.bytes += input.offset;
    loaded.done.names += names;
    Ok(())
}

/// The file that the value of a record stands for.
fn large(file: &str, offset: u64, head: &Head, value: &[u8]) -> Result<Large, SnapshotError> {
    let damaged = SnapshotError::Damaged { file: file.into(), offset, what: "not the number of a file" };
    let (numbers, []) = value.as_chunks::<8>() else { return Err(damaged) };
    match numbers.iter().map(|number| u64::from_le_bytes(*number)).collect::<Vec<u64>>()[..] {
        [sequence, number, bytes, checksum] => {
            Ok(Large { file: (sequence, number), bytes, checksum, number: head.number })
        }
        _ => Err(damaged),
    }
}

/// Reads a file of its own.
fn read_value(disk: &dyn Disk, large: &Large, value: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let mut input = Input::must_open(disk, &large.file_name())?;
    value.clear();
    input.append(usize::try_from(large.bytes).unwrap_or(usize::MAX), value)?;
    match input.end()? {
        checksum if checksum == large.checksum => Ok(()),
        _ => input.damaged_at(0, "it differs from its checksum"),
    }
}

/// Reads a file of its own straight into the memory of the value: what fits once must not be needed twice. `None`: not of this form, or it is
/// not as it was written; [`read_value`] tells what is wrong.
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

/// The bytes of a file, for whoever knows no snapshots.
struct Reader<'a>(&'a mut Input);

impl Read for Reader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.fill(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }
}

/// Puts a value that was read in its place.
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
