//! Snapshots in parts and the log after them: which files are written and kept, how they survive faults of
//! the disk, what is refused.

mod support;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mayhap_command::{Reply, Request, Scratch, table};
use mayhap_engine::log::{self, Policy};
use mayhap_engine::replay::RecoverError;
use mayhap_engine::snapshot::{self, FILE, MANIFEST, SnapshotError};
use mayhap_engine::{AppendFile, Disk, DiskFile, Engine, LogError};
use support::{FixedClock, engine, one, run, text};

/// Files in memory, which can refuse writes or syncs.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Inside>>);

#[derive(Clone, Debug, Default)]
struct Inside {
    /// By a number that stays when a file is renamed.
    files: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<String, u64>,
    next: u64,
    is_full: bool,
    fails_to_sync: bool,
}

struct Open(Memory, u64);

impl Open {
    fn put(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut inside = self.0.0.lock().unwrap();
        if inside.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inside.files.entry(self.1).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn make_safe(&self) -> io::Result<()> {
        match self.0.0.lock().unwrap().fails_to_sync {
            true => Err(io::Error::other("the disk is broken")),
            false => Ok(()),
        }
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        self.make_safe()
    }
}

impl AppendFile for Open {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.0.lock().unwrap().files.entry(self.1).or_default().truncate(bytes as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.make_safe()
    }
}

impl Disk for Memory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open(name)))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        Ok(Arc::new(self.open(name)))
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let inside = self.0.lock().unwrap();
        let number = inside.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(inside.files[number].clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inside = self.0.lock().unwrap();
        let number = inside.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inside.names.insert(to.into(), number);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().names.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn open(&self, name: &str) -> Open {
        let mut inside = self.0.lock().unwrap();
        inside.next += 1;
        let number = inside.next;
        inside.names.insert(name.into(), number);
        inside.files.insert(number, Vec::new());
        Open(self.clone(), number)
    }

    /// All files except this one.
    fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().unwrap().clone())))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let inside = self.0.lock().unwrap();
        inside.files[&inside.names[name]].clone()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inside = self.0.lock().unwrap();
        let number = inside.names[name];
        change(inside.files.get_mut(&number).unwrap());
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        self.list().unwrap().into_iter().filter(|name| name.starts_with(prefix)).collect()
    }
}

/// An engine with its log on `disk`.
fn on(disk: &Memory) -> (Engine, Arc<FixedClock>) {
    let (engine, clock) = engine();
    engine.recover_quiet(Arc::new(disk.clone()), Policy::No, log::Limits::default()).unwrap();
    (engine, clock)
}

fn recovered(disk: &Memory) -> Result<Engine, RecoverError> {
    let (engine, _) = engine();
    engine.recover_quiet(Arc::new(disk.clone()), Policy::No, log::Limits::default()).map(|_| engine)
}

#[test]
fn only_changes_are_written_again() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    let many: Vec<String> = (0..1_000).map(|number| format!("BF.ADD name:{number} {number}")).collect();
    run(&engine, &many);
    run(&engine, &["BF.RESERVE large 0.0001 3000000", "BF.ADD large 1", "BF.RESERVE other 0.0001 3000000"]);
    let first = engine.snapshot(&disk).unwrap();
    assert_eq!(first.names, 1_002);
    assert_eq!((disk.names("part-").len(), disk.names("value-").len()), (64, 2));
    let large_bytes: u64 = disk.names("value-").iter().map(|name| disk.bytes(name).len() as u64).sum();
    assert!(large_bytes > 10 << 20);
    assert_eq!(first.bytes, first.written_bytes);

    // Without a change nothing is written.
    let before = disk.names("part-");
    let second = engine.snapshot(&disk).unwrap();
    assert_eq!((second.names, second.written_bytes, second.bytes), (0, 0, first.bytes));
    assert_eq!(disk.names("part-"), before);

    // One small name: its part is written, and no large value even if it is in that part.
    one(&engine, "BF.ADD name:7 more");
    let third = engine.snapshot(&disk).unwrap();
    assert!(third.written_bytes < first.bytes / 100, "{third:?}");
    let after = disk.names("part-");
    assert_eq!(before.iter().filter(|name| !after.contains(name)).count(), 1);

    // One large value: its own file is written, and not the other one.
    let values = disk.names("value-");
    one(&engine, "BF.ADD large more");
    let fourth = engine.snapshot(&disk).unwrap();
    assert!(fourth.written_bytes > 5 << 20 && fourth.written_bytes < 8 << 20, "{fourth:?}");
    assert_eq!(values.iter().filter(|name| !disk.names("value-").contains(name)).count(), 1);

    // Everything is restored, and the log before the snapshot is gone.
    assert!(disk.names("log-").len() <= 2, "{:?}", disk.names("log-"));
    let after = recovered(&disk).unwrap();
    assert_eq!(after.totals().names, 1_002);
    for name in ["large", "other", "name:7", "name:999"] {
        assert_eq!(one(&after, &format!("DUMP {name}")), one(&engine, &format!("DUMP {name}")), "{name}");
    }
    // The recovered engine knows which files it can keep.
    let fifth = after.snapshot(&disk).unwrap();
    assert_eq!(fifth.written_bytes, 0, "{fifth:?}");
}

#[test]
fn a_part_without_names_has_no_file() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    run(&engine, &["SET a 1", "SET b 2"]);
    engine.snapshot(&disk).unwrap();
    run(&engine, &["DEL a"]);
    engine.snapshot(&disk).unwrap();
    assert_eq!(disk.names("part-").len(), 1);
    let after = recovered(&disk).unwrap();
    assert_eq!((one(&after, "EXISTS a"), one(&after, "EXISTS b")), (Reply::Integer(0), Reply::Integer(1)));
}

/// The file that names the newest file of the log.
const NEWEST: &str = "mayhap.newest";

#[test]
fn a_changed_bit_or_a_truncated_file_is_reported_with_its_file() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    run(&engine, &["BF.ADD a 1", "CF.RESERVE b 8", "CF.ADD b 1", "SET c hello", "EXPIRE c 1000"]);
    run(&engine, &["MF.RESERVE d CAPACITY 100 FPR 0.01", "MF.ADD d 1"]);
    let snapshot = engine.begin_snapshot(&disk).unwrap();
    snapshot.with_sizes(200, 100, 10).finish().unwrap();
    let files: Vec<String> =
        disk.list().unwrap().into_iter().filter(|name| !name.starts_with("log-")).collect();
    assert!(files.len() >= 6, "{files:?}");
    for file in &files {
        let bytes = disk.bytes(file).len();
        for at in 0..bytes {
            let changed = disk.copy();
            changed.change(file, |bytes| bytes[at] ^= 1 << (at % 8));
            let error = recovered(&changed).unwrap_err();
            // It names the newest file of the log.
            let of_log = file == NEWEST && matches!(error, RecoverError::Log(_));
            assert!(of_log || matches!(error, RecoverError::Snapshot(_)), "{file}, byte {at}: {error}");
            assert!(error.to_string().contains(file.as_str()), "{file}, byte {at}: {error}");
        }
        for cut in (0..bytes).step_by(7) {
            let changed = disk.copy();
            changed.change(file, |bytes| bytes.truncate(cut));
            let error = recovered(&changed).unwrap_err().to_string();
            assert!(error.contains(file.as_str()), "{file} cut at {cut}: {error}");
        }
        let gone = disk.copy();
        gone.remove(file).unwrap();
        // Without a manifest the log must be complete from its beginning. Older versions did not record the
        // newest file.
        assert_eq!(recovered(&gone).is_err(), file != NEWEST, "{file} is missing");
    }
    assert_eq!(recovered(&disk).unwrap().totals().names, 4);
}

#[test]
fn files_that_no_manifest_names_are_removed_and_the_single_file_is_read_once() {
    let disk = Memory::default();
    let (before, _) = engine();
    run(&before, &["BF.ADD a 1", "SET b hello"]);
    snapshot::save(&before, &disk).unwrap();
    assert_eq!(disk.bytes(FILE)[8..12], 1_u32.to_le_bytes(), "the old version");
    disk.open("part-03-0000000000000009");
    disk.open("value-0000000000000009-00000000");
    let (engine, _) = on(&disk);
    assert_eq!(disk.names("part-").len() + disk.names("value-").len(), 0);
    assert_eq!(one(&engine, "BF.EXISTS a 1"), Reply::Boolean(true));
    one(&engine, "BF.ADD a 2");
    // There is no manifest yet: the single file is read, and the log after it.
    engine.log().unwrap().sync().unwrap();
    let again = recovered(&disk.copy()).unwrap();
    assert_eq!(one(&again, "BF.MEXISTS a 1 2"), one(&engine, "BF.MEXISTS a 1 2"));
    engine.snapshot(&disk).unwrap();
    assert!(disk.names(FILE).is_empty() && !disk.names(MANIFEST).is_empty());
    let after = recovered(&disk).unwrap();
    assert_eq!(one(&after, "BF.MEXISTS a 1 2"), one(&engine, "BF.MEXISTS a 1 2"));
    assert_eq!(one(&after, "GET b"), Reply::bulk("hello"));
    // An engine with a log does not write the single file, and one without a log does not ignore a manifest.
    assert!(matches!(snapshot::save(&after, &disk), Err(SnapshotError::Log(None))));
    assert!(matches!(snapshot::load(&before, &disk), Err(SnapshotError::Log(None))));
    assert!(matches!(before.snapshot(&disk), Err(SnapshotError::Log(None))));
}

#[test]
fn a_failed_snapshot_keeps_the_previous_one_and_leaves_no_files() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    run(&engine, &["BF.ADD a 1", "SET b hello"]);
    engine.snapshot(&disk).unwrap();
    run(&engine, &["BF.ADD a 2", "SET c more"]);
    let snapshot = engine.begin_snapshot(&disk).unwrap();
    let before = disk.list().unwrap();
    disk.0.lock().unwrap().is_full = true;
    assert!(matches!(snapshot.finish(), Err(SnapshotError::Disk { .. })));
    assert_eq!(disk.list().unwrap(), before);
    disk.0.lock().unwrap().is_full = false;
    engine.log().unwrap().sync().unwrap();
    let check = |engine: &Engine| {
        assert_eq!(one(engine, "BF.EXISTS a 2"), Reply::Boolean(true));
        assert_eq!(one(engine, "GET c"), Reply::bulk("more"));
    };
    check(&recovered(&disk.copy()).unwrap());
    // What it did not write is written next time.
    assert!(engine.snapshot(&disk).unwrap().names >= 2);
    check(&recovered(&disk).unwrap());
}

/// `MF.EXPLAIN` used to advance a window, which was not repeated after a restart.
#[test]
fn looking_at_a_window_does_not_advance_it() {
    let disk = Memory::default();
    let (engine, clock) = on(&disk);
    run(&engine, &["MF.RESERVE w KIND window SECONDS 60 CAPACITY 1000 GENERATIONS 6", "MF.MADD w a b c"]);
    clock.pass(600_000);
    let looks =
        |engine: &Engine| run(engine, &["MF.CARD w", "MF.INFO w", "MF.MEXISTS w a b c", "MF.EXPLAIN w a"]);
    let before = looks(&engine);
    assert_eq!(looks(&engine), before);
    engine.log().unwrap().sync().unwrap();
    let (again, clock) = support::engine();
    clock.pass(600_000);
    again.recover_quiet(Arc::new(disk.clone()), Policy::No, log::Limits::default()).unwrap();
    assert_eq!(looks(&again), before);
}

#[test]
fn a_log_without_records_that_the_snapshot_contains_is_refused() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    run(&engine, &["SET a 1", "SET b 1"]);
    let snapshot = engine.begin_snapshot(&disk).unwrap();
    let played_from = engine.log().unwrap().next();
    run(&engine, &["SET a 2", "SET b 2"]);
    snapshot.finish().unwrap();
    // All segments except an empty one: as if the writes since the snapshot began had never been safe.
    let (other, _) = on(&Memory::default());
    drop(other);
    let last = disk.names("log-").pop().unwrap();
    assert!(last.ends_with(&format!("{played_from:020}")) || disk.bytes(&last).len() > 100);
    let header = disk.bytes(&last).len().min(64);
    disk.change(&last, |bytes| bytes.truncate(header));
    let before: Vec<_> = disk.list().unwrap().iter().map(|file| (file.clone(), disk.bytes(file))).collect();
    for _ in 0..2 {
        let error = recovered(&disk).unwrap_err();
        let RecoverError::Log(LogError::Damaged { file, offset, .. }) = &error else { panic!("{error}") };
        assert_eq!((file, *offset), (&last, 40), "{error}");
        // Nothing was changed, and it can be read again.
        let after: Vec<_> =
            disk.list().unwrap().iter().map(|file| (file.clone(), disk.bytes(file))).collect();
        assert!(after == before);
    }
    // The same if the file just ends.
    disk.change(&last, |bytes| bytes.truncate(40));
    let error = recovered(&disk).unwrap_err();
    assert!(matches!(error, RecoverError::Log(LogError::Missing { .. })), "{error}");
}

/// Requests of every family that change a value, and some that only read.
const CHANGES: &[&str] = &[
    "BF.ADD a 2",
    "BF.RESERVE n 0.01 100",
    "BF.INSERT n ITEMS 1",
    "CF.ADD b 1",
    "CF.COMPACT b",
    "MF.RESERVE n CAPACITY 10",
    "MF.ADD d 2",
    "MF.MERGE n d",
    "MF.BUILD d BEGIN",
    "SET n 1",
    "BITOP OR n c c",
    "DEL a",
    "RENAME a n",
    "COPY a n",
    "EXPIRE a 10",
    "PERSIST c",
    "FLUSHALL",
];
const LOOKS: &[&str] = &[
    "BF.EXISTS a 1",
    "CF.EXISTS b 1",
    "MF.EXISTS d 1",
    "GET c",
    "TTL c",
    "DUMP a",
    "BF.SCANDUMP a 0",
    "SCAN 0",
];

#[test]
fn changes_are_refused_before_they_are_made_and_lookups_continue() {
    let fill = |engine: &Engine| {
        run(engine, &["BF.ADD a 1", "CF.RESERVE b 8", "CF.ADD b 1", "SET c hello", "EXPIRE c 1000"]);
        run(engine, &["MF.RESERVE d CAPACITY 100 FPR 0.01", "MF.ADD d 1"]);
    };
    for (broken, code) in [(false, "NOSPACE "), (true, "READONLY ")] {
        let disk = Memory::default();
        let (engine, clock) = on(&disk);
        fill(&engine);
        engine.log().unwrap().sync().unwrap();
        {
            let mut inside = disk.0.lock().unwrap();
            (inside.is_full, inside.fails_to_sync) = (!broken, broken);
        }
        // The change that meets the fault.
        one(&engine, "BF.ADD a unlucky");
        assert!(engine.log().unwrap().sync().is_err());
        let next = engine.log().unwrap().next();
        for line in CHANGES {
            let reply = text(&one(&engine, line));
            assert!(reply.starts_with(code), "{line}: {reply}");
        }
        for line in LOOKS {
            let reply = text(&one(&engine, line));
            assert!(!reply.starts_with(code), "{line}: {reply}");
        }
        // A name that expires now is gone, but the removal cannot be logged; so it is not removed.
        clock.pass(2_000_000);
        assert_eq!(one(&engine, "GET c"), Reply::Null);
        engine.sweep(Duration::from_millis(10));
        assert_eq!(engine.log().unwrap().next(), next, "something was logged");
        assert!(engine.snapshot(&disk).is_err());
        {
            let mut inside = disk.0.lock().unwrap();
            (inside.is_full, inside.fails_to_sync) = (false, false);
        }
        let healed = engine.log().unwrap().sync().is_ok();
        assert_eq!(healed, !broken, "a disk that failed to sync is not trusted again");
        let reply = text(&one(&engine, "BF.ADD a lucky"));
        assert_eq!(reply.starts_with(code), broken, "{reply}");
        if !broken {
            engine.log().unwrap().sync().unwrap();
            let after = recovered(&disk).unwrap();
            assert_eq!(
                one(&after, "BF.MEXISTS a 1 unlucky lucky"),
                one(&engine, "BF.MEXISTS a 1 unlucky lucky")
            );
        }
    }
}

#[test]
fn a_run_returns_the_number_to_wait_for() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    let mut scratch = Scratch::default();
    let mut logged = |line: &str| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let request = Request { command: table::find(words[0]).unwrap(), words: &words };
        engine.execute(&[request], &mut scratch, &mut Vec::new())
    };
    let log = engine.log().unwrap();
    for line in
        ["BF.RESERVE a 0.01 100", "BF.ADD a 1", "SET b 1", "RENAME b c", "COPY c d", "DEL d", "EXPIRE c 9"]
    {
        assert_eq!(logged(line), log.next(), "{line}");
    }
    for line in ["BF.EXISTS a 1", "BF.ADD a 1", "GET c", "DEL nothing", "SET c 2 NX", "RENAME nothing c"] {
        assert_eq!(logged(line), 0, "{line}");
    }
    let before = log.next();
    engine.set_parameters(|_| {});
    assert_eq!(log.next(), before, "nothing was changed");
    engine.set_parameters(|parameters| parameters.bf_initial_size = 7);
    assert_eq!(log.next(), before + 1);
}

/// The same files. Whenever a piece of a large value is written, another thread adds to the value, and the
/// write waits for it.
#[derive(Debug)]
struct ConcurrentDisk<'a> {
    disk: &'a Memory,
    engine: &'a Arc<Engine>,
    added: Arc<AtomicU64>,
}

struct ConcurrentFile {
    file: Box<dyn DiskFile>,
    engine: Arc<Engine>,
    added: Arc<AtomicU64>,
}

impl Write for ConcurrentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (engine, (sender, receiver)) = (Arc::clone(&self.engine), channel());
        let item = self.added.fetch_add(1, Relaxed);
        std::thread::spawn(move || {
            let replies = run(&engine, &[format!("BF.ADD large item:{item}"), "BF.EXISTS large 1".into()]);
            sender.send(replies.len())
        });
        // It would wait for ever if the filter were locked while it is written.
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(2), "writers wait for the snapshot");
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for ConcurrentFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for ConcurrentDisk<'_> {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.create(name)?;
        if !name.starts_with("value-") {
            return Ok(file);
        }
        let (engine, added) = (Arc::clone(self.engine), Arc::clone(&self.added));
        Ok(Box::new(ConcurrentFile { file, engine, added }))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        self.disk.append(name)
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        self.disk.read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }
}

#[test]
fn writers_continue_while_a_large_filter_is_written() {
    let disk = Memory::default();
    let engine = Arc::new(on(&disk).0);
    run(&engine, &["BF.RESERVE large 0.001 4000000", "BF.ADD large 1"]);
    let meanwhile = ConcurrentDisk { disk: &disk, engine: &engine, added: Arc::default() };
    engine.snapshot(&meanwhile).unwrap();
    let added = meanwhile.added.load(Relaxed);
    assert!(added >= 6, "{added} pieces");
    engine.log().unwrap().sync().unwrap();
    let after = recovered(&disk).unwrap();
    assert_eq!(one(&after, "DUMP large"), one(&engine, "DUMP large"));
    assert_eq!(one(&after, "BF.CARD large"), Reply::Integer(added as i64 + 1));
}

/// `BF.*` and `CF.*` filters with a secret key: the log has the random bytes drawn for it, and a snapshot has
/// the key, whatever the settings are when they are read.
#[test]
fn keys_of_bf_and_cf_filters_survive_the_log_and_snapshots() {
    let items = |name: &str| {
        let items: String = (0..500).map(|item| format!(" item:{item}")).collect();
        [format!("BF.MADD b{name}{items}"), format!("CF.INSERT c{name} ITEMS{items}")]
    };
    let keyed = |engine: &Engine, hash: &str| {
        for name in ["bf-hash", "cf-hash"] {
            let parameter = mayhap_command::parameters::find(name.as_bytes()).unwrap();
            engine.set_parameters(|now| (parameter.set)(now, hash.as_bytes()).unwrap());
        }
    };
    let looks = |engine: &Engine| {
        let lines: Vec<String> = ["b1", "b2", "b3", "c1", "c2", "c3", "c4"]
            .iter()
            .flat_map(|name| [format!("TYPE {name}"), format!("DUMP {name}")])
            .collect();
        run(engine, &lines)
    };
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    run(&engine, &items("1"));
    keyed(&engine, "keyed");
    run(&engine, &items("2"));
    run(&engine, &["BF.RESERVE b3 0.001 10", "CF.RESERVE c3 16", "COPY c2 c4"]);
    run(&engine, &items("3"));
    // Items added to an existing filter are logged by their hashes.
    run(&engine, &["BF.ADD b3 one", "BF.ADD b3 two", "CF.DEL c3 item:7"]);
    keyed(&engine, "redisbloom");
    let before = looks(&engine);
    let types = ["MBbloom--", "mayhapBF-", "mayhapBF-", "MBbloomCF", "mayhapCF-", "mayhapCF-", "mayhapCF-"];
    for (said, due) in before.iter().step_by(2).zip(types) {
        assert_eq!(*said, Reply::Simple(due.into()));
    }
    engine.log().unwrap().sync().unwrap();
    assert_eq!(looks(&recovered(&disk.copy()).unwrap()), before, "from the log alone");
    engine.snapshot(&disk).unwrap();
    assert_eq!(looks(&recovered(&disk.copy()).unwrap()), before, "by a snapshot");
    run(&engine, &["BF.ADD b2 later", "CF.ADD c2 later", "CF.ADD c4 later"]);
    let before = looks(&engine);
    engine.log().unwrap().sync().unwrap();
    let again = recovered(&disk).unwrap();
    assert_eq!(looks(&again), before, "from a snapshot and the log after it");
    assert_eq!(run(&again, &["BF.EXISTS b2 later", "CF.EXISTS c3 item:8"]), vec![Reply::Boolean(true); 2]);
}

#[test]
fn a_pipeline_of_insertions_without_creation_is_one_record() {
    let disk = Memory::default();
    let (engine, _) = on(&disk);
    let log = engine.log().unwrap();
    let records = |lines: &[&str]| {
        let words: Vec<Vec<&[u8]>> =
            lines.iter().map(|line| line.split(' ').map(str::as_bytes).collect()).collect();
        let requests: Vec<Request<'_>> =
            words.iter().map(|words| Request { command: table::find(words[0]).unwrap(), words }).collect();
        let before = log.next();
        let mut replies = Vec::new();
        engine.execute(&requests, &mut Scratch::default(), &mut replies);
        assert_eq!(replies.len(), lines.len());
        log.next() - before
    };
    assert_eq!(records(&["BF.RESERVE f 0.01 1000"]), 1);
    let without = ["BF.INSERT f NOCREATE ITEMS a b", "BF.INSERT f NOCREATE ITEMS c", "BF.INSERT f ITEMS d a"];
    assert_eq!(records(&without), 1);
    assert_eq!(records(&without), 0, "nothing is new");
    // Any other option is checked by each request.
    assert_eq!(records(&["BF.INSERT f NOCREATE ITEMS e", "BF.INSERT f CAPACITY 9 ITEMS g"]), 2);
    assert_eq!(run(&engine, &["BF.CARD f"]), [Reply::Integer(6)]);
}
