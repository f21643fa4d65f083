//! Numbers fixed by RedisBloom's own tests.

use mayhap_command::Reply;

use crate::keyspace::Keyspace;

/// Adds the numbers from 0 on, one by one.
fn add_numbers(keyspace: &mut Keyspace, command: &str, count: u32) {
    for item in 0..count {
        keyspace.line(&format!("{command} {item}"));
    }
}

fn field(keyspace: &mut Keyspace, request: &str, name: &str) -> i64 {
    let Reply::Map(pairs) = keyspace.line(request) else { panic!("{request}") };
    let found = pairs.iter().find(|(field, _)| *field == Reply::Simple(name.to_owned().into()));
    match found {
        Some((_, Reply::Integer(number))) => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bloom_filters_count_and_grow_at_the_same_items() {
    let mut keyspace = Keyspace::default();
    for (name, reserve, count, counted) in
        [("a", "0.01 10", 100, 99), ("b", "0.001 100", 4_000, 3_997), ("c", "0.01 4 EXPANSION 1", 100, 99)]
    {
        assert_eq!(keyspace.line(&format!("BF.RESERVE {name} {reserve}")), Reply::Ok);
        add_numbers(&mut keyspace, &format!("BF.ADD {name}"), count);
        if name != "c" {
            assert_eq!(keyspace.line(&format!("BF.CARD {name}")), Reply::Integer(counted));
        }
    }
    assert_eq!(field(&mut keyspace, "BF.INFO c", "Number of filters"), 23);
}

#[test]
fn cuckoo_filters_grow_at_the_same_items() {
    for (reserve, filters) in [
        ("64 BUCKETSIZE 1", 18),
        ("64 BUCKETSIZE 2", 17),
        ("256 BUCKETSIZE 4 MAXITERATIONS 500", 4),
        ("64 EXPANSION 2", 5),
        ("64 EXPANSION 4", 3),
    ] {
        let mut keyspace = Keyspace::default();
        assert_eq!(keyspace.line(&format!("CF.RESERVE cf {reserve}")), Reply::Ok);
        add_numbers(&mut keyspace, "CF.ADD cf", 1_000);
        assert_eq!(field(&mut keyspace, "CF.INFO cf", "Number of filters"), filters, "{reserve}");
        assert_eq!(field(&mut keyspace, "CF.INFO cf", "Number of items inserted"), 1_000);
    }
}

#[test]
fn the_number_of_cuckoo_expansions_is_limited() {
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE cf 4");
    for item in 0..124 {
        assert_eq!(keyspace.line(&format!("CF.ADD cf {item}")), Reply::Boolean(true), "{item}");
    }
    let Reply::Refused(refusal) = keyspace.line("CF.ADD cf 124") else { panic!("the 125th is refused") };
    assert_eq!(refusal.to_string(), "Maximum expansions reached");
    // One command with many items may go on, as in RedisBloom: the limit is checked before its first item.
    keyspace.set("cf-max-expansions", "33");
    let items: String = (0..500).map(|item| format!(" {item}")).collect();
    let Reply::Array(added) = keyspace.line(&format!("CF.INSERT cf ITEMS{items}")) else {
        panic!("an array")
    };
    assert!(added.iter().all(|reply| *reply == Reply::Boolean(true)));
    assert!(field(&mut keyspace, "CF.INFO cf", "Number of filters") > 33);
}
