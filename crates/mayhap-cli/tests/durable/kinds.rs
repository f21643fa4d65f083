//! `kill -9` with a filter of every `MF` kind: acknowledged changes survive.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::{self, server::Server};
use crate::{chance, request, rounds, start};

/// The arguments that create each kind that accepts single items.
const GROWING: &[(&str, &str)] = &[
    ("bitmap", "RANGE 0 99999999"),
    ("bloom", "CAPACITY 40000 FPR 0.0001"),
    ("blocked-bloom", "CAPACITY 40000 FPR 0.001"),
    ("blocked-bloom-split", "CAPACITY 40000 FPR 0.001"),
    ("blocked-bloom-line", "CAPACITY 40000 FPR 0.001"),
    ("counting-bloom", "CAPACITY 40000 FPR 0.001"),
    ("dual-bloom", "CAPACITY 40000 FPR 0.001 DELETES 100"),
    ("scalable-bloom", "CAPACITY 100 FPR 0.0001"),
    ("d-left", "CAPACITY 40000 FPR 0.001"),
    ("cuckoo", "CAPACITY 40000 FPR 0.001"),
    ("cuckoo-semi-sorted", "CAPACITY 40000 FPR 0.001"),
    ("growable-cuckoo", "CAPACITY 1000 MAX 100000"),
    ("quotient", "CAPACITY 40000 FPR 0.001"),
    ("growing", "CAPACITY 100 FPR 0.0001"),
    ("scalable-cuckoo", "CAPACITY 100"),
    ("fingerprints", ""),
    ("window", "WINDOW 1000000 FPR 0.001"),
];
/// The static kinds, which are built from all their items.
const BUILT: &[&str] = &[
    "xor8",
    "xor16",
    "xor32",
    "xor",
    "binary-fuse8",
    "binary-fuse16",
    "binary-fuse32",
    "binary-fuse",
    "ribbon",
    "gcs",
];
/// A filter with more items is deleted and created again, to keep false positives rare.
const MOST: u64 = 20_000;
/// Items of a generation.
const GENERATION: u64 = 20;
const DEPTH: u64 = 8;

/// The acknowledged changes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct AcknowledgedChanges {
    /// Items from this number to `end` are in the filter. For static kinds: the last committed generation.
    from: u64,
    end: u64,
    /// The generation whose commit was sent.
    sent: u64,
}

/// A client that sends a request line and reads a reply line.
struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Client {
    fn of(server: &Server) -> Self {
        let stream = server.connect();
        Self { replies: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    fn send(&mut self, lines: &[String]) -> Option<()> {
        let mut bytes = Vec::new();
        for line in lines {
            request(&line.split_whitespace().collect::<Vec<_>>(), &mut bytes);
        }
        self.stream.write_all(&bytes).ok()
    }

    /// `None` if the server is gone.
    fn reply(&mut self) -> Option<String> {
        let mut line = String::new();
        self.replies.read_line(&mut line).ok()?;
        line.ends_with("\r\n").then(|| line.trim_end().to_owned())
    }

    fn ask(&mut self, line: String) -> Option<String> {
        self.send(&[line])?;
        self.reply()
    }

    /// The members among the items of these numbers.
    fn held(&mut self, kind: &str, numbers: std::ops::Range<u64>) -> Vec<u64> {
        let mut held = Vec::new();
        let all: Vec<u64> = numbers.collect();
        for some in all.chunks(500) {
            let items: Vec<String> = some.iter().map(u64::to_string).collect();
            let reply = self.ask(format!("MF.MEXISTS {kind} {}", items.join(" "))).unwrap();
            assert_eq!(reply, format!("*{}", some.len()), "{kind}");
            held.extend(some.iter().filter(|_| self.reply().unwrap() == ":1"));
        }
        held
    }
}

/// Adds items until the server is gone.
fn add(mut client: Client, kind: &str, options: &str, told: &mut AcknowledgedChanges) -> Option<()> {
    if told.end == 0 || told.end - told.from > MOST {
        client.ask(format!("DEL {kind}"))?;
        // From here on, whatever the answers, the old content is no longer expected.
        told.from = told.end;
        assert_eq!(client.ask(format!("MF.RESERVE {kind} KIND {kind} {options}"))?, "+OK", "{kind}");
    }
    loop {
        let depth = 1 + chance(told.end) % DEPTH;
        let lines: Vec<String> =
            (told.end..told.end + depth).map(|item| format!("MF.ADD {kind} {item}")).collect();
        client.send(&lines)?;
        for _ in 0..depth {
            let reply = client.reply()?;
            assert!(reply == ":1" || reply == ":0", "{kind}: {reply}");
            told.end += 1;
        }
    }
}

/// Builds one generation after another until the server is gone.
fn build(mut client: Client, kind: &str, told: &mut AcknowledgedChanges) -> Option<()> {
    // A build that was running when the server was killed is aborted.
    client.ask(format!("MF.BUILD {kind} ABORT"))?;
    loop {
        let generation = told.end + 1;
        let first = generation * GENERATION;
        let items: Vec<String> = (first..first + GENERATION).map(|item| item.to_string()).collect();
        assert_eq!(client.ask(format!("MF.BUILD {kind} BEGIN KIND {kind}"))?, "+OK", "{kind}");
        let added = client.ask(format!("MF.BUILD {kind} ADD {}", items.join(" ")))?;
        assert_eq!(added, format!(":{GENERATION}"), "{kind}");
        told.sent = generation;
        let committed = client.ask(format!("MF.BUILD {kind} COMMIT"))?;
        assert!(committed.starts_with(':'), "{kind}: {committed}");
        told.end = generation;
    }
}

/// Checks that everything acknowledged is there.
fn check(server: &Server, round: u64, all: &mut [AcknowledgedChanges]) {
    let mut client = Client::of(server);
    for ((kind, _), told) in GROWING.iter().zip(&mut *all) {
        let held = client.held(kind, told.from..told.end);
        assert_eq!(held.len() as u64, told.end - told.from, "round {round}: {kind} lost items, {told:?}");
    }
    for (kind, told) in BUILT.iter().zip(&mut all[GROWING.len()..]) {
        if told.sent == 0 {
            continue;
        }
        let mut serves = |generation: u64| {
            let first = generation * GENERATION;
            generation > 0 && client.held(kind, first..first + GENERATION).len() as u64 == GENERATION
        };
        // No generation serves before the first commit. A commit in flight may have been applied.
        if told.end == 0 && client_says_not_ready(server, kind) {
            continue;
        }
        if told.sent > told.end && serves(told.sent) {
            told.end = told.sent;
            continue;
        }
        assert!(serves(told.end), "round {round}: {kind} lost its generation, {told:?}");
    }
}

fn client_says_not_ready(server: &Server, kind: &str) -> bool {
    server.ask(&format!("MF.EXISTS {kind} 1")).starts_with("-NOTREADY ")
}

/// Every kind of the server is in the lists above.
fn assert_all_kinds(server: &Server) {
    let refused = server.ask("MF.RESERVE x KIND nonsense");
    let known = refused.trim_end().split("use one of ").nth(1).unwrap();
    for kind in known.split(", ") {
        let is_made = GROWING.iter().any(|(name, _)| *name == kind) || BUILT.contains(&kind);
        assert!(is_made, "{kind} is not written to: {known}");
    }
}

fn kill_again_and_again(policy: &str, default_rounds: u64) {
    let folder = program::empty_folder("durable", &format!("kinds-{policy}"));
    let rounds = rounds("MAYHAP_KILLS", default_rounds);
    let mut all = vec![AcknowledgedChanges::default(); GROWING.len() + BUILT.len()];
    let mut server = start(&folder, policy);
    assert_all_kinds(&server);
    for round in 1..=rounds {
        let millis = 60 + chance(round) % 300;
        std::thread::scope(|scope| {
            let (growing, built) = all.split_at_mut(GROWING.len());
            for ((kind, options), told) in GROWING.iter().zip(growing) {
                let client = Client::of(&server);
                scope.spawn(move || add(client, kind, options, told));
            }
            for (kind, told) in BUILT.iter().zip(built) {
                let client = Client::of(&server);
                scope.spawn(move || build(client, kind, told));
            }
            std::thread::sleep(Duration::from_millis(millis / 2));
            assert!(Client::of(&server).ask("BGSAVE".into()).is_some());
            std::thread::sleep(Duration::from_millis(millis / 2));
            server.signal("-KILL");
        });
        drop(server);
        server = start(&folder, policy);
        check(&server, round, &mut all);
    }
    let added: u64 = all[..GROWING.len()].iter().map(|told| told.end).sum();
    let built: u64 = all[GROWING.len()..].iter().map(|told| told.end).sum();
    assert!(added > rounds && built > 0, "{added} items and {built} generations are no test");
    eprintln!(
        "--fsync {policy}, {} kinds: killed {rounds} times, {added} items and {built} generations acknowledged, 0 lost",
        all.len()
    );
}

#[test]
fn kill_9_loses_nothing_of_any_kind_with_always() {
    kill_again_and_again("always", 4);
}

#[test]
fn kill_9_loses_nothing_of_any_kind_with_everysec() {
    kill_again_and_again("everysec", 2);
}
