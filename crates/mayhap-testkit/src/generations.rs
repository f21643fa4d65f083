//! Random histories of `MF` names whose generations change, compared with a model of their members: no acknowledged member is ever answered *no*.
//!
//! A history is about one name of one kind, and others of the same kind and key that it is merged with and loaded from. [`Server`] stands for the system
//! under test: the commands alone, an engine with its log, or a host with a replica.

use std::collections::BTreeMap;

use crate::host::Wire;
use crate::rng::{Rng, mix};

/// The system that answers requests.
pub trait Server {
    /// Returns the reply to one request.
    fn ask(&mut self, words: &[Vec<u8>]) -> Wire;

    /// Restarts from the stored data. `crash`: without a clean shutdown.
    fn restart(&mut self, crash: bool);
}

/// Every kind, with room for all items of a history, and some that are too small for all of them.
pub const KINDS: &[&str] = &[
    "KIND bloom CAPACITY 400",
    "KIND bloom CAPACITY 60000",
    "KIND blocked-bloom CAPACITY 60000",
    "KIND scalable-bloom CAPACITY 20",
    "KIND counting-bloom CAPACITY 400",
    "KIND dual-bloom CAPACITY 400",
    "KIND dleft CAPACITY 600",
    "KIND cuckoo CAPACITY 600",
    "KIND cuckoo CAPACITY 30",
    "KIND growable-cuckoo CAPACITY 20 MAX 4000",
    "KIND quotient CAPACITY 600",
    "KIND quotient CAPACITY 40",
    "KIND growing CAPACITY 20",
    "KIND scalable-cuckoo CAPACITY 20",
    "KIND fingerprints",
    "KIND fingerprints MEMORY 2000",
    "KIND window WINDOW 100000",
    "KIND window SECONDS 100000 CAPACITY 1000",
    "KIND bitmap RANGE 0 299",
    "KIND bitmap RANGE 50 200",
    "KIND xor",
    "KIND fuse8",
    "KIND ribbon",
    "KIND gcs",
];

/// Items are numbers below this one, so that bitmaps accept them.
const ITEMS: u64 = 300;
const NAMES: [&str; 3] = ["name", "other", "third"];

/// The number of copies of each member.
type Members = BTreeMap<u64, u64>;

/// The model of one name.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The serving generation, with its kind; `None` if there is none.
    serving: Option<(String, Members)>,
    /// The generation that is being built.
    building: Option<Members>,
}

/// Statistics of a history, so that a test can check that it was not trivial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Commits of a build during which items were added to the serving generation.
    pub commits: u64,
    /// Builds that could not accept the items added during the build.
    pub refused: u64,
    /// Members that were looked up.
    pub asked: u64,
}

struct History<'a, S> {
    server: &'a mut S,
    rng: Rng,
    options: &'static str,
    known: BTreeMap<&'static str, Known>,
    /// Items added to both generations since the build began.
    follows: bool,
    done: Done,
    told: Vec<String>,
}

/// Runs the history of this number. Consecutive numbers use consecutive kinds of [`KINDS`].
///
/// # Errors
/// The error, and the requests before it.
pub fn history<S: Server>(number: u64, steps: u64, server: &mut S) -> Result<Done, String> {
    let options = KINDS[(number % KINDS.len() as u64) as usize];
    let known = NAMES.iter().map(|name| (*name, Known::default())).collect();
    let mut history = History {
        server,
        rng: Rng::new(mix(number)),
        options,
        known,
        follows: false,
        done: Done::default(),
        told: Vec::new(),
    };
    for step in 0..steps {
        let outcome = history.step().and_then(|()| match step % 4 == 3 || step + 1 == steps {
            true => NAMES.iter().try_for_each(|name| history.check(name)),
            false => Ok(()),
        });
        if let Err(wrong) = outcome {
            let told = history.told.join("\n");
            return Err(format!("history {number} of {options}: {wrong}\n{told}"));
        }
    }
    Ok(history.done)
}

impl<S: Server> History<'_, S> {
    fn ask(&mut self, line: &str) -> Wire {
        let words: Vec<Vec<u8>> = line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        self.ask_words(line, &words)
    }

    fn ask_words(&mut self, line: &str, words: &[Vec<u8>]) -> Wire {
        let reply = self.server.ask(words);
        let said = format!("{reply:?}");
        self.told.push(format!("{line} => {}", said.chars().take(200).collect::<String>()));
        reply
    }

    fn items(&mut self, most: u64) -> Vec<u64> {
        (0..=self.rng.below(most)).map(|_| self.rng.below(ITEMS)).collect()
    }

    fn known(&mut self, name: &str) -> &mut Known {
        self.known.get_mut(name).expect("a name of ours")
    }

    fn step(&mut self) -> Result<(), String> {
        let name = match self.rng.below(6) {
            0 => NAMES[1],
            1 => NAMES[2],
            _ => NAMES[0],
        };
        match self.rng.below(24) {
            0 | 1 => self.reserve(name),
            2..=7 => {
                let items = self.items(6);
                self.add(name, &items)?;
            }
            8 => {
                let item = self.rng.below(ITEMS);
                self.add(name, &[item])?;
            }
            9 | 10 => self.delete(name),
            11 => self.merge(name),
            12 if self.rng.below(3) == 0 => self.clear(name),
            12 | 13 => self.load(name),
            14 | 15 => self.begin(name),
            16..=18 => self.add_to_build(name),
            19 | 20 => self.commit(name),
            21 if self.rng.below(3) == 0 => {
                if let Wire::Simple(_) = self.ask(&format!("MF.BUILD {name} ABORT")) {
                    self.known(name).building = None;
                }
            }
            22 => {
                let crash = self.rng.below(2) == 0;
                self.told.push(format!("(a restart, crash: {crash})"));
                self.server.restart(crash);
            }
            _ => {
                let items = self.items(3);
                self.add(name, &items)?;
            }
        }
        Ok(())
    }

    fn reserve(&mut self, name: &str) {
        let options = self.options;
        if let Wire::Simple(_) = self.ask(&format!("MF.RESERVE {name} {options} KEY {KEY}")) {
            let serving = (!is_static(options)).then(|| (options.to_owned(), Members::new()));
            self.known(name).serving = serving;
        }
    }

    fn add(&mut self, name: &str, items: &[u64]) -> Result<(), String> {
        let listed: String = items.iter().map(|item| format!(" {item}")).collect();
        let reply = match items.len() {
            1 => Wire::Array(vec![self.ask(&format!("MF.ADD {name}{listed}"))]),
            _ => self.ask(&format!("MF.MADD {name}{listed}")),
        };
        let Wire::Array(answers) = reply else { return Ok(()) };
        for (item, answer) in items.iter().zip(answers) {
            if is_refused(&answer) {
                continue;
            }
            let known = self.known(name);
            let Some(serving) = &mut known.serving else { return Err(format!("{name} accepted {item}")) };
            take(serving, *item, 1);
            if let Some(building) = &mut known.building {
                *building.entry(*item).or_default() += 1;
                self.follows = true;
            }
        }
        Ok(())
    }

    /// Removes only members, as the manual requires.
    fn delete(&mut self, name: &str) {
        let Some((options, members)) = self.known(name).serving.clone() else { return };
        // A `no` of this kind is not certain after a removal.
        if members.is_empty() || options.contains("dual") {
            return;
        }
        let at = self.rng.below(members.len() as u64) as usize;
        let item = *members.keys().nth(at).expect("a place below the count");
        let reply = self.ask(&format!("MF.DEL {name} {item}"));
        if is_refused(&reply) || !is_yes(&reply) {
            return;
        }
        let known = self.known(name);
        let left = known.serving.as_mut().and_then(|(_, members)| {
            let left = members.get_mut(&item)?;
            *left -= 1;
            if *left == 0 {
                members.remove(&item);
            }
            Some(members.contains_key(&item))
        });
        // While the serving generation has a copy, the build must not lose it.
        if left == Some(false)
            && let Some(members) = &mut known.building
        {
            members.remove(&item);
        }
    }

    fn merge(&mut self, name: &str) {
        let other = NAMES[self.rng.below(3) as usize];
        if other == name {
            return;
        }
        if let Wire::Simple(_) = self.ask(&format!("MF.MERGE {name} {other}")) {
            let Some((options, more)) = self.known(other).serving.clone() else { return };
            let known = self.known(name);
            let serving = known.serving.get_or_insert_with(|| (options, Members::new()));
            more.iter().for_each(|(item, copies)| take(serving, *item, *copies));
            if let Some(building) = &mut known.building {
                more.iter().for_each(|(item, copies)| *building.entry(*item).or_default() += copies);
            }
        }
    }

    fn clear(&mut self, name: &str) {
        if let Wire::Simple(_) = self.ask(&format!("MF.CLEAR {name}")) {
            let known = self.known(name);
            known.serving = known
                .serving
                .take()
                .map(|(options, _)| (options, Members::new()))
                .filter(|(options, _)| !is_static(options));
        }
    }

    /// Loads the contents of another name, or only the first half of them.
    fn load(&mut self, name: &str) {
        let other = NAMES[self.rng.below(3) as usize];
        let Wire::Array(parts) = self.ask(&format!("MF.DUMP {other} 0")) else { return };
        let (Some(Wire::Integer(0)), Some(Wire::Bulk(bytes))) = (parts.first(), parts.get(1)) else { return };
        let half = (bytes.len() / 2).max(192).min(bytes.len());
        let mut last = Wire::Null;
        for (at, piece) in [(0, &bytes[..half]), (half, &bytes[half..])] {
            if piece.is_empty() {
                continue;
            }
            let words = [b"MF.LOAD".to_vec(), name.into(), at.to_string().into(), piece.to_vec()];
            last = self.ask_words(&format!("MF.LOAD {name} {at} (of {other})"), &words);
        }
        if last == Wire::Integer(0) {
            let loaded = self.known(other).serving.clone();
            self.known(name).serving = loaded;
        }
    }

    fn begin(&mut self, name: &str) {
        let options = match self.rng.below(3) {
            0 => Some(self.options),
            1 => Some(KINDS[self.rng.below(KINDS.len() as u64) as usize]),
            _ => None,
        };
        let key = if self.rng.below(4) > 0 { format!("KEY {KEY}") } else { String::new() };
        let words = options.map_or_else(String::new, |options| format!("{options} {key}"));
        if let Wire::Simple(_) = self.ask(&format!("MF.BUILD {name} BEGIN {words}")) {
            self.known(name).building = Some(Members::new());
        }
    }

    fn add_to_build(&mut self, name: &str) {
        let items = self.items(8);
        let listed: String = items.iter().map(|item| format!(" {item}")).collect();
        if let Wire::Integer(_) = self.ask(&format!("MF.BUILD {name} ADD{listed}"))
            && let Some(building) = &mut self.known(name).building
        {
            items.iter().for_each(|item| *building.entry(*item).or_default() += 1);
        }
    }

    fn commit(&mut self, name: &str) {
        match self.ask(&format!("MF.BUILD {name} COMMIT")) {
            Wire::Integer(_) => {
                let Wire::Bulk(kind) = self.ask(&format!("MF.INFO {name} kind")) else { return };
                let built = self.known(name).building.take().unwrap_or_default();
                let mut serving = (String::from_utf8_lossy(&kind).into_owned(), Members::new());
                built.iter().for_each(|(item, copies)| take(&mut serving, *item, *copies));
                self.known(name).serving = Some(serving);
                self.done.commits += u64::from(std::mem::take(&mut self.follows));
            }
            Wire::Refused(why) if why.contains("changes made during it") => self.done.refused += 1,
            _ => {}
        }
    }

    /// Checks that all members are found, and that a serving name answers.
    fn check(&mut self, name: &'static str) -> Result<(), String> {
        let Some((_, members)) = self.known(name).serving.clone() else { return Ok(()) };
        let asked: Vec<u64> = if members.is_empty() { vec![0] } else { members.keys().copied().collect() };
        let listed: String = asked.iter().map(|item| format!(" {item}")).collect();
        let words = format!("MF.MEXISTS {name}{listed}");
        let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let Wire::Array(answers) = self.server.ask(&words) else {
            return Err(format!("{name} does not answer"));
        };
        self.done.asked += members.len() as u64;
        match asked.iter().zip(&answers).find(|(item, answer)| members.contains_key(item) && !is_yes(answer))
        {
            Some((item, answer)) => {
                Err(format!("{item} is a member of {name}, but the answer is {answer:?}"))
            }
            None => Ok(()),
        }
    }
}

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

fn is_static(options: &str) -> bool {
    ["xor", "fuse", "ribbon", "gcs"].iter().any(|kind| options.contains(kind))
}

fn is_refused(reply: &Wire) -> bool {
    matches!(reply, Wire::Refused(_))
}

fn is_yes(reply: &Wire) -> bool {
    matches!(reply, Wire::Boolean(true) | Wire::Integer(1))
}

/// A bitmap does not count copies.
fn take((kind, members): &mut (String, Members), item: u64, copies: u64) {
    let held = members.entry(item).or_default();
    *held = if kind.contains("bitmap") { 1 } else { *held + copies };
}
