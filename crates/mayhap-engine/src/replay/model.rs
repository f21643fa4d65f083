//! Random histories of all kinds of commands, with snapshots at random points, recovered into a fresh engine:
//! everything is restored. The same with deliberate faults, which must be detected.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mayhap_command::{Environment, Limits, Reply, Request, Scratch, parameters, table};
use parking_lot::Mutex;

use crate::disk::{AppendFile, Disk, DiskFile};
use crate::engine::Engine;
use crate::journal::Spoilt;
use crate::log::{self, Policy};

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

struct Open(Memory, String);

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.0.0.lock();
        files.get_mut(&self.1).ok_or(io::ErrorKind::NotFound)?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that keeps working under the name it was created with or renamed to.
#[derive(Debug)]
struct Appended(Memory, Mutex<String>);

impl AppendFile for Appended {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Open(self.0.clone(), self.name()).write(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let name = self.name();
        self.0.0.lock().get_mut(&name).ok_or(io::ErrorKind::NotFound)?.truncate(bytes as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Appended {
    /// The log creates a file under another name and renames it: follow it there.
    fn name(&self) -> String {
        let mut name = self.1.lock();
        let files = self.0.0.lock();
        if !files.contains_key(&*name)
            && let Some(last) = files.keys().rfind(|other| other.starts_with("log-"))
        {
            name.clone_from(last);
        }
        name.clone()
    }
}

impl Disk for Memory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.0.lock().insert(name.into(), Vec::new());
        Ok(Box::new(Open(self.clone(), name.into())))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        self.0.lock().insert(name.into(), Vec::new());
        Ok(Arc::new(Appended(self.clone(), Mutex::new(name.into()))))
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.0.lock().get(name).ok_or(io::ErrorKind::NotFound)?.clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock();
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A clock that tests set, and reproducible random numbers.
#[derive(Debug)]
pub(super) struct FixedClock {
    now_ms: AtomicU64,
    random: AtomicU64,
}

impl Environment for FixedClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Relaxed)
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = (mix(self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed)) >> 32) as u8;
        }
    }
}

const fn mix(state: u64) -> u64 {
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % end
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

pub(super) fn quiet() -> log::Limits {
    log::Limits { segment_bytes: 4 << 10, ..log::Limits::default() }
}

pub(super) fn engine(seed: u64) -> (Engine, Arc<FixedClock>) {
    let clock =
        Arc::new(FixedClock { now_ms: AtomicU64::new(1_700_000_000_000), random: AtomicU64::new(seed) });
    (Engine::new(Limits::default(), clock.clone()), clock)
}

pub(super) type Words = Vec<Vec<u8>>;

pub(super) fn line(text: &str) -> Words {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

pub(super) fn run(engine: &Engine, lines: &[Words], alone: bool) -> Vec<Reply> {
    let words: Vec<Vec<&[u8]>> =
        lines.iter().map(|line| line.iter().map(|word| &word[..]).collect()).collect();
    let requests: Vec<Request<'_>> = words
        .iter()
        .map(|words| Request { command: table::find(words[0]).expect("a command"), words })
        .collect();
    // To follow the history of one seed.
    if std::env::var_os("MAYHAP_SHOW").is_some() {
        for line in lines {
            let words: Vec<_> =
                line.iter().map(|word| String::from_utf8_lossy(&word[..word.len().min(40)])).collect();
            eprintln!("{}{}", if alone { "together: " } else { "" }, words.join(" "));
        }
    }
    let (mut replies, mut scratch) = (Vec::new(), Scratch::default());
    match alone {
        true => engine.execute_alone(&requests, &mut scratch, &mut replies),
        false => engine.execute(&requests, &mut scratch, &mut replies),
    };
    replies
}

/// Kinds of filters, with options that make them small or large.
const KINDS: &[&str] = &[
    "KIND bloom CAPACITY 100 FPR 0.01",
    "KIND bloom CAPACITY 60000 FPR 0.01",
    "KIND blocked-bloom CAPACITY 60000 FPR 0.01",
    "KIND scalable-bloom CAPACITY 20 FPR 0.01",
    "KIND scalable-bloom CAPACITY 20 FPR 0.01 KEYLESS",
    "KIND counting-bloom CAPACITY 50 FPR 0.01",
    "KIND cuckoo CAPACITY 40 FPR 0.01",
    "KIND growable-cuckoo CAPACITY 20 MAX 1000 FPR 0.01",
    "KIND quotient CAPACITY 40 FPR 0.01",
    "KIND growing CAPACITY 20 FPR 0.01",
    "KIND window WINDOW 50 FPR 0.01",
    "KIND window SECONDS 3 CAPACITY 50 FPR 0.01",
    "KIND dleft CAPACITY 40 FPR 0.01",
    "KIND fingerprints MEMORY 2000",
    "KIND scalable-cuckoo CAPACITY 20",
    "KIND bitmap RANGE 0 100",
    "KIND xor CAPACITY 10",
    "KIND ribbon CAPACITY 10 FPR 0.01",
    "KIND dual-bloom CAPACITY 50 FPR 0.01",
];

fn items(dice: &mut Dice, most: u64) -> String {
    (0..=dice.below(most)).map(|_| format!(" {}", dice.below(300))).collect()
}

/// Some requests that belong together, given the current names.
fn requests(engine: &Engine, dice: &mut Dice, names: u64) -> Vec<Words> {
    let name = |dice: &mut Dice, family: &str| format!("{family}{}", dice.below(names));
    // Sometimes from another family.
    let any = |dice: &mut Dice| {
        let family = dice.one_of(&["b", "c", "m", "s"]);
        name(dice, family)
    };
    let of = |dice: &mut Dice, family: &str| match dice.below(20) {
        0 => any(dice),
        _ => name(dice, family),
    };
    let text = match dice.below(36) {
        0 => {
            let (rate, grows) = (dice.one_of(&["0.01", "0.2"]), dice.one_of(&["NONSCALING", "EXPANSION 2"]));
            format!("BF.RESERVE {} {rate} {} {grows}", of(dice, "b"), dice.one_of(&["5", "30", "300000"]))
        }
        1..=4 => format!("BF.MADD {}{}", of(dice, "b"), items(dice, 12)),
        5 => format!("BF.ADD {} {}", of(dice, "b"), dice.below(300)),
        6 => format!("BF.INSERT {} CAPACITY 20 ITEMS{}", of(dice, "b"), items(dice, 10)),
        7 => format!(
            "CF.RESERVE {} {} EXPANSION {}",
            of(dice, "c"),
            dice.one_of(&["8", "64"]),
            dice.one_of(&["0", "1", "2"])
        ),
        8..=9 => format!("CF.INSERT {} CAPACITY 16 ITEMS{}", of(dice, "c"), items(dice, 12)),
        10 => {
            format!(
                "{} {} {}",
                dice.one_of(&["CF.ADD", "CF.ADDNX", "CF.DEL"]),
                of(dice, "c"),
                dice.below(300)
            )
        }
        11 => format!("CF.COMPACT {}", of(dice, "c")),
        12 | 13 | 30 | 31 => format!("MF.RESERVE {} {}", of(dice, "m"), dice.one_of(KINDS)),
        14..=16 => format!("MF.MADD {}{}", of(dice, "m"), items(dice, 15)),
        17 => format!("{} {} {}", dice.one_of(&["MF.DEL", "MF.ADD"]), of(dice, "m"), dice.below(300)),
        18 => format!("{} {}", dice.one_of(&["MF.CLEAR", "DEL", "GETDEL", "PERSIST"]), any(dice)),
        19 | 32 | 33 => {
            let step = match dice.below(6) {
                0 => "BEGIN".into(),
                1 => format!("BEGIN {}", dice.one_of(KINDS)),
                2 | 3 => format!("ADD{}", items(dice, 20)),
                4 => "COMMIT".into(),
                _ => "ABORT".into(),
            };
            format!("MF.BUILD {} {step}", of(dice, "m"))
        }
        20 => format!("MF.MERGE {} {}", of(dice, "m"), of(dice, "m")),
        21 => match dice.below(4) {
            0 => format!("SET {} {}", any(dice), "x".repeat(dice.below(3_000) as usize)),
            1 => format!("SET {} value PX {}", of(dice, "s"), 1 + dice.below(3_000)),
            2 => format!("SETBIT {} {} 1", of(dice, "s"), dice.below(2_000)),
            _ => format!("APPEND {} {}", of(dice, "s"), dice.below(1_000)),
        },
        22 => format!(
            "BITOP {} {} {} {}",
            dice.one_of(&["OR", "XOR", "AND"]),
            of(dice, "s"),
            of(dice, "s"),
            of(dice, "s")
        ),
        23 => {
            let family = dice.one_of(&["b", "c", "m", "s"]);
            let command = dice.one_of(&["RENAME", "RENAMENX"]);
            format!("{command} {} {}", name(dice, family), name(dice, family))
        }
        24 => {
            let family = dice.one_of(&["b", "c", "m", "s"]);
            let replace = dice.one_of(&["REPLACE", "DB 0"]);
            format!("COPY {} {} {replace}", name(dice, family), name(dice, family))
        }
        25 => format!("PEXPIRE {} {}", any(dice), dice.below(4_000)),
        26 => format!("EXPIRE {} {} {}", any(dice), dice.below(4), dice.one_of(&["NX", "XX", "GT", "LT"])),
        27 if dice.below(8) == 0 => "FLUSHALL".into(),
        27 => format!("DEL {} {}", any(dice), any(dice)),
        28 | 34 => {
            let (bloom, filter) = (of(dice, "b"), of(dice, "m"));
            return load(engine, dice, &bloom, &filter);
        }
        _ => format!("EXISTS {}", any(dice)),
    };
    vec![line(&text)]
}

/// Dumps a value, and loads it elsewhere, completely or in part.
fn load(engine: &Engine, dice: &mut Dice, bloom: &str, filter: &str) -> Vec<Words> {
    let target = dice.below(6);
    let part = |reply: &Reply| match reply {
        Reply::Array(parts) => match &parts[..] {
            [Reply::Integer(next), Reply::Bulk(bytes)] => Some((*next, bytes.clone())),
            _ => None,
        },
        _ => None,
    };
    let mut lines = Vec::new();
    if dice.below(2) == 0 {
        let mut iterator = 0;
        while let Some((next, bytes)) =
            part(&run(engine, &[line(&format!("BF.SCANDUMP {bloom} {iterator}"))], false)[0])
            && next != 0
        {
            let target = format!("b{target}");
            let chunk = |iterator: i64, bytes: &[u8]| -> Words {
                vec![
                    b"BF.LOADCHUNK".to_vec(),
                    target.clone().into(),
                    iterator.to_string().into(),
                    bytes.to_vec(),
                ]
            };
            // In two halves, one of which may never come.
            let (one, other) = bytes.split_at(if iterator == 0 { bytes.len() } else { bytes.len() / 2 });
            lines.push(chunk(next - other.len() as i64, one));
            if !other.is_empty() && dice.below(4) > 0 {
                lines.push(chunk(next, other));
            }
            iterator = next;
        }
    } else if let Some((_, bytes)) = part(&run(engine, &[line(&format!("MF.DUMP {filter} 0"))], false)[0]) {
        // The first one has the header.
        let length = (bytes.len() / 3 + 1).max(192);
        let pieces = bytes.chunks(length).enumerate();
        for (index, piece) in pieces.take(1 + dice.below(3) as usize) {
            let offset = index * length;
            lines.push(vec![
                b"MF.LOAD".to_vec(),
                format!("m{target}").into(),
                offset.to_string().into(),
                piece.to_vec(),
            ]);
        }
    }
    match lines.is_empty() {
        true => vec![line("EXISTS b0")],
        false => lines,
    }
}

/// One step of a history.
fn step(engine: &Engine, clock: &FixedClock, dice: &mut Dice, names: u64) {
    match dice.below(40) {
        0 => drop(clock.now_ms.fetch_add(dice.below(2_000), Relaxed)),
        1 => drop(engine.sweep(Duration::from_millis(50))),
        2 => {
            let value = dice.one_of(&["4", "64", "200"]);
            engine.set_parameters(|changed| {
                let parameter = parameters::find(b"bf-initial-size").unwrap();
                (parameter.set)(changed, value.as_bytes()).unwrap();
            });
        }
        3 => {
            let lines: Vec<Words> = (0..3).flat_map(|_| requests(engine, dice, names)).collect();
            run(engine, &lines, true);
        }
        _ => drop(run(engine, &requests(engine, dice, names), false)),
    }
}

/// The complete state of a name: its bytes, its deadline, when it was created.
pub(super) type Contents = BTreeMap<Vec<u8>, (u8, Vec<u8>, Option<u64>, u32)>;

pub(super) fn state(engine: &Engine) -> Contents {
    let mut state = Contents::new();
    let mut cursor = 0;
    loop {
        let (next, entries) = engine.walk_all(cursor, u64::MAX);
        for entry in entries {
            let mut held = entry.write();
            let Some(value) = held.as_mut() else { continue };
            let mut bytes = Vec::new();
            value.store(&mut bytes).unwrap();
            let what = (value.form() as u8, bytes, engine.expiries.get(&entry), entry.made_secs());
            state.insert(entry.name().to_vec(), what);
        }
        match next {
            0 => return state,
            next => cursor = next,
        }
    }
}

/// Describes the first difference.
pub(super) fn difference(before: &Contents, after: &Contents) -> Option<String> {
    for (name, was) in before {
        let name_text = String::from_utf8_lossy(name);
        let Some(is) = after.get(name) else { return Some(format!("{name_text} is missing")) };
        if is != was {
            let differs = was.1.iter().zip(&is.1).position(|(one, other)| one != other);
            return Some(format!(
                "{name_text}: form {} and {}, {} and {} bytes, first other byte {differs:?}, deadlines {:?} and {:?}, made {} and {}",
                was.0,
                is.0,
                was.1.len(),
                is.1.len(),
                was.2,
                is.2,
                was.3,
                is.3
            ));
        }
    }
    let more = after.keys().find(|name| !before.contains_key(*name))?;
    Some(format!("{} should not exist", String::from_utf8_lossy(more)))
}

/// The contents of an engine that is recovered from `disk` at this time, and its totals.
pub(super) fn recovered(
    disk: &Memory,
    clock: &FixedClock,
    spoilt: Option<Spoilt>,
) -> (Engine, Arc<FixedClock>) {
    let (after, its_clock) = engine(77);
    its_clock.now_ms.store(clock.now_ms(), Relaxed);
    *after.spoilt.lock() = spoilt;
    after.recover_quiet(Arc::new(disk.clone()), Policy::No, quiet()).unwrap();
    (after, its_clock)
}

/// Runs a history with snapshots, and returns the first difference after recovery.
fn history(seed: u64, steps: u64, spoilt: Option<Spoilt>) -> Option<String> {
    let mut dice = Dice(seed);
    let (engine, clock) = engine(seed);
    *engine.spoilt.lock() = spoilt;
    let disk = Memory::default();
    engine.recover_quiet(Arc::new(disk.clone()), Policy::No, quiet()).unwrap();
    let names = 1 + dice.below(6);
    let mut snapshot = None;
    for _ in 0..steps {
        step(&engine, &clock, &mut dice, names);
        let show = |what: &str| {
            if std::env::var_os("MAYHAP_SHOW").is_some() {
                eprintln!("snapshot {what}, number {}", engine.log().unwrap().next());
            }
        };
        match dice.below(30) {
            0 if snapshot.is_none() => {
                show("begins");
                let begun = engine.begin_snapshot(&disk).unwrap();
                snapshot = Some(begun.with_sizes(1_000, 300, 1));
            }
            1 => {
                if let Some(snapshot) = snapshot.take() {
                    match dice.below(5) {
                        0 => {
                            show("given up");
                            drop(snapshot);
                        }
                        _ => {
                            show("ends");
                            snapshot.finish().unwrap();
                        }
                    }
                }
            }
            _ => {}
        }
        if let Some(snapshot) = &mut snapshot {
            snapshot.step().unwrap();
        }
    }
    drop(snapshot);
    let log = engine.log().unwrap();
    log.sync().unwrap();
    let (after, _) = recovered(&disk, &clock, spoilt);
    let before = state(&engine);
    if let Some(difference) = difference(&before, &state(&after)) {
        return Some(difference);
    }
    let totals = |engine: &Engine| {
        let totals = engine.totals();
        (totals.names, totals.items, totals.expiring)
    };
    if totals(&engine) != totals(&after) {
        return Some(format!("{:?} and {:?}", totals(&engine), totals(&after)));
    }
    // And again, from the snapshot that the recovered engine writes.
    after.snapshot(&disk).unwrap();
    let (again, _) = recovered(&disk, &clock, spoilt);
    difference(&before, &state(&again)).map(|difference| format!("the second time: {difference}"))
}

#[test]
fn random_histories_are_restored() {
    const HISTORIES: u64 = 400;
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (first, count) = (number("MAYHAP_SEED"), number("MAYHAP_HISTORIES"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { HISTORIES });
    for seed in (first.unwrap_or(0)..).take(count as usize) {
        if let Some(difference) = history(seed, 150, None) {
            panic!("MAYHAP_SEED={seed}: {difference}");
        }
    }
}

#[test]
fn deliberate_faults_are_detected() {
    for spoilt in [
        Spoilt::Items,
        Spoilt::Removed,
        Spoilt::Late,
        Spoilt::Numbers,
        Spoilt::Parts,
        Spoilt::Words("bf.madd"),
        Spoilt::Words("bf.reserve"),
        Spoilt::Words("bf.loadchunk"),
        Spoilt::Words("cf.insert"),
        Spoilt::Words("cf.del"),
        Spoilt::Words("cf.compact"),
        Spoilt::Words("mf.reserve"),
        Spoilt::Words("mf.madd"),
        Spoilt::Words("mf.build"),
        Spoilt::Words("mf.merge"),
        Spoilt::Words("mf.load"),
        Spoilt::Words("mf.clear"),
        Spoilt::Words("set"),
        Spoilt::Words("bitop"),
        Spoilt::Words("rename"),
        Spoilt::Words("renamenx"),
        Spoilt::Words("copy"),
        Spoilt::Words("pexpire"),
        Spoilt::Words("expire"),
        Spoilt::Words("persist"),
        Spoilt::Words("flushall"),
    ] {
        let noticed = (0..400).any(|seed| {
            // A history that cannot be replayed counts as detected.
            let outcome = std::panic::catch_unwind(|| history(seed, 150, Some(spoilt)));
            outcome.is_ok_and(|difference| difference.is_some())
        });
        assert!(noticed, "{spoilt:?} was not detected");
    }
}

/// Threads change values while another writes one snapshot after another. Returns the first difference.
fn threads(
    seed: u64,
    steps: u64,
    spoilt: Option<Spoilt>,
    step: impl Fn(&Engine, &FixedClock, &mut Dice) + Sync,
) -> Option<String> {
    const THREADS: u64 = 3;
    let (engine, clock) = engine(seed);
    *engine.spoilt.lock() = spoilt;
    engine.pauses.store(true, Relaxed);
    let disk = Memory::default();
    engine.recover_quiet(Arc::new(disk.clone()), Policy::No, quiet()).unwrap();
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, clock, done, step) = (&engine, &clock, &done, &step);
            scope.spawn(move || {
                let mut dice = Dice(mix(seed * 10 + thread));
                for _ in 0..steps {
                    step(engine, clock, &mut dice);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        // The last snapshot ends shortly before the threads do, so that later changes do not hide its errors.
        let last = steps * THREADS - Dice(seed).below(100);
        while done.load(Relaxed) < last {
            let mut snapshot = engine.begin_snapshot(&disk).unwrap().with_sizes(1_000, 300, 1);
            while snapshot.step().unwrap() {
                std::thread::sleep(Duration::from_micros(100));
            }
            snapshot.finish().unwrap();
        }
    });
    engine.log().unwrap().sync().unwrap();
    let (after, _) = recovered(&disk, &clock, spoilt);
    difference(&state(&engine), &state(&after))
}

/// Any request.
fn anything(engine: &Engine, clock: &FixedClock, dice: &mut Dice) {
    step(engine, clock, dice, 4);
}

/// Changes of values that are copied in many pieces.
fn on_large_values(engine: &Engine, _: &FixedClock, dice: &mut Dice) {
    let number = dice.below(100_000);
    let text = match dice.below(9) {
        0 => "CF.RESERVE cuckoo 2000 EXPANSION 1".into(),
        1 => format!("CF.ADD cuckoo {number}"),
        2 => format!("CF.DEL cuckoo {number}"),
        3 => format!("SETRANGE text {} {number}", number % 9_000),
        4 => "MF.RESERVE filter KIND cuckoo CAPACITY 3000 FPR 0.01 KEYLESS".into(),
        5 => format!("MF.ADD filter {number}"),
        6 => format!("BF.INSERT bloom CAPACITY 5000 ITEMS {number}"),
        _ => format!("BF.MADD bloom {number} {}", number + 1),
    };
    run(engine, &[line(&text)], false);
    // Lets the snapshot run.
    if dice.below(4) == 0 {
        std::thread::sleep(Duration::from_micros(30));
    }
}

#[test]
fn changes_by_threads_during_snapshots_are_restored() {
    let rounds = std::env::var("MAYHAP_HISTORIES").ok().and_then(|number| number.parse::<u64>().ok());
    for seed in 0..rounds.map_or(10, |rounds| rounds / 40) {
        if let Some(difference) = threads(seed, 1_000, None, anything) {
            panic!("anything, seed {seed}: {difference}");
        }
        if let Some(difference) = threads(seed, 1_000, None, on_large_values) {
            panic!("large values, seed {seed}: {difference}");
        }
    }
}

#[test]
fn threads_detect_faults_of_snapshots() {
    let noticed = |spoilt, step: fn(&Engine, &FixedClock, &mut Dice)| {
        (0..200).any(|seed| {
            let outcome = std::panic::catch_unwind(|| threads(seed, 1_000, Some(spoilt), step));
            outcome.is_ok_and(|difference| difference.is_some())
        })
    };
    for spoilt in [Spoilt::Late, Spoilt::Numbers, Spoilt::Parts] {
        assert!(noticed(spoilt, anything), "{spoilt:?} was not detected");
    }
    for spoilt in [Spoilt::Copying, Spoilt::Numbers, Spoilt::Items] {
        assert!(noticed(spoilt, on_large_values), "{spoilt:?} was not detected");
    }
}
