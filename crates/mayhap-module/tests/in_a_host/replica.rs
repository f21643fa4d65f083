//! A replica has the same data as its master, whatever the settings of the two.

use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::generations::{self, Server};
use mayhap_testkit::host::{Host, Talk, Wire};

use crate::workload::Workload;
use crate::{digests, hosts, setting};

/// The number of requests in one history.
const REQUESTS: usize = 6_000;

/// Makes `replica` follow `master`, and waits until it does.
pub(crate) fn follow(replica: &Host, master: &Host) {
    let mut talk = replica.talk();
    talk.must(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    let begun = Instant::now();
    while talk.info("master_link_status") != "up" {
        assert!(begun.elapsed() < Duration::from_secs(60), "no link:\n{}", replica.log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the replica has everything.
pub(crate) fn catch_up(master: &mut Talk, replica: &mut Talk) {
    let begun = Instant::now();
    while master.info("master_repl_offset") != replica.info("master_repl_offset") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the replica does not catch up");
        thread::sleep(Duration::from_millis(20));
    }
}

fn set(talk: &mut Talk, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        let name = setting(talk, name);
        talk.must(&["CONFIG", "SET", &name, value]);
    }
}

/// Settings under which requests make different filters.
const OTHERS: [(&str, &str); 8] = [
    ("bf-error-rate", "0.2"),
    ("bf-initial-size", "7"),
    ("bf-expansion-factor", "3"),
    ("cf-bucket-size", "4"),
    ("cf-max-expansions", "1"),
    ("bf-growth", "compact"),
    ("bf-hash", "keyed"),
    ("cf-hash", "keyed"),
];

#[test]
fn a_replica_equals_its_master_after_random_requests() {
    for (master, replica) in
        hosts(&["--repl-diskless-sync-delay", "0"]).zip(hosts(&["--repl-diskless-sync-delay", "0"]))
    {
        // Existing data arrives in a file, later changes as requests.
        let mut talk = master.talk();
        talk.ask_all(Workload::new(21, false).take(500));
        follow(&replica, &master);
        let mut other = replica.talk();
        for (round, (of_master, of_replica)) in
            [(&[][..], &OTHERS[..]), (&OTHERS[..], &[]), (&[("cf-eviction", "thorough")], &[])]
                .into_iter()
                .enumerate()
        {
            set(&mut talk, of_master);
            set(&mut other, of_replica);
            talk.ask_all(Workload::new(22 + round as u64, false).take(REQUESTS / 3));
            // Also in transactions and in scripts.
            talk.must(&["MULTI"]);
            for words in Workload::new(32 + round as u64, false).take(40) {
                talk.ask_words(&words);
            }
            talk.ask("EXEC");
            talk.must(&["EVAL", "redis.call('MF.RESERVE', KEYS[1], 'KIND', 'cuckoo', 'CAPACITY', '1000') redis.call('BF.MADD', KEYS[2], 'p', 'q')", "2",
                &format!("script{round}"), &format!("bloom{round}")]);
            catch_up(&mut talk, &mut other);
            let (ours, theirs) = (digests(&mut talk), digests(&mut other));
            assert!(ours.len() > 8, "{ours:?}");
            assert_eq!(theirs, ours, "round {round}");
        }
        // The replica gets the same lookups as its master.
        for (name, _) in digests(&mut talk) {
            if talk.ask_words(&["TYPE", &name]).text() == "MBbloom--" {
                let words = ["BF.MEXISTS", &name, "1", "2", "3", "4", "5", "nobody"];
                assert_eq!(other.raw(&words), talk.raw(&words));
                assert!(other.ask_words(&["BF.ADD", &name, "x"]).is_refused(), "a replica is not written to");
            }
        }
    }
}

/// If the filter exists, the options of a request are not checked again on the replica.
#[test]
fn replica_gets_items_despite_options_it_would_refuse() {
    for (master, replica) in hosts(&[]).zip(hosts(&[])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        set(&mut other, &[("cf-bucket-size", "8"), ("bf-expansion-factor", "0")]);
        assert!(other.ask("CONFIG GET *cf-bucket-size").list().contains(&Wire::Bulk(b"8".into())));
        talk.must(&["CF.RESERVE", "cuckoo", "1000"]);
        talk.must(&["CF.INSERT", "cuckoo", "CAPACITY", "4", "ITEMS", "x"]);
        talk.must(&["BF.RESERVE", "bloom", "0.01", "1000"]);
        talk.must(&["BF.INSERT", "bloom", "VALIDATESCALETO", "100000", "ITEMS", "x"]);
        catch_up(&mut talk, &mut other);
        assert_eq!(other.ask("CF.EXISTS cuckoo x").integer(), 1);
        assert_eq!(other.ask("BF.EXISTS bloom x").integer(), 1);
        assert_eq!(digests(&mut other), digests(&mut talk));
        assert!(!replica.log().contains("CRITICAL"), "{}", replica.log());
    }
}

/// RedisBloom did not replicate `CF.LOADCHUNK`: after a failover the filter was gone.
#[test]
fn filters_that_are_loaded_in_chunks_are_on_the_replica() {
    for (master, replica) in hosts(&[]).zip(hosts(&[])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        talk.must(&["CF.RESERVE", "cuckoo", "1000"]);
        talk.must(&["CF.INSERT", "cuckoo", "ITEMS", "a", "b", "c"]);
        talk.must(&["BF.MADD", "bloom", "a", "b", "c"]);
        for (family, from, to) in [("CF", "cuckoo", "cuckoo2"), ("BF", "bloom", "bloom2")] {
            let mut iterator = 0;
            loop {
                let dump = talk.must(&[&format!("{family}.SCANDUMP"), from, &iterator.to_string()]);
                iterator = dump.list()[0].integer();
                if iterator == 0 {
                    break;
                }
                let chunk = dump.list()[1].bytes().to_vec();
                let (load, with) = (format!("{family}.LOADCHUNK"), iterator.to_string());
                talk.must(&[load.as_bytes(), to.as_bytes(), with.as_bytes(), &chunk]);
            }
        }
        catch_up(&mut talk, &mut other);
        let ours = digests(&mut talk);
        assert_eq!(ours.len(), 4);
        assert_eq!(digests(&mut other), ours);
        // Also after a failover.
        other.must(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(other.ask("CF.EXISTS cuckoo2 b").integer(), 1);
        assert_eq!(other.ask("BF.EXISTS bloom2 b").integer(), 1);
        other.must(&["CF.ADD", "cuckoo2", "d"]);
    }
}

/// Limits are not checked again: a replica has room for everything its master had room for.
#[test]
fn a_replica_with_less_memory_still_equals_its_master() {
    for (master, replica) in hosts(&[]).zip(hosts(&["--maxmemory", "3mb"])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        talk.must(&["BF.RESERVE", "large", "0.001", "3000000"]);
        talk.must(&["BF.MADD", "large", "a", "b"]);
        talk.must(&["MF.RESERVE", "other", "KIND", "blocked", "CAPACITY", "3000000", "FPR", "0.01"]);
        catch_up(&mut talk, &mut other);
        let ours = digests(&mut talk);
        assert_eq!(ours.len(), 2);
        assert_eq!(digests(&mut other), ours);
    }
}

/// Adds items a hundred at a time, with at most `more_bytes` for growth, until some are refused.
fn add_until_refused(talk: &mut Talk, more_bytes: u64, words: &[&str]) {
    let used: u64 = talk.info("used_memory").parse().unwrap();
    talk.must(&["CONFIG", "SET", "maxmemory", &(used + more_bytes).to_string()]);
    let is_short = |reply: &Wire| match reply {
        Wire::Array(list) => {
            list.len() < 100 || list.iter().any(|one| one.is_refused() || *one == Wire::Integer(-1))
        }
        other => other.is_refused(),
    };
    let mut refused = 0;
    for piece in 0..20_000 {
        let items = (0..100).map(|item| format!("{piece}:{item}"));
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(items).collect();
        refused += u32::from(is_short(&talk.ask_words(&words)));
        if refused > 5 {
            talk.must(&["CONFIG", "SET", "maxmemory", "0"]);
            return;
        }
    }
    panic!("it never ran out of memory: {words:?}");
}

/// Items that a master refused for lack of memory are not added on its replica.
#[test]
fn items_refused_by_a_master_are_refused_by_its_replica() {
    for (master, replica) in hosts(&["--maxmemory-policy", "noeviction"]).zip(hosts(&[])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        talk.must(&["BF.RESERVE", "grows", "0.01", "1000", "EXPANSION", "8"]);
        add_until_refused(&mut talk, 600_000, &["BF.MADD", "grows"]);
        talk.must(&["CF.RESERVE", "cuckoo", "20000", "EXPANSION", "32"]);
        add_until_refused(&mut talk, 400_000, &["CF.INSERT", "cuckoo", "ITEMS"]);
        talk.must(&["MF.RESERVE", "layers", "KIND", "scalable", "CAPACITY", "1000"]);
        add_until_refused(&mut talk, 400_000, &["MF.MADD", "layers"]);
        // Also if a client repeats a request that ran on another host.
        talk.must(&["BF.RESERVE", "full", "0.01", "10", "NONSCALING"]);
        let words = ["MF.REDO", "full", "1", "", "", "BF.MADD", "full"].map(str::to_owned).into_iter();
        talk.ask_words(&words.chain((0..40).map(|item| item.to_string())).collect::<Vec<_>>());
        catch_up(&mut talk, &mut other);
        assert_eq!(digests(&mut other), digests(&mut talk));
        assert!(!replica.log().contains("CRITICAL"), "{}", replica.log());
    }
}

/// A load in pieces whose last piece is refused is complete on no host. If the pieces are not a valid file,
/// no host has the filter.
#[test]
fn failed_load_fails_on_replica_too() {
    for (mut master, replica) in hosts(&[]).zip(hosts(&[])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        talk.must(&["MF.RESERVE", "large", "KIND", "blocked", "CAPACITY", "2000000", "FPR", "0.01"]);
        let (mut pieces, mut iterator) = (Vec::new(), 0);
        loop {
            let dumped = talk.must(&["MF.DUMP", "large", &iterator.to_string()]);
            let piece = dumped.list()[1].bytes().to_vec();
            let begin = iterator;
            iterator = dumped.list()[0].integer();
            pieces.extend(
                piece
                    .chunks(1 << 20)
                    .enumerate()
                    .map(|(at, piece)| (begin + (at << 20) as i64, piece.to_vec())),
            );
            if iterator == 0 {
                break;
            }
        }
        let (last, first) = pieces.split_last().unwrap();
        let load = |talk: &mut Talk, name: &str, (at, piece): &(i64, Vec<u8>)| {
            talk.ask_words(&[b"MF.LOAD".as_slice(), name.as_bytes(), at.to_string().as_bytes(), piece])
        };
        for piece in first {
            assert!(!load(&mut talk, "copy", piece).is_refused());
            assert!(!load(&mut talk, "spoilt", piece).is_refused());
        }
        // Data queued for the replica counts as used memory, and is freed when it was sent.
        catch_up(&mut talk, &mut other);
        thread::sleep(Duration::from_millis(300));
        let used: u64 = talk.info("used_memory").parse().unwrap();
        talk.must(&["CONFIG", "SET", "maxmemory", &(used + 1_500_000).to_string()]);
        assert!(load(&mut talk, "copy", last).is_refused(), "there is no memory for it");
        talk.must(&["CONFIG", "SET", "maxmemory", "0"]);
        let mut wrong = last.clone();
        wrong.1[7] ^= 1;
        assert!(load(&mut talk, "spoilt", &wrong).is_refused(), "it is no filter");
        catch_up(&mut talk, &mut other);
        assert_eq!(digests(&mut other), digests(&mut talk));
        assert!(!replica.log().contains("CRITICAL"), "{}", replica.log());
        talk.must(&["SAVE"]);
        drop(talk);
        master.restart();
        let mut talk = master.talk();
        assert_eq!(load(&mut talk, "copy", last).integer(), 0, "it goes on where it was");
        assert_eq!(talk.ask("MF.EXISTS copy x").integer(), 0);
    }
}

/// A replica with narrower limits accepts everything that its master accepted.
#[test]
fn replica_accepts_shapes_above_its_own_limits() {
    for (master, replica) in hosts(&[]).zip(hosts(&[])) {
        follow(&replica, &master);
        let (mut talk, mut other) = (master.talk(), replica.talk());
        set(&mut other, &[("cf-initial-size", "64"), ("cf-max-expansions", "4")]);
        set(&mut talk, &[("cf-max-expansions", "65536")]);
        talk.must(&["CF.RESERVE", "wide", "10000", "BUCKETSIZE", "100"]);
        talk.must(&["CF.ADD", "wide", "x"]);
        talk.must(&["CF.RESERVE", "tables", "4", "EXPANSION", "1"]);
        for piece in 0..60 {
            let items = (0..100).map(|item| format!("{piece}:{item}"));
            let words = ["CF.INSERT", "tables", "ITEMS"].map(str::to_owned).into_iter();
            talk.must(&words.chain(items).collect::<Vec<_>>());
        }
        let payload = talk.must(&["DUMP", "tables"]);
        talk.must(&[b"RESTORE".as_slice(), b"again", b"0", payload.bytes()]);
        catch_up(&mut talk, &mut other);
        let ours = digests(&mut talk);
        assert_eq!((digests(&mut other), ours.len()), (ours.clone(), 3));
    }
}

/// A master that reloads its files in the middle of a history.
struct Master<'a>(&'a mut Talk);

impl Server for Master<'_> {
    fn ask(&mut self, words: &[Vec<u8>]) -> Wire {
        self.0.ask_words(words)
    }

    fn restart(&mut self, crash: bool) {
        self.0.must(&["DEBUG", if crash { "LOADAOF" } else { "RELOAD" }]);
    }
}

#[test]
fn items_added_during_a_build_are_in_it_on_the_replica() {
    let words = &["--repl-diskless-sync-delay", "0", "--appendonly", "yes"];
    let Some((master, replica)) = hosts(words).zip(hosts(words)).next() else { return };
    let (mut talk, mut other) = (master.talk(), replica.talk());
    talk.must(&["MF.RESERVE", "f", "KIND", "bloom", "CAPACITY", "1000"]);
    talk.must(&["MF.BUILD", "f", "BEGIN", "KIND", "fuse16"]);
    talk.must(&["MF.MADD", "f", "before", "the", "replica"]);
    // The replica begins to follow in the middle of a build.
    follow(&replica, &master);
    talk.must(&["MF.BUILD", "f", "ADD", "built"]);
    talk.must(&["MF.MADD", "f", "added", "meanwhile"]);
    talk.must(&["MF.ADD", "f", "before"]);
    assert_eq!(talk.must(&["MF.BUILD", "f", "COMMIT"]), Wire::Integer(2));
    catch_up(&mut talk, &mut other);
    let asked = ["MF.MEXISTS", "f", "before", "the", "replica", "built", "added", "meanwhile"];
    assert_eq!(talk.must(&asked), Wire::Array(vec![Wire::Integer(1); 6]));
    assert_eq!(other.must(&asked), Wire::Array(vec![Wire::Integer(1); 6]));
    assert_eq!(digests(&mut other), digests(&mut talk));

    let count = std::env::var("MAYHAP_GENERATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(24);
    let mut commits = 0;
    for number in 0..count {
        talk.must(&["FLUSHALL"]);
        match generations::history(number, 80, &mut Master(&mut talk)) {
            Ok(done) => commits += done.commits,
            Err(wrong) => panic!("{wrong}"),
        }
        catch_up(&mut talk, &mut other);
        assert_eq!(digests(&mut other), digests(&mut talk), "history {number}");
    }
    assert!(commits > count / 4, "{commits}");
}
