//! The delay that a snapshot causes for clients: a real process, its disk, and writers that never pause.
//!
//! `MAYHAP_SNAPSHOTS=long` (`just snapshots`) uses the promised sizes; without it they are smaller, for `./test`.

mod program;

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use program::empty_folder;
use program::server::{PATIENCE, Server};
use program::talk::Talk;

const MIB: u64 = 1 << 20;
/// The longest allowed delay.
const PROMISED: Duration = Duration::from_millis(100);

/// One of two sizes: for `./test`, and the promised one.
fn size(short: u64, long: u64) -> u64 {
    if std::env::var("MAYHAP_SNAPSHOTS").is_ok_and(|value| value == "long") { long } else { short }
}

/// One test at a time, so that other tests are not measured.
static ALONE: Mutex<()> = Mutex::new(());

impl Talk {
    fn with(server: &Server) -> Self {
        Self::over(server.connect(), PATIENCE * 4)
    }

    /// Sends many lines in one write. None may be rejected.
    fn ask_all(&mut self, lines: impl Iterator<Item = String>) {
        let lines: Vec<String> = lines.collect();
        for some in lines.chunks(1_000) {
            let mut text = String::new();
            some.iter().for_each(|line| write!(text, "{line}\r\n").unwrap());
            self.send(text.as_bytes());
            for line in some {
                let reply = self.line();
                assert!(!reply.starts_with('-'), "{line}: {reply}");
            }
        }
    }
}

/// Writers that never pause. In a line, `{new}` is a new number every time, `{name}` one of the small names, `{bit}` any bit.
const WRITERS: [(&str, &str); 7] = [
    ("small filters", "BF.ADD n{name} {new}"),
    ("new names", "SET new{new} {new}"),
    ("a large Bloom filter", "BF.ADD bloom {new}"),
    ("a large keyed filter", "MF.ADD mayhap {new}"),
    ("a large cuckoo filter", "CF.ADD cuckoo {new}"),
    ("a large bitmap", "SETBIT bits {bit} 1"),
    ("copies", "COPY n{name} copy{name} REPLACE"),
];

/// The durations of the writes of one writer.
struct WriteDurations {
    what: &'static str,
    longest: Duration,
    writes: u64,
}

/// The longest duration of each kind of write while `work` ran.
fn longest(server: &Server, names: u64, bits: u64, work: impl FnOnce()) -> Vec<WriteDurations> {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    let round = ROUND.fetch_add(1, Relaxed) << 32;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = |(what, line): (&'static str, &'static str)| {
        let (mut talk, stopped) = (Talk::with(server), Arc::clone(&stop));
        thread::spawn(move || {
            let mut took = WriteDurations { what, longest: Duration::ZERO, writes: 0 };
            while !stopped.load(Relaxed) {
                let chance = took.writes.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
                let line = line
                    .replace("{new}", &(round + took.writes).to_string())
                    .replace("{name}", &(chance % names).to_string())
                    .replace("{bit}", &(chance % bits).to_string());
                let begun = Instant::now();
                let reply = talk.ask(&line);
                took.longest = took.longest.max(begun.elapsed());
                assert!(reply.starts_with([':', '+']), "{line}: {reply}");
                took.writes += 1;
            }
            took
        })
    };
    let writers = WRITERS.map(writer);
    work();
    stop.store(true, Relaxed);
    writers.into_iter().map(|writer| writer.join().unwrap()).collect()
}

/// Takes snapshots one after another for this time. Returns how many.
fn snapshots(server: &Server, time: Duration) -> u64 {
    let mut talk = Talk::with(server);
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < time || count < 2 {
        // One may have been started because the log had become long.
        let reply = talk.ask("BGSAVE");
        assert!(reply == "+Background saving started" || reply.contains("already"), "{reply}");
        while talk.info("rdb_bgsave_in_progress") == 1 {
            thread::sleep(Duration::from_millis(2));
        }
        count += 1;
    }
    let reply = talk.ask("INFO persistence");
    let mut text = vec![0; reply[1..].parse::<usize>().unwrap() + 2];
    talk.0.read_exact(&mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("rdb_last_bgsave_status:ok"));
    count
}

#[test]
fn snapshots_do_not_delay_clients() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = empty_folder("serve_snapshots", "nobody_waits");
    let server =
        Server::in_folder(&folder, &["--workers", "2", "--max-memory", "8GiB", "--log-level", "error"]);
    let (names, large) = (size(20_000, 300_000), size(24, 256) * MIB);
    let mut talk = Talk::with(&server);
    // 9.585 bits for each item; a byte for each; and bits.
    let items = large * 8 * 1_000 / 9_586;
    for line in [
        format!("BF.RESERVE bloom 0.01 {items}"),
        format!("MF.RESERVE mayhap KIND bloom CAPACITY {items} FPR 1%"),
        format!("CF.RESERVE cuckoo {large}"),
        format!("SETBIT bits {} 1", large * 8 - 1),
    ] {
        let reply = talk.ask(&line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    talk.ask_all((0..names).map(|number| format!("BF.ADD n{number} a")));
    let time = Duration::from_millis(size(1_500, 20_000));
    let without = longest(&server, names, large * 8, || thread::sleep(time));
    let mut saved = 0;
    let with = longest(&server, names, large * 8, || saved = snapshots(&server, time));
    println!("{saved} snapshots of {names} small names and four values of {} MiB", large / MIB);
    let bare = without.iter().map(|took| took.longest).max().unwrap();
    for (before, took) in without.iter().zip(&with) {
        let WriteDurations { what, longest, writes } = took;
        println!(
            "{what}: {longest:.2?} the longest of {writes} writes, without snapshots {:.2?}",
            before.longest
        );
    }
    // On a loaded machine, the limit is scaled by the delay without snapshots.
    let limit = PROMISED.max(bare * 4);
    for WriteDurations { what, longest, .. } in &with {
        assert!(*longest < limit, "{what}: {longest:?}, without snapshots {bare:?}");
    }
    drop(server);
    fs::remove_dir_all(&folder).unwrap();
}

/// Data that fits before a restart fits after it: no value is in memory twice while it is read.
#[test]
fn loading_a_snapshot_takes_no_extra_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = empty_folder("serve_snapshots", "restart");
    let arguments = ["--workers", "2", "--max-memory", "8GiB", "--log-level", "error"];
    let server = Server::in_folder(&folder, &arguments);
    let large = size(64, 512) * MIB;
    let items = large * 8 * 1_000 / 9_586;
    let mut talk = Talk::with(&server);
    for line in [
        format!("BF.RESERVE bloom 0.01 {items}"),
        format!("MF.RESERVE mayhap KIND bloom CAPACITY {items} FPR 1%"),
        format!("CF.RESERVE cuckoo {}", large / 2),
        format!("SETBIT bits {} 1", large * 8 - 1),
        "BF.ADD bloom a".to_owned(),
        "MF.ADD mayhap a".to_owned(),
        "CF.ADD cuckoo a".to_owned(),
        "SAVE".to_owned(),
    ] {
        let reply = talk.ask(&line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let (code, log, _) = server.stop();
    assert_eq!(code, 0, "{log}");
    let server = Server::in_folder(&folder, &arguments);
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let bytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
    };
    let (now, most) = (bytes("VmRSS"), bytes("VmHWM"));
    println!("{} MiB resident after a restart, {} MiB at the most", now / MIB, most / MIB);
    assert!(most - now < large / 2, "{most}, and {now} in the end");
    let mut talk = Talk::with(&server);
    for (line, expected) in [
        ("BF.EXISTS bloom a", ":1"),
        ("BF.EXISTS bloom b", ":0"),
        ("MF.EXISTS mayhap a", ":1"),
        ("MF.EXISTS mayhap b", ":0"),
        ("CF.EXISTS cuckoo a", ":1"),
        ("CF.EXISTS cuckoo b", ":0"),
        ("BITCOUNT bits", ":1"),
    ] {
        assert_eq!(talk.ask(line), expected, "{line}");
    }
    drop(server);
    fs::remove_dir_all(&folder).unwrap();
}
