//! Tests that need no real Redis: memory and length limits. The engine's tests compare replies with a real Redis.

use crate::mf::stage::Stage;
use crate::reply::Reply;

#[test]
fn setbit_extends_the_string() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("SETBIT bits 7 1"), Reply::Integer(0));
    assert!(stage.changed);
    assert_eq!(stage.run("SETBIT bits 7 1"), Reply::Integer(1));
    assert!(!stage.changed, "nothing did");
    assert_eq!(stage.run("GET bits"), Reply::bulk([1]));
    assert_eq!(stage.run("GETBIT bits 4294967295"), Reply::Integer(0));
    assert_eq!(stage.run("BITPOS bits 1"), Reply::Integer(7));
    assert_eq!(stage.run("BITOP NOT other bits"), Reply::Integer(1));
    assert_eq!(stage.run("GET other"), Reply::bulk([0xfe]));
    // A string is not a filter: `BF.*` uses Redis's text, `MF.*` adds what the key holds.
    let wrong_type = stage.refused("BF.ADD bits x");
    assert_eq!(stage.refused("MF.ADD bits x"), wrong_type + ": it holds a string (use GET or GETBIT)");
    assert!(stage.refused("SETBIT bits 4294967296 1").contains("bit offset"));
    assert!(stage.refused("SETRANGE bits 536870912 x").contains("maximum allowed size"));
}

#[test]
fn memory_is_admitted_before_it_is_allocated() {
    let mut stage = Stage::new();
    stage.budget.set_limit(1 << 20);
    for line in ["SETBIT bits 4294967295 1", "SETRANGE bits 10000000 x", "BITFIELD bits SET u8 4294967288 1"]
    {
        assert!(stage.refused(line).starts_with("OOM "), "{line}");
        assert!(stage.values.is_empty() && stage.budget.used() == 0);
    }
    stage.limits.filter_bytes = 1000;
    assert!(stage.refused("SETBIT bits 80000 1").contains("may take 1000"));
    assert_eq!(stage.run("SETBIT bits 7999 1"), Reply::Integer(0));
    assert_eq!(stage.run("STRLEN bits"), Reply::Integer(1000));
    assert!(stage.refused("APPEND bits x").contains("may take 1000"));
    assert!(stage.budget.used() < 1_100);
}
