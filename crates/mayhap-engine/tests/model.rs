//! Random operations against a plain map, including expiry with a clock that the test controls.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mayhap_command::{Reply, Request, Scratch, table};
use mayhap_engine::Engine;
use support::{Dice, FixedClock, engine, one, text};

const NAMES: u64 = 24;
const ITEMS: u64 = 40;
const STEPS: u64 = 20_000;

#[derive(Clone, Debug, PartialEq)]
struct Held {
    type_name: &'static str,
    items: BTreeSet<u64>,
    deadline: Option<u64>,
}

struct Model {
    names: BTreeMap<String, Held>,
    now: u64,
}

impl Model {
    fn expire(&mut self) {
        let now = self.now;
        self.names.retain(|_, held| held.deadline.is_none_or(|deadline| deadline > now));
    }

    /// The reply of `EXPIRE` and related commands.
    fn set_deadline(&mut self, name: &str, deadline: u64, condition: &str) -> i64 {
        let now = self.now;
        let Some(held) = self.names.get_mut(name) else { return 0 };
        let admitted = match condition {
            " NX" => held.deadline.is_none(),
            " XX" => held.deadline.is_some(),
            " GT" => held.deadline.is_some_and(|current| deadline > current),
            " LT" => held.deadline.is_none_or(|current| deadline < current),
            _ => true,
        };
        if admitted {
            held.deadline = Some(deadline);
            if deadline <= now {
                self.names.remove(name);
            }
        }
        i64::from(admitted)
    }
}

fn integer(reply: &Reply) -> i64 {
    match reply {
        Reply::Integer(number) => *number,
        Reply::Boolean(boolean) => i64::from(*boolean),
        reply => panic!("{}", text(reply)),
    }
}

fn scan(engine: &Engine, rest: &str) -> Vec<String> {
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let reply = one(engine, &format!("SCAN {cursor}{rest}"));
        let Reply::Array(parts) = &reply else { panic!("{}", text(&reply)) };
        let [Reply::Bulk(next), Reply::Array(names)] = &parts[..] else { panic!("{reply:?}") };
        found.extend(names.iter().map(bulk));
        cursor = String::from_utf8(next.clone()).unwrap();
        if cursor == "0" {
            found.sort_unstable();
            return found;
        }
    }
}

fn bulk(reply: &Reply) -> String {
    let Reply::Bulk(bytes) = reply else { panic!("{reply:?}") };
    String::from_utf8(bytes.clone()).unwrap()
}

fn ask_bytes(engine: &Engine, words: &[&[u8]]) -> Reply {
    let request = Request { command: table::find(words[0]).unwrap(), words };
    let mut replies = Vec::new();
    engine.execute(&[request], &mut Scratch::default(), &mut replies);
    replies.remove(0)
}

/// Checks the totals of the engine against a fresh count.
fn check_books(engine: &Engine, model: &Model) {
    engine.sweep(Duration::from_secs(60));
    let page = engine.page(0, u64::MAX, None);
    assert_eq!(page.next, 0);
    let totals = engine.totals();
    assert_eq!(totals.memory_bytes, page.details.iter().map(|detail| detail.total_bytes).sum::<u64>());
    assert_eq!(totals.by_type.iter().map(|of| of.memory_bytes).sum::<u64>(), totals.memory_bytes);
    assert_eq!(totals.names, model.names.len() as u64);
    assert_eq!(totals.expiring, model.names.values().filter(|held| held.deadline.is_some()).count() as u64);
    assert_eq!(totals.items, page.details.iter().map(|detail| detail.description.items).sum::<u64>());
    for detail in &page.details {
        let name = String::from_utf8(detail.name.clone()).unwrap();
        let held = &model.names[&name];
        assert_eq!(detail.description.items, held.items.len() as u64, "{name}");
        assert_eq!(detail.ttl_ms, held.deadline.map(|deadline| deadline - model.now), "{name}");
        assert_eq!(detail.description.type_name, held.type_name);
    }
    for of in &totals.by_type {
        let names = model.names.values().filter(|held| held.type_name == of.type_name).count();
        assert_eq!(of.names, names as u64, "{}", of.type_name);
    }
}

fn step(engine: &Engine, clock: &FixedClock, model: &mut Model, dice: &mut Dice) {
    let name = format!("name:{}", dice.below(NAMES));
    let other = format!("name:{}", dice.below(NAMES));
    let item = dice.below(ITEMS);
    let family = ["BF", "CF"][dice.below(2) as usize];
    let type_name = if family == "BF" { "MBbloom--" } else { "MBbloomCF" };
    match dice.below(22) {
        0..4 => {
            let line = match family {
                "BF" => format!("BF.ADD {name} {item}"),
                _ => format!("CF.ADDNX {name} {item}"),
            };
            let reply = one(engine, &line);
            match model.names.get(&name) {
                Some(held) if held.type_name != type_name => {
                    assert!(text(&reply).starts_with("WRONGTYPE"), "{line}: {}", text(&reply));
                    return;
                }
                Some(_) => {}
                None => {
                    let held = Held { type_name, items: BTreeSet::new(), deadline: None };
                    model.names.insert(name.clone(), held);
                }
            }
            let new = model.names.get_mut(&name).unwrap().items.insert(item);
            assert_eq!(integer(&reply), i64::from(new), "{line}");
        }
        4..6 => {
            let expected = model
                .names
                .get(&name)
                .is_some_and(|held| held.type_name == type_name && held.items.contains(&item));
            let reply = one(engine, &format!("{family}.EXISTS {name} {item}"));
            assert_eq!(integer(&reply), i64::from(expected));
        }
        6 => {
            let expected = [&name, &other, &name].into_iter().filter(|name| model.names.contains_key(*name));
            let expected = expected.count() as i64;
            let verb = ["EXISTS", "TOUCH"][dice.below(2) as usize];
            assert_eq!(one(engine, &format!("{verb} {name} {other} {name}")), Reply::Integer(expected));
        }
        7 => {
            let mut removed = i64::from(model.names.remove(&name).is_some());
            removed += i64::from(model.names.remove(&other).is_some());
            let verb = ["DEL", "UNLINK"][dice.below(2) as usize];
            assert_eq!(one(engine, &format!("{verb} {name} {other}")), Reply::Integer(removed));
        }
        8 => {
            let expected = model.names.get(&name).map_or("none", |held| held.type_name);
            assert_eq!(one(engine, &format!("TYPE {name}")), Reply::simple(expected));
        }
        9 => {
            let reply = one(engine, &format!("RENAME {name} {other}"));
            match model.names.remove(&name) {
                None => assert_eq!(text(&reply), "ERR no such key"),
                Some(held) => {
                    assert_eq!(reply, Reply::Ok);
                    model.names.insert(other, held);
                }
            }
        }
        10 => {
            let reply = one(engine, &format!("RENAMENX {name} {other}"));
            if !model.names.contains_key(&name) {
                assert_eq!(text(&reply), "ERR no such key");
            } else if model.names.contains_key(&other) {
                assert_eq!(reply, Reply::Integer(0));
            } else {
                assert_eq!(reply, Reply::Integer(1));
                let held = model.names.remove(&name).unwrap();
                model.names.insert(other, held);
            }
        }
        11 => {
            let replace = dice.below(2) == 1;
            let line = format!("COPY {name} {other}{}", if replace { " REPLACE" } else { "" });
            let reply = one(engine, &line);
            if name == other {
                assert_eq!(text(&reply), "ERR source and destination objects are the same");
                return;
            }
            let copied = model.names.contains_key(&name) && (replace || !model.names.contains_key(&other));
            assert_eq!(reply, Reply::Integer(i64::from(copied)), "{line}");
            if copied {
                model.names.insert(other, model.names[&name].clone());
            }
        }
        12..15 => {
            let (verb, unit, from_now) = [
                ("EXPIRE", 1_000, true),
                ("PEXPIRE", 1, true),
                ("EXPIREAT", 1_000, false),
                ("PEXPIREAT", 1, false),
            ][dice.below(4) as usize];
            let condition = ["", "", " NX", " XX", " GT", " LT"][dice.below(6) as usize];
            let ahead = dice.below(5_000) as i64 - 300;
            let given = match from_now {
                true => ahead / unit,
                false => (model.now as i64 + ahead) / unit,
            };
            let deadline = given * unit + if from_now { model.now as i64 } else { 0 };
            let line = format!("{verb} {name} {given}{condition}");
            let expected = model.set_deadline(&name, deadline as u64, condition);
            assert_eq!(one(engine, &line), Reply::Integer(expected), "{line}");
        }
        15 => {
            let held = model.names.get(&name);
            let expected = |moment: &dyn Fn(u64) -> u64| match held {
                None => -2,
                Some(Held { deadline: None, .. }) => -1,
                Some(Held { deadline: Some(deadline), .. }) => moment(*deadline) as i64,
            };
            let now = model.now;
            for (verb, expected) in [
                ("TTL", expected(&|deadline| (deadline - now + 500) / 1_000)),
                ("PTTL", expected(&|deadline| deadline - now)),
                ("EXPIRETIME", expected(&|deadline| (deadline + 500) / 1_000)),
                ("PEXPIRETIME", expected(&|deadline| deadline)),
            ] {
                assert_eq!(one(engine, &format!("{verb} {name}")), Reply::Integer(expected), "{verb}");
            }
        }
        16 => {
            let persisted = model.names.get_mut(&name).is_some_and(|held| held.deadline.take().is_some());
            assert_eq!(one(engine, &format!("PERSIST {name}")), Reply::Integer(i64::from(persisted)));
        }
        17 => {
            let all: Vec<String> = model.names.keys().cloned().collect();
            assert_eq!(scan(engine, ""), all);
            assert_eq!(scan(engine, " COUNT 3 MATCH name:1*"), some(&all, |name| name.starts_with("name:1")));
            let cuckoos = some(&all, |name| model.names[name].type_name == "MBbloomCF");
            assert_eq!(scan(engine, " TYPE mbbloomcf"), cuckoos);
            let Reply::Array(listed) = one(engine, "KEYS name:[0-9]") else { panic!("no list") };
            let mut listed: Vec<String> = listed.iter().map(bulk).collect();
            listed.sort_unstable();
            assert_eq!(listed, some(&all, |name| name.len() == 6));
            match one(engine, "RANDOMKEY") {
                Reply::Null => assert!(all.is_empty()),
                reply => assert!(all.contains(&bulk(&reply))),
            }
        }
        18 => {
            let ms = dice.below(2_000);
            clock.pass(ms);
            model.now += ms;
            model.expire();
        }
        19 => {
            let reply = one(engine, &format!("DUMP {name}"));
            let Some(held) = model.names.get(&name).cloned() else { return assert_eq!(reply, Reply::Null) };
            let Reply::Bulk(payload) = reply else { panic!("{}", text(&reply)) };
            let reply = ask_bytes(engine, &[b"RESTORE", other.as_bytes(), b"700", &payload]);
            if model.names.contains_key(&other) {
                return assert_eq!(text(&reply), "BUSYKEY Target key name already exists.");
            }
            assert_eq!(reply, Reply::Ok);
            model.names.insert(other, Held { deadline: Some(model.now + 700), ..held });
        }
        20 => assert!(!engine.sweep(Duration::from_secs(60))),
        _ if dice.below(50) == 0 => {
            assert_eq!(one(engine, "FLUSHALL"), Reply::Ok);
            model.names.clear();
        }
        _ => check_books(engine, model),
    }
}

fn some(names: &[String], wanted: impl Fn(&String) -> bool) -> Vec<String> {
    names.iter().filter(|name| wanted(name)).cloned().collect()
}

#[test]
fn random_operations_answer_as_a_plain_map_and_the_totals_are_right() {
    for seed in [1, 2, 3] {
        let (engine, clock) = engine();
        // A rate so low that there are no false positives.
        engine.set_parameters(|parameters| parameters.bf_error_rate = 1e-9);
        let mut model = Model { names: BTreeMap::new(), now: 1_700_000_000_000 };
        let mut dice = Dice(seed);
        for _ in 0..STEPS {
            step(&engine, &clock, &mut model, &mut dice);
        }
        check_books(&engine, &model);
        assert!(engine.totals().expired > 100, "hardly anything expired");
    }
}
