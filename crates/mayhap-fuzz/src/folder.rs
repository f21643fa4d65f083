//! The folder of an engine with a log: the manifest, its parts, values with their own files, and the log. A recovered state must be recovered again from
//! its log, from the next snapshot, and after everything in it was used. A rejected folder must stay rejected.

use std::collections::BTreeMap;
use std::sync::Arc;

use mayhap_command::Reply;
use mayhap_engine::log::NEWEST_FILE;
use mayhap_engine::log::{Limits, Policy, Salts};
use mayhap_engine::snapshot::{FILE, MANIFEST};
use mayhap_engine::{Disk as _, Engine, Losses};

use crate::input::Input;
use crate::test_engine::{ALL_BYTES, Memory, ask, engine};
use crate::{exercise, seal};

/// The number of files in a folder.
const MOST_FILES: usize = 12;
/// The names that are used after recovery.
const MOST_NAMES: usize = 4;
/// The part for names that were added late.
const LATE: u8 = 64;
/// The kinds of files, chosen by the first byte of each.
const KINDS: usize = 6;

/// Runs the target. The first byte decides whether checksums are corrected, and from which size on a value gets its own file; the files follow.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.byte();
    let mut files = unpack(&mut input);
    if choice & 1 == 1 {
        seal::folder(&mut files);
    }
    let disk = Memory::of(files);
    look(&disk);
    let Some(first) = recovered(&disk) else {
        assert!(recovered(&disk).is_none(), "a rejected folder is rejected again");
        return;
    };
    // Values above the size limit of filters are too slow to be used a million times.
    if first.budget().used() > ALL_BYTES {
        return;
    }
    let state = state_of(&first);
    let is_same = |state: &[Held], when: &str| {
        assert!(first.log().expect("it has a log").sync().is_ok());
        let again = recovered(&disk.copy()).unwrap_or_else(|| panic!("refused {when}"));
        let found = state_of(&again);
        assert!(found == state, "{when}: {found:?}, expected {state:?}");
    };
    is_same(&state, "unchanged");
    let large_bytes = if choice & 2 == 2 { 64 } else { 4 << 20 };
    let snapshot = first.begin_snapshot(&disk).expect("saving to memory succeeds");
    snapshot.with_sizes(large_bytes, 100, 2).finish().expect("saving to memory succeeds");
    is_same(&state, "after a snapshot");
    for held in state.iter().take(MOST_NAMES) {
        exercise::all(&first, &held.name);
    }
    is_same(&state_of(&first), "after use");
}

/// Checks that salvage reads everything that is intact, and changes nothing.
fn look(disk: &Memory) {
    let before = disk.files();
    let (saved, _) = engine();
    let salvage = saved.salvage(disk, Losses::Marked).expect("memory can be read");
    assert_eq!(salvage.names, saved.totals().names);
    assert!(disk.files() == before, "salvage without repair changes nothing");
}

fn recovered(disk: &Memory) -> Option<Engine> {
    let (engine, _) = engine();
    let limits = Limits {
        salts: Salts::Seeded(disk.list().map_or(0, |files| files.len() as u64)),
        ..Limits::default()
    };
    match engine.recover_quiet(Arc::new(disk.clone()), Policy::No, limits) {
        Ok(_) => Some(engine),
        Err(_) => {
            assert_eq!(engine.totals().names, 0, "a rejected folder leaves no names in memory");
            None
        }
    }
}

/// A name and its complete state.
#[derive(Debug, PartialEq)]
struct Held {
    name: Vec<u8>,
    dump: Option<Reply>,
    deadline: Option<Reply>,
}

fn state_of(engine: &Engine) -> Vec<Held> {
    let Some(Reply::Array(names)) = ask(engine, &[b"keys", b"*"]) else { panic!("no names") };
    let held = |name: Reply| {
        let Reply::Bulk(name) = name else { panic!("not a name: {name:?}") };
        let dump = ask(engine, &[b"dump", &name]);
        Held { dump, deadline: ask(engine, &[b"pexpiretime", &name]), name }
    };
    let mut state: Vec<Held> = names.into_iter().map(held).collect();
    state.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    state
}

/// Reads files: each has a kind, the numbers in its name, and its contents.
fn unpack(input: &mut Input<'_>) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for _ in 0..MOST_FILES {
        if input.is_empty() {
            break;
        }
        let kind = input.below(KINDS);
        let (one, other) = (input.byte(), input.byte());
        let bytes = input.string().to_vec();
        files.insert(name(kind, one, other, &bytes), bytes);
    }
    files
}

fn name(kind: usize, one: u8, other: u8, bytes: &[u8]) -> String {
    match (kind, one) {
        (0, _) => MANIFEST.into(),
        (1, LATE) => format!("part-late-{other:016}"),
        (1, part) => format!("part-{part:02}-{other:016}"),
        (2, sequence) => format!("value-{sequence:016}-{other:08}"),
        (3, _) => {
            let first =
                bytes.get(24..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes));
            format!("log-{first:020}")
        }
        (4, _) => FILE.into(),
        _ => NEWEST_FILE.into(),
    }
}

/// Packs the files of a folder as input of [`run`]; files with unknown names are left out.
///
/// # Panics
/// If a file has more than 64 KiB.
#[must_use]
pub fn pack(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, bytes) in files {
        let words: Vec<&str> = name.split('-').collect();
        let number = |word: &str| word.parse::<u8>().unwrap_or(0);
        let head = match words[..] {
            [MANIFEST] => [0, 0, 0],
            ["part", "late", sequence] => [1, LATE, number(sequence)],
            ["part", part, sequence] => [1, number(part), number(sequence)],
            ["value", sequence, index] => [2, number(sequence), number(index)],
            ["log", _] => [3, 0, 0],
            [FILE] => [4, 0, 0],
            [NEWEST_FILE] => [5, 0, 0],
            _ => continue,
        };
        packed.extend_from_slice(&head);
        packed.extend_from_slice(&u16::try_from(bytes.len()).expect("a small file").to_le_bytes());
        packed.extend_from_slice(bytes);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_engine::ask_line;

    #[test]
    fn packed_folders_unpack_with_correct_checksums() {
        let disk = Memory::default();
        let engine = recovered(&disk).unwrap();
        for line in ["bf.add a x", "mf.reserve b capacity 10", "set c text"] {
            ask_line(&engine, line);
        }
        engine.begin_snapshot(&disk).unwrap().with_sizes(64, 100, 2).finish().unwrap();
        ask(&engine, &[b"bf.add", b"a", b"y"]).unwrap();
        engine.log().unwrap().sync().unwrap();
        let files = disk.files();
        assert!(files.keys().any(|name| name.starts_with("value-")), "{:?}", files.keys());
        let packed = pack(&files);
        let mut unpacked = unpack(&mut Input::new(&packed));
        assert!(unpacked == files);
        seal::folder(&mut unpacked);
        assert!(unpacked == files, "sealing an intact folder changes nothing");
        // Seals are really written: with them, a changed length of a part does not damage the manifest.
        let manifest = unpacked.get_mut(MANIFEST).unwrap();
        *manifest.last_mut().unwrap() ^= 1;
        assert!(recovered(&Memory::of(unpacked.clone())).is_none());
        seal::folder(&mut unpacked);
        assert!(recovered(&Memory::of(unpacked)).is_some());
    }
}
