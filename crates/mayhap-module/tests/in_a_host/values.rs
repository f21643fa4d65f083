//! The host's operations on values: copying, dumping, freeing, and notifying of changes.

use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Talk, Wire};

use crate::workload::Workload;
use crate::{digests, hosts};

fn digest(talk: &mut Talk, name: &str) -> String {
    talk.must(&["DEBUG", "DIGEST-VALUE", name]).list()[0].text()
}

#[test]
fn copies_are_equal_and_independent() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        talk.ask_all(Workload::new(41, false).take(2_000));
        // An unfinished build is not copied with its filter, so abort all builds first.
        (1..=4).for_each(|number| drop(talk.ask(&format!("MF.BUILD m{number} ABORT"))));
        let all = digests(&mut talk);
        assert!(all.len() >= 6, "{all:?}");
        for (name, due) in all {
            talk.must(&["COPY", &name, "copy"]);
            assert_eq!(digest(&mut talk, "copy"), due, "{name}");
            let kind = talk.ask_words(&["TYPE", &name]).text();
            let payload = match talk.ask_words(&["DUMP", &name]) {
                Wire::Bulk(payload) => payload,
                other => panic!("{name}: {other:?}"),
            };
            talk.must(&[b"RESTORE".as_slice(), b"restored", b"0", &payload]);
            assert_eq!(digest(&mut talk, "restored"), due, "{name}");
            // A change of one does not affect the other.
            let add = match kind.as_str() {
                "MBbloom--" => "BF.ADD",
                "MBbloomCF" => "CF.ADD",
                _ => "MF.ADD",
            };
            let added = talk.ask_words(&[add, "copy", "499"]);
            assert_eq!(digest(&mut talk, &name), due);
            if added == Wire::Integer(1) {
                assert_ne!(digest(&mut talk, "copy"), due, "{name}");
                let exists = add.replace("ADD", "EXISTS");
                assert_eq!(talk.ask_words(&[exists.as_str(), "copy", "499"]).integer(), 1);
            }
            let usage = talk.must(&["MEMORY", "USAGE", &name]).integer();
            assert!((64..2_000_000).contains(&usage), "{name}: {usage} bytes");
            talk.must(&["DEL", "copy", "restored"]);
        }
    }
}

#[test]
fn memory_is_counted_by_the_host_and_freed_in_the_background() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        let used = |talk: &mut Talk| talk.info("used_memory").parse::<i64>().unwrap();
        let (before, mut bytes) = (used(&mut talk), Vec::new());
        for (name, line) in [
            ("bloom", "BF.RESERVE bloom 0.01 10000000 NONSCALING"),
            ("cuckoo", "CF.RESERVE cuckoo 8000000"),
            ("blocked", "MF.RESERVE blocked KIND blocked CAPACITY 10000000 FPR 0.01"),
        ] {
            let before = used(&mut talk);
            talk.must(&line.split(' ').collect::<Vec<_>>());
            let taken = used(&mut talk) - before;
            let usage = talk.must(&["MEMORY", "USAGE", name]).integer();
            assert!(
                usage > 7_000_000 && (taken - usage).abs() < usage / 8,
                "{name}: {taken} taken, {usage} said"
            );
            bytes.push(usage);
        }
        let freed: i64 = talk.info("lazyfreed_objects").parse().unwrap();
        talk.must(&["UNLINK", "bloom", "cuckoo", "blocked"]);
        let begun = Instant::now();
        while used(&mut talk) - before > bytes.iter().sum::<i64>() / 20 {
            assert!(begun.elapsed() < Duration::from_secs(30), "it is not freed");
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(talk.info("lazyfreed_objects").parse::<i64>().unwrap() - freed, 3, "in the background");
        assert_eq!(talk.info("mayhap_filters_memory_bytes"), "0");
    }
}

#[test]
fn keyspace_events_only_for_changes() {
    for host in hosts(&["--notify-keyspace-events", "KEA"]) {
        let (mut talk, mut listener) = (host.talk(), host.talk());
        listener.must(&["PSUBSCRIBE", "__keyevent@0__:*"]);
        for line in [
            "BF.ADD b x",
            "BF.ADD b x",
            "BF.EXISTS b x",
            "CF.ADD c x",
            "CF.DEL c x",
            "CF.DEL c x",
            "MF.RESERVE m KIND cuckoo CAPACITY 100",
            "MF.MADD m x y",
            "MF.DEL m nobody",
            "DEL b",
        ] {
            talk.must(&line.split(' ').collect::<Vec<_>>());
        }
        talk.must(&["PUBLISH", "__keyevent@0__:end", "end"]);
        let mut heard = Vec::new();
        loop {
            let said = listener.reply().unwrap();
            let [_, _, event, name] = said.list() else { panic!("{said:?}") };
            let event = event.text().split_once(':').unwrap().1.to_owned();
            match event.as_str() {
                "end" => break,
                // Sent by some versions of the host itself.
                "new" => {}
                _ => heard.push(format!("{event} {}", name.text())),
            }
        }
        assert_eq!(heard, ["bf.add b", "cf.add c", "cf.del c", "mf.reserve m", "mf.madd m", "del b"]);
    }
}

#[test]
fn requests_without_a_change_do_not_abort_watched_transactions() {
    for host in hosts(&[]) {
        let (mut talk, mut other) = (host.talk(), host.talk());
        talk.must(&["BF.ADD", "b", "x"]);
        talk.must(&["CF.ADD", "c", "x"]);
        talk.must(&["MF.RESERVE", "m", "KIND", "bloom", "CAPACITY", "10000"]);
        talk.must(&["MF.ADD", "m", "x"]);
        for (line, disturbs) in [
            ("BF.ADD b x", false),
            ("BF.MEXISTS b x y", false),
            ("CF.ADDNX c x", false),
            ("CF.DEL c nobody", false),
            ("MF.ADD m x", false),
            ("BF.ADD b y", true),
            ("CF.ADD c x", true),
            ("MF.ADD m y", true),
        ] {
            talk.must(&["WATCH", "b", "c", "m"]);
            other.must(&line.split(' ').collect::<Vec<_>>());
            talk.must(&["MULTI"]);
            talk.must(&["PING"]);
            assert_eq!(talk.ask("EXEC") == Wire::Null, disturbs, "{line}");
        }
    }
}

#[test]
fn wrong_types_are_errors_and_expiry_is_kept() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        talk.must(&["SET", "text", "abc"]);
        for line in ["BF.ADD text x", "BF.INFO text", "CF.ADD text x", "MF.ADD text x", "MF.EXISTS text x"] {
            assert!(matches!(talk.ask(line), Wire::Refused(text) if text.starts_with("WRONGTYPE")), "{line}");
        }
        assert_eq!(talk.ask("GET text").text(), "abc");
        talk.must(&["BF.RESERVE", "grows", "0.01", "2"]);
        talk.must(&["EXPIRE", "grows", "1000"]);
        talk.must(&["BF.MADD", "grows", "a", "b", "c", "d", "e", "f"]);
        assert!(talk.ask("TTL grows").integer() > 900);
        for line in ["GET grows", "SETBIT grows 1 1", "CF.ADD grows x", "MF.ADD grows x", "LPUSH grows x"] {
            assert!(matches!(talk.ask(line), Wire::Refused(text) if text.starts_with("WRONGTYPE")), "{line}");
        }
        assert_eq!(talk.ask("TYPE grows").text(), "MBbloom--");
        talk.must(&["SET", "grows", "text"]);
        assert_eq!(talk.ask("TYPE grows").text(), "string");
    }
}
