//! Small filters that begin as a list of hashes.

use super::stage::{Stage, booleans, field};
use crate::reply::Reply;
use crate::run::Request;
use crate::table;
use crate::value::Value;

const KEY: &str = "KEY 000102030405060708090a0b0c0d0e0f";

fn is_list(stage: &Stage, name: &str) -> bool {
    matches!(&stage.values[name.as_bytes()], Value::Filter(holder) if holder.served_as_list())
}

fn dumped(stage: &mut Stage, name: &str) -> Vec<u8> {
    let Reply::Array(mut pair) = stage.run(&format!("MF.DUMP {name} 0")) else { panic!() };
    let (Some(Reply::Bulk(bytes)), Some(Reply::Integer(0))) = (pair.pop(), pair.pop()) else { panic!() };
    bytes
}

/// A list and the full filter get the same requests. Answers, counts, figures and, at any moment, the dumped
/// bytes are equal.
#[test]
fn lists_and_filters_differ_only_in_memory() {
    for options in [
        "KIND scalable TIERS 1000,10000 FPR 0.01",
        "KIND bloom CAPACITY 1000 FPR 0.01",
        "KIND blocked CAPACITY 1000 FPR 0.01",
        "KIND scalable CAPACITY 20 FPR 0.1",
    ] {
        let mut stage = Stage::new();
        let full = &mut Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE few {options} {KEY}")), Reply::Ok);
        assert!(is_list(&stage, "few"));
        let empty = dumped(&mut stage, "few");
        assert!(is_list(&stage, "few"), "a dump does not change it");
        // A filter that was loaded is never a list.
        assert_eq!(full.run_words(&[b"MF.LOAD", b"few", b"0", &empty]), Reply::Integer(0));
        assert!(!is_list(full, "few"));
        for item in 0..150 {
            let line = format!("MF.ADD few item:{}", item * item % 97);
            assert_eq!(stage.run(&line), full.run(&line), "{options}: {line}");
            if item % 10 == 0 {
                assert_eq!(dumped(&mut stage, "few"), dumped(full, "few"), "{options}");
            }
            assert_eq!(stage.run("MF.CARD few"), full.run("MF.CARD few"));
            let (ours, theirs) = (stage.run("MF.INFO few"), full.run("MF.INFO few"));
            for name in
                ["kind", "placement", "capacity", "inserted", "target_fpr", "expected_fpr", "fill", "layers"]
            {
                assert_eq!(field(&ours, name), field(&theirs, name), "{options}: {name}");
            }
        }
        let asked = (0..150).map(|item| format!(" item:{item}")).collect::<String>();
        let ours = booleans(&stage.run(&format!("MF.MEXISTS few{asked}")));
        let theirs = booleans(&full.run(&format!("MF.MEXISTS few{asked}")));
        assert!(
            ours.iter().zip(&theirs).all(|(ours, theirs)| *theirs || !*ours),
            "no item that the list finds is missing in the full filter"
        );
        let members = (0..150_u64).map(|item| item * item % 97).collect::<std::collections::BTreeSet<_>>();
        assert!(members.iter().all(|&item| ours[item as usize]));
    }
}

#[test]
fn list_becomes_a_filter_within_a_request_without_loss() {
    for options in
        ["KIND scalable TIERS 1000,10000 FPR 0.01", "KIND bloom CAPACITY 1000", "KIND blocked CAPACITY 1000"]
    {
        let mut stage = Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE grows {options}")), Reply::Ok);
        let items = (0..3_000).map(|item| format!(" {item}")).collect::<String>();
        assert!(is_list(&stage, "grows"));
        let new = booleans(&stage.run(&format!("MF.MADD grows{items}")));
        assert_eq!(new.len(), 3_000);
        assert!(!is_list(&stage, "grows"));
        assert!(booleans(&stage.run(&format!("MF.MEXISTS grows{items}"))).iter().all(|held| *held));
        assert_eq!(stage.run("MF.CLEAR grows"), Reply::Ok);
        assert!(is_list(&stage, "grows"));
        assert_eq!(stage.run("MF.EXISTS grows 1"), Reply::Boolean(false));
    }
}

/// The goal for a million filters is at most 150 bytes beyond the bits of the first tier; we aim at 600 bytes
/// in total.
#[test]
fn a_filter_with_few_items_takes_few_bytes() {
    let mut stage = Stage::new();
    for user in 0..100 {
        let name = format!("user:{user}");
        stage.run(&format!("MF.RESERVE {name} KIND scalable TIERS 1000,10000,100000 FPR 0.01"));
        let lines: Vec<String> = (0..20).map(|item| format!("MF.ADD {name} item:{user}:{item}")).collect();
        let words: Vec<Vec<&[u8]>> =
            lines.iter().map(|line| line.split(' ').map(str::as_bytes).collect()).collect();
        let requests: Vec<Request<'_>> =
            words.iter().map(|words| Request { command: table::find(words[0]).unwrap(), words }).collect();
        assert_eq!(stage.run_all(&requests), vec![Reply::Boolean(true); 20]);
    }
    let bytes = stage.values.values().map(Value::memory_bytes).sum::<u64>() / 100;
    assert!(bytes <= 450, "{bytes} bytes for each, without its name and its entry in the keyspace");
    assert!(size_of::<Value>() <= 16 && size_of::<super::super::Holder>() <= 96);
}
