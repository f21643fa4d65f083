//! A real Redis and this engine get the same commands on bitmaps and strings: the replies are equal,
//! including the texts of refusals.

// Other programs, found and run as in the tests of the library.
#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use mayhap_command::{Limits, Reply, Request, Scratch, table};
use mayhap_engine::{Engine, System};
use mayhap_testkit::rng::Rng;

use real::redis::Server;

/// A RESP2 reply.
#[derive(Debug, PartialEq)]
enum Wire {
    Simple(String),
    Refused(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Wire>),
}

struct Redis {
    connection: BufReader<UnixStream>,
    _server: Server,
}

impl Redis {
    fn start() -> Option<Self> {
        let server = Server::start()?;
        Some(Self { connection: server.connect(), _server: server })
    }

    fn ask(&mut self, words: &[Vec<u8>]) -> Wire {
        let mut sent = Vec::new();
        write!(sent, "*{}\r\n", words.len()).unwrap();
        for word in words {
            write!(sent, "${}\r\n", word.len()).unwrap();
            sent.extend_from_slice(word);
            sent.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&sent).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> Wire {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        let line = line.trim_end_matches("\r\n");
        let (kind, rest) = line.split_at(1);
        match kind {
            "+" => Wire::Simple(rest.into()),
            "-" => Wire::Refused(rest.into()),
            ":" => Wire::Integer(rest.parse().unwrap()),
            "*" => Wire::Array((0..rest.parse().unwrap()).map(|_| self.reply()).collect()),
            _ => match rest.parse::<usize>() {
                Err(_) => Wire::Bulk(None),
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.connection.read_exact(&mut bytes).unwrap();
                    bytes.truncate(length);
                    Wire::Bulk(Some(bytes))
                }
            },
        }
    }
}

fn ours(engine: &Engine, words: &[Vec<u8>]) -> Wire {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let command = table::find(words[0]).unwrap();
    if !command.arity.admits(words.len()) {
        return Wire::Refused(format!("ERR wrong number of arguments for '{}' command", command.name));
    }
    let mut replies = Vec::new();
    engine.run(&[Request { command, words: &words }], &mut Scratch::default(), &mut replies);
    wire(replies.remove(0))
}

fn wire(reply: Reply) -> Wire {
    match reply {
        Reply::Ok => Wire::Simple("OK".into()),
        Reply::Simple(text) => Wire::Simple(text.into_owned()),
        Reply::Refused(refusal) => Wire::Refused(refusal.to_string()),
        Reply::Integer(number) => Wire::Integer(number),
        Reply::Boolean(answer) => Wire::Integer(answer.into()),
        Reply::Bulk(bytes) => Wire::Bulk(Some(bytes)),
        Reply::Null => Wire::Bulk(None),
        Reply::Array(replies) => Wire::Array(replies.into_iter().map(wire).collect()),
        reply => panic!("{reply:?}"),
    }
}

/// Words of every command, valid ones more often than others.
struct Script(Rng);

impl Script {
    fn one(&mut self, of: &[&str]) -> Vec<u8> {
        of[self.0.below(of.len() as u64) as usize].into()
    }

    fn name(&mut self) -> Vec<u8> {
        self.one(&["a", "b", "c", "missing"])
    }

    fn offset(&mut self) -> Vec<u8> {
        match self.0.below(20) {
            0 => self.one(&["-1", "x", "4294967296", "", "1.5", "01", "9223372036854775808"]),
            1 => "70000".into(),
            _ => self.0.below(200).to_string().into(),
        }
    }

    fn index(&mut self) -> Vec<u8> {
        match self.0.below(20) {
            0 => self.one(&["x", "", "9223372036854775807", "-9223372036854775808", "1000000"]),
            1..=9 => format!("-{}", self.0.below(40)).into(),
            _ => self.0.below(40).to_string().into(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.0.below(20);
        let kind = self.0.below(4);
        (0..length)
            .map(|_| match kind {
                0 => 0,
                1 => 0xff,
                _ => self.0.below(256) as u8,
            })
            .collect()
    }

    fn field(&mut self) -> [Vec<u8>; 2] {
        let kind = match self.0.below(12) {
            0 => self.one(&["u64", "i65", "u0", "x8", "i", "", "U8"]),
            _ => format!("{}{}", if self.0.below(2) == 0 { 'i' } else { 'u' }, self.0.below(63) + 1).into(),
        };
        let place = match self.0.below(8) {
            0 => format!("#{}", self.0.below(9)).into(),
            1 => self.one(&["#", "#-1", "x", "#99999999999", "-3"]),
            _ => self.0.below(120).to_string().into(),
        };
        [kind, place]
    }

    fn number(&mut self) -> Vec<u8> {
        match self.0.below(6) {
            0 => self.one(&["x", "9223372036854775807", "-9223372036854775808", "-1", "0"]),
            1..=3 => (self.0.below(1 << 20) as i64 - (1 << 19)).to_string().into(),
            _ => (self.0.below(512) as i64 - 256).to_string().into(),
        }
    }

    fn line(&mut self) -> Vec<Vec<u8>> {
        let name = self.name();
        let command = self.one(&[
            "SETBIT",
            "SETBIT",
            "SETBIT",
            "GETBIT",
            "BITCOUNT",
            "BITPOS",
            "BITPOS",
            "BITOP",
            "BITOP",
            "BITFIELD",
            "BITFIELD",
            "BITFIELD_RO",
            "GET",
            "SET",
            "SET",
            "GETDEL",
            "STRLEN",
            "GETRANGE",
            "SETRANGE",
            "APPEND",
            "DEL",
            "EXISTS",
            "TYPE",
        ]);
        let mut line = vec![command.clone(), name];
        match &command[..] {
            b"SETBIT" => line.extend([self.offset(), self.one(&["0", "1", "1", "0", "2", "x", "-1", "01"])]),
            b"GETBIT" => line.push(self.offset()),
            b"BITCOUNT" => {
                line.extend((0..self.0.below(3)).map(|_| self.index()));
                self.unit(&mut line, 4);
            }
            b"BITPOS" => {
                line.push(self.one(&["0", "1", "1", "0", "2", "x"]));
                line.extend((0..self.0.below(3)).map(|_| self.index()));
                self.unit(&mut line, 5);
            }
            b"BITOP" => {
                line.insert(1, self.one(&["AND", "or", "XOR", "NOT", "NOT", "NAND"]));
                line.extend((0..=self.0.below(3)).map(|_| self.name()));
            }
            b"BITFIELD" | b"BITFIELD_RO" => {
                for _ in 0..self.0.below(4) {
                    let step = match command.len() {
                        8 => self.one(&["GET", "SET", "incrby", "OVERFLOW", "overflow", "DANCE"]),
                        _ => self.one(&["GET", "GET", "GET", "SET"]),
                    };
                    line.push(step.clone());
                    match &step[..] {
                        b"OVERFLOW" | b"overflow" => {
                            line.push(self.one(&["WRAP", "sat", "FAIL", "fail", "x"]));
                        }
                        b"GET" => line.extend(self.field()),
                        _ => {
                            line.extend(self.field());
                            line.push(self.number());
                        }
                    }
                }
                if self.0.below(20) == 0 {
                    line.pop();
                }
            }
            b"SET" => {
                line.push(self.bytes());
                for _ in 0..self.0.below(3) {
                    let option = self.one(&["NX", "XX", "GET", "KEEPTTL", "EX", "px", "DANCE"]);
                    let timed = matches!(&option[..], b"EX" | b"px");
                    line.push(option);
                    if timed {
                        line.push(self.one(&["1000", "100000", "0", "-5", "x", "9223372036854775807"]));
                    }
                }
            }
            b"GETRANGE" => line.extend([self.index(), self.index()]),
            b"SETRANGE" => line.extend([self.index(), self.bytes()]),
            b"APPEND" => line.push(self.bytes()),
            _ => {}
        }
        line
    }

    fn unit(&mut self, line: &mut Vec<Vec<u8>>, full: usize) {
        if line.len() == full || self.0.below(30) == 0 {
            match self.0.below(4) {
                0 => line.push(self.one(&["BYTE", "byte"])),
                1 | 2 => line.push(self.one(&["BIT", "bit"])),
                _ => line.extend((0..self.0.below(2)).map(|_| b"x".to_vec())),
            }
        }
    }
}

#[test]
fn strings_of_bits_answer_like_redis() {
    const LINES: u64 = 30_000;
    let Some(mut redis) = Redis::start() else { return };
    let engine = Engine::new(Limits::default(), Arc::new(System));
    let mut script = Script(Rng::new(42));
    let mut refused = 0;
    for number in 0..LINES {
        let line = script.line();
        let theirs = redis.ask(&line);
        let shown: Vec<String> = line.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(ours(&engine, &line), theirs, "line {number}: {shown:?}");
        refused += u64::from(matches!(theirs, Wire::Refused(_)));
        if number % 16 == 0 {
            for name in ["a", "b", "c"] {
                let get = [b"GET".to_vec(), name.into()];
                assert_eq!(ours(&engine, &get), redis.ask(&get), "after line {number}: {shown:?}");
            }
        }
    }
    assert!(refused > LINES / 20 && refused < LINES / 2, "{refused}");
}

/// Expiries that commands set reach the engine.
#[test]
fn names_expire_when_a_command_says_so() {
    let engine = Engine::new(Limits::default(), Arc::new(System));
    let run = |line: &str| {
        let words: Vec<Vec<u8>> = line.split(' ').map(Into::into).collect();
        ours(&engine, &words)
    };
    let lives = |name: &str| match run(&format!("TTL {name}")) {
        Wire::Integer(seconds) => seconds,
        reply => panic!("{reply:?}"),
    };
    run("SET a x EX 1000");
    assert!((900..=1000).contains(&lives("a")));
    run("SET a y KEEPTTL");
    assert!((900..=1000).contains(&lives("a")));
    run("APPEND a z");
    assert!((900..=1000).contains(&lives("a")));
    run("SET a y");
    assert_eq!(lives("a"), -1);
    run("SET a y PXAT 5");
    assert_eq!(run("GET a"), Wire::Bulk(None), "it has expired long ago");
    run("MF.RESERVE seen CAPACITY 1000 EXPIRE 500");
    assert!((400..=500).contains(&lives("seen")));
    run("MF.ADD seen x");
    assert!((400..=500).contains(&lives("seen")));
}
