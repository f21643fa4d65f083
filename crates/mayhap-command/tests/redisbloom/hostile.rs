//! Whatever a client sends, it is answered.

use mayhap_command::{Family, Reply, table};
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
