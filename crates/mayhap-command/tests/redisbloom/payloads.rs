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
            let bytes = payload::dump(keyspace.value(name), version).unwrap();
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
fn damaged_payloads_are_refused_in_redis_words() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.MADD b a b c");
    let good = payload::dump(keyspace.value("b"), 10).unwrap();
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
    let newer = payload::dump(keyspace.value("b"), 13).unwrap();
    let text =
        |bytes: &[u8]| payload::restore(bytes, &keyspace.context()).err().map(|refusal| refusal.to_string());
    assert_eq!(text(&newer), wrong);
    // A plain string, as Redis dumps it, is no value of ours: SET k a; DUMP k.
    let string = [0, 1, b'a', 10, 0, 0xa6, 0xd2, 0x4a, 0x25, 0x3d, 0x73, 0x0b, 0x50];
    assert!(text(&string).is_some());
}

#[test]
fn half_of_a_filter_is_not_dumped() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.MADD b a b c");
    let Reply::Array(dumped) = keyspace.line("BF.SCANDUMP b 0") else { panic!("a dump") };
    let Reply::Bulk(header) = dumped[1].clone() else { panic!("a header") };
    keyspace.ask(&[b"BF.LOADCHUNK", b"half", b"1", &header]);
    let refusal = payload::dump(keyspace.value("half"), 10).unwrap_err();
    assert_eq!(refusal.to_string(), "NOTREADY filter is being loaded: 0 of 144 bytes have arrived");
}
