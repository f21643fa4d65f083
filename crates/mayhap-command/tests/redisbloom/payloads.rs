//! `DUMP` and `RESTORE`.

use mayhap_command::{Reply, payload};

use crate::keyspace::Keyspace;

#[test]
fn payloads_restore_to_the_same_filters() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.RESERVE b 0.01 4");
    keyspace.line("BF.MADD b a b c d e f g");
    keyspace.line("CF.RESERVE c 8");
    keyspace.line("CF.INSERT c ITEMS a b c d e f g");
    for (family, name) in [("BF", "b"), ("CF", "c")] {
        for version in [payload::PORTABLE_RDB_VERSION, payload::RDB_VERSION, 80] {
            let bytes = keyspace.dump(name, version).unwrap();
            let value = payload::restore(&bytes, &keyspace.context()).unwrap();
            assert_eq!(value.type_name(), keyspace.value(name).type_name());
            keyspace.put("same", value);
            for iterator in [0, 1, 9, 17] {
                let same = keyspace.line(&format!("{family}.SCANDUMP same {iterator}"));
                assert_eq!(same, keyspace.line(&format!("{family}.SCANDUMP {name} {iterator}")));
            }
            assert_eq!(keyspace.line(&format!("{family}.ADD same h")), Reply::Boolean(true));
        }
    }
}

#[test]
fn damaged_payloads_are_refused_with_redis_texts() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.MADD b a b c");
    let good = keyspace.dump("b", 10).unwrap();
    let text =
        |bytes: &[u8]| payload::restore(bytes, &keyspace.context()).err().map(|refusal| refusal.to_string());
    let wrong = Some("ERR DUMP payload version or checksum are wrong".to_owned());
    for bytes in [&b""[..], b"short", &good[1..], &good[..good.len() - 1]] {
        assert_eq!(text(bytes), wrong);
    }
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        assert_eq!(text(&bytes), wrong, "byte {at}");
    }
    let newer = keyspace.dump("b", 13).unwrap();
    let text =
        |bytes: &[u8]| payload::restore(bytes, &keyspace.context()).err().map(|refusal| refusal.to_string());
    assert_eq!(text(&newer), wrong);
}

#[test]
fn strings_and_filters_of_any_kind_have_payloads() {
    let mut keyspace = Keyspace::default();
    // Redis 7.0's payloads of `a`, of `12345` and of a hundred times `a`: unchanged, as a number, compressed.
    let plain = [0x00, 0x01, 0x61, 0x0a, 0x00, 0xbf, 0xfe, 0xef, 0x9b, 0x8f, 0x36, 0x7d, 0xb4];
    let number = [0x00, 0xc1, 0x39, 0x30, 0x0a, 0x00, 0x9d, 0x94, 0xea, 0x27, 0x93, 0xfc, 0x08, 0xb9];
    let packed = [
        0x00, 0xc3, 0x09, 0x40, 0x64, 0x01, 0x61, 0x61, 0xe0, 0x57, 0x00, 0x01, 0x61, 0x61, 0x0a, 0x00, 0xe8,
        0xa3, 0xb5, 0x07, 0xb0, 0x6d, 0xf2, 0x71,
    ];
    for (payload, text) in
        [(&plain[..], "a".to_owned()), (&number, "12345".to_owned()), (&packed, "a".repeat(100))]
    {
        let value = payload::restore(payload, &keyspace.context()).unwrap();
        keyspace.put("theirs", value);
        assert_eq!(keyspace.line("GET theirs"), Reply::bulk(text));
    }
    keyspace.line("SET k a");
    assert_eq!(keyspace.dump("k", 10).unwrap(), plain);
    for (name, line) in [
        ("text", format!("SET text {}", "ab".repeat(9_000))),
        ("list", "MF.RESERVE list KIND bloom CAPACITY 100".to_owned()),
        ("cuckoo", "MF.RESERVE cuckoo KIND cuckoo CAPACITY 1e3 FPR 1%".to_owned()),
        ("bitmap", "MF.RESERVE bitmap RANGE 1 1000000".to_owned()),
    ] {
        let made = keyspace.line(&line);
        assert!(!matches!(made, Reply::Refused(_)), "{line}: {made:?}");
        if name != "text" {
            keyspace.line(&format!("MF.ADD {name} 17"));
        }
        let payload = keyspace.dump(name, 10).unwrap();
        let value = payload::restore(&payload, &keyspace.context()).unwrap();
        assert_eq!(value.type_name(), keyspace.value(name).type_name());
        keyspace.put("same", value);
        assert_eq!(keyspace.dump("same", 10).unwrap(), payload, "{name}");
        let asks = if name == "text" { "GET" } else { "MF.CARD" };
        assert_eq!(keyspace.line(&format!("{asks} same")), keyspace.line(&format!("{asks} {name}")));
        for at in 0..payload.len().min(300) {
            let mut bytes = payload.clone();
            bytes[at] ^= 1;
            assert!(payload::restore(&bytes, &keyspace.context()).is_err(), "{name}, byte {at}");
        }
    }
    assert_eq!(keyspace.line("MF.EXISTS same 17"), Reply::Boolean(true));
}

#[test]
fn half_loaded_filters_cannot_be_dumped() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.MADD b a b c");
    let Reply::Array(dumped) = keyspace.line("BF.SCANDUMP b 0") else { panic!("a dump") };
    let Reply::Bulk(header) = dumped[1].clone() else { panic!("a header") };
    keyspace.ask(&[b"BF.LOADCHUNK", b"half", b"1", &header]);
    let refusal = keyspace.dump("half", 10).unwrap_err();
    assert_eq!(refusal.to_string(), "NOTREADY filter is being loaded: 0 of 144 bytes have arrived");
}
