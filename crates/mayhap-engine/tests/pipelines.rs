//! Pipelines, transactions and `WATCH`.

mod support;

use std::time::Duration;

use mayhap_command::{Reply, Request, Scratch, table};
use mayhap_engine::{Patience, Transaction};
use support::{engine, one, run};

#[test]
fn a_pipeline_is_answered_in_order_even_if_a_filter_grows_inside_it() {
    let (engine, _) = engine();
    let added: Vec<String> = (0..1_000).map(|item| format!("BF.ADD seen {item}")).collect();
    let new = run(&engine, &added).iter().filter(|reply| **reply == Reply::Boolean(true)).count();
    assert!(new > 990);
    let all = (0..1_000).map(|item| format!(" {item}")).collect::<String>();
    let asked = one(&engine, &format!("BF.MEXISTS seen{all}"));
    assert!(matches!(&asked, Reply::Booleans(answers) if answers.count_ones() == 1_000), "{asked:?}");
    assert_eq!(
        run(&engine, &["EXISTS seen", "DEL seen", "EXISTS seen", "BF.EXISTS seen 1", "DBSIZE"]),
        [Reply::Integer(1), Reply::Integer(1), Reply::Integer(0), Reply::Boolean(false), Reply::Integer(0)]
    );
    assert_eq!(engine.budget().used(), 0);
    let totals = engine.totals();
    assert_eq!((totals.names, totals.items, totals.hits), (0, 0, 1_000));
}

#[test]
fn flushall_in_a_pipeline_removes_earlier_names_and_keeps_later_ones() {
    let (engine, _) = engine();
    let replies =
        run(&engine, &["BF.ADD a 1", "EXPIRE a 100", "FLUSHALL", "BF.ADD b 1", "DBSIZE", "FLUSHALL x"]);
    assert_eq!(replies[4], Reply::Integer(1));
    assert_eq!(support::text(&replies[5]), "ERR syntax error");
    assert_eq!(engine.totals().expiring, 0);
    assert_eq!(one(&engine, "EXISTS a b"), Reply::Integer(1));
    one(&engine, "FLUSHDB ASYNC");
    assert_eq!((engine.totals().names, engine.budget().used()), (0, 0));
}

fn exec(engine: &mayhap_engine::Engine, watch: &mayhap_engine::Watch) -> bool {
    let words: [&[u8]; 3] = [b"bf.add", b"mine", b"1"];
    let request = Request { command: table::find(b"bf.add").unwrap(), words: &words };
    let mut replies = Vec::new();
    let watch = (Some(watch), Patience::Any);
    let ran = engine.execute_transaction(watch, &[request], &mut Scratch::default(), &mut replies, |_| {});
    assert_eq!(replies.len(), usize::from(ran == Transaction::Done));
    ran == Transaction::Done
}

#[test]
fn watched_transactions_abort_after_changes_only() {
    let (engine, clock) = engine();
    // The names that exist, the requests, and whether they disturb a watch of `a` and `b`.
    for (before, then, disturbs) in [
        (&["BF.ADD a 1"][..], &["BF.ADD a 2"][..], true),
        (&["BF.ADD a 1"], &["BF.ADD a 1"], false),
        (&["BF.ADD a 1"], &["BF.EXISTS a 2", "TTL a", "TYPE a", "TOUCH a", "SCAN 0"], false),
        (&[], &["BF.ADD a 1"], true),
        (&[], &["DEL a", "EXPIRE a 10", "PERSIST a", "BF.ADD c 1", "DEL c"], false),
        (&["BF.ADD a 1"], &["DEL a"], true),
        (&["BF.ADD a 1"], &["EXPIRE a 10"], true),
        (&["BF.ADD a 1"], &["EXPIRE a 10 XX"], false),
        (&["BF.ADD a 1"], &["PERSIST a"], false),
        (&["BF.ADD a 1"], &["RENAME a c"], true),
        (&["BF.ADD c 1"], &["RENAME c b"], true),
        (&["BF.ADD c 1"], &["COPY c b"], true),
        (&["BF.ADD a 1"], &["COPY a c"], false),
        (&["BF.ADD a 1"], &["FLUSHALL"], true),
        (&["BF.ADD c 1"], &["FLUSHALL"], false),
        (&["BF.ADD a 1", "PEXPIRE a 100"], &["PASS 99"], false),
        (&["BF.ADD a 1", "PEXPIRE a 100"], &["PASS 100"], true),
        (&["BF.ADD a 1", "PEXPIRE a 100"], &["PASS 100", "SWEEP"], true),
    ] {
        one(&engine, "FLUSHALL");
        run(&engine, before);
        let watch = engine.watch(&[b"a", b"b", b"a"]);
        for line in then {
            match line.split_once(' ') {
                Some(("PASS", ms)) => clock.pass(ms.parse().unwrap()),
                None if *line == "SWEEP" => assert!(!engine.sweep(Duration::from_secs(1))),
                _ => drop(one(&engine, line)),
            }
        }
        assert_eq!(exec(&engine, &watch), !disturbs, "{before:?} {then:?}");
    }
    one(&engine, "BF.ADD mine 1");
    let watch = engine.watch(&[b"mine"]);
    let other = engine.watch(&[b"mine"]);
    drop(other);
    one(&engine, "DEL mine");
    assert!(watch.is_disturbed());
}

#[test]
fn a_transaction_is_not_starved_by_endless_pipelines() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let (engine, _) = engine();
    let lines: Vec<String> = (0..20_000).map(|item| format!("BF.ADD name:{} {item}", item % 10)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    run(&engine, &lines);
                }
            });
        }
        for _ in 0..50 {
            let watch = engine.watch(&[b"other"]);
            assert!(exec(&engine, &watch));
        }
        done.store(true, Relaxed);
    });
}
