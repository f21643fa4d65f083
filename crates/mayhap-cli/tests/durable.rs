//! Acknowledged changes survive the end of the process (`kill -9`) and a power loss of the machine.
//!
//! The power loss is simulated: the data is on a separate ext4 file system in a file. The file system is told to stop without
//! writing its pending data, as in a power loss. This takes root and a loop device; without them, the test prints that it is
//! skipped.
//!
//! `MAYHAP_KILLS` and `MAYHAP_POWER_LOSSES` are the rounds for each policy.

#[path = "durable/kinds.rs"]
mod kinds;
mod program;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use program::server::Server;

/// Clients that write concurrently.
const WRITERS: usize = 8;
/// The most requests of a writer in flight.
const DEPTH: u64 = 8;
/// Items looked up with one request.
const ASKED: u64 = 500;

/// The values that a writer writes to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sort {
    Bloom,
    Mayhap,
    Cuckoo,
    List,
}

impl Sort {
    const fn of(writer: usize) -> Self {
        [Self::Bloom, Self::Mayhap, Self::Cuckoo, Self::List][writer % 4]
    }

    /// Two writers share all values except the lists.
    fn name(self, writer: usize) -> String {
        match self {
            Self::Bloom => "bloom".to_owned(),
            Self::Mayhap => "mayhap".to_owned(),
            Self::Cuckoo => "cuckoo".to_owned(),
            Self::List => format!("list:{writer}"),
        }
    }

    const fn family(self) -> &'static str {
        match self {
            Self::Bloom => "BF",
            Self::Cuckoo => "CF",
            Self::Mayhap | Self::List => "MF",
        }
    }
}

/// Small at first, so that they grow all the time.
const MADE: [&str; 5] = [
    "BF.RESERVE bloom 0.0001 100",
    "CF.RESERVE cuckoo 1000 BUCKETSIZE 4 EXPANSION 2",
    "MF.RESERVE mayhap KIND scalable CAPACITY 100 FPR 0.0001",
    "MF.RESERVE list:3 KIND scalable TIERS 1000,100000 FPR 0.0001",
    "MF.RESERVE list:7 KIND growing CAPACITY 100 FPR 0.0001",
];

/// The acknowledged changes of one writer.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    /// Its items have the numbers below this one.
    items: u64,
    /// Items that were sent, answered or not.
    sent: u64,
    /// The times and numbers of acknowledgements in this round.
    times: Vec<(Instant, u64)>,
}

fn item(writer: usize, number: u64) -> String {
    format!("{writer}:{number}")
}

fn request(words: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Adds items until the server is gone.
fn write(stream: TcpStream, writer: usize, done: &mut Acknowledged) {
    done.times.clear();
    done.sent = done.items;
    let sort = Sort::of(writer);
    let (command, name) = (format!("{}.ADD", sort.family()), sort.name(writer));
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let depth = 1 + (done.items.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) % DEPTH;
        let mut sent = Vec::new();
        for number in done.items..done.items + depth {
            request(&[&command, &name, &item(writer, number)], &mut sent);
        }
        done.sent = done.items + depth;
        if stream.write_all(&sent).is_err() {
            return;
        }
        for _ in 0..depth {
            let mut line = String::new();
            match replies.read_line(&mut line) {
                Ok(_) if line.ends_with("\r\n") => {
                    // The disk failed before the process: nothing is acknowledged any longer.
                    if line.starts_with("-READONLY ") {
                        return;
                    }
                    // A new item may be a false positive; it is acknowledged all the same.
                    assert!(line == ":1\r\n" || line == ":0\r\n", "writer {writer}: {line}");
                    done.items += 1;
                }
                _ => return,
            }
        }
        done.times.push((Instant::now(), done.items));
    }
}

/// The numbers below `end` of this writer's items that are missing.
fn missing(server: &Server, writer: usize, from: u64, end: u64) -> Vec<u64> {
    let sort = Sort::of(writer);
    let (command, name) = (format!("{}.MEXISTS", sort.family()), sort.name(writer));
    let mut stream = server.connect();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut missing = Vec::new();
    for first in (from..end).step_by(ASKED as usize) {
        let numbers = first..end.min(first + ASKED);
        let items: Vec<String> = numbers.clone().map(|number| item(writer, number)).collect();
        let mut words = vec![command.as_str(), &name];
        words.extend(items.iter().map(String::as_str));
        let mut sent = Vec::new();
        request(&words, &mut sent);
        stream.write_all(&sent).unwrap();
        let mut line = String::new();
        replies.read_line(&mut line).unwrap();
        assert!(line.starts_with('*'), "{command} {name}: {line}");
        for number in numbers {
            let mut line = String::new();
            replies.read_line(&mut line).unwrap();
            if line != ":1\r\n" {
                missing.push(number);
            }
        }
    }
    missing
}

/// The number of items the cuckoo filter counts. It must equal the number inserted, without duplicates.
fn counted(server: &Server) -> u64 {
    let info = server.ask("CF.INFO cuckoo");
    let mut lines = info.lines().skip_while(|line| !line.ends_with("Number of items inserted"));
    lines.nth(1).and_then(|line| line.strip_prefix(':')).unwrap().parse().unwrap()
}

/// Lets eight clients write while `end` runs, with occasional snapshots.
fn write_until(server: &Server, all: &mut [Acknowledged], end: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (writer, done) in all.iter_mut().enumerate() {
            let stream = server.connect();
            scope.spawn(move || write(stream, writer, done));
        }
        scope.spawn(|| {
            let Ok(mut stream) = TcpStream::connect(server.address("RESP")) else { return };
            while !over.load(Ordering::Relaxed) {
                let _ = stream.write_all(b"BGSAVE\r\n");
                let _ = stream.read(&mut [0; 256]);
                std::thread::sleep(Duration::from_millis(60));
            }
        });
        end();
        over.store(true, Ordering::Relaxed);
    });
}

fn rounds(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn start(folder: &Path, policy: &str) -> Server {
    Server::in_folder(folder, &["--fsync", policy, "--save-interval", "0"])
}

fn make_filters(server: &Server) {
    for line in MADE {
        assert_eq!(server.ask(line), "+OK\r\n", "{line}");
    }
}

/// A number that differs for every round and purpose.
fn chance(seed: u64) -> u64 {
    let mut chance = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    chance ^= chance >> 31;
    chance.wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

/// Checks everything that was acknowledged in this round; after the last round, in all rounds.
fn lost(
    server: &Server,
    before: &[Acknowledged],
    all: &[Acknowledged],
    whole: bool,
) -> HashMap<usize, Vec<u64>> {
    let mut lost = HashMap::new();
    for (writer, done) in all.iter().enumerate() {
        let from = if whole { 0 } else { before[writer].items };
        let missing = missing(server, writer, from, done.items);
        if !missing.is_empty() {
            lost.insert(writer, missing);
        }
    }
    lost
}

/// Requests in flight count as sent: they may have been applied.
fn check_count(server: &Server, all: &[Acknowledged], on_their_way: &mut u64) {
    let cuckoos = || all.iter().enumerate().filter(|(writer, _)| Sort::of(*writer) == Sort::Cuckoo);
    let acknowledged: u64 = cuckoos().map(|(_, done)| done.items).sum();
    *on_their_way += cuckoos().map(|(_, done)| done.sent - done.items).sum::<u64>();
    let counted = counted(server);
    assert!(
        (acknowledged..=acknowledged + *on_their_way).contains(&counted),
        "{counted} items in the cuckoo filter, {acknowledged} acknowledged, {on_their_way} more on their way"
    );
}

fn kill_again_and_again(policy: &str, default_rounds: u64) {
    let folder = program::empty_folder("durable", &format!("kill-{policy}"));
    let rounds = rounds("MAYHAP_KILLS", default_rounds);
    let mut all = vec![Acknowledged::default(); WRITERS];
    let mut server = start(&folder, policy);
    make_filters(&server);
    let mut on_their_way = 0;
    for round in 1..=rounds {
        let before = all.clone();
        let millis = 20 + chance(round) % 300;
        write_until(&server, &mut all, || {
            std::thread::sleep(Duration::from_millis(millis));
            server.signal("-KILL");
        });
        drop(server);
        server = start(&folder, policy);
        let lost = lost(&server, &before, &all, round == rounds);
        assert!(lost.is_empty(), "round {round}, killed after {millis} ms: lost {lost:?}");
        check_count(&server, &all, &mut on_their_way);
    }
    let acknowledged: u64 = all.iter().map(|done| done.items).sum();
    assert!(acknowledged > rounds * 100, "{acknowledged} writes are no test");
    eprintln!("--fsync {policy}: killed {rounds} times, {acknowledged} acknowledged, 0 lost");
}

#[test]
fn kill_9_loses_no_acknowledged_change_with_always() {
    kill_again_and_again("always", 6);
}

#[test]
fn kill_9_loses_no_acknowledged_change_with_everysec() {
    kill_again_and_again("everysec", 3);
}

#[test]
fn kill_9_loses_no_acknowledged_change_with_no() {
    kill_again_and_again("no", 2);
}

/// An ext4 in a file.
struct Image {
    folder: PathBuf,
    file: PathBuf,
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Image {
    fn make(folder: &Path, size: &str) -> Result<Self, String> {
        let image = Self { folder: folder.join("disk"), file: folder.join("disk.ext4") };
        std::fs::create_dir_all(&image.folder).unwrap();
        run(Command::new("truncate").args(["-s", size]).arg(&image.file))?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image.file))?;
        image.mount()?;
        Ok(image)
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.file).arg(&self.folder))
    }

    /// The process that cuts the power on request.
    fn switch(&self) -> PowerSwitch {
        // `EXT4_IOC_SHUTDOWN` with `NOLOGFLUSH`: data that is not on the disk by then is lost.
        let shutdown =
            "my $how = pack('L', 2); open(F, '<', $ARGV[0]) or die $!; $| = 1; print qq(ready\\n); <STDIN>;
            ioctl(F, 0x8004587d, $how) or die $!; print qq(gone\\n)";
        let mut perl = Command::new("perl")
            .args(["-e", shutdown])
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(perl.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        PowerSwitch { perl, said }
    }

    fn lose_power(&self) {
        self.switch().lose_power();
    }

    fn unmount(&self) -> Result<(), String> {
        run(Command::new("umount").arg(&self.folder))
    }
}

/// Cuts the power immediately: the program that does it is loaded already.
struct PowerSwitch {
    perl: std::process::Child,
    said: BufReader<std::process::ChildStdout>,
}

impl PowerSwitch {
    /// The last time at which the power was on.
    fn lose_power(mut self) -> Instant {
        let on = Instant::now();
        self.perl.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line, "gone\n");
        self.perl.wait().unwrap();
        on
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = self.unmount();
    }
}

/// Prints that this machine does not allow a test to mount a file system.
fn not_tried(why: &str) {
    eprintln!("not tried, for this machine has no file system to spare: {why}");
}

/// The longest sync of the log so far, including one that is still running.
fn longest_sync(server: &Server) -> Duration {
    let info = server.ask("INFO persistence");
    let field = |name| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap().parse().unwrap()
    };
    let ended = Duration::from_micros(field("log_longest_sync_micros"));
    ended.max(Duration::from_millis(field("log_running_sync_millis")))
}

fn lose_power_again_and_again(policy: &str, default_rounds: u64) {
    let folder = program::empty_folder("durable", &format!("power-{policy}"));
    let image = match Image::make(&folder, "1G") {
        Ok(image) => image,
        Err(why) => return not_tried(&why),
    };
    let rounds = rounds("MAYHAP_POWER_LOSSES", default_rounds);
    let mut all = vec![Acknowledged::default(); WRITERS];
    let (mut worst, mut slowest_sync) = (Duration::ZERO, Duration::ZERO);
    let mut lost_in_all = 0;
    let mut server = start(&image.folder, policy);
    make_filters(&server);
    for round in 1..=rounds {
        let before = all.clone();
        let millis = 200 + chance(round) % 1_500;
        let mut gone = Instant::now();
        let switch = image.switch();
        write_until(&server, &mut all, || {
            std::thread::sleep(Duration::from_millis(millis));
            slowest_sync = slowest_sync.max(longest_sync(&server));
            gone = switch.lose_power();
            server.signal("-KILL");
        });
        drop(server);
        // A machine without power acknowledges nothing, so acknowledgements during the cut do not count.
        for (done, before) in all.iter_mut().zip(&before) {
            let counted = done.times.iter().rfind(|(when, _)| *when <= gone);
            done.items = counted.map_or(before.items, |(_, items)| *items);
        }
        image.unmount().unwrap();
        image.mount().unwrap();
        server = start(&image.folder, policy);
        let lost = lost(&server, &before, &all, round == rounds && policy == "always");
        let acknowledged: Vec<u64> = all.iter().map(|done| done.items).collect();
        assert!(
            policy != "always" || lost.is_empty(),
            "round {round}, power lost after {millis} ms: lost {lost:?} of {acknowledged:?}"
        );
        for (writer, mut missing) in lost {
            lost_in_all += missing.len();
            // Only the last changes are lost, and only those of the last second.
            missing.sort_unstable();
            let oldest = missing[0];
            let when =
                all[writer].times.iter().find(|(_, items)| *items > oldest).map_or(gone, |(when, _)| *when);
            worst = worst.max(gone.saturating_duration_since(when));
        }
        // Lost items are written again; otherwise later rounds would miss them, too.
        for (writer, done) in all.iter_mut().enumerate() {
            if let Some(first) = missing(&server, writer, before[writer].items, done.items).first() {
                done.items = *first;
            }
        }
    }
    // A sync begins twice per second. If syncs take longer than the rest of that second, no better bound is possible.
    let bound = Duration::from_secs(1).max(Duration::from_millis(500) + 2 * slowest_sync);
    assert!(
        worst <= bound,
        "lost what was acknowledged {worst:?} before the power was; the slowest sync took {slowest_sync:?}"
    );
    let acknowledged: u64 = all.iter().map(|done| done.items).sum();
    assert!(acknowledged > rounds * 10, "{acknowledged} writes are no test");
    eprintln!(
        "--fsync {policy}: power lost {rounds} times, {acknowledged} acknowledged, {lost_in_all} lost, the oldest {worst:?} before; slowest sync {slowest_sync:?}"
    );
    drop(server);
}

#[test]
fn a_power_loss_loses_no_acknowledged_change_with_always() {
    lose_power_again_and_again("always", 2);
}

#[test]
fn a_power_loss_loses_at_most_the_last_second_with_everysec() {
    lose_power_again_and_again("everysec", 2);
}

/// A connection with one request at a time.
struct Connection {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Connection {
    fn of(server: &Server) -> Self {
        let stream = server.connect();
        Self { replies: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// The first line of the reply; `None` if the connection is closed.
    fn ask(&mut self, words: &[&str]) -> String {
        let mut sent = Vec::new();
        request(words, &mut sent);
        let mut line = String::new();
        if self.stream.write_all(&sent).is_ok() {
            let _ = self.replies.read_line(&mut line);
        }
        line
    }
}

/// Changes are rejected with `error`, and everything else continues.
fn assert_only_changes_are_refused(server: &Server, error: &str) {
    let mut asking = Connection::of(server);
    for words in
        [&["BF.ADD", "bloom", "never"][..], &["SET", "text", "never"], &["DEL", "bloom"], &["FLUSHALL"]]
    {
        let reply = asking.ask(words);
        assert!(reply.starts_with(&format!("-{error} ")), "{words:?}: {reply}");
    }
    assert_eq!(asking.ask(&["PING"]), "+PONG\r\n");
    assert_eq!(asking.ask(&["BF.EXISTS", "bloom", &item(0, 0)]), ":1\r\n");
    let (status, body) = server.http("GET /ready", "", "");
    assert!(status == 503 && body.contains("disk"), "{status} {body}");
    assert_eq!(server.http("GET /health", "", "").0, 200);
    assert!(server.ask("INFO persistence").contains("aof_last_write_status:err"));
}

#[test]
fn a_full_disk_rejects_changes_until_there_is_room_and_loses_nothing() {
    for policy in ["always", "everysec"] {
        let folder = program::empty_folder("durable", &format!("full-{policy}"));
        let image = match Image::make(&folder, "16M") {
            Ok(image) => image,
            Err(why) => return not_tried(&why),
        };
        // A file that will be deleted to make room.
        std::fs::write(image.folder.join("ballast"), vec![1; 6 << 20]).unwrap();
        let server = start(&image.folder, policy);
        make_filters(&server);
        let mut asking = Connection::of(&server);
        let mut acknowledged = 0;
        let refused = loop {
            // Strings fill a disk faster than hashes.
            let (name, value) = (format!("text:{acknowledged}"), "x".repeat(10_000));
            let added = asking.ask(&["BF.ADD", "bloom", &item(0, acknowledged)]);
            let reply = if added.starts_with(':') { asking.ask(&["SET", &name, &value]) } else { added };
            match reply.as_str() {
                "+OK\r\n" => acknowledged += 1,
                _ => break reply,
            }
            assert!(acknowledged < 10_000, "the disk does not get full");
        };
        assert!(refused.starts_with("-NOSPACE "), "{policy}: {refused}");
        assert_only_changes_are_refused(&server, "NOSPACE");
        std::fs::remove_file(image.folder.join("ballast")).unwrap();
        let begun = Instant::now();
        loop {
            let reply = Connection::of(&server).ask(&["BF.ADD", "bloom", "there is room"]);
            if reply == ":1\r\n" || reply == ":0\r\n" {
                break;
            }
            assert!(reply.starts_with("-NOSPACE "), "{reply}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{policy}: still refused after a second");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(server.http("GET /ready", "", "").0, 200);
        server.signal("-KILL");
        drop(server);
        let server = start(&image.folder, policy);
        let lost = missing(&server, 0, 0, acknowledged);
        assert!(lost.is_empty(), "{policy}: {lost:?} of {acknowledged}");
        let texts = server.ask("DBSIZE");
        let texts: u64 = texts.trim_start_matches(':').trim().parse().unwrap();
        assert!(
            texts >= acknowledged + MADE.len() as u64,
            "{policy}: {texts} names, {acknowledged} texts acknowledged"
        );
        assert_eq!(server.ask("BF.EXISTS bloom \"there is room\""), ":1\r\n");
    }
}

#[test]
fn a_failed_disk_is_not_written_again_and_nothing_is_acknowledged() {
    for policy in ["always", "everysec"] {
        let folder = program::empty_folder("durable", &format!("fails-{policy}"));
        let image = match Image::make(&folder, "64M") {
            Ok(image) => image,
            Err(why) => return not_tried(&why),
        };
        let server = start(&image.folder, policy);
        make_filters(&server);
        let mut asking = Connection::of(&server);
        assert_eq!(asking.ask(&["BF.ADD", "bloom", &item(0, 0)]), ":1\r\n");
        // With everysec, the data must be on the disk before the disk fails.
        std::thread::sleep(Duration::from_millis(if policy == "always" { 0 } else { 2_500 }));
        // From now on, reads and writes of this file system fail.
        image.lose_power();
        let refused = asking.ask(&["BF.ADD", "bloom", "too late"]);
        assert!(refused.starts_with("-READONLY "), "{policy}: {refused}");
        assert_only_changes_are_refused(&server, "READONLY");
        // Data that cannot be saved is still served, and connections stay open. The second signal ends the server with an error.
        server.signal("-TERM");
        std::thread::sleep(Duration::from_millis(1_000));
        assert_eq!(asking.ask(&["BF.EXISTS", "bloom", &item(0, 0)]), ":1\r\n");
        let (code, log, _) = server.stop();
        assert_ne!(code, 0, "{log}");
        assert!(log.contains("shutdown aborted: unsaved changes could not be written"), "{log}");
        image.unmount().unwrap();
        image.mount().unwrap();
        let server = start(&image.folder, policy);
        assert_eq!(missing(&server, 0, 0, 1), Vec::<u64>::new());
        assert_eq!(server.http("GET /ready", "", "").0, 200);
    }
}

/// Flips one bit of a file.
fn damage(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_reported_by_name_and_repair_keeps_the_rest() {
    let folder = program::empty_folder("durable", "repair");
    let server = start(&folder, "everysec");
    make_filters(&server);
    for number in 0..50 {
        assert_eq!(server.ask(&format!("SET text:{number} before")), "+OK\r\n");
    }
    assert_eq!(server.ask("SAVE"), "+OK\r\n");
    // Each in a separate frame.
    for number in 0..50 {
        assert_eq!(server.ask(&format!("SET later:{number} after")), "+OK\r\n");
    }
    assert_eq!(server.stop().0, 0);
    let (code, out, _) = program::run(&folder, &["repair", "data"]);
    assert!(code == 0 && out.contains("nothing is damaged"), "{out}");

    let data = folder.join("data");
    let names = program::names(&data);
    let log = names.iter().rfind(|name| name.starts_with("log-")).unwrap();
    let bytes = std::fs::metadata(data.join(log)).unwrap().len() as usize;
    damage(&data.join(log), bytes / 2);
    let refused = program::error_line(&folder, &["serve", "--port", "0", "--no-http", "--dir", "data"]);
    assert!(
        refused.contains(log) && refused.contains("at byte") && refused.contains("mayhap repair"),
        "{refused}"
    );
    let part = names.iter().find(|name| name.starts_with("part-")).unwrap();
    damage(&data.join(part), 60);
    let before: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(data.join(name)).unwrap()).collect();

    let (code, out, _) = program::run(&folder, &["repair", "data", "--into", "kept"]);
    assert!(code == 1 && out.contains(&format!("damaged    {log} at byte")), "{out}");
    assert!(
        out.contains(&format!("damaged    {part} at byte")) && out.contains("missing    1 change"),
        "{out}"
    );
    // The missing change may concern any name, so all names not created after it are lost.
    assert!(out.contains("not ready  text:0: changes to it are lost"), "{out}");
    assert!(out.contains("not ready  all names not listed here"), "{out}");
    assert!(out.contains("kept       later:49 (string, 0 items)"), "{out}");
    let after: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(data.join(name)).unwrap()).collect();
    let lock = names.iter().position(|name| name == "mayhap.lock");
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(Some(index) == lock || before == after, "{} was changed", names[index]);
    }
    let (code, json, _) = program::run(&folder, &["repair", "--json", "data"]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &found["intact"], &found["changes_missing"]), (1, &false.into(), &1.into()), "{json}");
    assert_eq!(found["unknown_names"], true, "{json}");
    let listed = |list: &str| -> Vec<String> {
        let names = found[list].as_array().unwrap().iter();
        names.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let (kept, lost) = (listed("kept"), listed("not_ready"));
    assert!(kept.contains(&"later:49".to_owned()) && lost.contains(&"text:0".to_owned()), "{json}");
    assert_eq!(kept.iter().chain(&lost).filter(|name| name.starts_with("later:")).count(), 49, "{json}");
    // A directory that is not empty is never written to.
    let (code, _, error) = program::run(&folder, &["repair", "data", "--into", "kept"]);
    assert!(code == 2 && error.contains("must be empty"), "{error}");

    let mut command = program::server::serve(&folder);
    command.args(["--port", "0", "--http-port", "0", "--dir", "kept"]);
    let server = Server::start(command);
    let says = |name: &str| server.ask(&format!("GET {name}"));
    for number in 0..50 {
        assert!(says(&format!("text:{number}")).starts_with("-NOTREADY "), "text:{number}");
        let later = format!("later:{number}");
        let is_kept = kept.contains(&later);
        assert_eq!(says(&later) == "$5\r\nafter\r\n", is_kept, "{later}: {}", says(&later));
        assert_eq!(says(&later).starts_with("-NOTREADY "), !is_kept, "{later}: {}", says(&later));
    }
    for line in
        ["BF.EXISTS bloom x", "BF.ADD bloom x", "CF.EXISTS cuckoo x", "MF.EXISTS mayhap x", "BF.ADD new x"]
    {
        assert!(server.ask(line).starts_with("-NOTREADY "), "{line}: {}", server.ask(line));
    }
    let info = server.ask("INFO mayhap");
    assert!(info.contains("unknown_losses:1") && !info.contains("lost_names:0\r"), "{info}");
    let (_, metrics) = server.http("GET /metrics", "", "");
    assert!(metrics.contains("mayhap_unknown_losses 1"), "{metrics}");
    let page = server.get("/api/v1/filters/bloom");
    assert_eq!((&page["type"], &page["ready"]), (&"lost".into(), &false.into()), "{page}");
    let (_, answers) = server.post("/api/v1/filters/bloom/probe", r#"{"items": ["x"]}"#);
    assert_eq!(answers["answers"][0], "not-ready", "{answers}");
    let (code, said, _) = server.stop();
    assert!(code == 0 && said.contains("SCAN 0 TYPE lost lists them"), "{said}");

    // After accepting the loss, everything that is left is unchanged.
    let (code, out, _) = program::run(&folder, &["repair", "data", "--into", "accepted", "--accept-loss"]);
    assert!(code == 1 && !out.contains("not ready"), "{out}");
    let mut command = program::server::serve(&folder);
    command.args(["--port", "0", "--http-port", "0", "--dir", "accepted"]);
    let server = Server::start(command);
    let there = |name: &str| server.ask(&format!("EXISTS {name}")) == ":1\r\n";
    let later = (0..50).filter(|number| there(&format!("later:{number}"))).count();
    assert_eq!(later, 49, "all changes but the one that was damaged");
    let before = (0..50).filter(|number| there(&format!("text:{number}"))).count();
    assert!((40..=50).contains(&before), "all names but one of one part: {before}");
}

#[test]
fn a_missing_newest_log_file_is_detected_at_start() {
    let folder = program::empty_folder("durable", "newest");
    let server = start(&folder, "always");
    assert_eq!(server.ask("BF.ADD seen ada"), ":1\r\n");
    assert_eq!(server.stop().0, 0);
    let data = folder.join("data");
    let names = program::names(&data);
    let log = names.iter().rfind(|name| name.starts_with("log-")).unwrap();
    std::fs::remove_file(data.join(log)).unwrap();
    let refused = program::error_line(&folder, &["serve", "--port", "0", "--no-http", "--dir", "data"]);
    assert!(refused.contains(log) && refused.contains("mayhap repair"), "{refused}");
    let (code, out, _) = program::run(&folder, &["repair", "data", "--into", "kept"]);
    assert!(code == 1 && out.contains(&format!("damaged    {log} at byte 0: the file is missing")), "{out}");
    let mut command = program::server::serve(&folder);
    command.args(["--port", "0", "--http-port", "0", "--dir", "kept"]);
    let server = Server::start(command);
    assert!(server.ask("BF.EXISTS seen ada").starts_with("-NOTREADY "));
}

/// Sends signals until the server ends. Returns its exit code and its log. Two signals close together count as one.
fn end_at_any_price(mut server: Server) -> (i32, String) {
    let begun = Instant::now();
    let status = loop {
        server.signal("-TERM");
        std::thread::sleep(Duration::from_millis(500));
        if let Some(status) = server.child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < program::server::PATIENCE, "it does not end");
    };
    let mut log = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    (status.code().unwrap_or(-1), log)
}

#[test]
fn nothing_is_acknowledged_after_the_directory_is_gone() {
    for (policy, what) in [("always", "folder"), ("everysec", "folder"), ("no", "folder"), ("always", "log")]
    {
        let folder = program::empty_folder("durable", &format!("gone-{policy}-{what}"));
        let server = start(&folder, policy);
        assert_eq!(server.ask("BF.ADD seen ada"), ":1\r\n");
        let data = folder.join("data");
        match what {
            "folder" => std::fs::remove_dir_all(&data).unwrap(),
            _ => {
                let names = program::names(&data);
                let log = names.iter().rfind(|name| name.starts_with("log-")).unwrap();
                std::fs::remove_file(data.join(log)).unwrap();
            }
        }
        let begun = Instant::now();
        loop {
            let reply = Connection::of(&server).ask(&["BF.ADD", "seen", "bob"]);
            if reply.starts_with("-READONLY ") {
                break;
            }
            // With the other policies, the log checks twice per second.
            assert!(policy != "always", "{reply}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{policy}: {reply}");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(server.ask("BF.EXISTS seen ada"), ":1\r\n");
        assert_eq!(server.http("GET /ready", "", "").0, 503);
        // Its data cannot be saved: it continues, and ends at the second signal with an error.
        server.signal("-TERM");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(server.ask("BF.EXISTS seen ada"), ":1\r\n");
        let (code, log) = end_at_any_price(server);
        assert!(code != 0 && log.contains("is no longer in its folder"), "{policy}, {what}: {code}, {log}");
    }
    // Also if nothing was changed since.
    let folder = program::empty_folder("durable", "gone-idle");
    let server = start(&folder, "always");
    assert_eq!(server.ask("BF.ADD seen ada"), ":1\r\n");
    std::fs::remove_dir_all(folder.join("data")).unwrap();
    let (code, log) = end_at_any_price(server);
    assert!(code != 0 && log.contains("is no longer in its folder"), "{code}, {log}");
}
