//! Memory limits, statistics and details of single names.

mod support;

use mayhap_command::Reply;
use support::{engine, one, run, text};

#[test]
fn at_the_limit_nothing_grows_and_everything_else_continues() {
    let (engine, _) = engine();
    run(&engine, &["BF.ADD a 1", "CF.ADD c 1"]);
    let used = engine.budget().used();
    assert!(used > 0);
    engine.budget().set_limit(used);
    // Exactly full: requests that need no more memory still work.
    assert_eq!(one(&engine, "BF.ADD a 2"), Reply::Boolean(true));
    assert!(text(&one(&engine, "BF.RESERVE b 0.01 100000")).contains("memory"));
    assert!(text(&one(&engine, "COPY a b")).starts_with("OOM "));
    engine.budget().set_limit(used - 1);
    let oom = "OOM command not allowed when used memory > 'maxmemory'.";
    for line in
        ["BF.ADD a 3", "BF.MADD a 3 4", "BF.RESERVE b 0.1 10", "CF.ADD c 3", "COPY a b", "RESTORE b 0 x"]
    {
        assert_eq!(text(&one(&engine, line)), oom, "{line}");
    }
    let goes_on = ["BF.EXISTS a 1", "EXPIRE a 100", "RENAME a b", "SCAN 0", "DUMP b", "EXISTS b"];
    for reply in run(&engine, &goes_on) {
        assert!(!matches!(reply, Reply::Refused(_)), "{}", text(&reply));
    }
    let rejected: u64 = engine.statistics().commands().iter().map(|totals| totals.rejected).sum();
    assert_eq!(rejected, 6);
    assert_eq!(one(&engine, "DEL b"), Reply::Integer(1));
    assert_eq!(one(&engine, "BF.ADD a 3"), Reply::Boolean(true));
}

#[test]
fn commands_are_counted_in_batches_and_one_by_one() {
    let (engine, _) = engine();
    run(
        &engine,
        &["BF.ADD a 1", "BF.ADD a 2", "BF.MADD a 3 4", "BF.ADD a 5", "EXISTS a", "RENAME x y", "CF.ADD a 1"],
    );
    let commands = engine.statistics().commands();
    let counted: Vec<_> =
        commands.iter().map(|totals| (totals.command, totals.calls, totals.failed)).collect();
    for expected in
        [("bf.add", 3, 0), ("bf.madd", 1, 0), ("exists", 1, 0), ("rename", 1, 1), ("cf.add", 1, 1)]
    {
        assert!(counted.contains(&expected), "{expected:?} in {counted:?}");
    }
    assert_eq!(counted.len(), 5);
    // One for each request that changed the filter, in a batch or not.
    assert_eq!(engine.totals().changes, 4);
    engine.statistics().reset();
    assert!(engine.statistics().commands().is_empty());
    assert_eq!(engine.totals().items, 5);
}

#[test]
fn a_detail_has_the_figures_of_a_dashboard() {
    let (engine, clock) = engine();
    assert_eq!(engine.detail(b"a"), None);
    run(&engine, &["BF.RESERVE a 0.01 100 EXPANSION 2", "BF.MADD a 1 2 3", "PEXPIRE a 60000"]);
    clock.pass(5_000);
    run(&engine, &["BF.MEXISTS a 1 2 no", "BF.EXISTS a 3"]);
    clock.pass(10_000);
    let detail = engine.detail(b"a").unwrap();
    let description = detail.description;
    assert_eq!((description.type_name, description.kind), ("MBbloom--", "scalable-bloom"));
    assert_eq!((description.items, description.capacity, description.layers), (3, 100, 1));
    assert_eq!((description.load(), description.target_fpr, description.is_ready), (0.03, 0.01, true));
    assert!(description.expected_fpr < 1e-6 && detail.total_bytes > description.memory_bytes);
    assert_eq!((detail.age_secs, detail.idle_secs, detail.ttl_ms), (15, 10, Some(45_000)));
    assert_eq!((detail.hits, detail.misses), (3, 1));
    assert_eq!(one(&engine, "OBJECT IDLETIME a"), Reply::Integer(10));
    run(&engine, &["TOUCH a", "RENAME a b"]);
    let renamed = engine.detail(b"b").unwrap();
    assert_eq!((renamed.age_secs, renamed.idle_secs, renamed.hits, renamed.ttl_ms), (15, 0, 3, Some(45_000)));
    run(&engine, &["COPY b c"]);
    let copied = engine.detail(b"c").unwrap();
    assert_eq!((copied.age_secs, copied.hits, copied.ttl_ms), (0, 0, Some(45_000)));
    assert_eq!(copied.description, renamed.description);
}

#[test]
fn memory_usage_is_the_memory_of_a_name() {
    let (engine, _) = engine();
    let mut before = engine.totals().memory_bytes;
    let lines =
        ["BF.RESERVE bf 0.05 1000", "CF.RESERVE cf 1000", "MF.RESERVE mf CAPACITY 1000", "SET text ada"];
    for line in lines {
        run(&engine, &[line]);
        let taken = engine.totals().memory_bytes;
        let name = line.split(' ').nth(1).unwrap();
        let usage = one(&engine, &format!("MEMORY USAGE {name}"));
        assert_eq!(usage, Reply::Integer((taken - before) as i64), "{line}");
        before = taken;
    }
}

/// Requests that changed nothing do not count, and requests of one batch count one by one.
#[test]
fn only_changes_are_counted() {
    let (engine, _) = engine();
    run(
        &engine,
        &["BF.ADD bf a", "BF.ADD bf b", "BF.ADD bf c", "BF.ADD bf a", "BF.MADD bf a b", "BF.MADD bf a d"],
    );
    assert_eq!(engine.totals().changes, 4);
    run(
        &engine,
        &["CF.ADDNX cf a", "CF.ADDNX cf a", "CF.DEL cf b", "CF.DEL cf a", "DEL none", "MF.CLEAR none"],
    );
    assert_eq!(engine.totals().changes, 6);
    run(&engine, &["BF.EXISTS bf a", "BF.RESERVE bf 0.01 100", "EXPIRE none 5", "DEL bf"]);
    assert_eq!(engine.totals().changes, 7);
}
