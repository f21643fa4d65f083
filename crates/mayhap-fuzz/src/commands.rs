//! Requests to the engine, compared with an exact model: a `no` for a member is always wrong, whatever happened since it was added.
//!
//! ```text
//! bytes ─▶ steps: make, add, ask, remove, rename, copy, dump and load, save and load, expire │ any command with any words
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use mayhap_command::{Command, Reply, Run, table};
use mayhap_engine::{Engine, snapshot};

use crate::input::Input;
use crate::requests::{self, Word};
use crate::test_engine::{self, CERTAIN_KINDS, Fixed, Memory, is_refused};

/// The names that the model tracks.
const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
/// Names without a model; random commands use them.
const WILD: [&[u8]; 3] = [b"x", b"y", b"z"];
const ITEMS: [&[u8]; 12] = [
    b"",
    b"0",
    b"1",
    b"two",
    b"three",
    b"\xff\0",
    b"a\r\nb",
    b"7",
    b"8",
    b"9",
    b"ten",
    b"a longer item, of some blocks",
];
/// The number of steps in a run.
const MOST_STEPS: usize = 200;

/// Arguments of `BF.RESERVE` after the name.
const BLOOMS: [&str; 6] = [
    "0.01 100",
    "0.01 1 expansion 1",
    "0.5 2 expansion 4",
    "0.001 4 nonscaling",
    "0.0001 3 expansion 2",
    "0.999 1 expansion 2",
];
/// Arguments of `CF.RESERVE` after the name.
const CUCKOOS: [&str; 5] = [
    "100",
    "2 bucketsize 1 expansion 1",
    "4 bucketsize 2 expansion 2",
    "8 bucketsize 4 maxiterations 1 expansion 0",
    "16 bucketsize 8",
];
/// Arguments of `MF.RESERVE` after the name that let the server choose the kind; [`CERTAIN_KINDS`] name the kinds.
const NEEDS: [&str; 4] =
    ["capacity 100", "capacity 100 deletes", "capacity 10 grows", "capacity 1000000 fpr 0.01 keyless"];

/// The contents of a name, as far as the model tracks them.
#[derive(Clone, Debug)]
struct Held {
    family: Family,
    /// Items and their number of copies.
    items: BTreeMap<usize, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Bloom,
    Cuckoo,
    Mayhap,
}

impl Family {
    fn command(self, what: &str) -> Vec<u8> {
        let prefix = match self {
            Self::Bloom => "bf.",
            Self::Cuckoo => "cf.",
            Self::Mayhap => "mf.",
        };
        format!("{prefix}{what}").into_bytes()
    }
}

/// A command and all forms of its arguments.
type Shapes = (&'static Command, Vec<Vec<Word>>);

/// All commands of the engine, except those that remove everything, and the forms of their arguments.
static SHAPES: LazyLock<Vec<Shapes>> = LazyLock::new(|| {
    let runs = |command: &&Command| {
        !matches!(command.run, Run::Server(_)) && !["flushall", "flushdb"].contains(&command.name)
    };
    table::all().filter(runs).map(|command| (command, requests::shapes(command))).collect()
});

struct Model {
    engine: Engine,
    clock: Arc<Fixed>,
    held: BTreeMap<&'static [u8], Held>,
}

impl Model {
    fn ask(&self, words: &[&[u8]]) -> Reply {
        test_engine::ask(&self.engine, words)
            .unwrap_or_else(|| panic!("not a request of the engine: {words:?}"))
    }

    /// Sends a line of words, with a name inserted after the first.
    fn line(&self, command: &str, name: &[u8], rest: &str) -> Reply {
        let mut words = vec![command.as_bytes(), name];
        words.extend(rest.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes));
        self.ask(&words)
    }

    fn make(&mut self, name: &'static [u8], family: Family, reply: &Reply) {
        if !is_refused(reply) {
            self.held.insert(name, Held { family, items: BTreeMap::new() });
        }
    }

    /// Checks that every member is found, by every command that can look it up.
    fn check(&self, name: &[u8]) {
        let Some(Held { family, items }) = self.held.get(name) else { return };
        let exists = family.command("exists");
        for (&item, &copies) in items.iter().filter(|(_, copies)| **copies > 0) {
            let answer = self.ask(&[&exists, name, ITEMS[item]]);
            assert_eq!(answer, Reply::Boolean(true), "{family:?}: item {item} has {copies} copies");
        }
        let mut many: Vec<&[u8]> = vec![];
        let exists = family.command("mexists");
        many.extend([&exists[..], name]);
        let there: Vec<usize> = items.iter().filter(|(_, n)| **n > 0).map(|(item, _)| *item).collect();
        if there.is_empty() {
            return;
        }
        many.extend(there.iter().map(|&item| ITEMS[item]));
        match self.ask(&many) {
            Reply::Array(answers) => assert!(answers.iter().all(|answer| *answer == Reply::Boolean(true))),
            Reply::Booleans(answers) => assert_eq!(answers.count_ones(), there.len()),
            other => panic!("{family:?}: {other:?}"),
        }
        if *family == Family::Cuckoo {
            for &item in &there {
                let count = self.ask(&[b"cf.count", name, ITEMS[item]]);
                assert!(matches!(count, Reply::Integer(n) if n as u64 >= items[&item]), "{count:?}");
            }
        }
    }

    fn add(&mut self, name: &'static [u8], family: Family, command: &[u8], items: &[usize]) {
        let mut words = vec![command, name];
        words.extend(items.iter().map(|&item| ITEMS[item]));
        let replies = match self.ask(&words) {
            Reply::Array(replies) => replies,
            Reply::Booleans(answers) => {
                (0..items.len()).map(|i| Reply::Boolean(answers.get(i).unwrap_or(false))).collect()
            }
            reply => vec![reply],
        };
        let is_new = !self.held.contains_key(name);
        if is_new && replies.iter().all(is_refused) {
            // It is unknown whether a filter was created; if so, it is empty.
            self.ask(&[b"del", name]);
            return;
        }
        let held = self.held.entry(name).or_insert(Held { family, items: BTreeMap::new() });
        if held.family != family {
            assert!(replies.iter().all(is_refused), "{family:?} on {:?}: {replies:?}", held.family);
            return;
        }
        for (item, reply) in items.iter().zip(&replies) {
            let stored = match (reply, command) {
                (Reply::Refused(_), _) => false,
                // An item that may have been a member already is not added again.
                (Reply::Boolean(new), b"cf.addnx") => *new,
                _ => true,
            };
            if stored {
                *held.items.entry(*item).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, name: &'static [u8], item: usize) {
        let Some(Held { family, items }) = self.held.get_mut(name) else { return };
        let Some(copies) = items.get_mut(&item).filter(|copies| **copies > 0) else { return };
        let family = *family;
        if family == Family::Bloom {
            return;
        }
        let command = family.command("del");
        let reply = test_engine::ask(&self.engine, &[&command, name, ITEMS[item]]);
        match reply {
            Some(Reply::Boolean(true)) => *copies -= 1,
            Some(Reply::Refused(_)) if family == Family::Mayhap => {}
            other => panic!("{family:?}: item {item} has {copies} copies, but was not removed: {other:?}"),
        }
    }

    /// Loads the contents of `from` under another name.
    fn transfer(&mut self, from: &'static [u8], to: &'static [u8], by_dump: bool) {
        let Some(held) = self.held.get(from).cloned() else { return };
        if from == to {
            return;
        }
        let loaded = if by_dump && held.family != Family::Mayhap {
            let Reply::Bulk(payload) = self.ask(&[b"dump", from]) else { panic!("no dump") };
            !is_refused(&self.ask(&[b"restore", to, b"0", &payload, b"replace"]))
        } else {
            self.ask(&[b"del", to]);
            self.held.remove(to);
            self.load_pieces(&held, from, to)
        };
        match loaded {
            true => drop(self.held.insert(to, held)),
            // A half-loaded filter disturbs nothing.
            false if !by_dump => drop(self.ask(&[b"del", to])),
            false => {}
        }
    }

    fn load_pieces(&self, held: &Held, from: &[u8], to: &[u8]) -> bool {
        let (dump, load) = match held.family {
            Family::Mayhap => ("dump", "load"),
            _ => ("scandump", "loadchunk"),
        };
        let (dump, load) = (held.family.command(dump), held.family.command(load));
        let (mut iterator, mut pieces) = (0, 0);
        loop {
            let asked = iterator.to_string();
            let reply = self.ask(&[&dump, from, asked.as_bytes()]);
            let Reply::Array(parts) = &reply else { return false };
            let (next, piece) = match &parts[..] {
                [Reply::Integer(next), Reply::Bulk(piece)] => (next, piece),
                [Reply::Integer(0), Reply::Null] => return pieces > 0,
                _ => panic!("not a piece: {reply:?}"),
            };
            iterator = *next;
            if iterator == 0 && piece.is_empty() {
                return pieces > 0;
            }
            let with = if held.family == Family::Mayhap { asked } else { next.to_string() };
            if is_refused(&self.ask(&[&load, to, with.as_bytes(), piece])) {
                return false;
            }
            pieces += 1;
            if iterator == 0 {
                return true;
            }
        }
    }

    /// Saves everything, and continues with another engine that loads it.
    fn restart(&mut self) {
        let disk = Memory::default();
        snapshot::save(&self.engine, &disk).expect("saving to memory succeeds");
        let (engine, clock) = test_engine::engine();
        snapshot::load(&engine, &disk).expect("a saved snapshot can be loaded");
        (self.engine, self.clock) = (engine, clock);
    }

    /// Sends any command, with valid or invalid words, for names without a model.
    fn anything(&self, input: &mut Input<'_>) {
        let (command, shapes) = &SHAPES[usize::from(input.byte()) % SHAPES.len()];
        let shape = input.of(shapes);
        let mut words: Vec<Vec<u8>> = vec![command.name.as_bytes().to_vec()];
        for word in shape {
            words.push(match word {
                Word::Token(token) => token.clone().into_bytes(),
                Word::Name => input.of(&WILD).to_vec(),
                Word::Value(value) => match input.byte() {
                    0..100 => requests::sensible(value).to_vec(),
                    n @ 100..140 => requests::INTEGERS[usize::from(n) % requests::INTEGERS.len()].into(),
                    n @ 140..180 => requests::FRACTIONS[usize::from(n) % requests::FRACTIONS.len()].into(),
                    n @ 180..200 => u32::from(n - 180).to_string().into_bytes(),
                    n @ 200..220 => ITEMS[usize::from(n) % ITEMS.len()].to_vec(),
                    _ => input.string().to_vec(),
                },
            });
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        test_engine::ask(&self.engine, &words);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let how = input.byte();
        let name = NAMES[input.below(NAMES.len())];
        let other = NAMES[usize::from(how >> 5) % NAMES.len()];
        let item = |input: &mut Input<'_>| input.below(ITEMS.len());
        match how % 24 {
            0 => {
                let reply = self.line("bf.reserve", name, BLOOMS[input.below(BLOOMS.len())]);
                self.make(name, Family::Bloom, &reply);
            }
            1 => {
                let reply = self.line("cf.reserve", name, CUCKOOS[input.below(CUCKOOS.len())]);
                self.make(name, Family::Cuckoo, &reply);
            }
            2 | 3 => {
                let number = input.below(NEEDS.len() + CERTAIN_KINDS.len());
                let made = NEEDS.iter().chain(&CERTAIN_KINDS).nth(number).copied().unwrap_or_default();
                let reply = self.line("mf.reserve", name, made);
                self.make(name, Family::Mayhap, &reply);
            }
            4 | 5 => self.add(name, Family::Bloom, b"bf.add", &[item(input)]),
            6 => self.add(name, Family::Bloom, b"bf.madd", &[item(input), item(input), item(input)]),
            7 | 8 => self.add(name, Family::Cuckoo, b"cf.add", &[item(input)]),
            9 => self.add(name, Family::Cuckoo, b"cf.addnx", &[item(input)]),
            10 | 11 => self.add(name, Family::Mayhap, b"mf.add", &[item(input)]),
            12 => self.add(name, Family::Mayhap, b"mf.madd", &[item(input), item(input), item(input)]),
            13 => {
                let item = item(input);
                self.remove(name, item);
            }
            14 => self.check(name),
            15 => {
                if name != other && self.ask(&[b"rename", name, other]) == Reply::Ok {
                    match self.held.remove(name) {
                        Some(held) => self.held.insert(other, held),
                        None => self.held.remove(other),
                    };
                }
            }
            16 => {
                let copied = self.ask(&[b"copy", name, other, b"replace"]);
                if let (Reply::Integer(1) | Reply::Boolean(true), Some(held)) =
                    (copied, self.held.get(name).cloned())
                {
                    self.held.insert(other, held);
                }
            }
            17 => {
                self.ask(&[b"del", name]);
                self.held.remove(name);
            }
            18 => self.transfer(name, other, true),
            19 => self.transfer(name, other, false),
            20 => self.restart(),
            21 => {
                let reply = self.ask(&[b"pexpire", name, b"1000"]);
                self.clock.advance(1_001);
                assert_eq!(self.ask(&[b"exists", name]), Reply::Integer(0), "{reply:?}");
                self.held.remove(name);
            }
            22 => match input.below(3) {
                0 => {
                    if !is_refused(&self.ask(&[b"mf.clear", name]))
                        && let Some(held) = self.held.get_mut(name)
                    {
                        held.items.clear();
                    }
                }
                1 => drop(self.ask(&[b"cf.compact", name])),
                _ => {
                    let merged = self.ask(&[b"mf.merge", name, other]);
                    if merged == Reply::Ok && name != other {
                        let held = self.held[other].clone();
                        let target = self
                            .held
                            .entry(name)
                            .or_insert(Held { family: held.family, items: BTreeMap::new() });
                        for (item, copies) in held.items {
                            // The number of copies afterwards depends on the kind.
                            let copies = u64::from(copies > 0);
                            let there = target.items.entry(item).or_default();
                            *there = (*there).max(copies);
                        }
                    }
                }
            },
            _ => self.anything(input),
        }
    }
}

/// Runs the target; the bytes are steps.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (engine, clock) = test_engine::engine();
    let mut model = Model { engine, clock, held: BTreeMap::new() };
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        model.step(&mut input);
    }
    NAMES.iter().for_each(|name| model.check(name));
    let used = model.engine.budget().used();
    assert!(used <= 2 * test_engine::ALL_BYTES, "{used} bytes in use");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model_with_an_item() -> Model {
        let (engine, clock) = test_engine::engine();
        let mut model = Model { engine, clock, held: BTreeMap::new() };
        model.add(NAMES[0], Family::Bloom, b"bf.add", &[3]);
        model.check(NAMES[0]);
        model
    }

    #[test]
    #[should_panic(expected = "Bloom: item 3 has 1 copies")]
    fn a_lost_item_is_detected() {
        let model = model_with_an_item();
        model.ask(&[b"del", NAMES[0]]);
        model.ask(&[b"bf.add", NAMES[0], b"another"]);
        model.check(NAMES[0]);
    }

    #[test]
    fn items_survive_saving_and_loading() {
        let mut model = model_with_an_item();
        model.restart();
        model.transfer(NAMES[0], NAMES[1], true);
        model.transfer(NAMES[0], NAMES[2], false);
        for name in NAMES {
            assert!(model.held.contains_key(name));
            model.check(name);
        }
    }
}
