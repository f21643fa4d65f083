//! Compares `BF.*` and `CF.*` with RedisBloom: scripts of requests with its raw replies in both protocols,
//! its dumps, and the numbers in its own tests. Also checks our own additional promises.

mod batches;
mod growth;
mod hostile;
mod keyed;
mod keyspace;
mod memory;
mod payloads;
mod pinned;
mod vectors;
mod wire;

use keyspace::Keyspace;
use mayhap_testkit::script::{self, Action};
use wire::Protocol;

fn play(file: &str, text: &str) {
    let steps = script::parse(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut asked = 0;
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut keyspace = Keyspace::default();
        for step in &steps {
            let place = format!("{file}:{}, {}, {protocol:?}", step.line, step.remark);
            match &step.action {
                Action::Forget => keyspace = Keyspace::default(),
                Action::Set { name, value } => keyspace.set(name, value),
                Action::Ask { words, resp2, resp3 } => {
                    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    let got = wire::encode(&keyspace.ask(&words), protocol);
                    let due = if protocol == Protocol::Resp2 { resp2 } else { resp3 };
                    assert_eq!(got.escape_ascii().to_string(), due.escape_ascii().to_string(), "{place}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 50, "{file} asks only {asked} times");
}

#[test]
fn bloom_filters_answer_as_redis_bloom_does() {
    play("bf.txt", include_str!("../script/bf.txt"));
}

#[test]
fn cuckoo_filters_answer_as_redis_bloom_does() {
    play("cf.txt", include_str!("../script/cf.txt"));
}
