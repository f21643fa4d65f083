//! Requests of all kinds in sequence: the same sequence for the same seed.

use mayhap_command::{Command, Family, table};
use mayhap_fuzz::requests::{Word, sensible, shapes};
use mayhap_testkit::rng::Rng;

/// The names of the filters, several of each family.
const NAMES: [&str; 9] = ["b1", "b2", "b3", "c1", "c2", "m1", "m2", "m3", "m4"];

/// The options that create filters, after the name.
const BLOOMS: [&str; 5] =
    ["0.01 100", "0.01 4 EXPANSION 1", "0.1 10 EXPANSION 4", "0.001 50 NONSCALING", "0.0001 1000"];
const CUCKOOS: [&str; 4] =
    ["64", "4 BUCKETSIZE 1 EXPANSION 1", "16 BUCKETSIZE 4 MAXITERATIONS 50 EXPANSION 2", "8 EXPANSION 0"];
const KINDS: [&str; 13] = [
    "KIND bloom CAPACITY 100",
    "KIND blocked CAPACITY 100 FPR 0.1",
    "KIND scalable CAPACITY 5",
    "KIND scalable TIERS 5,50,500 FPR 0.01",
    "KIND cuckoo CAPACITY 50 FPR 0.1",
    "KIND quotient CAPACITY 50 FPR 0.1",
    "KIND counting CAPACITY 50",
    "KIND d-left CAPACITY 50",
    "KIND growing CAPACITY 4",
    "KIND fingerprints",
    "KIND dual CAPACITY 50",
    "KIND window WINDOW 50 FPR 0.1",
    "KIND bitmap RANGE 0 500",
];

/// A source of requests.
pub(crate) struct Workload {
    rng: Rng,
    /// Whether filters of the `MF.*` family have no secret key, so that two servers answer alike.
    keyless: bool,
    wild: Vec<(&'static Command, Vec<Vec<Word>>)>,
}

impl Workload {
    pub(crate) fn new(seed: u64, keyless: bool) -> Self {
        let ours =
            |command: &&Command| matches!(command.family, Family::Bloom | Family::Cuckoo | Family::Mayhap);
        let wild = table::all().filter(ours).map(|command| (command, shapes(command))).collect();
        Self { rng: Rng::new(seed), keyless, wild }
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.rng.below(choices.len() as u64) as usize]
    }

    fn name(&mut self, letter: char) -> &'static str {
        let names: Vec<&str> = NAMES.into_iter().filter(|name| name.starts_with(letter)).collect();
        self.of(&names)
    }

    fn item(&mut self) -> String {
        self.rng.below(400).to_string()
    }

    fn items(&mut self) -> Vec<String> {
        (0..=self.rng.below(12)).map(|_| self.item()).collect()
    }

    /// Returns the next request: words with spaces between them, and the words after them.
    fn line(&mut self) -> (String, Vec<String>) {
        let (b, c, m) = (self.name('b'), self.name('c'), self.name('m'));
        let line = match self.rng.below(40) {
            0 => format!("BF.RESERVE {b} {}", self.of(&BLOOMS)),
            1 => format!("CF.RESERVE {c} {}", self.of(&CUCKOOS)),
            2 | 3 => {
                format!("MF.RESERVE {m} {}{}", self.of(&KINDS), if self.keyless { " KEYLESS" } else { "" })
            }
            4..8 => return (format!("BF.MADD {b}"), self.items()),
            8 => return (format!("BF.INSERT {b} CAPACITY 20 ITEMS"), self.items()),
            9..12 => format!("BF.ADD {b} {}", self.item()),
            12 => return (format!("BF.MEXISTS {b}"), self.items()),
            13..16 => return (format!("CF.INSERT {c} ITEMS"), self.items()),
            16 => return (format!("CF.INSERTNX {c} ITEMS"), self.items()),
            17 | 18 => format!("CF.ADD {c} {}", self.item()),
            19..21 => format!("CF.DEL {c} {}", self.item()),
            21 => format!("CF.COMPACT {c}"),
            22 => return (format!("CF.MEXISTS {c}"), self.items()),
            23..28 => return (format!("MF.MADD {m}"), self.items()),
            28 => format!("MF.ADD {m} {}", self.item()),
            29 => format!("MF.DEL {m} {}", self.item()),
            30 => return (format!("MF.MEXISTS {m}"), self.items()),
            31 => format!("MF.MERGE {m} {}", self.name('m')),
            32 => {
                let begun = if self.keyless { "BEGIN KIND bloom CAPACITY 100 KEYLESS" } else { "BEGIN" };
                format!("MF.BUILD {m} {begun}")
            }
            33 => return (format!("MF.BUILD {m} ADD"), self.items()),
            34 => format!("MF.BUILD {m} {}", self.of(&["COMMIT", "ABORT", "COMMIT"])),
            35 if self.rng.below(4) == 0 => format!("MF.CLEAR {m}"),
            36 if self.rng.below(4) == 0 => format!("DEL {}", self.of(&NAMES)),
            37 if self.rng.below(4) == 0 => format!("RENAME {b} {}", self.name('b')),
            38 if self.rng.below(4) == 0 => format!("COPY {c} {} REPLACE", self.name('c')),
            _ => return (self.wild(), Vec::new()),
        };
        (line, Vec::new())
    }

    /// Returns any command in any of its forms.
    fn wild(&mut self) -> String {
        let at = self.rng.below(self.wild.len() as u64) as usize;
        let command = self.wild[at].0;
        let forms = self.wild[at].1.len() as u64;
        let form = self.wild[at].1[self.rng.below(forms) as usize].clone();
        let mut line = command.name.to_owned();
        for word in form {
            line.push(' ');
            match word {
                Word::Token(token) => line.push_str(&token),
                Word::Name => line.push_str(self.of(&NAMES)),
                Word::Value(name) => match self.rng.below(8) {
                    0 => line.push_str(&self.item()),
                    _ => line.push_str(&String::from_utf8_lossy(sensible(&name))),
                },
            }
        }
        let makes = ["mf.reserve", "mf.build"].contains(&command.name);
        if self.keyless
            && makes
            && !["KEY", "ADD", "COMMIT", "ABORT", "INFO"].iter().any(|word| line.contains(word))
        {
            line.push_str(" KEYLESS");
        }
        line
    }
}

impl Iterator for Workload {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        let (line, last) = self.line();
        Some(line.split(' ').map(str::to_owned).chain(last).collect())
    }
}
