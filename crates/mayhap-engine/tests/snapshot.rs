//! Writes and reads single-file snapshots. Every fault of the file or the disk is detected.

mod support;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use mayhap_command::{Limits, Reply, Request, Scratch, table};
use mayhap_engine::snapshot::{self, FILE, SnapshotError};
use mayhap_engine::{AppendFile, Disk, DiskFile, Engine, Files};
use support::{FixedClock, engine, one, run};

/// Files in memory. After a crash only synced bytes are there, and the disk may be full.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
struct Inside {
    files: BTreeMap<String, Vec<u8>>,
    /// The calls, in order.
    history: Vec<String>,
    /// Bytes that still fit.
    room: Option<usize>,
}

struct Open(Memory, String);

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inside = self.0.0.lock().unwrap();
        if let Some(room) = &mut inside.room {
            *room = room.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        }
        inside.files.get_mut(&self.1).unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        self.0.0.lock().unwrap().history.push(format!("sync {}", self.1));
        Ok(())
    }
}

impl Disk for Memory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut inside = self.0.lock().unwrap();
        inside.history.push(format!("create {name}"));
        inside.files.insert(name.into(), Vec::new());
        Ok(Box::new(Open(self.clone(), name.into())))
    }

    fn append(&self, _name: &str) -> io::Result<Arc<dyn AppendFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let inside = self.0.lock().unwrap();
        let bytes = inside.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(bytes.clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inside = self.0.lock().unwrap();
        inside.history.push(format!("rename {from} {to}"));
        let bytes = inside.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inside.files.insert(to.into(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().files.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.0.lock().unwrap().history.push("sync folder".into());
        Ok(())
    }
}

impl Memory {
    fn with(bytes: &[u8]) -> Self {
        let memory = Self::default();
        memory.0.lock().unwrap().files.insert(FILE.into(), bytes.to_vec());
        memory
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().files[FILE].clone()
    }
}

fn dump(engine: &Engine, name: &str) -> Reply {
    one(engine, &format!("DUMP {name}"))
}

/// The names that [`filled`] creates.
const NAMES: u64 = 609;

/// An engine with filters of several kinds.
fn filled() -> (Engine, Arc<FixedClock>) {
    let (engine, clock) = engine();
    for number in 0..300 {
        run(
            &engine,
            &[
                format!("BF.ADD bloom:{number} {number}"),
                format!("PEXPIREAT bloom:{number} {}", 1_700_000_100_000_u64 + number),
                format!("CF.ADD cuckoo:{number} {number}"),
            ],
        );
    }
    let items: String = (0..5_000).map(|item| format!(" {item}")).collect();
    // Layers of several sizes, and more than one piece.
    run(&engine, &[format!("BF.MADD grown{items}"), "BF.RESERVE large 0.0001 2000000".into()]);
    run(&engine, &[format!("BF.MADD large{items}"), "SET text hello".into()]);
    for kind in ["bloom", "blocked-bloom", "cuckoo", "quotient", "growing", "scalable-bloom"] {
        let reserved = one(&engine, &format!("MF.RESERVE mf:{kind} KIND {kind} CAPACITY 6000 FPR 0.001"));
        assert_eq!(reserved, Reply::Ok, "{}", support::text(&reserved));
        one(&engine, &format!("MF.MADD mf:{kind}{items}"));
    }
    (engine, clock)
}

#[test]
fn everything_is_restored() {
    let (before, clock) = filled();
    let disk = Memory::default();
    let saved = snapshot::save(&before, &disk).unwrap();
    assert_eq!((saved.names, saved.skipped, saved.bytes), (NAMES, 0, disk.bytes().len() as u64));
    assert_eq!(
        disk.0.lock().unwrap().history,
        [
            "create mayhap.snapshot.new",
            "sync mayhap.snapshot.new",
            "rename mayhap.snapshot.new mayhap.snapshot",
            "sync folder",
        ]
    );

    clock.pass(100_099);
    let after = Engine::new(Limits::default(), clock.clone());
    let loaded = snapshot::load(&after, &disk).unwrap().unwrap();
    // Names that have expired by now: at 100 000, …, 100 099 milliseconds.
    assert_eq!((loaded.names, loaded.skipped), (NAMES - 100, 100));
    before.sweep(std::time::Duration::from_secs(60));
    let details = |engine: &Engine| {
        let mut details = engine.page(0, u64::MAX, None).details;
        details.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for detail in &mut details {
            // The sweep and the load count as use.
            detail.idle_secs = 0;
            // A list reads a sample of the bits of a large filter. Its dumps are compared below.
            if detail.description.memory_bytes > 64 << 10 {
                (detail.description.fill, detail.description.expected_fpr) = (0.0, 0.0);
            }
        }
        details
    };
    assert_eq!(details(&after), details(&before));
    let totals =
        |engine: &Engine| (engine.totals().memory_bytes, engine.totals().items, engine.totals().names);
    assert_eq!(totals(&after), totals(&before));
    for name in ["grown", "large", "bloom:299", "cuckoo:7"] {
        assert_eq!(dump(&after, name), dump(&before, name), "{name}");
    }
    for kind in ["bloom", "blocked-bloom", "cuckoo", "quotient", "growing", "scalable-bloom"] {
        let line = format!(
            "MF.MEXISTS mf:{kind}{}",
            (4_000..8_000).map(|item| format!(" {item}")).collect::<String>()
        );
        assert_eq!(one(&after, &line), one(&before, &line), "{kind}");
    }
    assert_eq!(one(&after, "GETRANGE text 0 -1"), Reply::bulk("hello"));
    // It keeps growing as before.
    let more: String = (5_000..20_000).map(|item| format!(" {item}")).collect();
    let line = format!("BF.MADD grown{more}");
    assert_eq!(one(&after, &line), one(&before, &line));
    assert_eq!(dump(&after, "grown"), dump(&before, "grown"));
}

#[test]
fn files_in_a_real_folder_work_as_well() {
    let folder = std::env::temp_dir().join(format!("mayhap-snapshot-{}", std::process::id()));
    let disk = Files::open(&folder).unwrap();
    let (before, clock) = filled();
    let empty = Engine::new(Limits::default(), clock.clone());
    assert_eq!(snapshot::load(&empty, &disk).unwrap(), None);
    snapshot::save(&before, &disk).unwrap();
    snapshot::save(&before, &disk).unwrap();
    assert_eq!(disk.list().unwrap(), [FILE]);
    assert_eq!(snapshot::load(&empty, &disk).unwrap().unwrap().names, NAMES);
    assert_eq!(dump(&empty, "grown"), dump(&before, "grown"));
    std::fs::OpenOptions::new().append(true).open(folder.join(FILE)).unwrap().write_all(b"x").unwrap();
    assert!(matches!(snapshot::load(&empty, &disk), Err(SnapshotError::Damaged { .. })));
    disk.remove(FILE).unwrap();
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn a_file_truncated_or_changed_at_any_byte_is_refused_and_the_engine_stays_empty() {
    let (engine, clock) = engine();
    run(&engine, &["BF.ADD a 1", "CF.RESERVE b 8", "CF.ADD b 1", "BF.ADD c 1", "EXPIRE c 1000"]);
    let disk = Memory::default();
    snapshot::save(&engine, &disk).unwrap();
    let bytes = disk.bytes();
    assert!(bytes.len() < 5_000, "{} bytes take too long", bytes.len());
    let target = Engine::new(Limits::default(), clock.clone());
    let refused = |bytes: &[u8]| {
        let refused = snapshot::load(&target, &Memory::with(bytes)).unwrap_err();
        assert_eq!((target.totals().names, target.totals().memory_bytes), (0, 0));
        refused
    };
    for cut in 0..bytes.len() {
        let error = refused(&bytes[..cut]);
        assert!(
            matches!(error, SnapshotError::Damaged { offset, .. } if offset <= cut as u64),
            "{cut}: {error}"
        );
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            match refused(&changed) {
                SnapshotError::Damaged { .. } => {}
                SnapshotError::NotASnapshot { .. } => assert!(at < 8),
                SnapshotError::Version { .. } => assert!((8..12).contains(&at)),
                error => panic!("byte {at}: {error}"),
            }
        }
    }
    let twice = [&bytes[..], &bytes[..]].concat();
    assert!(refused(&twice).to_string().contains(&format!("at byte {}", bytes.len())));
    assert_eq!(snapshot::load(&target, &disk).unwrap().unwrap().names, 3);
}

#[test]
fn a_full_disk_leaves_the_old_file_untouched() {
    let (engine, clock) = filled();
    let disk = Memory::default();
    snapshot::save(&engine, &disk).unwrap();
    let before = disk.bytes();
    one(&engine, "FLUSHALL");
    one(&engine, "BF.ADD other 1");
    for room in [0, 10, 100] {
        disk.0.lock().unwrap().room = Some(room);
        let error = snapshot::save(&engine, &disk).unwrap_err();
        assert!(matches!(error, SnapshotError::Disk { .. }), "{error}");
        assert!(disk.bytes() == before);
        assert_eq!(disk.list().unwrap(), [FILE]);
    }
    let again = Engine::new(Limits::default(), clock);
    assert_eq!(snapshot::load(&again, &disk).unwrap().unwrap().names, NAMES);
}

#[test]
fn half_loaded_filters_stay_half_loaded() {
    let (engine, clock) = engine();
    run(&engine, &["BF.ADD whole 1"]);
    let Reply::Array(header) = one(&engine, "BF.SCANDUMP whole 0") else { panic!("no array") };
    let Reply::Bulk(header) = &header[1] else { panic!("no header") };
    let words: [&[u8]; 4] = [b"BF.LOADCHUNK", b"half", b"1", header];
    let request = Request { command: table::find(b"bf.loadchunk").unwrap(), words: &words };
    let mut replies = Vec::new();
    engine.execute(&[request], &mut Scratch::default(), &mut replies);
    assert_eq!(replies, [Reply::Ok]);
    assert!(!engine.detail(b"half").unwrap().description.is_ready);
    let disk = Memory::default();
    let saved = snapshot::save(&engine, &disk).unwrap();
    assert_eq!((saved.names, saved.skipped), (2, 0));
    let after = Engine::new(Limits::default(), clock);
    snapshot::load(&after, &disk).unwrap();
    assert_eq!(one(&after, "EXISTS whole half"), Reply::Integer(2));
    assert_eq!(
        support::text(&one(&after, "BF.EXISTS half 1")),
        support::text(&one(&engine, "BF.EXISTS half 1"))
    );
    assert!(support::text(&one(&after, "BF.EXISTS half 1")).starts_with("NOTREADY "));
}

#[test]
fn names_that_stay_are_all_in_a_snapshot_taken_under_load() {
    let (engine, clock) = engine();
    let stay: Vec<String> = (0..2_000).map(|number| format!("BF.ADD stay:{number} {number}")).collect();
    run(&engine, &stay);
    let done = AtomicBool::new(false);
    let disk = Memory::default();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (engine, done) = (&engine, &done);
            scope.spawn(move || {
                for round in 0_u64.. {
                    if done.load(Relaxed) {
                        return;
                    }
                    let go = format!("go:{thread}:{}", round % 100);
                    let stay = format!("BF.ADD stay:{} {thread}:{round}", round % 2_000);
                    run(
                        engine,
                        &[format!("BF.ADD {go} 1"), format!("RENAME {go} {go}:"), format!("DEL {go}:"), stay],
                    );
                }
            });
        }
        for _ in 0..5 {
            snapshot::save(&engine, &disk).unwrap();
            let after = Engine::new(Limits::default(), clock.clone());
            snapshot::load(&after, &disk).unwrap();
            for number in 0..2_000 {
                assert_eq!(one(&after, &format!("BF.EXISTS stay:{number} {number}")), Reply::Boolean(true));
            }
        }
        done.store(true, Relaxed);
    });
}
