//! What RedisBloom's own tests check of `BF.*` and `CF.*`, rebuilt from the facts they pin down: requests and what must come back. Our server and the module in
//! each host run the same cases, in both protocols.
//!
//! What single requests are answered is in the scripts of `mayhap-command`; the cases here are those that take loops: filters that grow, dumps in pieces, damaged
//! headers, deletions, settings. Where RedisBloom and we differ on purpose, the case says so, and `docs/module.md` lists it.

mod bloom;
mod commands;
mod cuckoo;
mod settings;

use crate::host::{Talk, Wire};

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    /// Runs it on an empty server whose settings are the defaults.
    ///
    /// Panics if something else comes back.
    pub run: fn(&mut Flow),
}

/// All cases.
pub fn cases() -> impl Iterator<Item = Case> {
    [bloom::CASES, cuckoo::CASES, settings::CASES, commands::CASES].into_iter().flatten().copied()
}

/// A connection that a case is run through.
#[derive(Debug)]
pub struct Flow {
    talk: Talk,
    /// Of the connection: 2 or 3.
    protocol: u8,
    /// Reads all values from its own files again, where it can.
    can_reload: bool,
}

/// Runs every case on a server, in both protocols, and says how many that were. `forget` empties the server and sets its settings back.
///
/// # Panics
/// If a case does.
pub fn run_all(connect: impl Fn() -> Talk, can_reload: bool, forget: impl Fn(&mut Talk)) -> usize {
    let mut done = 0;
    for protocol in [2, 3] {
        for case in cases() {
            let mut talk = connect();
            talk.must(&["HELLO", &protocol.to_string()]);
            forget(&mut talk);
            println!("RESP{protocol}: {}", case.name);
            (case.run)(&mut Flow { talk, protocol, can_reload });
            done += 1;
        }
    }
    let mut talk = connect();
    forget(&mut talk);
    done
}

impl Flow {
    /// The reply to words with blanks between them.
    fn ask(&mut self, line: &str) -> Wire {
        self.talk.ask(line)
    }

    #[track_caller]
    fn ok(&mut self, line: &str) {
        assert_eq!(self.ask(line), Wire::Simple("OK".into()), "{line}");
    }

    /// What a request is refused with.
    #[track_caller]
    fn refused(&mut self, line: &str, text: &str) {
        assert_eq!(self.ask(line), Wire::Refused(text.into()), "{line}");
    }

    /// A request that ends in these items.
    fn with_items(&mut self, line: &str, items: impl IntoIterator<Item = u32>) -> Wire {
        let words = line.split(' ').map(str::to_owned);
        let items = items.into_iter().map(|item| item.to_string());
        self.talk.ask_words(&words.chain(items).collect::<Vec<_>>())
    }

    /// A request with bytes as its last word.
    fn with_bytes(&mut self, line: &str, bytes: &[u8]) -> Wire {
        let mut words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        words.push(bytes);
        self.talk.ask_words(&words)
    }

    /// Yes or no, as the protocol has it.
    #[track_caller]
    fn yes(&self, reply: &Wire) -> bool {
        match (self.protocol, reply) {
            (2, Wire::Integer(number @ 0..=1)) => *number == 1,
            (3, Wire::Boolean(yes)) => *yes,
            other => panic!("neither yes nor no in this protocol: {other:?}"),
        }
    }

    /// How many of these items a request, which ends in them, says yes to.
    #[track_caller]
    fn count_yes(&mut self, line: &str, items: std::ops::Range<u32>) -> usize {
        let reply = self.with_items(line, items.clone());
        let answers = reply.list();
        assert_eq!(answers.len(), items.len(), "{line}");
        answers.iter().filter(|answer| self.yes(answer)).count()
    }

    /// The names of the fields of `*.INFO`, in order, and their values.
    #[track_caller]
    fn fields(&mut self, line: &str) -> Vec<(String, Wire)> {
        match (self.protocol, self.ask(line)) {
            (2, Wire::Array(list)) => list.chunks(2).map(|pair| (pair[0].text(), pair[1].clone())).collect(),
            (3, Wire::Map(pairs)) => pairs.into_iter().map(|(name, value)| (name.text(), value)).collect(),
            other => panic!("{line}: no fields in this protocol: {other:?}"),
        }
    }

    #[track_caller]
    fn number(&mut self, line: &str, field: &str) -> i64 {
        let fields = self.fields(line);
        fields.iter().find(|(name, _)| name == field).unwrap_or_else(|| panic!("no {field}")).1.integer()
    }

    /// All that `SCANDUMP` answers until it says 0: each chunk with the iterator that came with it, the header first.
    #[track_caller]
    fn chunks(&mut self, command: &str, name: &str) -> Vec<(i64, Vec<u8>)> {
        let (mut chunks, mut iterator) = (Vec::new(), 0);
        loop {
            let reply = self.ask(&format!("{command} {name} {iterator}"));
            let [Wire::Integer(next), chunk] = reply.list() else { panic!("{command}: {reply:?}") };
            if *next == 0 {
                let end = if command.starts_with("BF") { Wire::Bulk(Vec::new()) } else { Wire::Null };
                assert_eq!(*chunk, end, "{command} ends so");
                return chunks;
            }
            assert!(*next > iterator, "{command} goes on");
            chunks.push((*next, chunk.bytes().to_vec()));
            iterator = *next;
        }
    }

    #[track_caller]
    fn load(&mut self, command: &str, name: &str, (iterator, chunk): &(i64, Vec<u8>)) {
        let reply = self.with_bytes(&format!("{command} {name} {iterator}"), chunk);
        assert_eq!(reply, Wire::Simple("OK".into()), "{command} {name} {iterator}");
    }

    /// What a name holds comes back by a payload, and from the server's own files where it can read them again.
    #[track_caller]
    fn reload(&mut self, name: &str) {
        let payload = self.ask(&format!("DUMP {name}"));
        self.ask(&format!("DEL {name}"));
        let reply = self.with_bytes(&format!("RESTORE {name} 0"), payload.bytes());
        assert_eq!(reply, Wire::Simple("OK".into()), "RESTORE {name}");
        if self.can_reload {
            self.ok("DEBUG RELOAD");
        }
    }
}
