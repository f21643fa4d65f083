//! Filters of the `BF.*` and `CF.*` families with a secret key: replicas, files and other hosts receive them
//! with the key, and RedisBloom never reads one.

use mayhap_testkit::host::{Host, HostOptions, Talk, Wire, programs, request};

use crate::beside_server::server;
use crate::workload::Workload;
use crate::{digests, hosts, setting};

fn set_hash(talk: &mut Talk, hash: &str) {
    for name in ["bf-hash", "cf-hash"] {
        let name = setting(talk, name);
        talk.must(&["CONFIG", "SET", &name, hash]);
    }
}

fn type_of(talk: &mut Talk, name: &str) -> String {
    talk.ask_words(&["TYPE", name]).text()
}

/// Makes a keyed filter with every request that makes one, and in a transaction and a script; and a plain one
/// of each family.
fn make_all(talk: &mut Talk, tag: &str) {
    set_hash(talk, "redisbloom");
    talk.ask(&format!("BF.MADD plain:b{tag} 1 2 3"));
    talk.ask(&format!("CF.INSERT plain:c{tag} ITEMS 1 2 3"));
    set_hash(talk, "keyed");
    for line in [
        "BF.RESERVE b:reserve 0.01 4",
        "BF.ADD b:add 0",
        "BF.MADD b:madd 0",
        "BF.INSERT b:insert CAPACITY 4 ITEMS 0",
        "CF.RESERVE c:reserve 8",
        "CF.ADD c:add 0",
        "CF.ADDNX c:addnx 0",
        "CF.INSERT c:insert CAPACITY 16 ITEMS 0",
        "CF.INSERTNX c:insertnx ITEMS 0",
    ] {
        let (command, rest) = line.split_once(' ').unwrap();
        let (name, rest) = rest.split_once(' ').unwrap();
        let name = format!("{name}{tag}");
        let words: Vec<&str> = [command, &name].into_iter().chain(rest.split(' ')).collect();
        talk.must(&words);
        let add = if name.starts_with('b') {
            ["BF.MADD", &name, "1", "2"]
        } else {
            ["CF.INSERT", &name, "ITEMS", "1"]
        };
        talk.must(&add);
        let items: Vec<String> = (0..200).map(|item| format!("item:{item}")).collect();
        let more = add.iter().take(if name.starts_with('b') { 2 } else { 3 }).map(|word| (*word).to_owned());
        talk.must(&more.chain(items).collect::<Vec<_>>());
    }
    talk.must(&["MULTI"]);
    talk.ask(&format!("BF.ADD b:multi{tag} 1"));
    talk.ask(&format!("CF.ADD c:multi{tag} 1"));
    talk.ask("EXEC");
    let script = "redis.call('BF.ADD', KEYS[1], '1') redis.call('CF.ADD', KEYS[2], '1')";
    talk.must(&["EVAL", script, "2", &format!("b:script{tag}"), &format!("c:script{tag}")]);
    set_hash(talk, "redisbloom");
}

/// Asserts that all of them exist with their items, each of its type.
fn all_are_there(talk: &mut Talk, tag: &str) {
    let ways = ["reserve", "add", "madd", "insert", "multi", "script"].map(|way| format!("b:{way}{tag}"));
    let others = ["reserve", "add", "addnx", "insert", "insertnx", "multi", "script"];
    for name in ways.into_iter().chain(others.map(|way| format!("c:{way}{tag}"))) {
        let (family, due) = if name.starts_with('b') { ("BF", "mayhapBF-") } else { ("CF", "mayhapCF-") };
        assert_eq!(type_of(talk, &name), due, "{name}");
        assert_eq!(talk.must(&[&format!("{family}.EXISTS"), &name, "1"]).integer(), 1, "{name}");
        if !name.contains("multi") && !name.contains("script") {
            let items = (0..200).map(|item| format!("item:{item}"));
            let words: Vec<String> =
                [format!("{family}.MEXISTS"), name.clone()].into_iter().chain(items).collect();
            assert!(talk.must(&words).list().iter().all(|held| held.integer() == 1), "{name}");
        }
        match talk.ask_words(&[&format!("{family}.SCANDUMP"), &name, "0"]) {
            Wire::Refused(text) => assert!(text.contains("secret key") && text.contains("DUMP"), "{text}"),
            other => panic!("{name} is dumped for RedisBloom: {other:?}"),
        }
    }
    assert_eq!(type_of(talk, &format!("plain:b{tag}")), "MBbloom--");
    assert_eq!(type_of(talk, &format!("plain:c{tag}")), "MBbloomCF");
}

#[test]
fn keyed_filters_reach_a_replica_by_rdb_and_by_commands() {
    for (master, replica) in
        hosts(&["--repl-diskless-sync-delay", "0"]).zip(hosts(&["--repl-diskless-sync-delay", "0"]))
    {
        let (mut talk, mut other) = (master.talk(), replica.talk());
        make_all(&mut talk, "-before");
        crate::replica::follow(&replica, &master);
        make_all(&mut talk, "-after");
        set_hash(&mut talk, "keyed");
        talk.ask_all(Workload::new(71, false).take(2_000));
        crate::replica::catch_up(&mut talk, &mut other);
        let ours = digests(&mut talk);
        assert!(ours.len() > 35, "{ours:?}");
        assert_eq!(digests(&mut other), ours);
        for tag in ["-before", "-after"] {
            all_are_there(&mut other, tag);
        }
        assert!(!replica.log().contains("CRITICAL"), "{}", replica.log());
        let keyed: u64 = other.info("mayhap_keyed_bloom_filters").parse().unwrap();
        assert!(keyed >= 12, "{keyed}");
    }
}

#[test]
fn keyed_filters_survive_files_of_either_kind() {
    for preamble in ["no", "yes"] {
        // A host that is killed during a sync loses later changes, unless it always syncs.
        let words = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", preamble];
        for mut host in hosts(&words) {
            let mut talk = host.talk();
            make_all(&mut talk, "-log");
            let before = digests(&mut talk);
            host.restart();
            let mut talk = host.talk();
            assert_eq!(digests(&mut talk), before, "the log alone, preamble {preamble}");
            talk.must(&["BGREWRITEAOF"]);
            crate::files::wait_for_rewrite(&mut talk);
            make_all(&mut talk, "-later");
            let before = digests(&mut talk);
            host.restart();
            let mut talk = host.talk();
            assert_eq!(digests(&mut talk), before, "rewritten, preamble {preamble}");
            talk.must(&["DEBUG", "RELOAD"]);
            assert_eq!(digests(&mut talk), before, "an RDB file");
            all_are_there(&mut talk, "-log");
            all_are_there(&mut talk, "-later");
        }
    }
}

/// Payloads move between hosts and our own server, whatever their settings. A copy has the key of its source.
#[test]
fn keyed_filters_move_between_hosts_and_our_server() {
    for (one, two) in hosts(&[]).zip(hosts(&[])) {
        let (_server, port) = server();
        let mut all = [one.talk(), two.talk(), Talk::connect(port).unwrap()];
        let [first, rest @ ..] = &mut all;
        make_all(first, "-x");
        let names: Vec<String> = digests(first).into_iter().map(|(name, _)| name).collect();
        for name in &names {
            let kind = type_of(first, name);
            first.must(&["COPY", name, "{copy}"]);
            assert_eq!(type_of(first, "{copy}"), kind);
            let digest =
                |talk: &mut Talk, name: &str| talk.must(&["DEBUG", "DIGEST-VALUE", name]).list()[0].text();
            assert_eq!(digest(first, "{copy}"), digest(first, name), "{name}");
            first.must(&["DEL", "{copy}"]);
            for other in rest.iter_mut() {
                let payload = first.must(&["DUMP", name]);
                other.must(&[b"RESTORE".as_slice(), name.as_bytes(), b"0", payload.bytes()]);
                assert_eq!(type_of(other, name), kind, "{name}");
                // And back again.
                let payload = other.must(&["DUMP", name]);
                first.must(&[b"RESTORE".as_slice(), b"{back}", b"0", payload.bytes(), b"REPLACE"]);
                assert_eq!(digest(first, "{back}"), digest(first, name), "{name}");
            }
        }
        rest.iter_mut().for_each(|other| all_are_there(other, "-x"));
    }
}

/// A host without the module refuses a file with a keyed filter and names the type: it cannot take it for one
/// of RedisBloom's.
#[test]
fn hosts_without_the_keyed_types_refuse_them_by_name() {
    for program in programs() {
        let plain = HostOptions::new().program(&program);
        for (line, name) in [("BF.ADD f x", "mayhapBF-"), ("CF.ADD f x", "mayhapCF-")] {
            let Some(mut host) =
                Host::start(&plain.clone().our_module(&["bf-hash", "keyed", "cf-hash", "keyed"]))
            else {
                continue;
            };
            let mut talk = host.talk();
            talk.must(&line.split(' ').collect::<Vec<_>>());
            let payload = talk.must(&["DUMP", "f"]).bytes().to_vec();
            talk.must(&["SAVE"]);
            assert!(!host.restart_with(&plain), "it starts without the module");
            assert!(host.log().contains(name), "{}", host.log());
            std::fs::remove_file(host.folder().join("dump.rdb")).unwrap();
            assert!(host.restart_with(&plain));
            let refused = host.talk().ask_words(&[b"RESTORE".as_slice(), b"f", b"0", &payload]);
            assert!(
                matches!(&refused, Wire::Refused(text) if text.contains("Bad data format")),
                "{refused:?}"
            );
        }
    }
}

/// A log written by RedisBloom has the same effect as there: its requests make plain filters, whatever the
/// setting for new filters.
#[test]
fn aof_of_redisbloom_creates_plain_filters() {
    for program in programs() {
        let options = HostOptions::new().program(&program).words(&["--appendonly", "yes"]);
        let keyed = options.our_module(&["bf-hash", "keyed", "cf-hash", "keyed"]);
        let Some(mut host) = Host::start(&keyed) else { continue };
        host.kill();
        std::fs::remove_dir_all(host.folder().join("appendonlydir")).unwrap();
        let lines = ["SELECT 0", "BF.RESERVE b 0.01 100", "BF.ADD b x", "CF.ADD c x"];
        let log: Vec<u8> =
            lines.iter().flat_map(|line| request(&line.split(' ').collect::<Vec<_>>())).collect();
        std::fs::write(host.folder().join("appendonly.aof"), log).unwrap();
        host.restart();
        let mut talk = host.talk();
        assert_eq!(
            (type_of(&mut talk, "b"), type_of(&mut talk, "c")),
            ("MBbloom--".into(), "MBbloomCF".into())
        );
        assert_eq!(talk.ask("BF.EXISTS b x").integer(), 1);
        talk.must(&["BF.ADD", "new", "x"]);
        assert_eq!(type_of(&mut talk, "new"), "mayhapBF-");
    }
}
