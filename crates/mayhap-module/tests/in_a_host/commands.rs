//! The host's description of the commands is that of the table.

use mayhap_command::{Arity, Command, Family, table};
use mayhap_testkit::host::{Talk, Wire};

use crate::{hosts, version};

fn ours() -> impl Iterator<Item = &'static Command> {
    table::all().filter(|command| matches!(command.family, Family::Bloom | Family::Cuckoo | Family::Mayhap))
}

fn texts(wire: &Wire) -> Vec<String> {
    wire.list().iter().map(Wire::text).collect()
}

#[test]
fn command_info_of_the_host_matches_the_table() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        let has_categories = talk.ask("ACL CAT").list().iter().any(|category| category.text() == "mayhap");
        for command in ours() {
            let info = talk.must(&["COMMAND", "INFO", command.name]);
            let info = info.list()[0].list().to_vec();
            assert_eq!(info[0].text(), command.name);
            let arity = match command.arity {
                Arity::Exactly(words) => words as i64,
                Arity::AtLeast(words) => -(words as i64),
            };
            assert_eq!(info[1].integer(), arity, "{}", command.name);
            let flags = texts(&info[2]);
            assert!(flags.contains(&"module".to_owned()), "{}: {flags:?}", command.name);
            assert_eq!(flags.contains(&"write".to_owned()), command.changes(), "{}: {flags:?}", command.name);
            assert_eq!(flags.contains(&"denyoom".to_owned()), command.flags.deny_oom, "{}", command.name);
            assert_eq!(info[3].integer(), command.names.first as i64, "{}", command.name);
            if has_categories {
                let categories = texts(&info[6]);
                for category in command.categories() {
                    assert!(categories.contains(&format!("@{category}")), "{}: {categories:?}", command.name);
                }
                let is_reader = categories.contains(&"@read".to_owned());
                assert!(!(is_reader && command.changes()), "{}: {categories:?}", command.name);
                let is_ours = categories.contains(&"@mayhap".to_owned());
                assert!(!(command.tells_key() && (is_reader || is_ours)), "{}: {categories:?}", command.name);
            }
            let docs = talk.must(&["COMMAND", "DOCS", command.name]);
            let docs = docs.list()[1].list().to_vec();
            let field = |name: &str| {
                let at = docs.iter().position(|field| *field == Wire::Bulk(name.into()));
                at.map(|at| docs[at + 1].clone())
            };
            assert_eq!(field("summary").map(|text| text.text()), Some(command.summary.to_owned()));
            if !command.syntax.is_empty() {
                assert!(
                    field("arguments").is_some(),
                    "{}: the host did not take its arguments",
                    command.name
                );
            }
        }
        assert!(!host.log().contains("rejected the help"), "{}", host.log());
        let listed = talk.must(&["MODULE", "LIST"]);
        let names = |wire: &Wire| match wire {
            Wire::Array(fields) => fields.contains(&Wire::Bulk(b"mayhap".into())),
            _ => false,
        };
        assert!(listed.list().iter().any(names), "{listed:?}");
        println!("{}: {} commands", version(&mut talk), ours().count());
    }
}

/// Users who may only read, or only use certain names, can do nothing else.
#[test]
fn acl_permissions_are_enforced() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        talk.must(&["BF.ADD", "mine", "x"]);
        talk.must(&["BF.ADD", "others", "x"]);
        // Not every host has categories for the commands of modules.
        let rights = |is_right: fn(&Command) -> bool| {
            ours().filter(move |command| is_right(command)).map(|command| format!("+{}", command.name))
        };
        for (user, rights) in [
            ("reader", rights(|command| !command.changes()).collect::<Vec<_>>()),
            ("writer", rights(|_| true).collect()),
        ] {
            let words = ["ACL", "SETUSER", user, "on", "nopass", "~mine"].map(str::to_owned);
            talk.must(&words.into_iter().chain(rights).collect::<Vec<_>>());
        }
        let as_user = |user: &str| {
            let mut talk: Talk = host.talk();
            talk.must(&["AUTH", user, ""]);
            talk
        };
        let is_denied = |reply: &Wire| matches!(reply, Wire::Refused(text) if text.starts_with("NOPERM"));
        let mut reader = as_user("reader");
        assert_eq!(reader.ask("BF.EXISTS mine x").integer(), 1);
        for line in ["BF.ADD mine y", "BF.EXISTS others x", "MF.RESERVE mine2 CAPACITY 10", "CF.COMPACT mine"]
        {
            assert!(is_denied(&reader.ask(line)), "{line}");
        }
        let mut writer = as_user("writer");
        assert_eq!(writer.ask("BF.ADD mine y").integer(), 1);
        for line in ["BF.ADD others y", "MF.MERGE mine others", "MF.REDO mine 0  x BF.ADD mine z"] {
            assert!(is_denied(&writer.ask(line)), "{line}");
        }
        // By category, on hosts that have them for modules.
        if talk.ask("ACL CAT").list().iter().any(|category| category.text() == "mayhap") {
            let user = ["by-category", "on", "nopass", "~mine", "~cuckoo", "~keyed", "+@read", "+@mayhap"];
            talk.must(&[&["ACL", "SETUSER"][..], &user].concat());
            talk.must(&["CF.ADD", "cuckoo", "x"]);
            talk.must(&["MF.RESERVE", "keyed", "KIND", "bloom", "CAPACITY", "1000"]);
            let mut reader = as_user("by-category");
            assert_eq!(reader.ask("BF.EXISTS mine x").integer(), 1);
            assert_eq!(reader.ask("CF.EXISTS cuckoo x").integer(), 1);
            assert_eq!(reader.ask("MF.EXISTS keyed x").integer(), 0);
            let denied = [
                "BF.ADD mine y",
                "CF.COMPACT cuckoo",
                "MF.REDO mine 0  x BF.ADD mine z",
                "MF.EXPLAIN keyed x",
                "MF.DUMP keyed 0",
            ];
            for line in denied {
                assert!(is_denied(&reader.ask(line)), "{line}");
            }
            talk.must(&["ACL", "SETUSER", "by-category", "+@dump"]);
            for line in ["MF.EXPLAIN keyed x", "MF.DUMP keyed 0"] {
                assert!(!reader.ask(line).is_refused(), "{line}");
            }
        }
        // A user who may do everything, but only with some names, cannot use `MF.REDO` to reach other names.
        talk.must(&["MF.RESERVE", "{t}secret", "KIND", "bloom", "CAPACITY", "1000"]);
        talk.must(&["MF.ADD", "{t}secret", "x"]);
        talk.must(&["MF.RESERVE", "{t}app", "KIND", "bloom", "CAPACITY", "1000"]);
        talk.must(&["ACL", "SETUSER", "app", "on", "nopass", "+@all", "~{t}app"]);
        let mut app = as_user("app");
        for words in [
            &["MF.MERGE", "{t}app", "{t}secret"][..],
            &["MF.REDO", "{t}app", "1", "", "", "MF.MERGE", "{t}app", "{t}secret"],
            &["MF.REDO", "{t}app", "1", "", "", "mf.merge", "{t}app", "{t}secret"],
        ] {
            assert!(is_denied(&app.ask_words(words)), "{words:?}");
        }
        assert_eq!(app.ask_words(&["MF.REDO", "{t}app", "1", "", "", "MF.ADD", "{t}app", "y"]).integer(), 1);
    }
}
