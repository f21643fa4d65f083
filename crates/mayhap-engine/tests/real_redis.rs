//! The keyspace commands reply as a real Redis does, including the texts of refusals. Where Redis has a
//! string, we have a filter.

mod support;

#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use mayhap_command::{Limits, Refusal, Reply, Request, Scratch, table};
use mayhap_engine::{Engine, System};
use real::redis::Server;
use support::Dice;

struct Redis {
    connection: BufReader<UnixStream>,
    _server: Server,
}

impl Redis {
    fn start() -> Option<Self> {
        let server = Server::start()?;
        Some(Self { connection: server.connect(), _server: server })
    }

    fn ask(&mut self, words: &[&[u8]]) -> String {
        let mut sent = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            sent.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            sent.extend_from_slice(word);
            sent.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&sent).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        let line =
            line.strip_suffix("\r\n").unwrap_or_else(|| panic!("the reply ends in {line:?}")).to_owned();
        let number = || line[1..].parse::<i64>().unwrap();
        match line.as_bytes()[0] {
            b'*' => {
                let mut parts: Vec<String> = (0..number()).map(|_| self.reply()).collect();
                parts.sort_unstable();
                format!("[{}]", parts.join(" "))
            }
            b'$' => match usize::try_from(number()) {
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.connection.read_exact(&mut bytes).unwrap();
                    format!("{:?}", String::from_utf8_lossy(&bytes[..length]))
                }
                Err(_) => "nothing".into(),
            },
            _ => line,
        }
    }
}

/// Lists are sorted, because Redis has another order, and so has every run of ours.
fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Ok => "+OK".into(),
        Reply::Simple(text) => format!("+{text}"),
        Reply::Refused(refusal) => format!("-{refusal}"),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Bulk(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Reply::Null => "nothing".into(),
        Reply::Array(parts) => {
            let mut parts: Vec<String> = parts.iter().map(shown).collect();
            parts.sort_unstable();
            format!("[{}]", parts.join(" "))
        }
        reply => panic!("{reply:?}"),
    }
}

fn ours(engine: &Engine, words: &[&[u8]]) -> String {
    let command = table::find(words[0]).unwrap();
    if !command.arity.admits(words.len()) {
        return shown(&Refusal::WrongArity { command: command.name }.into());
    }
    let mut replies = Vec::new();
    engine.run(&[Request { command, words }], &mut Scratch::default(), &mut replies);
    shown(&replies[0])
}

struct Both {
    engine: Engine,
    redis: Redis,
}

impl Both {
    fn start() -> Option<Self> {
        let redis = Redis::start()?;
        Some(Self { engine: Engine::new(Limits::default(), Arc::new(System)), redis })
    }

    /// Gives a name a value.
    fn fill(&mut self, name: &[u8]) {
        if ours(&self.engine, &[b"exists", name]) == ":0" {
            assert_eq!(ours(&self.engine, &[b"bf.reserve", name, b"0.1", b"1"]), "+OK");
        }
        assert!(self.redis.ask(&[b"setrange", name, b"0", b"x"]).starts_with(':'));
    }

    fn ask(&mut self, words: &[&[u8]]) {
        let said: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        assert_eq!(ours(&self.engine, words), self.redis.ask(words), "{said:?}");
    }

    fn ask_line(&mut self, line: &str) {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }
}

#[test]
fn edge_cases_are_answered_in_the_words_of_redis() {
    let Some(mut both) = Both::start() else { return };
    both.fill(b"a");
    both.fill(b"b");
    for line in "
        wait x 1|wait 0 x|wait 0 -1|wait -1 0|move a 0|move a 1|move a x|move nokey 1|move a
        copy a c DB 1|copy a c DB x|copy a c DB -1|copy a a|copy a a DB 0|copy nokey c|copy a b|copy a b replace|copy a b foo
        copy nokey nokey|copy a c db|copy a c db 0 REPLACE replace|exists a c|copy a
        memory|memory foo|memory usage|memory usage nokey|memory usage a samples x|memory usage a samples -1
        memory usage a foo|memory usage a samples|memory help|memory help x|memory purge|memory stats x|memory doctor x
        memory usage nokey samples x|memory malloc-stats x|memory purge x
        object help|object help x|object refcount nokey|object refcount b|object freq a|object freq nokey|object encoding|object foo a|object foo|object
        object encoding nokey|object idletime nokey|object encoding a b|object encoding b|object idletime b x
        expire a 10 foo|expire a 10 nx xx|expire a 10 gt lt|expire a 10 gt lt nx|expire a x|expire a 9223372036854775807|expire a
        expire a -9223372036854775808|expire nokey -9223372036854775808|expire a 9223372036854775
        pexpire a 9223372036854775807|pexpire nokey 9223372036854775807|expireat a 9223372036854775807|expireat a 9223372036854775
        pexpireat a 9223372036854775807|pexpiretime a|persist a|persist a|expiretime a|ttl a|pttl a|ttl nokey|expiretime nokey
        expire a 1000 GT|expire a 1000 lt|expire a 500 LT XX|expire a 600 lt|expire a 700 gt xx|expire a 1 nx|persist a|expire a 10 XX
        expireat a 99999999999 NX|expireat a 99999999998 gt|expireat a 99999999998 lt|expiretime a|pexpiretime a|rename a c|expiretime c
        copy c a|expiretime a|copy b a|persist a|copy b a replace|expiretime a|rename c c|expiretime c|renamenx c c|renamenx c a|renamenx c d
        expireat d 1|exists d|expire b 0|exists b|expire a -1|exists a|pexpireat nokey 0|dbsize|randomkey
        scan x|scan 0 count 0|scan 0 count -1|scan 0 count x|scan 0 foo|scan 0 match|scan 0 type foo|scan 0 count|scan 0 count 5 match|scan -1
        scan 99999999999999999999|scan 18446744073709551615|scan 1x|scan|scan 0x|scan +0
        restore k -1 x|restore k x x|restore k 0 x|restore k 0 x idletime -1|restore k 0 x freq 256|restore k 0 x freq -1|restore k 0 x idletime 1 freq 2
        restore k 0 x foo|restore k 0 x idletime|restore k 0 x idletime y|restore k|dump nokey|dump
        rename a b|renamenx a b|rename a|rename nokey nokey|renamenx nokey nokey|type nokey|del|del nokey|unlink a a|touch|exists
        flushall foo|flushdb sync x|flushall async|flushdb SYNC|keys|keys *|dbsize x|randomkey x|persist|type"
        .split(['\n', '|'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        both.ask_line(line);
    }
    both.fill(b"a");
    both.ask_line("restore a 0 x");
    both.ask_line("restore a 0 x replace");
    both.ask_line("restore a -1 x");
    both.ask(&[b"scan", b""]);
    both.ask(&[b"scan", b" 0"]);
    both.ask(&[b"scan", b"0 "]);
    both.ask(&[b"expire", b"a", b"10", b"f\r\no"]);
    both.ask(&[b"object", b"f\r\no", b"a"]);
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let Some(mut both) = Both::start() else { return };
    let mut dice = Dice(5);
    for _ in 0..4_000 {
        let mut name = || format!("n{}", dice.below(6));
        let (one, other, third) = (name(), name(), name());
        match dice.below(14) {
            0..3 => both.fill(one.as_bytes()),
            3 => both.ask_line(&format!("del {one} {other}")),
            4 => both.ask_line(&format!("unlink {one}")),
            5 => both.ask_line(&format!("exists {one} {other} {third}")),
            6 => both.ask_line(&format!("rename {one} {other}")),
            7 => both.ask_line(&format!("renamenx {one} {other}")),
            8 => both.ask_line(&format!("copy {one} {other}{}", ["", " replace"][dice.below(2) as usize])),
            9 | 10 => {
                // Far in the future or the past, so that the exact times of both servers do not matter.
                let when = [99_999_990_000 + dice.below(5), 1][usize::from(dice.below(10) == 0)];
                let condition = ["", " nx", " xx", " gt", " lt", " xx gt", " lt xx"][dice.below(7) as usize];
                both.ask_line(&format!("expireat {one} {when}{condition}"));
            }
            11 => both.ask_line(&format!("expiretime {one}")),
            12 => both.ask_line(&format!("persist {one}")),
            _ => {
                both.ask_line("dbsize");
                both.ask_line("keys *");
                both.ask_line("scan 0 count 1000");
                both.ask_line(&format!("touch {one} {one}"));
            }
        }
    }
}

#[test]
fn patterns_match_what_redis_matches() {
    let Some(mut both) = Both::start() else { return };
    const BYTES: &[u8] = b"ab-]^\\*c";
    let mut dice = Dice(9);
    let mut word = |bytes: &[u8], most: u64| -> Vec<u8> {
        (0..1 + dice.below(most)).map(|_| bytes[dice.below(bytes.len() as u64) as usize]).collect()
    };
    for _ in 0..300 {
        both.fill(&word(BYTES, 4));
    }
    for _ in 0..4_000 {
        let pattern = word(b"aabbc*?[]^-\\", 7);
        both.ask(&[b"keys", &pattern]);
    }
}
