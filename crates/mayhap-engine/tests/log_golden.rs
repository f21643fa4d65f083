//! An old log stays readable, and logs are still written in the same way: `docs/format.md` draws these bytes.

mod support;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use mayhap_engine::Disk;
use mayhap_engine::log::{Limits, Log, Policy, Salts};
use support::simulated::{Simulated, Spoiled};

const RECORDS: [&[u8]; 6] = [b"first", b"", b"a group", b"of two", &[0xaa; 200], b"last"];

fn open(disk: &Simulated, seed: u64) -> (Arc<Log>, Vec<Vec<u8>>) {
    let mut played = Vec::new();
    let limits = Limits { salts: Salts::Seeded(seed), ..Limits::default() };
    let (log, _) = Log::open_quiet(Arc::new(disk.clone()), 0, Policy::No, limits, |_, record| {
        played.push(record.to_vec());
        Ok::<_, Infallible>(())
    })
    .unwrap();
    (log, played)
}

/// Records in frames of one and of several; a rotation; frames that were copied when the log was opened
/// again; a clean end.
fn written() -> Simulated {
    let disk = Simulated::new(Spoiled::Not);
    let (log, _) = open(&disk, 1);
    log.append(RECORDS[0]);
    log.sync().unwrap();
    log.append(RECORDS[1]);
    let _ = log.commit(2).unwrap();
    log.rotate().unwrap();
    log.begin_group();
    log.append(RECORDS[2]);
    log.append(RECORDS[3]);
    log.end_group();
    log.sync().unwrap();
    log.append(RECORDS[4]);
    let _ = log.commit(5).unwrap();
    drop(log);
    let (log, _) = open(&disk, 2);
    log.append(RECORDS[5]);
    log.close().unwrap();
    disk
}

#[test]
fn the_bytes_are_those_of_the_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (disk, golden) = (written(), Simulated::new(Spoiled::Not));
    let files = disk.list().unwrap();
    assert_eq!(files.len(), 3);
    for file in &files {
        let (path, bytes) = (folder.join(format!("{file}.bin")), disk.bytes(file));
        if !path.exists() && std::env::var_os("MAYHAP_WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let kept = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; `just golden` writes it", path.display()));
        assert_eq!(bytes, kept, "{file}");
        drop(golden.append(file).unwrap());
        golden.tamper(file, |bytes| *bytes = kept);
    }
    assert_eq!(open(&golden, 3).1, RECORDS);
}
