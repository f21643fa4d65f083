//! Runs the scripts with RedisBloom's raw replies in both protocols: the same that our server passes.

use mayhap_testkit::flow;
use mayhap_testkit::host::Talk;
use mayhap_testkit::script::{self, Action};

use crate::{hosts, setting};

const SCRIPTS: [(&str, &str); 2] = [
    ("bf.txt", include_str!("../../../mayhap-command/tests/script/bf.txt")),
    ("cf.txt", include_str!("../../../mayhap-command/tests/script/cf.txt")),
];

/// Resets our settings to their defaults.
fn forget(talk: &mut Talk) {
    talk.must(&["FLUSHALL"]);
    // Limits depend on each other: the ones that widen them come first, and all are set twice.
    for _ in 0..2 {
        for parameter in mayhap_command::parameters::ALL {
            let name = setting(talk, parameter.name);
            talk.ask_words(&["CONFIG", "SET", &name, parameter.default]);
        }
    }
}

#[test]
fn the_module_answers_as_redis_bloom_does() {
    for host in hosts(&[]) {
        for (file, text) in SCRIPTS {
            let steps = script::parse(text).unwrap();
            for protocol in [2, 3] {
                let mut talk = host.talk();
                talk.must(&["HELLO", &protocol.to_string()]);
                forget(&mut talk);
                for step in &steps {
                    match &step.action {
                        Action::Forget => forget(&mut talk),
                        Action::Set { name, value } => {
                            let name = setting(&mut talk, name);
                            talk.must(&["CONFIG", "SET", &name, value]);
                        }
                        Action::Ask { words, resp2, resp3 } => {
                            let (due, got) = (if protocol == 2 { resp2 } else { resp3 }, talk.raw(words));
                            assert_eq!(
                                got.escape_ascii().to_string(),
                                due.escape_ascii().to_string(),
                                "{file}:{}, RESP{protocol}",
                                step.line
                            );
                        }
                    }
                }
            }
        }
    }
}

/// RedisBloom's own test cases that need loops; our server runs the same.
#[test]
fn the_module_passes_the_tests_of_redis_bloom() {
    for host in hosts(&[]) {
        let done = flow::run_all(|| host.talk(), true, forget);
        assert_eq!(done, 2 * flow::cases().count());
    }
}
