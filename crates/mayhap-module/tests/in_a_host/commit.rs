//! `MF.BUILD name COMMIT` of a large static set: the host serves other clients while another thread builds the set.

use std::time::{Duration, Instant};

use mayhap_testkit::host::{Host, Talk, Wire, request};

use crate::{digests, hosts};

const ITEMS: u64 = 1_500_000;
const PIECE: u64 = 50_000;

/// A name that serves a Bloom filter, and a ribbon of many items that is ready to be committed.
fn begin(talk: &mut Talk, name: &str) {
    talk.must(&["MF.RESERVE", name, "KIND", "bloom", "CAPACITY", "1000"]);
    talk.must(&["MF.BUILD", name, "BEGIN", "KIND", "ribbon", "FPR", "0.0001"]);
    for from in (0..ITEMS).step_by(PIECE as usize) {
        let mut words = vec!["MF.BUILD".to_owned(), name.to_owned(), "ADD".to_owned()];
        words.extend((from..from + PIECE).map(|item| item.to_string()));
        talk.must(&words);
    }
}

/// Sends `COMMIT` and does not wait for its reply.
fn commit(host: &Host, name: &str) -> Talk {
    let mut talk = host.talk();
    talk.send(&request(&["MF.BUILD", name, "COMMIT"])).unwrap();
    talk
}

#[test]
fn other_clients_are_served_while_a_static_set_is_built() {
    let words = &["--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--maxmemory", "0"];
    for (host, replica) in hosts(words).zip(hosts(words)) {
        let mut talk = host.talk();
        replica.follow(&host);
        begin(&mut talk, "f");
        let begun = Instant::now();
        let mut committing = commit(&host, "f");
        let watcher = host.talk();
        let (mut asked, mut longest) = (0, Duration::ZERO);
        let mut generation = 1;
        while generation == 1 {
            let one = Instant::now();
            // Meanwhile an item is added to the serving generation.
            let words = if asked == 20 { ["MF.ADD", "f", "late"] } else { ["MF.EXISTS", "f", "late"] };
            assert!(matches!(talk.ask_words(&words), Wire::Integer(_)));
            generation = talk.must(&["MF.INFO", "f", "generation"]).integer();
            longest = longest.max(one.elapsed());
            asked += 1;
            assert!(begun.elapsed() < Duration::from_secs(120), "no new generation");
        }
        let whole = begun.elapsed();
        assert_eq!(committing.reply().unwrap(), Wire::Integer(2));
        drop(watcher);
        println!("{asked} answers within {whole:?}, one after {longest:?}");
        assert!(asked > 50 && longest < whole / 2, "{asked} answers within {whole:?}, one after {longest:?}");
        let last = (ITEMS - 1).to_string();
        let asked = ["MF.MEXISTS", "f", "late", "0", &last];
        assert_eq!(talk.must(&asked), Wire::Array(vec![Wire::Integer(1); 3]));

        // The replica and the AOF have the same contents.
        talk.must(&["WAIT", "1", "60000"]);
        let mut other = replica.talk();
        assert_eq!(digests(&mut other), digests(&mut talk));
        talk.must(&["DEBUG", "LOADAOF"]);
        assert_eq!(talk.must(&asked), Wire::Array(vec![Wire::Integer(1); 3]));
        assert_eq!(digests(&mut other), digests(&mut talk));
    }
}

#[test]
fn commit_survives_transaction_and_deleted_key() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        begin(&mut talk, "in-a-transaction");
        assert_eq!(talk.ask("MULTI"), Wire::Simple("OK".into()));
        talk.ask("MF.BUILD in-a-transaction COMMIT");
        assert_eq!(talk.ask("EXEC"), Wire::Array(vec![Wire::Integer(2)]));

        // The name is deleted while the set is built: the build is gone with it.
        begin(&mut talk, "deleted");
        let mut committing = commit(&host, "deleted");
        assert_eq!(talk.ask("DEL deleted"), Wire::Integer(1));
        assert!(matches!(committing.reply().unwrap(), Wire::Refused(_)));
        assert_eq!(talk.ask("EXISTS deleted"), Wire::Integer(0));

        // The client disconnects: the build stays, and the next client commits it.
        begin(&mut talk, "left");
        drop(commit(&host, "left"));
        assert_eq!(talk.must(&["MF.BUILD", "left", "COMMIT"]), Wire::Integer(2));
        assert_eq!(talk.must(&["MF.EXISTS", "left", "7"]), Wire::Integer(1));
    }
}
