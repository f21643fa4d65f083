//! Everything that the host writes to its files can be loaded again: from RDB, from AOF with either kind of
//! base, and from the log of changes alone.

use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Host, HostOptions, Talk, Wire, programs};

use crate::workload::Workload;
use crate::{digests, hosts};

/// Makes values that random requests do not make: half a filter, and one that is being built.
fn odd_values(talk: &mut Talk) {
    talk.must(&["BF.RESERVE", "whole", "0.01", "5000"]);
    let header = talk.must(&["BF.SCANDUMP", "whole", "0"]);
    let header = header.list()[1].bytes().to_vec();
    talk.must(&[b"BF.LOADCHUNK".as_slice(), b"half", b"1", &header]);
    talk.must(&["MF.RESERVE", "served", "KIND", "cuckoo", "CAPACITY", "1000"]);
    talk.must(&["MF.MADD", "served", "old", "older"]);
    talk.must(&["MF.BUILD", "served", "BEGIN", "KIND", "bloom", "CAPACITY", "1000"]);
    talk.must(&["MF.BUILD", "served", "ADD", "new", "newer"]);
    talk.must(&["MF.RESERVE", "keyed", "KIND", "blocked", "CAPACITY", "100000"]);
    talk.must(&["MF.MADD", "keyed", "one", "two"]);
    talk.must(&["PEXPIRE", "keyed", "100000000"]);
}

/// Asserts that they answer as before.
fn odd_values_are_there(talk: &mut Talk) {
    let said = |talk: &mut Talk, line: &str| talk.ask(line);
    assert!(matches!(said(talk, "BF.EXISTS half x"), Wire::Refused(text) if text.starts_with("NOTREADY")));
    assert_eq!(said(talk, "MF.EXISTS served old").integer(), 1);
    assert_eq!(said(talk, "MF.EXISTS served new").integer(), 0);
    talk.must(&["MF.BUILD", "served", "COMMIT"]);
    assert_eq!(
        said(talk, "MF.MEXISTS served old new"),
        Wire::Array(vec![Wire::Integer(0), Wire::Integer(1)])
    );
    assert_eq!(said(talk, "MF.MEXISTS keyed one two"), Wire::Array(vec![Wire::Integer(1), Wire::Integer(1)]));
    assert!(said(talk, "PTTL keyed").integer() > 1_000_000);
}

fn fill(host: &Host, seed: u64, requests: usize) {
    let mut talk = host.talk();
    talk.ask_all(Workload::new(seed, false).take(requests));
}

#[test]
fn a_saved_file_is_loaded_again() {
    for mut host in hosts(&[]) {
        fill(&host, 11, 3_000);
        let mut talk = host.talk();
        odd_values(&mut talk);
        let before = digests(&mut talk);
        assert!(before.len() > 8, "{before:?}");
        talk.must(&["SAVE"]);
        host.restart();
        let mut talk = host.talk();
        assert_eq!(digests(&mut talk), before);
        talk.must(&["DEBUG", "RELOAD"]);
        assert_eq!(digests(&mut talk), before);
        odd_values_are_there(&mut talk);
    }
}

pub(crate) fn wait_for_rewrite(talk: &mut Talk) {
    let begun = Instant::now();
    while talk.info("aof_rewrite_in_progress") != "0" || talk.info("aof_rewrite_scheduled") != "0" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the rewrite does not end");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(talk.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
fn a_rewritten_aof_and_later_changes_are_loaded_again() {
    for preamble in ["no", "yes"] {
        for mut host in hosts(&["--appendonly", "yes", "--aof-use-rdb-preamble", preamble]) {
            fill(&host, 12, 2_000);
            let mut talk = host.talk();
            odd_values(&mut talk);
            talk.must(&["BGREWRITEAOF"]);
            wait_for_rewrite(&mut talk);
            // Names that did not change any more come from the rewrite alone.
            let rewritten = digests(&mut talk);
            host.restart();
            assert_eq!(digests(&mut host.talk()), rewritten, "preamble {preamble}");
            fill(&host, 13, 2_000);
            let mut talk = host.talk();
            let before = digests(&mut talk);
            drop(talk);
            host.restart();
            assert_eq!(digests(&mut host.talk()), before, "preamble {preamble}");
            odd_values_are_there(&mut host.talk());
        }
    }
}

/// A log that was allowed when it was written is loaded again, whatever the settings are now.
#[test]
fn aof_is_replayed_under_smaller_limits() {
    for program in programs() {
        let words = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let options = HostOptions::new().program(&program).words(&words);
        let Some(mut host) = Host::start(&options.clone().our_module(&[])) else { continue };
        let mut talk = host.talk();
        talk.must(&["CF.RESERVE", "rewritten", "10000", "BUCKETSIZE", "100"]);
        talk.must(&["CF.ADD", "rewritten", "x"]);
        talk.must(&["BGREWRITEAOF"]);
        wait_for_rewrite(&mut talk);
        talk.must(&["CF.RESERVE", "logged", "10000", "BUCKETSIZE", "100"]);
        talk.must(&["CF.ADD", "logged", "x"]);
        talk.must(&["CF.INSERT", "logged", "CAPACITY", "4", "ITEMS", "y"]);
        talk.must(&["BF.RESERVE", "bloom", "0.01", "1000"]);
        talk.must(&["BF.INSERT", "bloom", "VALIDATESCALETO", "100000", "ITEMS", "y"]);
        let before = digests(&mut talk);
        drop(talk);
        // In either order, because each limits the other.
        for words in [
            ["cf-initial-size", "2", "cf-bucket-size", "1"],
            ["cf-bucket-size", "8", "bf-expansion-factor", "0"],
        ] {
            assert!(host.restart_with(&options.clone().our_module(&words)));
            assert_eq!(digests(&mut host.talk()), before, "{words:?}");
        }
    }
}
