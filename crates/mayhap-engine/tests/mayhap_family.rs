//! The `MF.*` family on the engine: many threads, and many small filters.

use std::sync::Arc;

use mayhap_command::{Limits, Reply, Request, Scratch, table};
use mayhap_engine::{Engine, System};

fn run(engine: &Engine, lines: &[String]) -> Vec<Reply> {
    let words: Vec<Vec<&[u8]>> =
        lines.iter().map(|line| line.split(' ').map(str::as_bytes).collect()).collect();
    let requests: Vec<Request<'_>> =
        words.iter().map(|words| Request { command: table::find(words[0]).unwrap(), words }).collect();
    let mut replies = Vec::new();
    engine.execute(&requests, &mut Scratch::default(), &mut replies);
    replies
}

fn all(reply: &Reply) -> bool {
    match reply {
        Reply::Booleans(answers) => answers.count_ones() == answers.len(),
        Reply::Array(replies) => replies.iter().all(|reply| *reply == Reply::Boolean(true)),
        reply => panic!("{reply:?}"),
    }
}

/// Threads fill filters of kinds that are shared and of kinds that are not, some of which grow. Each thread
/// finds its own items right after adding them.
#[test]
fn threads_fill_one_filter_together_and_lose_nothing() {
    for options in [
        "KIND bloom CAPACITY 100000",
        "KIND blocked CAPACITY 100000",
        "KIND scalable TIERS 100,1000",
        "KIND cuckoo CAPACITY 100000",
        "KIND growing",
    ] {
        let engine = Engine::new(Limits::default(), Arc::new(System));
        assert_eq!(run(&engine, &[format!("MF.RESERVE seen {options} FPR 0.001")]), [Reply::Ok]);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let engine = &engine;
                scope.spawn(move || {
                    for block in 0..20 {
                        let items: String =
                            (0..100).map(|item| format!(" {thread}:{}", block * 100 + item)).collect();
                        let lines = [
                            format!("MF.MADD seen{items}"),
                            format!("MF.ADD seen {thread}/{block}"),
                            format!("MF.MEXISTS seen{items} {thread}/{block}"),
                        ];
                        let replies = run(engine, &lines);
                        assert!(all(&replies[2]), "{options}");
                    }
                });
            }
        });
        let Reply::Integer(inserted) = run(&engine, &["MF.CARD seen".into()])[0] else { panic!() };
        assert!((8_000..=8_080).contains(&inserted), "{options}: {inserted}");
    }
}

/// Sources and target are locked together, in any order.
#[test]
fn merges_that_cross_do_not_deadlock() {
    let engine = Engine::new(Limits::default(), Arc::new(System));
    let key = "KEY 000102030405060708090a0b0c0d0e0f";
    for name in ["a", "b"] {
        run(
            &engine,
            &[format!("MF.RESERVE {name} KIND bloom CAPACITY 9000 {key}"), format!("MF.ADD {name} {name}")],
        );
    }
    std::thread::scope(|scope| {
        for line in ["MF.MERGE a b", "MF.MERGE b a", "MF.MERGE c a b a"] {
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(run(engine, &[line.into()]), [Reply::Ok]);
                }
            });
        }
    });
    for name in ["a", "b", "c"] {
        assert!(all(&run(&engine, &[format!("MF.MEXISTS {name} a b")])[0]), "{name}");
    }
}

/// The bits of the first tier alone would be 1.4 kB.
#[test]
fn a_filter_with_few_items_takes_few_bytes_in_total() {
    const USERS: u64 = 2_000;
    let engine = Engine::new(Limits::default(), Arc::new(System));
    for user in 0..USERS {
        let mut lines =
            vec![format!("MF.RESERVE user:{user} KIND scalable TIERS 1000,10000,100000 FPR 0.01")];
        lines.extend((0..20).map(|item| format!("MF.ADD user:{user} item:{item}")));
        let replies = run(&engine, &lines);
        assert!(replies[1..].iter().all(|reply| *reply == Reply::Boolean(true)));
    }
    let Reply::Integer(bytes) = run(&engine, &["MEMORY USAGE user:77".into()])[0] else { panic!() };
    assert!(bytes <= 600, "{bytes}");
}
