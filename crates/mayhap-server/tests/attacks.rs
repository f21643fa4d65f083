//! Items forged against filters with a fixed, public seed, sent to a real server. They work against `BF.*`
//! and `CF.*`, whose layout is RedisBloom's, and have no effect on `MF.*`, whose filters have a secret key
//! each.
//!
//! The forged items are those of `crates/mayhap-formats/tests/vectors/attacks`: `collide` have the hashes of
//! `user:7`, `pollute` only set bits that are 0, `cuckoo` have the hash of `victim`. Keys come from a seeded
//! generator, so every run is the same. Three standard deviations are allowed.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use mayhap_command::Limits;
use mayhap_engine::Engine;
use mayhap_fuzz::resp::encode;
use mayhap_fuzz::world::Fixed;
use mayhap_server::{Running, Server, Settings};

fn forged(set: &str) -> Vec<Vec<u8>> {
    let text = include_str!("../../mayhap-formats/tests/vectors/attacks/forged-items.txt");
    let lines = text.lines().filter_map(|line| line.strip_prefix(set)?.strip_prefix(' '));
    let byte = |hex: &str, at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    lines.map(|hex| (0..hex.len() / 2).map(|at| byte(hex, at)).collect()).collect()
}

fn member(number: u64) -> Vec<u8> {
    format!("member:{number}").into_bytes()
}

fn non_member(number: u64) -> Vec<u8> {
    format!("https://example.org/{number:x}").into_bytes()
}

struct Talk {
    stream: TcpStream,
    _server: Running,
}

impl Talk {
    /// A server whose keys are the same in every run.
    fn start() -> Self {
        let engine = Engine::new(Limits::default(), Arc::new(Fixed::default()));
        let log_level = mayhap_server::logging::Level::Error;
        let settings = Settings { port: Some(0), workers: 1, log_level, ..Settings::default() };
        let server = Server::start_with(settings, Arc::new(engine)).unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, _server: server }
    }

    /// Returns the reply to one request: everything before the reply to the `PING` after it.
    fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> String {
        const PONG: &[u8] = b"+PONG\r\n";
        let mut bytes = encode(words);
        bytes.extend(encode(&["PING"]));
        self.stream.write_all(&bytes).unwrap();
        let (mut reply, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        while !reply.ends_with(PONG) {
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "the server went away");
            reply.extend_from_slice(&piece[..read]);
        }
        reply.truncate(reply.len() - PONG.len());
        String::from_utf8_lossy(&reply).into_owned()
    }

    fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.ask(&words)
    }

    /// The number of `items` that get a 1 from `command` (which accepts many), sent in groups of a thousand.
    fn ones(&mut self, command: &str, items: &[Vec<u8>]) -> u64 {
        let head: Vec<Vec<u8>> = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        items
            .chunks(1_000)
            .map(|some| self.ask(&[&head, some].concat()).matches(":1\r\n").count() as u64)
            .sum()
    }
}

/// Whether `count` of `of` is within three standard deviations of `rate`.
fn is_honest(count: u64, of: u64, rate: f64) -> bool {
    let (of, count) = (of as f64, count as f64);
    (count - of * rate).abs() <= 3.0 * (of * rate * (1.0 - rate)).sqrt()
}

#[test]
fn forged_collisions_get_only_the_usual_false_positives_in_a_keyed_filter() {
    let collide = forged("collide");
    assert_eq!(collide.len(), 200);
    let mut talk = Talk::start();
    // They work if the seed is public, whatever the size and the rate.
    for (name, reserve) in [("one", "0.01 100"), ("two", "0.0000001 1000000")] {
        assert_eq!(talk.line(&format!("BF.RESERVE {name} {reserve}")), "+OK\r\n");
        assert_eq!(talk.line(&format!("BF.ADD {name} user:7")), ":1\r\n");
        assert_eq!(talk.ones(&format!("BF.MEXISTS {name}"), &collide), 200);
    }
    // Full default filters, each with its own key: as many false positives as for any 200 non-members.
    let (mut wrong, mut asked) = (0, 0);
    let (mut honest, mut non_members) = (0, 0);
    for number in 0..60_u64 {
        assert_eq!(talk.line(&format!("MF.RESERVE m{number} CAPACITY 1000 FPR 0.1")), "+OK\r\n");
        assert_eq!(talk.line(&format!("MF.ADD m{number} user:7")), ":1\r\n");
        talk.ones(&format!("MF.MADD m{number}"), &(1..1_000).map(member).collect::<Vec<_>>());
        assert_eq!(talk.line(&format!("MF.EXISTS m{number} user:7")), ":1\r\n");
        wrong += talk.ones(&format!("MF.MEXISTS m{number}"), &collide);
        asked += collide.len() as u64;
        honest +=
            talk.ones(&format!("MF.MEXISTS m{number}"), &(0..2_000).map(non_member).collect::<Vec<_>>());
        non_members += 2_000;
    }
    let rate = honest as f64 / non_members as f64;
    assert!(rate > 0.05 && rate < 0.11, "the filters are full: {rate}");
    assert!(
        is_honest(wrong, asked, rate),
        "{wrong} of {asked}, but the rate for honest non-members is {rate}"
    );
    println!("collide: {wrong} of {asked} in keyed filters, non-members {rate:.4}; 200 of 200 in BF");
}

#[test]
fn chosen_insertions_fill_a_keyed_filter_no_faster_than_honest_ones() {
    const NON_MEMBERS: u64 = 200_000;
    let pollute = forged("pollute");
    assert_eq!(pollute.len(), 20_000);
    let non_members: Vec<Vec<u8>> = (0..NON_MEMBERS).map(non_member).collect();
    let mut talk = Talk::start();
    assert_eq!(talk.line("BF.RESERVE b 0.01 20000 NONSCALING"), "+OK\r\n");
    talk.ones("BF.MADD b", &pollute);
    let polluted = talk.ones("BF.MEXISTS b", &non_members);
    assert!(polluted > NON_MEMBERS / 10, "the attack works where the seed is public: {polluted}");
    let mut rates = Vec::new();
    for (name, items) in [("forged", pollute), ("honest", (0..20_000).map(member).collect())] {
        assert_eq!(talk.line(&format!("MF.RESERVE {name} CAPACITY 20000 FPR 0.01")), "+OK\r\n");
        talk.ones(&format!("MF.MADD {name}"), &items);
        rates.push(talk.ones(&format!("MF.MEXISTS {name}"), &non_members));
    }
    let [forged, honest] = rates[..] else { unreachable!("two filters") };
    assert!(honest > NON_MEMBERS / 200 && honest < NON_MEMBERS / 80, "the filter is full: {honest}");
    // Both counts vary.
    let sigma = (2.0 * honest as f64).sqrt();
    assert!(
        (forged as f64 - honest as f64).abs() <= 3.0 * sigma,
        "{forged} and {honest}, one deviation is {sigma}"
    );
    println!(
        "pollute: {forged} of {NON_MEMBERS} false positives after forged items, {honest} after honest ones; {polluted} in BF"
    );
}

#[test]
fn forged_items_do_not_fill_cuckoo_filters() {
    const CAPACITY: u64 = 200_000;
    let cuckoo = forged("cuckoo");
    assert_eq!(cuckoo.len(), 4_000);
    let mut talk = Talk::start();
    assert_eq!(talk.line(&format!("CF.RESERVE c {CAPACITY}")), "+OK\r\n");
    assert_eq!(talk.line(&format!("MF.RESERVE m KIND cuckoo CAPACITY {CAPACITY} FPR 0.01")), "+OK\r\n");
    let memory = |talk: &mut Talk, name: &str| {
        talk.line(&format!("MEMORY USAGE {name}"))[1..].trim().parse::<u64>().unwrap()
    };
    let (before, mayhap_before) = (memory(&mut talk, "c"), memory(&mut talk, "m"));
    let forged = talk.ones("CF.INSERT c ITEMS", &cuckoo);
    // The secret key spreads them: all are inserted like any other items, except a few that look like an
    // earlier one.
    assert!((3_900..=4_000).contains(&talk.ones("MF.MADD m", &cuckoo)));
    let after = memory(&mut talk, "c");
    let most: Vec<Vec<u8>> = (0..CAPACITY * 9 / 10).map(member).collect();
    let taken = talk.ones("CF.INSERT c ITEMS", &most);
    let mayhap_taken = talk.ones("MF.MADD m", &most[4_000..]);
    println!(
        "cuckoo: CF took {forged} forged, {before} to {after} bytes, then {taken} of {} honest; MF {mayhap_taken}",
        most.len()
    );
    assert_eq!(taken, most.len() as u64, "CF refuses no item below 90 % of its capacity");
    // A full MF filter answers 0 (maybe there already) for some items. It refuses none.
    assert!(mayhap_taken as f64 > 0.98 * (most.len() - 4_000) as f64, "{mayhap_taken}");
    for name in ["CF.MEXISTS c", "MF.MEXISTS m"] {
        assert_eq!(talk.ones(name, &most[4_000..]), most.len() as u64 - 4_000, "{name}: all are members");
    }
    assert_eq!(memory(&mut talk, "m"), mayhap_before, "it did not grow");
}

#[test]
fn deleting_items_that_were_never_added_finds_nothing_in_a_keyed_filter() {
    let cuckoo = forged("cuckoo");
    let mut talk = Talk::start();
    assert_eq!(talk.line("CF.RESERVE c 100000"), "+OK\r\n");
    assert_eq!(talk.line("CF.ADD c victim"), ":1\r\n");
    assert_eq!(
        talk.ask(&[&b"CF.DEL"[..], b"c", &cuckoo[0]]),
        ":1\r\n",
        "the attack works where the seed is public"
    );
    assert_eq!(talk.line("CF.EXISTS c victim"), ":0\r\n");
    for kind in ["cuckoo", "quotient", "counting"] {
        assert_eq!(talk.line(&format!("MF.RESERVE {kind} KIND {kind} CAPACITY 100000 FPR 0.001")), "+OK\r\n");
        assert_eq!(talk.line(&format!("MF.ADD {kind} victim")), ":1\r\n");
        for item in &cuckoo {
            assert_eq!(talk.ask(&[&b"MF.DEL"[..], kind.as_bytes(), item]), ":0\r\n", "{kind}");
        }
        assert_eq!(talk.line(&format!("MF.EXISTS {kind} victim")), ":1\r\n", "{kind}");
    }
}

/// The effect of forged items on `BF.*` and `CF.*` filters with one `bf-hash` and `cf-hash`.
#[derive(Debug)]
struct Damage {
    /// Of 200 forged items, the number with the answer *maybe* in filters with one member.
    collisions: u64,
    /// The false-positive rate after forged insertions, divided by the rate after honest ones.
    pollution: f64,
    /// The number of copies of the victim that a forged deletion removed.
    deleted: u64,
    /// Whether the victim is still found after these deletions.
    victim_is_in: bool,
    /// Bytes by which 4,000 forged items made a cuckoo filter grow.
    growth: u64,
}

/// Runs all attacks on filters that a server creates with `hash` as its `bf-hash` and `cf-hash`.
fn attack(hash: &str) -> Damage {
    const NON_MEMBERS: u64 = 100_000;
    let (collide, pollute, cuckoo) = (forged("collide"), forged("pollute"), forged("cuckoo"));
    let mut talk = Talk::start();
    assert_eq!(talk.line(&format!("CONFIG SET bf-hash {hash} cf-hash {hash}")), "+OK\r\n");
    assert_eq!(talk.line("BF.RESERVE one 0.01 100"), "+OK\r\n");
    assert_eq!(talk.line("BF.ADD one user:7"), ":1\r\n");
    let collisions = talk.ones("BF.MEXISTS one", &collide);

    let non_members: Vec<Vec<u8>> = (0..NON_MEMBERS).map(non_member).collect();
    let mut wrong = |name: &str, items: &[Vec<u8>]| {
        assert_eq!(talk.line(&format!("BF.RESERVE {name} 0.01 20000 NONSCALING")), "+OK\r\n");
        talk.ones(&format!("BF.MADD {name}"), items);
        talk.ones(&format!("BF.MEXISTS {name}"), &non_members)
    };
    let honest = wrong("honest", &(0..20_000).map(member).collect::<Vec<_>>());
    assert!((NON_MEMBERS / 200..NON_MEMBERS / 80).contains(&honest), "the filter is full: {honest}");
    let pollution = wrong("forged", &pollute) as f64 / honest as f64;

    assert_eq!(talk.line("CF.RESERVE victims 100000"), "+OK\r\n");
    assert_eq!(talk.line("CF.ADD victims victim"), ":1\r\n");
    let mut deleted = 0;
    for item in &cuckoo[..500] {
        deleted += u64::from(talk.ask(&[&b"CF.DEL"[..], b"victims", item]) == ":1\r\n");
    }
    let victim_is_in = talk.line("CF.EXISTS victims victim") == ":1\r\n";

    assert_eq!(talk.line("CF.RESERVE grows 200000"), "+OK\r\n");
    let memory = |talk: &mut Talk| talk.line("MEMORY USAGE grows")[1..].trim().parse::<u64>().unwrap();
    let before = memory(&mut talk);
    talk.ones("CF.INSERT grows ITEMS", &cuckoo);
    let growth = memory(&mut talk) - before;
    Damage { collisions, pollution, deleted, victim_is_in, growth }
}

#[test]
fn a_secret_key_stops_all_attacks_on_bf_and_cf() {
    let plain = attack("redisbloom");
    println!("{plain:?}");
    assert_eq!((plain.collisions, plain.deleted, plain.victim_is_in), (200, 1, false), "{plain:?}");
    assert!(plain.pollution > 10.0 && plain.growth > 200_000, "{plain:?}");

    let keyed = attack("keyed");
    println!("{keyed:?}");
    // A filter for 100 items with one member has a false positive once in a hundred million.
    assert_eq!((keyed.collisions, keyed.deleted, keyed.victim_is_in), (0, 0, true), "{keyed:?}");
    // Both counts vary by about 4 %.
    assert!((0.8..1.2).contains(&keyed.pollution) && keyed.growth == 0, "{keyed:?}");
}
