//! No memory is allocated before it was admitted.

use mayhap_command::Reply;

use crate::keyspace::Keyspace;

fn refused(reply: Reply) -> String {
    match reply {
        Reply::Refused(refusal) => refusal.to_string(),
        Reply::Array(replies) => refused(replies.last().cloned().unwrap()),
        reply => panic!("{reply:?}"),
    }
}

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

#[test]
fn filters_above_the_limit_of_one_are_refused_with_redisblooms_text() {
    let mut keyspace = Keyspace::limited(10_000);
    let create = "ERR Insufficient memory to create filter";
    assert_eq!(refused(keyspace.line("BF.RESERVE b 0.01 1000000")), create);
    assert_eq!(refused(keyspace.line("CF.RESERVE c 1000000")), create);
    assert_eq!(refused(keyspace.line("BF.INSERT b CAPACITY 1000000 ITEMS a")), create);
    assert_eq!(
        refused(keyspace.line("BF.INSERT b VALIDATESCALETO 1000000 ITEMS a")),
        "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"
    );
    let items: String = (0..5_000).map(|item| format!(" {item}")).collect();
    assert_eq!(refused(keyspace.line(&format!("BF.MADD b{items}"))), "ERR problem inserting into filter");
    assert_eq!(refused(keyspace.line("BF.ADD b non-member")), "ERR problem inserting into filter");
    assert_eq!(keyspace.line("BF.ADD b 1"), Reply::Boolean(false));
    keyspace.line("CF.RESERVE c 4096");
    let reply = keyspace.line(&format!("CF.INSERT c ITEMS{items} {items}"));
    assert_eq!(refused(reply), "ERR Insufficient memory");
    assert!(keyspace.value("b").memory_bytes() <= 11_000 && keyspace.value("c").memory_bytes() <= 11_000);
}

#[test]
fn filters_above_the_limit_of_all_are_out_of_memory() {
    let mut keyspace = Keyspace::default();
    keyspace.budget.set_limit(20_000);
    assert_eq!(refused(keyspace.line("BF.RESERVE b 0.01 1000000")), OOM);
    assert_eq!(refused(keyspace.line("CF.RESERVE c 1000000")), OOM);
    let items: String = (0..20_000).map(|item| format!(" {item}")).collect();
    assert_eq!(refused(keyspace.line(&format!("BF.MADD b{items}"))), OOM);
    assert_eq!(refused(keyspace.line(&format!("CF.INSERT c ITEMS{items}"))), OOM);
    assert!(keyspace.budget.used() <= 20_000, "{}", keyspace.budget.used());
    // A header that announces more memory than there is: no filter is made.
    let mut other = Keyspace::default();
    other.line("BF.RESERVE big 0.01 1000000");
    let Reply::Array(dumped) = other.line("BF.SCANDUMP big 0") else { panic!("a dump") };
    let Reply::Bulk(header) = &dumped[1] else { panic!("a header") };
    assert_eq!(refused(keyspace.ask(&[b"BF.LOADCHUNK", b"big", b"1", header])), OOM);
}
