//! `DEBUG RELOAD`: every value survives being stored and loaded.

mod support;

use mayhap_command::Reply;
use support::{engine, one, run};

#[test]
fn all_values_are_reloaded_and_answer_the_same() {
    let (engine, _) = engine();
    let made = [
        "BF.RESERVE bf 0.01 10",
        "CF.RESERVE cf 100",
        "MF.RESERVE list KIND bloom CAPACITY 1000",
        "MF.RESERVE window KIND window CAPACITY 1000",
        "MF.RESERVE building KIND cuckoo CAPACITY 1000",
        "MF.BUILD building BEGIN",
        "SET text ada",
        "EXPIRE bf 1000",
    ];
    for (line, reply) in made.iter().zip(run(&engine, &made)) {
        assert!(!matches!(reply, Reply::Refused(_)), "{line}: {reply:?}");
    }
    for item in 0..50 {
        for command in ["BF.ADD bf", "CF.ADD cf", "MF.ADD list", "MF.ADD window", "MF.ADD building"] {
            one(&engine, &format!("{command} item:{item}"));
        }
    }
    let asked = |engine: &_| {
        let mut lines: Vec<String> = Vec::new();
        for item in 0..200 {
            for command in
                ["BF.EXISTS bf", "CF.COUNT cf", "MF.EXISTS list", "MF.EXISTS window", "MF.EXISTS building"]
            {
                lines.push(format!("{command} item:{item}"));
            }
        }
        lines.extend(
            ["BF.INFO bf", "CF.INFO cf", "MF.INFO list fill", "MF.BUILD building INFO", "GET text"]
                .map(Into::into),
        );
        lines.extend(["TTL bf", "DBSIZE"].map(Into::into));
        lines.iter().map(|line| one(engine, line)).collect::<Vec<_>>()
    };
    let (before, totals) = (asked(&engine), engine.totals());
    assert_eq!(engine.reload(), Ok(6));
    assert_eq!(asked(&engine), before);
    let after = engine.totals();
    assert_eq!((after.names, after.items, after.changes), (totals.names, totals.items, totals.changes));
    assert_eq!(after.memory_bytes, engine.budget().used());
    assert_eq!(one(&engine, "MF.BUILD building COMMIT"), Reply::Integer(2));
    assert_eq!(one(&engine, "MF.EXISTS building item:49"), Reply::Boolean(true));
}
