//! Random input: the decoder finds the same requests wherever the bytes are split and never panics; a session
//! answers every request exactly once. With `MAYHAP_FUZZ_SECS`, both run for that many seconds with new
//! seeds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mayhap_command::table;
use mayhap_fuzz::random::Random;
use mayhap_fuzz::resp::{Words, decode, encode};
use mayhap_server::resp::Limits;
use mayhap_server::{Running, Server, Settings};

/// Calls `round` with one seed after another: `rounds` times, or as often as fits into `MAYHAP_FUZZ_SECS`.
fn for_seeds(rounds: u64, mut round: impl FnMut(u64)) {
    let seconds = std::env::var("MAYHAP_FUZZ_SECS").ok().and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut seed = 0;
    while end.map_or(seed < rounds, |end| Instant::now() < end) {
        round(seed);
        seed += 1;
    }
}

/// A pipeline with some bytes changed.
fn pipeline(random: &mut Random) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"*",
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"-1",
        b"0",
        b"1",
        b"3",
        b"12",
        b"99999999999",
        b"\"",
        b"'",
        b"\\",
        b"\\x4",
        b" ",
        b"\0",
        b"PING",
        b"a b",
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n",
        b"\xff\x80",
    ];
    let mut bytes = Vec::new();
    for _ in 0..random.below(12) {
        match random.below(3) {
            0 => {
                let request: Words = (0..=random.below(4))
                    .map(|_| (0..random.below(20)).map(|_| random.next() as u8).collect())
                    .collect();
                bytes.extend_from_slice(&encode(&request));
            }
            1 => bytes.extend_from_slice(b"set \"a b\" 'c' d\r\n"),
            _ => bytes.extend_from_slice(random.of::<&[u8]>(PIECES)),
        }
    }
    for _ in 0..random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[at] = random.next() as u8,
            1 => drop(bytes.remove(at)),
            _ => drop(bytes.splice(at..at, random.of(PIECES).iter().copied())),
        }
    }
    bytes
}

#[test]
fn the_decoder_finds_the_same_requests_wherever_bytes_are_split() {
    let limits = Limits::default();
    for_seeds(20_000, |seed| {
        let mut random = Random(seed);
        let bytes = pipeline(&mut random);
        let whole = decode(&bytes, &[], &limits);
        let mut splits: Vec<usize> = (0..random.below(6)).map(|_| random.below(bytes.len() + 1)).collect();
        splits.sort_unstable();
        assert_eq!(
            decode(&bytes, &splits, &limits),
            whole,
            "seed {seed}, {:?} split at {splits:?}",
            bytes.escape_ascii()
        );
        if seed % 16 == 0 {
            let everywhere: Vec<usize> = (0..bytes.len()).collect();
            assert_eq!(
                decode(&bytes, &everywhere, &limits),
                whole,
                "seed {seed}, {:?}",
                bytes.escape_ascii()
            );
        }
        let again: Vec<u8> = whole.0.iter().flat_map(|request| encode(request)).collect();
        assert_eq!(decode(&again, &[], &limits), (whole.0, None), "seed {seed}, {:?}", bytes.escape_ascii());
    });
}

/// Reads a reply in either protocol. Returns its first line, for messages.
fn read_reply(replies: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    let mut bytes = Vec::new();
    replies.read_until(b'\n', &mut bytes).expect("a reply");
    line.push_str(&String::from_utf8_lossy(&bytes));
    assert!(line.ends_with("\r\n"), "no line: {line:?}");
    let length = || line[1..line.len() - 2].parse::<i64>().unwrap_or_else(|_| panic!("no length: {line:?}"));
    let nested = match line.as_bytes()[0] {
        b'$' | b'=' => {
            let length = length();
            if length >= 0 {
                let mut bulk = vec![0; usize::try_from(length).unwrap() + 2];
                replies.read_exact(&mut bulk).expect("all of a bulk string");
                assert!(bulk.ends_with(b"\r\n"));
                bulk.truncate(bulk.len() - 2);
                return String::from_utf8_lossy(&bulk).into_owned();
            }
            0
        }
        b'*' | b'~' => length().max(0),
        b'%' => length() * 2,
        b'+' | b'-' | b':' | b'#' | b'_' | b',' => 0,
        _ => panic!("no reply: {line:?}"),
    };
    for _ in 0..nested {
        read_reply(replies);
    }
    line
}

fn start(folder: &std::path::Path) -> Running {
    let socket = folder.join("s");
    let settings = Settings { port: None, unix_socket: Some(socket), workers: 1, ..Settings::default() };
    let server = Server::start(settings).unwrap();
    server.shared().engine().budget().set_limit(64 << 20);
    server
}

/// Words that commands know, and unknown words.
const WORDS: &[&[u8]] = &[
    b"a",
    b"b",
    b"",
    b"0",
    b"1",
    b"-1",
    b"2",
    b"3",
    b"0.01",
    b"100",
    b"65536",
    b"1073741824",
    b"9223372036854775807",
    b"1e400",
    b"nan",
    b"inf",
    b"\xff\0\r\n",
    b"ITEMS",
    b"CAPACITY",
    b"ERROR",
    b"EXPANSION",
    b"NONSCALING",
    b"NOCREATE",
    b"BUCKETSIZE",
    b"MAXITERATIONS",
    b"KIND",
    b"FPR",
    b"bloom",
    b"cuckoo",
    b"blocked",
    b"BEGIN",
    b"ADD",
    b"COMMIT",
    b"ABORT",
    b"AND",
    b"OR",
    b"NOT",
    b"XOR",
    b"BIT",
    b"BYTE",
    b"MATCH",
    b"*",
    b"COUNT",
    b"NX",
    b"XX",
    b"GT",
    b"REPLACE",
    b"ABSTTL",
    b"GET",
    b"LIST",
    b"INFO",
    b"HELP",
    b"DOCS",
    b"GETKEYS",
    b"ID",
    b"SETNAME",
    b"SETINFO",
    b"LIB-NAME",
    b"TYPE",
    b"normal",
    b"USAGE",
    b"ENCODING",
    b"LATEST",
    b"RESET",
    b"KEYSLOT",
    b"WHOAMI",
    b"CAT",
    b"AUTH",
    b"default",
    b"FILTERBY",
    b"PATTERN",
    b"[",
    b"client|list",
    b"bf.add",
    b"EXACT",
    b"SAMPLES",
];

#[test]
fn a_session_answers_every_request_exactly_once() {
    let folder = std::env::temp_dir().join(format!("mayhap-random-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = start(&folder);
    let mut stream = UnixStream::connect(folder.join("s")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    // Commands that close the connection or the server, or wait.
    let names: Vec<&str> = table::all()
        .map(|command| command.name)
        .filter(|name| !["quit", "shutdown", "debug"].contains(name))
        .collect();
    for_seeds(120, |seed| {
        let mut random = Random(seed);
        let mut requests: Vec<Words> = (0..64)
            .map(|_| {
                let name = random.of(&names).as_bytes().to_vec();
                let words = (0..random.below(7)).map(|_| random.of(WORDS).to_vec());
                std::iter::once(name).chain(words.collect::<Vec<_>>()).collect()
            })
            .collect();
        requests.push(vec![b"RESET".to_vec()]);
        requests.push(vec![b"ECHO".to_vec(), format!("end of {seed}").into_bytes()]);
        let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
        stream.write_all(&bytes).unwrap();
        let got: Vec<String> = requests.iter().map(|_| read_reply(&mut replies)).collect();
        assert_eq!(got.last(), Some(&format!("end of {seed}")), "seed {seed}, {requests:?}: {got:?}");
    });
    drop((stream, replies));
    drop(server);
    std::fs::remove_dir_all(&folder).unwrap();
}
