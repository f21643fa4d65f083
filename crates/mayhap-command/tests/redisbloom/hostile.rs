//! Every request gets a reply, whatever a client sends.

use mayhap_command::{Family, Reply, payload, table};
use proptest::prelude::*;

use crate::keyspace::Keyspace;
use crate::wire::{self, Protocol};

/// Words that have a meaning in some command, and words that have none.
fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "a",
            "b",
            "f",
            "0",
            "1",
            "-1",
            "2",
            "9",
            "0.01",
            "0.5",
            "1e-300",
            "nan",
            "inf",
            "100",
            "255",
            "32768",
            "1073741824",
            "9223372036854775807",
            "-9223372036854775808",
            "ITEMS",
            "I",
            "C",
            "E",
            "ER",
            "N",
            "NOC",
            "CAPACITY",
            "ERROR",
            "EXPANSION",
            "NOCREATE",
            "NONSCALING",
            "BUCKETSIZE",
            "MAXITERATIONS",
            "TIGHTENING",
            "SEED",
            "VALIDATESCALETO",
            "SIZE",
            "FILTERS",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
        // Almost headers: one link, and one table.
        prop::collection::vec(0_u8..3, 73..=73),
        prop::collection::vec(0_u8..3, 38..=38),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn random_arguments_get_a_reply(
        requests in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(word(), 0..7)), 1..12)
    ) {
        let commands: Vec<_> =
            table::all().filter(|command| matches!(command.family, Family::Bloom | Family::Cuckoo)).collect();
        let mut keyspace = Keyspace::limited(1 << 20);
        for (command, words) in &requests {
            let mut all: Vec<&[u8]> = vec![command.get(&commands).name.as_bytes()];
            all.extend(words.iter().map(Vec::as_slice));
            if let [_, name, ..] = &mut all[..] {
                // Only a few names, so that requests affect each other.
                *name = if name.len() % 2 == 0 { b"f" } else { b"g" };
            }
            let reply = keyspace.ask(&all);
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                prop_assert!(wire::encode(&reply, protocol).ends_with(b"\r\n"));
            }
        }
        prop_assert!(keyspace.budget.used() <= 3 << 20);
    }
}

/// Expansion factors that no command accepts: the filter answers, and does not grow. The next layer would
/// have billions of items.
#[test]
fn a_filter_loaded_with_steps_that_are_too_large_does_not_grow() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.RESERVE small 0.01 2");
    keyspace.line("BF.MADD small a b");
    let Reply::Array(parts) = keyspace.line("BF.SCANDUMP small 0") else { panic!("a dump") };
    let Reply::Array(body) = keyspace.line("BF.SCANDUMP small 1") else { panic!("a dump") };
    let [Reply::Bulk(header), Reply::Bulk(bits), Reply::Integer(end)] = [&parts[1], &body[1], &body[0]]
    else {
        panic!("a header and bits")
    };
    for (growth, refused) in [(32_768_u32, false), (32_769, true), (u32::MAX, true)] {
        let (mut header, name) = (header.clone(), format!("steep{growth}"));
        header[16..20].copy_from_slice(&growth.to_le_bytes());
        assert_eq!(keyspace.ask(&[b"BF.LOADCHUNK", name.as_bytes(), b"1", &header]), Reply::Ok);
        let end = end.to_string();
        assert_eq!(keyspace.ask(&[b"BF.LOADCHUNK", name.as_bytes(), end.as_bytes(), bits]), Reply::Ok);
        let added = keyspace.line(&format!("BF.ADD {name} c"));
        assert_eq!(matches!(&added, Reply::Refused(_)), refused, "{growth}: {added:?}");
        assert_eq!(keyspace.line(&format!("BF.EXISTS {name} a")), Reply::Boolean(true));
    }
}

/// Runs one `CF.INSERT` of all these items into `f` and returns the result for each.
fn insert<'a>(keyspace: &mut Keyspace, items: impl Iterator<Item = &'a str>) -> Vec<Reply> {
    let words: Vec<&[u8]> = ["CF.INSERT", "f", "ITEMS"].into_iter().chain(items).map(str::as_bytes).collect();
    match keyspace.ask(&words) {
        Reply::Array(became) => became,
        other => panic!("{other:?}"),
    }
}

/// A filter that was grown by many items can be loaded again, whatever its settings allow.
#[test]
fn every_cuckoo_filter_that_grew_can_be_restored() {
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE f 2 BUCKETSIZE 1 EXPANSION 1");
    let items: Vec<String> = (0..4_000).map(|item| item.to_string()).collect();
    let became = insert(&mut keyspace, items.iter().map(String::as_str));
    let is_in = |reply: &Reply| *reply == Reply::Boolean(true);
    let taken = became.iter().filter(|reply| is_in(reply)).count();
    assert!((1_000..3_000).contains(&taken), "{taken}");
    let payload = keyspace.dump("f", payload::PORTABLE_RDB_VERSION).unwrap();
    let again = payload::restore(&payload, &keyspace.context()).unwrap();
    keyspace.put("again", again);
    for (item, reply) in items.iter().zip(&became) {
        if is_in(reply) {
            assert_eq!(keyspace.line(&format!("CF.EXISTS again {item}")), Reply::Boolean(true), "{item}");
        }
    }
}

/// Returns the CPU time that this thread has used.
fn ran() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|number| number.parse().ok());
    std::time::Duration::from_nanos(ns.unwrap_or(0))
}

/// A request with many items ends soon, for equal and for different items and for any filter.
#[test]
fn a_request_with_many_items_is_fast() {
    const ITEMS: usize = 140_000;
    // It took 2 s and more; now it takes 10 to 50 ms.
    const LONGEST: std::time::Duration = std::time::Duration::from_millis(300);
    let numbers: Vec<String> = (0..ITEMS).map(|item| item.to_string()).collect();
    let same = vec!["same".to_owned(); ITEMS];
    for make in [
        "CF.RESERVE f 1024",
        "CF.RESERVE f 2 BUCKETSIZE 1 EXPANSION 1",
        "CF.RESERVE f 2 BUCKETSIZE 1 MAXITERATIONS 65535 EXPANSION 1",
        "CF.RESERVE f 510 BUCKETSIZE 255 EXPANSION 1",
        "CF.RESERVE f 510 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 1",
        "CF.RESERVE f 100000 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 0",
        "CF.RESERVE f 10000 EXPANSION 0",
    ] {
        for (items, what) in [(&same, "same"), (&numbers, "others")] {
            for command in ["CF.INSERT", "CF.INSERTNX"] {
                let mut keyspace = Keyspace::default();
                assert_eq!(keyspace.line(make), Reply::Ok);
                let words = [command, "f", "ITEMS"].into_iter().chain(items.iter().map(String::as_str));
                let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
                let begun = ran();
                let Reply::Array(became) = keyspace.ask(&words) else { panic!("{make}") };
                let took = ran().saturating_sub(begun);
                println!("{make}, {command} {what}: {took:?}");
                assert!(took < LONGEST, "{make}, {command} {what}: {took:?}");
                assert_eq!(became.len(), ITEMS);
                // Accepted items are members.
                let is_taken = |reply: &Reply| matches!(reply, Reply::Boolean(true) | Reply::Integer(1));
                assert!(is_taken(&became[0]), "{make}: {:?}", became[0]);
                let taken = items.iter().zip(&became).filter(|(_, reply)| is_taken(reply));
                for (item, _) in taken.step_by(997) {
                    assert_eq!(keyspace.line(&format!("CF.EXISTS f {item}")), Reply::Boolean(true), "{make}");
                }
            }
        }
    }
}

/// A growing filter accepts all items, with the default and with more moves; a full one reports that it is
/// full.
#[test]
fn many_honest_items_are_accepted_or_reported_as_full() {
    let numbers: Vec<String> = (0..300_000).map(|item| item.to_string()).collect();
    for make in [
        "CF.RESERVE f 1024",
        "CF.RESERVE f 1024 EXPANSION 2",
        "CF.RESERVE f 300000 BUCKETSIZE 4 MAXITERATIONS 500",
    ] {
        let mut keyspace = Keyspace::default();
        assert_eq!(keyspace.line(make), Reply::Ok);
        let became = insert(&mut keyspace, numbers.iter().map(String::as_str));
        assert!(became.iter().all(|reply| *reply == Reply::Boolean(true)), "{make}");
    }
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE f 100000 EXPANSION 0");
    let became = insert(&mut keyspace, numbers.iter().map(String::as_str));
    assert!(became.iter().all(|reply| !matches!(reply, Reply::Refused(_))), "full is -1");
}

/// The work of one request is limited, however many moves per item the filter allows.
#[test]
fn the_moves_of_one_request_are_limited() {
    for (make, items) in [
        ("CF.RESERVE f 2 BUCKETSIZE 1 MAXITERATIONS 65535 EXPANSION 1", 20_000),
        ("CF.RESERVE f 8 MAXITERATIONS 65535 EXPANSION 0", 100_000),
    ] {
        let mut keyspace = Keyspace::default();
        assert_eq!(keyspace.line(make), Reply::Ok);
        let begun = std::time::Instant::now();
        let became = insert(&mut keyspace, std::iter::repeat_n("same", items));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{make}: {:?}", begun.elapsed());
        let refused = |reply: &Reply| matches!(reply, Reply::Refused(refusal) if refusal.to_string().contains("too many moves"));
        assert!(became.iter().any(refused), "{make}");
        // Accepted items are members, and the next request has a fresh allowance.
        assert_eq!(became[0], Reply::Boolean(true));
        assert_eq!(keyspace.line("CF.EXISTS f same"), Reply::Boolean(true));
        assert!(!refused(&keyspace.line("CF.ADD f another")));
    }
    // Default filters never reach this limit: a full filter refuses each item because it is full.
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE f 8 EXPANSION 0");
    let items: Vec<String> = (0..200_000).map(|item| item.to_string()).collect();
    let became = insert(&mut keyspace, items.iter().map(String::as_str));
    assert!(became.iter().all(|reply| !matches!(reply, Reply::Refused(_))), "full is -1");
}
