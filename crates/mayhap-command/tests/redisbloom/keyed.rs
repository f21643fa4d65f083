//! `bf-hash keyed` and `cf-hash keyed`: new filters have a secret key. Everything but what RedisBloom would have to read is as before.

use mayhap::{HashScheme, SecretKey};
use mayhap_command::stored::Form;
use mayhap_command::{Reply, Value, payload};
use mayhap_formats::{redis_bloom, redis_cuckoo};

use crate::keyspace::Keyspace;

fn keyed() -> Keyspace {
    let mut keyspace = Keyspace::default();
    keyspace.set("bf-hash", "keyed");
    keyspace.set("cf-hash", "KEYED");
    keyspace
}

fn refusal(reply: &Reply) -> String {
    match reply {
        Reply::Refused(refusal) => refusal.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

fn scheme(value: &Value) -> HashScheme {
    match value {
        Value::Bloom(filter) => *filter.uncounted().scheme(),
        Value::Cuckoo(filter) => *filter.scheme(),
        other => panic!("no such filter: {other:?}"),
    }
}

/// Every request that makes a filter, and requests that fill it past one growth.
const MAKERS: [&str; 7] = [
    "BF.RESERVE f 0.01 4",
    "BF.ADD f first",
    "BF.MADD f first second",
    "BF.INSERT f CAPACITY 4 ITEMS first",
    "CF.RESERVE f 8",
    "CF.ADD f first",
    "CF.INSERTNX f CAPACITY 8 ITEMS first",
];

/// The bytes of a value as a snapshot has them.
fn stored(keyspace: &mut Keyspace, name: &str) -> (Form, Vec<u8>) {
    let value = keyspace.value(name);
    let (form, mut bytes) = (value.form(), Vec::new());
    value.store(&mut bytes).unwrap();
    (form, bytes)
}

fn fill(keyspace: &mut Keyspace, name: &str, line: &str) {
    let command = if line.starts_with("BF") { "BF.MADD" } else { "CF.INSERT" };
    let options = if line.starts_with("BF") { "" } else { " ITEMS" };
    let items: String = (0..3_000).map(|item| format!(" item:{item}")).collect();
    keyspace.line(&format!("{command} {name}{options}{items}"));
}

/// Does `name` know every item that was put in?
fn holds_all(keyspace: &mut Keyspace, name: &str, line: &str) -> bool {
    let items: String = (0..3_000).map(|item| format!(" item:{item}")).collect();
    match keyspace.line(&format!("{}.MEXISTS {name}{items}", &line[..2])) {
        Reply::Booleans(answers) => answers.iter().all(|held| held),
        Reply::Array(replies) => replies.iter().all(|reply| *reply == Reply::Boolean(true)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_filters_have_a_key_and_those_that_are_there_stay_as_they_are() {
    for line in MAKERS {
        let mut keyspace = Keyspace::default();
        keyspace.line(line);
        assert!(!keyspace.value("f").is_keyed(), "{line}: by default they are RedisBloom's");
        let before = scheme(keyspace.value("f"));
        keyspace.set("bf-hash", "keyed");
        keyspace.set("cf-hash", "keyed");
        fill(&mut keyspace, "f", line);
        assert_eq!(scheme(keyspace.value("f")), before, "{line}: what was there stays");

        let other = line.replacen(" f ", " g ", 1);
        keyspace.line(&other);
        let key = scheme(keyspace.value("g"));
        // What the test draws.
        assert_eq!(key, HashScheme::keyed(SecretKey::new([7; 16])), "{other}");
        keyspace.set("bf-hash", "redisbloom");
        keyspace.set("cf-hash", "redisbloom");
        fill(&mut keyspace, "g", line);
        assert_eq!(scheme(keyspace.value("g")), key, "{other}: it keeps its key");
        assert!(holds_all(&mut keyspace, "f", line) && holds_all(&mut keyspace, "g", line));
    }
}

/// All layers of a filter that grew have its key, and what clients are told of it is what they are told of RedisBloom's.
#[test]
fn a_keyed_filter_grows_and_is_described_as_a_plain_one() {
    let (mut plain, mut keyed) = (Keyspace::default(), keyed());
    for keyspace in [&mut plain, &mut keyed] {
        keyspace.line("BF.RESERVE b 0.001 64");
        keyspace.line("CF.RESERVE c 64");
        for (name, line) in [("b", "BF"), ("c", "CF")] {
            fill(keyspace, name, line);
            assert!(holds_all(keyspace, name, line));
        }
    }
    let Value::Bloom(filter) = keyed.value("b") else { panic!("a Bloom filter") };
    let key = *filter.uncounted().scheme();
    assert!(filter.layers() > 3 && filter.uncounted().layers().iter().all(|layer| *layer.scheme() == key));
    let Value::Cuckoo(filter) = keyed.value("c") else { panic!("a cuckoo filter") };
    assert!(filter.tables() > 3);
    // Which of two items that look alike is counted depends on the key; sizes and fields do not.
    for line in ["BF.INFO b CAPACITY", "BF.INFO b SIZE", "BF.INFO b FILTERS", "BF.INFO b EXPANSION"] {
        assert_eq!(keyed.line(line), plain.line(line), "{line}");
    }
    for line in ["BF.INFO b", "CF.INFO c"] {
        let (Reply::Map(ours), Reply::Map(theirs)) = (keyed.line(line), plain.line(line)) else {
            panic!("{line}")
        };
        let names =
            |fields: Vec<(Reply, Reply)>| fields.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(ours), names(theirs), "{line}");
    }
    assert_eq!(keyed.value("b").type_name(), "mayhapBF-");
    assert_eq!(keyed.value("c").type_name(), "mayhapCF-");
    assert_eq!(plain.value("b").type_name(), "MBbloom--");
    let described = keyed.value("c").describe(mayhap::Sampling::WHOLE);
    assert!(described.keyed && described.kind == plain.value("c").describe(mayhap::Sampling::WHOLE).kind);
}

#[test]
fn chunks_are_refused_in_both_directions_and_say_what_to_use() {
    let (mut keyspace, mut plain) = (keyed(), Keyspace::default());
    for (family, add) in [("BF", "BF.MADD f a b c"), ("CF", "CF.INSERT f ITEMS a b c")] {
        let none = "ERR this filter has a secret key and RedisBloom cannot read it: use DUMP and RESTORE";
        keyspace.line(add);
        for iterator in ["0", "1", "77", "-1"] {
            let said = keyspace.line(&format!("{family}.SCANDUMP f {iterator}"));
            assert_eq!(refusal(&said), none, "{family} {iterator}");
        }
        plain.line(add);
        let Reply::Array(parts) = plain.line(&format!("{family}.SCANDUMP f 1")) else { panic!("{family}") };
        let [Reply::Integer(next), Reply::Bulk(chunk)] = &parts[..] else { panic!("{family}") };
        let (command, at) = (format!("{family}.LOADCHUNK"), next.to_string());
        let before = stored(&mut keyspace, "f");
        let said = keyspace.ask(&[command.as_bytes(), b"f", at.as_bytes(), chunk]);
        assert_eq!(refusal(&said), "ERR this filter has a secret key and takes no chunks: delete it first");
        assert_eq!(stored(&mut keyspace, "f"), before, "nothing changed");

        // Under another name chunks make a plain filter, as ever.
        let Reply::Array(parts) = plain.line(&format!("{family}.SCANDUMP f 0")) else { panic!("{family}") };
        let Reply::Bulk(header) = &parts[1] else { panic!("{family}") };
        assert_eq!(keyspace.ask(&[command.as_bytes(), b"loaded", b"1", header]), Reply::Ok);
        assert_eq!(keyspace.ask(&[command.as_bytes(), b"loaded", at.as_bytes(), chunk]), Reply::Ok);
        assert_eq!(keyspace.line(&format!("{family}.EXISTS loaded b")), Reply::Boolean(true));
        assert!(!keyspace.value("loaded").is_keyed(), "{family}");
        keyspace = keyed();
        plain = Keyspace::default();
    }
}

#[test]
fn payloads_snapshots_and_copies_keep_the_key() {
    for line in MAKERS {
        let mut keyspace = keyed();
        keyspace.line(line);
        fill(&mut keyspace, "f", line);
        let (form, bytes) = stored(&mut keyspace, "f");
        for version in [payload::PORTABLE_RDB_VERSION, payload::RDB_VERSION, 80] {
            let dumped = keyspace.dump("f", version).unwrap();
            // The server that restores it may have other settings.
            keyspace.set("bf-hash", "redisbloom");
            let value = payload::restore(&dumped, &keyspace.context()).unwrap();
            keyspace.put("restored", value);
        }
        let value = Value::load(form, &bytes, &keyspace.context()).unwrap();
        keyspace.put("loaded", value);
        let copy = keyspace.value("f").try_clone().unwrap();
        keyspace.put("copy", copy);
        for name in ["restored", "loaded", "copy"] {
            assert_eq!(stored(&mut keyspace, name).1, bytes, "{line}: {name}");
            assert!(holds_all(&mut keyspace, name, line), "{line}: {name}");
        }
    }
}

/// A payload says what it is by its type: a plain filter is no keyed one, nor the other way round, and one damaged anywhere is refused.
#[test]
fn payloads_that_are_not_of_their_type_are_refused() {
    use mayhap_formats::redis_rdb::{OwnType, write_dump, write_mayhap_dump};

    let mut keyspace = keyed();
    keyspace.line("BF.MADD b a b c");
    keyspace.line("CF.INSERT c CAPACITY 8 ITEMS a b c");
    keyspace.line("MF.RESERVE m KIND scalable CAPACITY 100");
    let mut plain = Keyspace::default();
    plain.line("BF.MADD b a b c");
    plain.line("CF.INSERT c ITEMS a b c");
    let all = [
        stored(&mut keyspace, "b"),
        stored(&mut keyspace, "c"),
        stored(&mut keyspace, "m"),
        stored(&mut plain, "b"),
        stored(&mut plain, "c"),
    ];
    let (mut taken, bad) = (0, Some("ERR Bad data format".to_owned()));
    for own in OwnType::ALL {
        for form in 0..12 {
            for (_, bytes) in &all {
                let dumped = write_mayhap_dump(own, form, bytes, 10).unwrap();
                match payload::restore(&dumped, &keyspace.context()) {
                    Ok(value) => {
                        assert_eq!((value.own_type(), value.form() as u64), (Some(own), form));
                        taken += 1;
                    }
                    Err(refusal) => assert_eq!(Some(refusal.to_string()), bad),
                }
            }
        }
    }
    assert_eq!(taken, 3, "each as its own type and form, and nothing else");
    // RedisBloom's writers do not take a keyed filter for one of theirs.
    let key = SecretKey::new([1; 16]);
    let bloom = redis_bloom::create_keyed(100, 0.01, redis_bloom::Scaling::By(2), key).unwrap();
    assert!(write_dump(&bloom, 10).is_err() && redis_bloom::header(&bloom).is_err());
    assert!(redis_bloom::chunks(&bloom).is_err() && redis_bloom::write(&bloom, &mut Vec::new()).is_err());
    let shape = mayhap::ScalableCuckooShape::for_capacity(100).unwrap();
    let cuckoo = redis_cuckoo::create_keyed(shape, key).unwrap();
    assert!(write_dump(&cuckoo, 10).is_err() && redis_cuckoo::header(&cuckoo).is_err());
    assert!(redis_cuckoo::chunks(&cuckoo).is_err() && redis_cuckoo::chunk(&cuckoo, 0).is_err());

    for name in ["b", "c"] {
        let good = keyspace.dump(name, 10).unwrap();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            assert!(payload::restore(&bytes, &keyspace.context()).is_err(), "{name}, byte {at}");
        }
    }
}

/// A filter that a payload announces is admitted before its memory is taken.
#[test]
fn a_payload_of_a_keyed_filter_is_bound_by_the_limits() {
    let mut keyspace = keyed();
    keyspace.line("BF.RESERVE b 0.01 100000");
    keyspace.line("CF.RESERVE c 100000");
    for name in ["b", "c"] {
        let dumped = keyspace.dump(name, 10).unwrap();
        let small = Keyspace::limited(10_000);
        let refused = payload::restore(&dumped, &small.context()).unwrap_err().to_string();
        assert!(refused.contains("a single filter may take 10000"), "{refused}");
        let tight = Keyspace::default();
        tight.budget.set_limit(10_000);
        let refused = payload::restore(&dumped, &tight.context()).unwrap_err().to_string();
        assert!(refused.starts_with("OOM"), "{refused}");
    }
}

#[test]
fn values_that_are_neither_are_refused() {
    let mut keyspace = Keyspace::default();
    let before = keyspace.parameters.clone();
    for name in ["bf-hash", "cf-hash"] {
        let parameter = mayhap_command::parameters::find(name.as_bytes()).unwrap();
        let refused = (parameter.set)(&mut keyspace.parameters, b"siphash").unwrap_err();
        assert_eq!(refused.to_string(), format!("Invalid value for `{name}`"));
    }
    assert_eq!(keyspace.parameters, before);
}
