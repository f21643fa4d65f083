//! The file of a snapshot: whatever is loaded is saved, loaded and saved again, and stays the same.

use mayhap_command::Reply;
use mayhap_engine::snapshot::{FILE, load, save};

use crate::input::Input;
use crate::world::{Memory, ask, engine};
use crate::{exercise, seal};

/// Names that are used after loading.
const MOST_NAMES: usize = 8;

/// The first byte says whether the checksums are made right; the others are the file.
///
/// # Panics
/// If a promise is broken.
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
        assert_eq!(first.totals().names, 0, "a snapshot that is refused leaves nothing behind");
        return;
    };
    let done = done.expect("the file is there");
    let again = Memory::default();
    let saved = save(&first, &again).expect("memory takes everything");
    assert!(saved.names <= done.names, "{} names of {}", saved.names, done.names);
    let (second, _) = engine();
    let loaded = load(&second, &again).expect("what was saved is loaded").expect("the file is there");
    assert_eq!(loaded.names, saved.names);
    let third = Memory::default();
    save(&second, &third).expect("memory takes everything");
    assert!(records(&again) == records(&third), "loaded and saved, it is another one");
    if let Some(Reply::Array(names)) = ask(&first, &[b"keys", b"*"]) {
        for name in names.iter().take(MOST_NAMES) {
            if let Reply::Bulk(name) = name {
                exercise::all(&first, name);
            }
        }
    }
}

/// The records of a file, in an order of their own: names are walked in any.
fn records(disk: &Memory) -> Vec<Vec<u8>> {
    let file = disk.get(FILE).unwrap_or_default();
    let mut records = seal::records_of_snapshot(&file);
    records.sort_unstable();
    records
}
