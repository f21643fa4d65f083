//! A folder as it may be after a day: a log of several files, a snapshot in parts, large values in files of
//! their own. If any single bit of it flips, the folder is refused, with the file and a position, or
//! everything in it is as before.
//!
//! `MAYHAP_FLIPPED_BITS` is the number of bits to flip, one at a time (`just flipped-bits`: ten thousand). A
//! failure reports its number, and `MAYHAP_FLIPPED_BIT` flips only that one.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use mayhap_engine::log::{self, Commit, Policy, Salts};
use mayhap_engine::snapshot::MANIFEST;
use mayhap_engine::{Disk, Engine, RecoverError, Recovery};
use mayhap_testkit::rng::Rng;
use support::histories::setting;
use support::simulated::{Simulated, Spoiled};
use support::{engine, one, run};

const FLIPS: u64 = 400;
/// The size of the last page, which may be zeros after a power loss.
const PAGE: usize = 4096;

type Held = BTreeMap<Vec<u8>, u64>;

/// How the log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

struct Folder {
    disk: Simulated,
    /// The values by the number of records in the log, for the last of them.
    held: BTreeMap<u64, Held>,
    /// The number of the next record.
    next: u64,
    /// Records below this one were safe when the last one was written.
    safe: u64,
    end: End,
}

fn recover(disk: &Simulated, seed: u64) -> Result<(Engine, Recovery), RecoverError> {
    let (engine, _) = engine();
    let limits = log::Limits { salts: Salts::Seeded(seed), ..log::Limits::default() };
    let recovery = engine.recover_quiet(Arc::new(disk.clone()), Policy::No, limits)?;
    Ok((engine, recovery))
}

fn commit(engine: &Engine) {
    let log = engine.log().unwrap();
    assert_eq!(log.commit(log.next()).unwrap(), Commit::Done);
}

fn items(from: u64, count: u64) -> String {
    (from..from + count).map(|item| format!(" https://example.org/path/{item}")).collect()
}

/// Some hundred names of all families.
fn fill(engine: &Engine) {
    for user in 0..400 {
        let mut lines = vec![
            format!("BF.RESERVE seen:{user} 0.01 500"),
            format!("BF.MADD seen:{user}{}", items(user, 8)),
        ];
        match user % 4 {
            0 => lines.push(format!("CF.INSERT basket:{user} CAPACITY 64 ITEMS{}", items(user, 4))),
            1 => lines.push(format!("SET session:{user} {}", "token".repeat(20))),
            2 => lines.push(format!("SETBIT days:{user} {} 1", user * 3)),
            _ => lines.push(format!("PEXPIRE seen:{user} {}", 1_000_000 + user)),
        }
        run(engine, &lines);
        commit(engine);
    }
    for (name, kind) in [
        ("cuckoo", "KIND cuckoo CAPACITY 20000 FPR 0.001"),
        ("quotient", "KIND quotient CAPACITY 20000 FPR 0.001"),
        ("blocked", "KIND blocked-bloom CAPACITY 20000 FPR 0.001"),
        ("counting", "KIND counting-bloom CAPACITY 5000 FPR 0.01"),
    ] {
        run(engine, &[format!("MF.RESERVE {name} {kind}"), format!("MF.MADD {name}{}", items(0, 2_000))]);
        commit(engine);
    }
    // Two with files of their own.
    run(engine, &["BF.RESERVE large 0.001 2500000".into(), format!("BF.MADD large{}", items(0, 3_000))]);
    run(engine, &["SETBIT bitmap 33600000 1", "SETBIT bitmap 7 1"]);
    commit(engine);
}

/// A log of some files after a snapshot with parts of different age and late names.
fn folder(end: End) -> Folder {
    let disk = Simulated::new(Spoiled::Not);
    let (engine, _) = recover(&disk, 1).unwrap();
    fill(&engine);
    engine.snapshot(&disk).unwrap();
    for user in 0..20 {
        run(&engine, &[format!("BF.ADD seen:{user} again"), format!("DEL session:{}", user * 4 + 1)]);
    }
    let mut snapshot = engine.begin_snapshot(&disk).unwrap();
    snapshot.step().unwrap();
    run(&engine, &["COPY cuckoo copied", "RENAME days:2 days", "BITOP NOT inverted days:6"]);
    snapshot.finish().unwrap();
    let log = engine.log().unwrap();
    for round in 0..300 {
        let lines = [
            format!("BF.MADD seen:{}{}", round, items(round * 1_000, 40)),
            format!("BF.MADD large{}", items(round * 1_000, 200)),
            format!("MF.MADD cuckoo{}", items(5_000 + round * 20, 20)),
            format!("APPEND session:{} {round}", round * 4 + 1),
        ];
        run(&engine, &lines);
        commit(&engine);
        if round % 10 == 0 {
            log.sync().unwrap();
        }
        if round % 80 == 40 {
            log.rotate().unwrap();
        }
    }
    log.sync().unwrap();
    // More than a page that is not known to be safe.
    let (safe, mut held) = (log.next(), BTreeMap::from([(log.next(), engine.digests())]));
    for round in 0..24 {
        run(&engine, &[format!("BF.MADD seen:{round}{}", items(900_000 + round, 16))]);
        commit(&engine);
        held.insert(log.next(), engine.digests());
    }
    let next = log.next();
    if end == End::Closed {
        log.close().unwrap();
    }
    Folder { disk, held, next, safe, end }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Log,
    Manifest,
    Newest,
    Part,
    Value,
}

fn kind(file: &str) -> Kind {
    match file {
        MANIFEST => Kind::Manifest,
        "mayhap.newest" => Kind::Newest,
        file if file.starts_with("part-") => Kind::Part,
        file if file.starts_with("value-") => Kind::Value,
        file if file.starts_with("log-") => Kind::Log,
        file => panic!("unknown file {file}"),
    }
}

/// The outcome of flipped bits.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    refused: u64,
    right: u64,
    /// The end of the log, which was not known to be safe, was cut off, and that was reported.
    cut: u64,
}

impl Folder {
    fn last_log(&self) -> String {
        let logs = self.disk.list().unwrap().into_iter().filter(|file| kind(file) == Kind::Log);
        logs.max().unwrap()
    }

    /// Opens a folder with a change at byte `at` of `file`.
    fn check(&self, spoiled: &Simulated, file: &str, at: usize) -> Result<Outcome, String> {
        let bytes = self.disk.bytes(file).len() as u64;
        let (engine, recovery) = match recover(spoiled, 2) {
            Ok(opened) => opened,
            Err(error) => {
                let text = error.to_string();
                let place = text.split("at byte ").nth(1).unwrap_or_default();
                let place: String = place.chars().take_while(char::is_ascii_digit).collect();
                return match place.parse::<u64>() {
                    Ok(place) if place <= bytes && text.contains(file) => {
                        Ok(Outcome { refused: 1, ..Outcome::default() })
                    }
                    _ => Err(format!("refused without the file and a position: {text}")),
                };
            }
        };
        let found = &recovery.log;
        let Some(held) = self.held.get(&found.next) else {
            return Err(format!("the log ends with number {} instead of {}", found.next, self.next));
        };
        if engine.digests() != *held {
            return Err(format!("the values differ from those at number {}", found.next));
        }
        if found.next == self.next {
            return Ok(Outcome { right: 1, ..Outcome::default() });
        }
        // Something is gone: the end of the log, and never a record that was known to be safe.
        let told = found.cut_bytes > 0 && found.cut_file.as_deref() == Some(file);
        match told
            && file == self.last_log()
            && found.next >= self.safe
            && at as u64 >= bytes - found.cut_bytes
        {
            true => Ok(Outcome { cut: 1, ..Outcome::default() }),
            false => Err(format!("the log ends with number {}, and reports {found:?}", found.next)),
        }
    }

    /// Flips the bit with this number. Returns the kind of its file.
    fn flip(&self, number: u64) -> Result<(Kind, Outcome), String> {
        let mut rng = Rng::new(number);
        // Half of them in the log; the rest shared evenly among the kinds of files, however small.
        let wanted = match number % 8 {
            0 | 2 | 4 | 6 => Kind::Log,
            1 | 5 => Kind::Part,
            3 => Kind::Value,
            _ if number % 16 == 15 => Kind::Newest,
            _ => Kind::Manifest,
        };
        let files = self.disk.list().unwrap().into_iter();
        let files: Vec<(String, u64)> = files
            .filter(|file| kind(file) == wanted)
            .map(|file| {
                let bytes = self.disk.bytes(&file).len() as u64;
                (file, bytes)
            })
            .collect();
        // Any byte of all of them.
        let mut at = rng.below(files.iter().map(|(_, bytes)| bytes).sum());
        let mut of = files.iter();
        let file = loop {
            let (file, bytes) = of.next().unwrap();
            match at.checked_sub(*bytes) {
                Some(after) => at = after,
                None => break file,
            }
        };
        let (at, bit) = (at as usize, rng.below(8));
        let spoiled = self.disk.copied();
        spoiled.tamper(file, |bytes| bytes[at] ^= 1 << bit);
        let outcome = self.check(&spoiled, file, at);
        let outcome = outcome.map_err(|what| {
            format!("{:?}, MAYHAP_FLIPPED_BIT={number}, bit {bit} of byte {at} of {file}: {what}", self.end)
        })?;
        Ok((wanted, outcome))
    }
}

#[test]
fn a_flipped_bit_is_refused_or_harmless() {
    let flips = setting("MAYHAP_FLIPPED_BITS").unwrap_or(FLIPS) / 2;
    for end in [End::Closed, End::Killed] {
        let folder = folder(end);
        if let Some(number) = setting("MAYHAP_FLIPPED_BIT") {
            println!("{:?}", folder.flip(number).unwrap());
            continue;
        }
        let mut sizes = BTreeMap::<Kind, (u64, usize)>::new();
        for file in folder.disk.list().unwrap() {
            let size = sizes.entry(kind(&file)).or_default();
            *size = (size.0 + 1, size.1 + folder.disk.bytes(&file).len());
        }
        println!("{end:?}, files and bytes: {sizes:?}");
        // Each folder has its own bits.
        let first = if end == End::Closed { 0 } else { flips };
        let (next, outcomes) = (AtomicU64::new(first), Mutex::new(BTreeMap::<Kind, Outcome>::new()));
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= first + flips {
                            return;
                        }
                        let (kind, outcome) = folder.flip(number).unwrap();
                        let mut outcomes = outcomes.lock().unwrap();
                        let sum = outcomes.entry(kind).or_default();
                        sum.refused += outcome.refused;
                        sum.right += outcome.right;
                        sum.cut += outcome.cut;
                    }
                });
            }
        });
        let outcomes = outcomes.into_inner().unwrap();
        println!("{end:?}, of {flips} flipped bits: {outcomes:?}");
        for (kind, outcome) in &outcomes {
            assert!(outcome.refused > 0, "{kind:?}: {outcome:?}");
            assert!(outcome.cut == 0 || (*kind, end) == (Kind::Log, End::Killed), "{kind:?}: {outcome:?}");
        }
        assert_eq!(outcomes.len(), 5);
    }
}

#[test]
fn a_folder_with_a_zeroed_last_page_starts() {
    for end in [End::Closed, End::Killed] {
        let folder = folder(end);
        let (file, spoiled) = (folder.last_log(), folder.disk.copied());
        let mut at = 0;
        spoiled.tamper(&file, |bytes| {
            at = bytes.len() - PAGE;
            bytes[at..].fill(0);
        });
        let (engine, recovery) = recover(&spoiled, 2).unwrap();
        assert!(
            recovery.log.cut_bytes as usize >= PAGE && recovery.log.cut_file.as_deref() == Some(&file[..])
        );
        let next = recovery.log.next;
        assert!(next >= folder.safe && next < folder.next, "{next}, {} to {}", folder.safe, folder.next);
        assert_eq!(engine.digests(), folder.held[&next]);
        // It continues.
        one(&engine, "BF.ADD seen:1 after");
        let held = engine.digests();
        assert_ne!(held, folder.held[&next], "the hashes differ by one item");
        engine.log().unwrap().sync().unwrap();
        drop(engine);
        assert_eq!(recover(&spoiled, 3).unwrap().0.digests(), held);
    }
}

/// The check detects wrong data: data that was replaced by other data with right checksums.
#[test]
fn wrong_data_is_detected() {
    let folder = folder(End::Killed);
    let (engine, _) = recover(&folder.disk.copied(), 2).unwrap();
    assert_eq!(engine.digests(), folder.held[&folder.next]);
    let other = folder.disk.copied();
    {
        let (engine, _) = recover(&other, 2).unwrap();
        one(&engine, "BF.ADD seen:1 forged");
        engine.log().unwrap().sync().unwrap();
    }
    let last = folder.last_log();
    assert!(folder.check(&other, &last, 0).is_err());
    let gone = folder.disk.copied();
    gone.tamper(&last, |bytes| bytes.truncate(100));
    assert!(folder.check(&gone, &last, 100).is_err());
}
