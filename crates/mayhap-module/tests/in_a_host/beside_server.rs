//! Sends the same requests to our server and to the module: the replies have the same bytes, in both
//! protocols.

use std::sync::Arc;

use mayhap_command::{Limits, parameters};
use mayhap_engine::{Engine, System};
use mayhap_server::{Running, Server, Settings};
use mayhap_testkit::host::{Talk, Wire};

use crate::workload::Workload;
use crate::{hosts, setting};

/// The number of requests in one history.
const REQUESTS: usize = 4_000;

pub(crate) fn server() -> (Running, u16) {
    let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
    let server = Server::start_with(Settings { port: Some(0), workers: 1, ..Settings::default() }, engine);
    let server = server.unwrap();
    let port = server.addresses()[0].port();
    (server, port)
}

/// Removes the parts of a reply that depend on the clock. Hosts print different numbers of digits, so numbers
/// are compared as numbers.
fn comparable(reply: Wire) -> Wire {
    match reply {
        Wire::Double(number) => {
            Wire::Double(number.parse::<f64>().map_or(number, |number| format!("{number:e}")))
        }
        Wire::Map(pairs) => {
            let timeless = pairs.into_iter().filter(|(name, _)| *name != Wire::Bulk(b"age_secs".into()));
            Wire::Map(timeless.map(|(name, value)| (name, comparable(value))).collect())
        }
        Wire::Array(list) => {
            let mut list: Vec<Wire> = list.into_iter().map(comparable).collect();
            if let Some(at) = list.iter().position(|name| *name == Wire::Bulk(b"age_secs".into())) {
                list.drain(at..at + 2);
            }
            Wire::Array(list)
        }
        other => other,
    }
}

/// Whether a reply is compared by its meaning and not byte by byte.
fn has_time_or_fractions(words: &[String]) -> bool {
    ["mf.info", "mf.plan", "mf.explain"].iter().any(|name| words[0].eq_ignore_ascii_case(name))
}

#[test]
fn the_module_answers_as_our_server_does() {
    for host in hosts(&[]) {
        for (seed, protocol) in [(1, 2), (2, 3), (3, 2), (4, 3)] {
            let (server, port) = server();
            let mut ours = Talk::connect(port).unwrap();
            let mut theirs = host.talk();
            theirs.must(&["FLUSHALL"]);
            for talk in [&mut ours, &mut theirs] {
                talk.must(&["HELLO", &protocol.to_string()]);
                // The second half of the histories uses features that RedisBloom does not have.
                if seed > 2 {
                    for (name, value) in [("bf-growth", "compact"), ("cf-eviction", "thorough")] {
                        assert!(parameters::find(name.as_bytes()).is_some());
                        let name = setting(talk, name);
                        talk.must(&["CONFIG", "SET", &name, value]);
                    }
                }
            }
            let (mut refused, mut answered) = (0, 0);
            for words in Workload::new(seed, true).take(REQUESTS) {
                if has_time_or_fractions(&words) {
                    let (due, got) = (ours.ask_words(&words), theirs.ask_words(&words));
                    assert_eq!(comparable(got), comparable(due), "{words:?}");
                    continue;
                }
                let (due, got) = (ours.raw(&words), theirs.raw(&words));
                assert_eq!(
                    got.escape_ascii().to_string(),
                    due.escape_ascii().to_string(),
                    "seed {seed}, RESP{protocol}: {}",
                    words.join(" ")
                );
                *(if got.starts_with(b"-") { &mut refused } else { &mut answered }) += 1;
            }
            assert!(
                answered > REQUESTS / 2 && refused > REQUESTS / 50,
                "{answered} answered, {refused} refused"
            );
            for (name, value) in [("bf-growth", "redisbloom"), ("cf-eviction", "redisbloom")] {
                let name = setting(&mut theirs, name);
                theirs.must(&["CONFIG", "SET", &name, value]);
            }
            drop(server);
        }
    }
}
