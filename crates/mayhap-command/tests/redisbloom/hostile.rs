//! Whatever a client sends, it is answered.

use mayhap_command::{Family, Reply, payload, table};
use proptest::prelude::*;

use crate::keyspace::Keyspace;
use crate::wire::{self, Protocol};

/// Words that mean something somewhere, and words that do not.
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
        // Headers, nearly: one link, and one table.
        prop::collection::vec(0_u8..3, 73..=73),
        prop::collection::vec(0_u8..3, 38..=38),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_words_are_answered(
        requests in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(word(), 0..7)), 1..12)
    ) {
        let commands: Vec<_> =
            table::all().filter(|command| matches!(command.family, Family::Bloom | Family::Cuckoo)).collect();
        let mut keyspace = Keyspace::limited(1 << 20);
        for (command, words) in &requests {
            let mut all: Vec<&[u8]> = vec![command.get(&commands).name.as_bytes()];
            all.extend(words.iter().map(Vec::as_slice));
            if let [_, name, ..] = &mut all[..] {
                // A few names, so that requests meet.
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

/// Steps that no command takes: the filter answers, and does not grow. The next layer would have billions of items.
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

/// One `CF.INSERT` of all these items into `f`; what became of each.
fn insert<'a>(keyspace: &mut Keyspace, items: impl Iterator<Item = &'a str>) -> Vec<Reply> {
    let words: Vec<&[u8]> = ["CF.INSERT", "f", "ITEMS"].into_iter().chain(items).map(str::as_bytes).collect();
    match keyspace.ask(&words) {
        Reply::Array(became) => became,
        other => panic!("{other:?}"),
    }
}

/// What many items at once may make of a filter can be loaded again, whatever its settings ask for.
#[test]
fn a_filter_has_no_more_tables_than_can_be_loaded() {
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

/// What this thread ran so far.
fn ran() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|number| number.parse().ok());
    std::time::Duration::from_nanos(ns.unwrap_or(0))
}

/// Many items at once are answered soon, whether they are all the same or none is, and whatever the filter is like.
#[test]
fn many_items_hold_up_nobody_for_long() {
    const ITEMS: usize = 140_000;
    // Took 2 s and more; takes 10 to 50 ms.
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
                // What was taken is in.
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

/// A filter that grows takes all that it is given, by default as with more moves; and one that is full says so.
#[test]
fn many_honest_items_are_answered_as_ever() {
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

/// One request makes a server work so long and no longer, however many moves it says that an item is worth.
#[test]
fn one_request_moves_only_so_many_items() {
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
        // What was taken is in, and the next request begins anew.
        assert_eq!(became[0], Reply::Boolean(true));
        assert_eq!(keyspace.line("CF.EXISTS f same"), Reply::Boolean(true));
        assert!(!refused(&keyspace.line("CF.ADD f another")));
    }
    // By default nobody gets there: a full filter refuses each of its items for what it is.
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE f 8 EXPANSION 0");
    let items: Vec<String> = (0..200_000).map(|item| item.to_string()).collect();
    let became = insert(&mut keyspace, items.iter().map(String::as_str));
    assert!(became.iter().all(|reply| !matches!(reply, Reply::Refused(_))), "full is -1");
}
