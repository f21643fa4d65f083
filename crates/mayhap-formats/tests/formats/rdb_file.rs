//! Whole RDB files: the one that a real RedisBloom saved, and files by hand with every type of value there is.

use mayhap_formats::redis_rdb::{self, Entry, EntryValue, FileReader, RdbFileError, Value, ValueType};
use mayhap_testkit::alloc_meter::AllocMeter;

use crate::vectors::{bytes, json, text, unhex};

const LIMIT: u64 = 1 << 26;

fn entries(file: &[u8]) -> Result<Vec<Entry>, RdbFileError> {
    FileReader::new(file, LIMIT)?.collect()
}

#[test]
fn every_key_of_a_real_file_answers_as_its_server_did() {
    let expected = json("redisbloom_rdb/expected.json");
    let entries = entries(&bytes("redisbloom_rdb/redisbloom.rdb")).unwrap();
    let keys = expected["keys"].as_object().unwrap();
    assert_eq!(entries.len(), keys.len());
    let mut asked = 0;
    for entry in &entries {
        let key = &keys[std::str::from_utf8(&entry.name).unwrap()];
        assert_eq!((entry.database, entry.expires_at_ms), (0, None));
        let EntryValue::RedisBloom(value_type, payload) = &entry.value else { panic!("{entry:?}") };
        let family = if *value_type == ValueType::Bloom { "BF" } else { "CF" };
        assert_eq!(family, text(key, "family"));
        // Except for the version and the checksum, equal to the server's own DUMP.
        let said = unhex(text(key, "dump_payload"));
        assert_eq!(payload[..payload.len() - 10], said[..said.len() - 10]);
        let value = redis_rdb::read_dump(payload, LIMIT).unwrap();
        let may_contain = |item: String| match &value {
            Value::Bloom(filter) => filter.may_contain(item.as_str()),
            Value::Cuckoo(filter) => filter.may_contain(item.as_str()),
            other => panic!("{other:?}"),
        };
        for (field, prefix) in [("answers_members", "vector"), ("answers_strangers", "stranger")] {
            for (i, answer) in text(key, field).bytes().enumerate() {
                assert_eq!(may_contain(format!("{prefix}-{i}")), answer == b'1', "{prefix}-{i}");
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 3 * 2_500);
    println!("redisbloom_rdb/expected.json: {} keys, {asked} answers", entries.len());
}

/// A hand-made file without a checksum (zero).
fn file(head: &str, body: &[u8]) -> Vec<u8> {
    [head.as_bytes(), body, &[255], &[0; 8]].concat()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8][..], bytes].concat()
}

/// Every type that can be stepped over: its number, its bytes, its name. The number of bytes that follow no length is written out.
fn others() -> Vec<(u8, Vec<u8>, &'static str)> {
    let (a, b) = (string(b"a"), string(b"bc"));
    let eight = [7; 8];
    let ids = [9; 16];
    let stream = |version: u8| {
        let positions: &[u8] = if version >= 2 { &[3, 1, 2, 1, 1, 0, 0, 3] } else { &[3, 1, 2] };
        let group: &[u8] = if version >= 2 { &[1, 2, 5] } else { &[1, 2] };
        let seen: &[u8] = if version >= 3 { &[7; 16] } else { &[7; 8] };
        [&[1][..], &a, &b, positions, &[1], &a, group, &[1], &ids, &eight, &[4], &[1], &b, seen, &[1], &ids]
            .concat()
    };
    vec![
        (1, [&[2][..], &a, &b].concat(), "list"),
        (2, [&[1][..], &a].concat(), "set"),
        (3, [&[3][..], &a, &[3], b"1.5", &b, &[253], &a, &[255]].concat(), "zset"),
        (4, [&[1][..], &a, &b].concat(), "hash"),
        (5, [&[1][..], &a, &eight].concat(), "zset"),
        (9, b.clone(), "hash"),
        (10, b.clone(), "list"),
        (11, b.clone(), "set"),
        (12, b.clone(), "zset"),
        (13, b.clone(), "hash"),
        (14, [&[2][..], &a, &b].concat(), "list"),
        (15, stream(1), "stream"),
        (16, b.clone(), "hash"),
        (17, b.clone(), "zset"),
        (18, [&[1, 2][..], &b].concat(), "list"),
        (19, stream(2), "stream"),
        (20, b.clone(), "set"),
        (21, stream(3), "stream"),
        (24, [&eight[..], &[1, 5], &a, &b].concat(), "hash"),
        (25, [&eight[..], &b].concat(), "hash"),
        // A module's value with a field of every kind. Its id spells TDIS-TYPE.
        (
            7,
            [&[0x81][..], &tdigest().to_be_bytes(), &[1, 3, 2, 3, 3, 0, 0, 0, 0, 4], &eight, &[5], &b, &[0]]
                .concat(),
            "TDIS-TYPE",
        ),
    ]
}

fn tdigest() -> u64 {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    "TDIS-TYPE".chars().fold(0, |id, letter| id << 6 | letters.find(letter).unwrap() as u64) << 10
}

#[test]
fn values_of_every_other_type_are_stepped_over_and_named() {
    let mut body = Vec::new();
    for (value_type, value, _) in others() {
        body.extend([&[value_type][..], &string(format!("key-{value_type}").as_bytes()), &value].concat());
    }
    // A string after all of them is found at its position.
    body.extend([&[0][..], &string(b"last"), &string(b"here")].concat());
    let read = entries(&file("REDIS0012", &body)).unwrap();
    for ((value_type, _, name), entry) in others().iter().zip(&read) {
        assert_eq!(entry.name, format!("key-{value_type}").as_bytes());
        assert_eq!(entry.value, EntryValue::Other((*name).to_owned()), "type {value_type}");
    }
    let last = read.last().unwrap();
    assert_eq!((&last.name[..], read.len()), (&b"last"[..], others().len() + 1));
    let EntryValue::String(payload) = &last.value else { panic!("{last:?}") };
    let redis_rdb::RdbPayload::String(bytes) = redis_rdb::read_payload(payload, LIMIT).unwrap() else {
        panic!()
    };
    assert_eq!(&bytes[..], b"here");
}

#[test]
fn databases_and_expiry_belong_to_their_keys() {
    let key = |name: &[u8]| [&[0][..], &string(name), &string(b"v")].concat();
    let aux = [&[250][..], &string(b"redis-ver"), &string(b"8.0.6")].concat();
    let body = [
        &aux[..],
        &[254, 0, 251, 3, 1],
        &[252, 1, 0, 0, 0, 0, 1, 0, 0, 248, 9],
        &key(b"ms"),
        &[253, 2, 0, 0, 0, 249, 9],
        &key(b"s"),
        &key(b"never"),
        &[244, 1, 2, 3, 245],
        &string(b"#!lua"),
        &[254, 3],
        &key(b"third"),
    ];
    let read = entries(&file("REDIS0010", &body.concat())).unwrap();
    let expiries: Vec<_> = read.iter().map(|entry| (entry.database, entry.expires_at_ms)).collect();
    assert_eq!(expiries, [(0, Some((1 << 40) + 1)), (0, Some(2_000)), (0, None), (3, None)]);
}

#[test]
fn valkey_gave_one_number_another_meaning() {
    let hash = [&[22][..], &string(b"h"), &[1], &string(b"a"), &string(b"b"), &[0; 8]].concat();
    let read = entries(&file("VALKEY080", &hash)).unwrap();
    assert_eq!(read[0].value, EntryValue::Other("hash".to_owned()));
    let refused = entries(&file("REDIS0012", &hash)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "rdb file: key h has a value of unknown type 22, before byte 12; nothing after it can be read"
    );
}

#[test]
fn a_truncated_or_extended_file_is_rejected() {
    let real = bytes("redisbloom_rdb/redisbloom.rdb");
    for end in 0..real.len() {
        assert!(entries(&real[..end]).is_err(), "{end} bytes of {}", real.len());
    }
    // One changed byte anywhere: the checksum is over all of them.
    for at in 9..real.len() {
        let mut damaged = real.clone();
        damaged[at] ^= 0x10;
        assert!(entries(&damaged).is_err(), "byte {at}");
    }
    assert!(matches!(entries(&[&real[..], b"x"].concat()), Err(RdbFileError::TrailingBytes)));
    for (head, message) in [
        (
            "REDIS0099",
            "rdb version 99 is unknown: supported are versions 1 to 14 of Redis and 80 to 89 of Valkey",
        ),
        ("REDISabcd", "not an rdb file: it begins with neither REDIS nor VALKEY"),
        ("MAYHAP001", "not an rdb file: it begins with neither REDIS nor VALKEY"),
    ] {
        assert_eq!(entries(&file(head, &[])).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_false_length_allocates_no_memory() {
    let huge = [&[0][..], &string(b"k"), &[0x81], &(u64::MAX / 2).to_be_bytes()].concat();
    let huge = file("REDIS0012", &huge);
    let (refused, used) = AllocMeter::measure(|| entries(&huge).unwrap_err());
    // A value above the limit is rejected as such, a short one as a truncated file.
    assert!(matches!(refused, RdbFileError::Io { .. }), "{refused}");
    assert!(used.peak_bytes < 1 << 20, "{used:?}");
    let long = [&[0][..], &string(b"k"), &[0x80], &200_000_u32.to_be_bytes(), &[b'x'; 200_000]].concat();
    let refused =
        FileReader::new(&file("REDIS0012", &long)[..], 100_000).unwrap().check_to_the_end().unwrap_err();
    assert_eq!(refused.to_string(), "rdb file: the value of key k is larger than the limit of 100000 bytes");
}
