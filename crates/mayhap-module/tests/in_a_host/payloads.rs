//! Invalid payloads and files are refused, or used without harm. Those of RedisBloom are loaded.

use std::time::{Duration, Instant};

use mayhap_fuzz::mutate::{FRACTIONS, Field, ModuleValue, NUMBERS, module_id};
use mayhap_fuzz::payloads::{MAKERS, value};
use mayhap_fuzz::random::Random;
use mayhap_fuzz::seal;
use mayhap_testkit::host::{Host, HostOptions, Talk, Wire, programs};
use mayhap_testkit::vectors;

use crate::hosts;

/// The requests made with a value that was accepted.
const USES: [&str; 22] = [
    "BF.ADD v x",
    "BF.MADD v p q r s t 1 2 3 4 5 6 7 8 9",
    "BF.EXISTS v x",
    "BF.INFO v",
    "BF.DEBUG v",
    "BF.SCANDUMP v 0",
    "BF.SCANDUMP v 1",
    "CF.ADD v x",
    "CF.INSERT v ITEMS 1 2 3 4 5 6 7 8 9",
    "CF.DEL v a",
    "CF.COUNT v a",
    "CF.COMPACT v",
    "CF.INFO v",
    "MF.MADD v p q r s t",
    "MF.MEXISTS v p q r s t",
    "MF.DEL v p",
    "MF.INFO v",
    "MF.DUMP v 0",
    "MEMORY USAGE v",
    "DEBUG DIGEST-VALUE v",
    "COPY v w REPLACE",
    "DUMP w",
];

/// One value takes milliseconds; on any machine a request that takes this long hangs.
const LONGEST: Duration = Duration::from_secs(10);

struct PayloadChecker<'a> {
    host: &'a mut Host,
    talk: Talk,
    accepted: u32,
    refused: u32,
}

impl<'a> PayloadChecker<'a> {
    fn new(host: &'a mut Host) -> Self {
        let talk = host.talk();
        Self { host, talk, accepted: 0, refused: 0 }
    }

    /// Restores the value and uses the result in every possible way.
    fn try_value(&mut self, value: &ModuleValue, what: &str) {
        let begun = Instant::now();
        let payload = seal::redis_payload(&value.to_bytes());
        let restored = self.talk.try_ask(&[b"RESTORE".as_slice(), b"v", b"0", &payload, b"REPLACE"]);
        match restored.unwrap_or_else(|_| panic!("{what}: the host is gone\n{}", tail(&self.host.log()))) {
            Wire::Refused(_) => self.refused += 1,
            _ => {
                self.accepted += 1;
                for line in USES {
                    let words: Vec<&str> = line.split(' ').collect();
                    let done = self.talk.try_ask(&words);
                    assert!(done.is_ok(), "{what}, {line}: the host is gone\n{}", tail(&self.host.log()));
                }
            }
        }
        assert!(begun.elapsed() < LONGEST, "{what}: {:?}", begun.elapsed());
        assert!(self.host.is_running(), "{what}: the host is gone\n{}", tail(&self.host.log()));
    }
}

fn tail(log: &str) -> &str {
    &log[log.len().saturating_sub(4_000)..]
}

/// Every field of every kind of value: every number at which sizes wrap around, and every string too short,
/// too long or empty. All checksums are correct.
#[test]
fn changed_payload_fields_do_not_crash_the_host() {
    for mut host in hosts(&[]) {
        let mut battery = PayloadChecker::new(&mut host);
        for (number, lines) in MAKERS.iter().enumerate() {
            let (honest, made) = (value(number), lines[0]);
            battery.try_value(&honest, made);
            assert!(battery.accepted > 0, "{made}: what is right is taken");
            for at in 0..honest.fields.len() {
                let mut changed = |field: Field| {
                    let mut value = honest.clone();
                    let what = format!("{}, field {at}: {:.60}", made, format!("{field:?}"));
                    value.fields[at] = field;
                    battery.try_value(&value, &what);
                };
                match &honest.fields[at] {
                    Field::Unsigned(_) => NUMBERS.iter().for_each(|&number| changed(Field::Unsigned(number))),
                    Field::Double(_) => FRACTIONS.iter().for_each(|&number| changed(Field::Double(number))),
                    Field::String(bytes) => {
                        let some = bytes.len();
                        for length in [0, 1, some / 2, some.saturating_sub(1), some + 1, some * 2 + 8] {
                            let mut bytes = bytes.clone();
                            bytes.resize(length, 0xff);
                            changed(Field::String(bytes));
                        }
                    }
                }
                // Another type of field, one field too few, one too many.
                changed(Field::String(b"text".to_vec()));
                changed(Field::Unsigned(7));
                let mut value = honest.clone();
                value.fields.remove(at);
                battery.try_value(&value, "a field too few");
                let mut value = honest.clone();
                value.fields.insert(at, value.fields[at].clone());
                battery.try_value(&value, "a field too many");
            }
            for version in 0..8 {
                let mut value = honest.clone();
                value.id = value.id & !0x3ff | version;
                battery.try_value(&value, "another version");
            }
        }
        let mut random = Random(7);
        for round in 0..3_000 {
            let mut value = value(random.below(MAKERS.len()));
            (0..=random.below(3)).for_each(|_| value.change(&mut random));
            battery.try_value(&value, &format!("random change {round}"));
        }
        println!("{} accepted and used, {} refused", battery.accepted, battery.refused);
        assert!(battery.accepted > 200 && battery.refused > 1_000);
        assert!(host.talk().info("used_memory").parse::<u64>().unwrap() < 200 << 20);
    }
}

/// Turns RedisBloom's `SCANDUMP` of a filter into the fields of its RDB files.
fn bloom_of(header: &[u8], mut body: &[u8]) -> ModuleValue {
    let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let u32_at = |at: usize| u64::from(u32::from_le_bytes(header[at..at + 4].try_into().unwrap()));
    let f64_at = |at: usize| f64::from_bits(u64_at(at));
    let mut fields = vec![u64_at(0), u32_at(8), u32_at(12), u32_at(16)]
        .into_iter()
        .map(Field::Unsigned)
        .collect::<Vec<_>>();
    for link in (20..header.len()).step_by(53) {
        let bytes;
        (bytes, body) = body.split_at(usize::try_from(u64_at(link)).unwrap());
        fields.extend([
            Field::Unsigned(u64_at(link + 44)),
            Field::Double(f64_at(link + 24)),
            Field::Unsigned(u32_at(link + 40)),
            Field::Double(f64_at(link + 32)),
            Field::Unsigned(u64_at(link + 8)),
            Field::Unsigned(header[link + 52].into()),
            Field::String(bytes.to_vec()),
            Field::Unsigned(u64_at(link + 16)),
        ]);
    }
    ModuleValue { id: module_id("MBbloom--", 4), fields }
}

/// The same for a cuckoo filter.
fn cuckoo_of(header: &[u8], mut body: &[u8]) -> ModuleValue {
    let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let u16_at = |at: usize| u64::from(u16::from_le_bytes(header[at..at + 2].try_into().unwrap()));
    let (items, buckets, deletes, filters) = (u64_at(0), u64_at(8), u64_at(16), u64_at(24));
    let (bucket_size, iterations, expansion) = (u16_at(32), u16_at(34), u16_at(36));
    let mut fields: Vec<Field> = [filters, buckets, items, deletes, bucket_size, iterations, expansion]
        .into_iter()
        .map(Field::Unsigned)
        .collect();
    for filter in 0..filters {
        let buckets = buckets * expansion.max(1).pow(u32::try_from(filter).unwrap());
        let bytes;
        (bytes, body) = body.split_at(usize::try_from(buckets * bucket_size).unwrap());
        fields.extend([Field::Unsigned(buckets), Field::String(bytes.to_vec())]);
    }
    ModuleValue { id: module_id("MBbloomCF", 4), fields }
}

/// A case of the test data, with all replies of RedisBloom about it.
struct Case {
    name: String,
    family: &'static str,
    value: ModuleValue,
    probes: Vec<String>,
    hits: Vec<bool>,
    members: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (file, family) in [("bf_scandump.json", "BF"), ("cf_scandump.json", "CF")] {
        for case in &vectors::cases(&format!("redisbloom/{file}")) {
            let header = vectors::unhex(case["header_hex"].as_str().unwrap());
            let body = case["bits_file"].as_str().or(case["buckets_file"].as_str()).unwrap();
            let body = vectors::bytes(&format!("redisbloom/{body}"));
            let value = if family == "BF" { bloom_of(&header, &body) } else { cuckoo_of(&header, &body) };
            let (probes, hits) = vectors::text_probes(case).into_iter().unzip();
            let name = case["name"].as_str().unwrap_or("filter").to_owned();
            cases.push(Case { name, family, value, probes, hits, members: vectors::text_items(case) });
        }
    }
    cases
}

fn answers(talk: &mut Talk, case: &Case, name: &str, items: &[String]) -> Vec<bool> {
    let command = format!("{}.MEXISTS", case.family);
    let words: Vec<String> = [command, name.to_owned()].into_iter().chain(items.iter().cloned()).collect();
    talk.must(&words).list().iter().map(|answer| answer.integer() == 1).collect()
}

fn answers_as_redis_bloom_did(talk: &mut Talk, case: &Case, name: &str) {
    assert!(answers(talk, case, name, &case.members).into_iter().all(|held| held), "{}: members", case.name);
    assert_eq!(answers(talk, case, name, &case.probes), case.hits, "{}: probes", case.name);
}

/// Makes a file as a Redis with RedisBloom writes it.
fn rdb_file(values: &[(String, &ModuleValue)]) -> Vec<u8> {
    let mut file = b"REDIS0009".to_vec();
    file.extend([0xfe, 0]);
    for (name, value) in values {
        let value = value.to_bytes();
        file.push(value[0]);
        file.push(u8::try_from(name.len()).unwrap());
        file.extend_from_slice(name.as_bytes());
        file.extend_from_slice(&value[1..]);
    }
    file.push(0xff);
    let checksum = seal::crc64(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

#[test]
fn redisbloom_filters_load_by_restore_and_from_rdb_and_convert_back() {
    let cases = cases();
    assert!(cases.len() >= 6);
    for mut host in hosts(&[]) {
        let mut talk = host.talk();
        for case in &cases {
            let payload = seal::redis_payload(&case.value.to_bytes());
            talk.must(&[b"RESTORE".as_slice(), b"restored", b"0", &payload, b"REPLACE"]);
            answers_as_redis_bloom_did(&mut talk, case, "restored");
        }
        drop(talk);
        let name = |at: usize| format!("case{at}");
        let values: Vec<_> = cases.iter().enumerate().map(|(at, case)| (name(at), &case.value)).collect();
        host.kill();
        std::fs::write(host.folder().join("dump.rdb"), rdb_file(&values)).unwrap();
        host.restart();
        let mut talk = host.talk();
        for (at, case) in cases.iter().enumerate() {
            answers_as_redis_bloom_did(&mut talk, case, &name(at));
            // Our fields equal those that it wrote.
            let dumped = talk.must(&["DUMP", &name(at)]);
            if let Some(dumped) = ModuleValue::of_dump(dumped.bytes()) {
                assert_eq!(dumped, case.value, "{}", case.name);
            }
        }
    }
}

/// The host refuses types of other modules. A value of a later RedisBloom is our type, and the host's log
/// names its version.
#[test]
fn values_of_other_types_and_versions_are_refused() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        let fields = || vec![Field::Unsigned(1), Field::Unsigned(u64::MAX), Field::String(vec![7; 16])];
        for (name, version) in
            [("TDIS-TYPE", 0), ("TopK-TYPE", 0), ("CMSk-TYPE", 0), ("MBbloom--", 5), ("MBbloomCF", 5)]
        {
            let value = ModuleValue { id: module_id(name, version), fields: fields() };
            let payload = seal::redis_payload(&value.to_bytes());
            let restored = talk.ask_words(&[b"RESTORE".as_slice(), b"v", b"0", &payload]);
            assert!(restored.is_refused(), "{name}: {restored:?}");
            assert_eq!(talk.ask("EXISTS v").integer(), 0);
        }
        for name in ["MBbloom--", "MBbloomCF"] {
            let said =
                format!("module type {name} has encoding version 5, the newest this program reads is 4");
            assert!(host.log().contains(&said), "{}", tail(&host.log()));
        }
    }
}

/// One request with many items delays all other clients: measures the time of the command by the host's own
/// count.
#[test]
fn a_request_with_many_items_does_not_block_the_host() {
    const ITEMS: usize = 140_000;
    /// For a module without optimisation, on a busy machine. It was 5 s there before.
    const LONGEST_USEC: u64 = 1_000_000;
    for host in hosts(&[]) {
        let mut talk = host.talk();
        for made in [
            "CF.RESERVE v 2 BUCKETSIZE 1 EXPANSION 1",
            "CF.RESERVE v 510 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 1",
            "CF.RESERVE v 1024",
        ] {
            talk.must(&["FLUSHALL"]);
            talk.must(&["CONFIG", "RESETSTAT"]);
            talk.must(&made.split(' ').collect::<Vec<_>>());
            let words: Vec<&str> =
                ["CF.INSERT", "v", "ITEMS"].into_iter().chain(std::iter::repeat_n("same", ITEMS)).collect();
            assert_eq!(talk.must(&words).list().len(), ITEMS);
            let stats = talk.must(&["INFO", "commandstats"]);
            let stats = String::from_utf8_lossy(stats.bytes()).into_owned();
            let line = stats.lines().find(|line| line.starts_with("cmdstat_cf.insert:")).unwrap();
            let usec = line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
            println!("{made}: {usec} µs");
            assert!(usec.parse::<u64>().unwrap() < LONGEST_USEC, "{made}: {line}");
            assert_eq!(talk.ask("CF.EXISTS v same").integer(), 1);
        }
    }
}

/// With a damaged value in its file the host reports it and does not start; with an intact file it starts.
#[test]
fn a_damaged_file_is_an_error_and_no_crash() {
    let cases = cases();
    for program in programs() {
        let options = HostOptions::new().our_module(&[]).program(&program);
        let Some(mut host) = Host::start(&options) else { continue };
        let mut spoiled = cases[0].value.clone();
        spoiled.fields[1] = Field::Unsigned(1 << 40);
        for (value, starts) in [(&spoiled, false), (&cases[0].value, true)] {
            host.kill();
            std::fs::write(host.folder().join("dump.rdb"), rdb_file(&[("f".to_owned(), value)])).unwrap();
            assert_eq!(host.restart_with(&options), starts, "{}", host.log());
        }
        let log = host.log();
        assert!(log.contains("cannot be loaded"), "{log}");
        for crash in ["crashed by signal", "ASSERTION FAILED", "STACK TRACE", "panicked"] {
            assert!(!log.contains(crash), "{log}");
        }
    }
}
