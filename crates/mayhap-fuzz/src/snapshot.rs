//! The file of a snapshot: a loaded snapshot is saved, loaded and saved again, and must stay the same.

use mayhap_command::Reply;
use mayhap_engine::snapshot::{FILE, load, save};

use crate::input::Input;
use crate::test_engine::{Memory, ask, engine};
use crate::{exercise, seal};

/// The names that are used after loading.
const MOST_NAMES: usize = 8;

/// Runs the target. The first byte decides whether checksums are corrected; the others are the file.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let sealed = input.byte() & 1 == 1;
    let mut bytes = input.rest().to_vec();
    if sealed {
        seal::snapshot(&mut bytes);
    }
    let disk = Memory::default();
    disk.put(FILE, &bytes);
    let (first, _) = engine();
    let Ok(done) = load(&first, &disk) else {
        assert_eq!(first.totals().names, 0, "a rejected snapshot leaves no names in memory");
        return;
    };
    let done = done.expect("the file exists");
    let again = Memory::default();
    let saved = save(&first, &again).expect("saving to memory succeeds");
    assert!(saved.names <= done.names, "{} names of {}", saved.names, done.names);
    let (second, _) = engine();
    let loaded = load(&second, &again).expect("a saved snapshot can be loaded").expect("the file exists");
    assert_eq!(loaded.names, saved.names);
    let third = Memory::default();
    save(&second, &third).expect("saving to memory succeeds");
    assert!(records(&again) == records(&third), "differs after loading and saving");
    if let Some(Reply::Array(names)) = ask(&first, &[b"keys", b"*"]) {
        for name in names.iter().take(MOST_NAMES) {
            if let Reply::Bulk(name) = name {
                exercise::all(&first, name);
            }
        }
    }
}

/// The records of a file, sorted: names are saved in any order.
fn records(disk: &Memory) -> Vec<Vec<u8>> {
    let file = disk.get(FILE).unwrap_or_default();
    let mut records = seal::records_of_snapshot(&file);
    records.sort_unstable();
    records
}
