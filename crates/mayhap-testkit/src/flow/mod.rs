//! The checks of RedisBloom's own tests for `BF.*` and `CF.*`, rewritten from the facts they pin: requests and their expected replies. Our server and the
//! module in each host run the same cases, in both protocols.
//!
//! The replies to single requests are in the scripts of `mayhap-command`. The cases here need loops: filters that grow, dumps in pieces, damaged headers,
//! deletions, settings. A case notes where we differ from RedisBloom on purpose, and `docs/module.md` lists it.

mod bloom;
mod commands;
mod cuckoo;
mod settings;

use crate::host::{Talk, Wire};

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What the case shows.
    pub name: &'static str,
    /// Runs the case on an empty server with default settings.
    ///
    /// Panics if a reply differs.
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
    /// The protocol of the connection: 2 or 3.
    protocol: u8,
    /// Reloads all values from the server's own files, if it can.
    can_reload: bool,
}

/// Runs every case on a server, in both protocols, and returns their number. `forget` empties the server and resets its settings.
///
/// # Panics
/// If a case panics.
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
    /// Sends a request of words separated by blanks, and returns the reply.
    fn ask(&mut self, line: &str) -> Wire {
        self.talk.ask(line)
    }

    #[track_caller]
    fn ok(&mut self, line: &str) {
        assert_eq!(self.ask(line), Wire::Simple("OK".into()), "{line}");
    }

    /// Checks the error text of a request.
    #[track_caller]
    fn refused(&mut self, line: &str, text: &str) {
        assert_eq!(self.ask(line), Wire::Refused(text.into()), "{line}");
    }

    /// Sends a request that ends with these items.
    fn with_items(&mut self, line: &str, items: impl IntoIterator<Item = u32>) -> Wire {
        let words = line.split(' ').map(str::to_owned);
        let items = items.into_iter().map(|item| item.to_string());
        self.talk.ask_words(&words.chain(items).collect::<Vec<_>>())
    }

    /// Sends a request whose last word is these bytes.
    fn with_bytes(&mut self, line: &str, bytes: &[u8]) -> Wire {
        let mut words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        words.push(bytes);
        self.talk.ask_words(&words)
    }

    /// Reads a yes or no in the form of the protocol.
    #[track_caller]
    fn yes(&self, reply: &Wire) -> bool {
        match (self.protocol, reply) {
            (2, Wire::Integer(number @ 0..=1)) => *number == 1,
            (3, Wire::Boolean(yes)) => *yes,
            other => panic!("neither yes nor no in this protocol: {other:?}"),
        }
    }

    /// Sends a request that ends with these items, and returns the number of yes replies.
    #[track_caller]
    fn count_yes(&mut self, line: &str, items: std::ops::Range<u32>) -> usize {
        let reply = self.with_items(line, items.clone());
        let answers = reply.list();
        assert_eq!(answers.len(), items.len(), "{line}");
        answers.iter().filter(|answer| self.yes(answer)).count()
    }

    /// Returns the names of the fields of `*.INFO`, in order, and their values.
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

    /// Returns all replies of `SCANDUMP` until it returns 0: each chunk with its iterator, the header first.
    #[track_caller]
    fn chunks(&mut self, command: &str, name: &str) -> Vec<(i64, Vec<u8>)> {
        let (mut chunks, mut iterator) = (Vec::new(), 0);
        loop {
            let reply = self.ask(&format!("{command} {name} {iterator}"));
            let [Wire::Integer(next), chunk] = reply.list() else { panic!("{command}: {reply:?}") };
            if *next == 0 {
                let end = if command.starts_with("BF") { Wire::Bulk(Vec::new()) } else { Wire::Null };
                assert_eq!(*chunk, end, "{command} ends with an empty chunk");
                return chunks;
            }
            assert!(*next > iterator, "{command} makes progress");
            chunks.push((*next, chunk.bytes().to_vec()));
            iterator = *next;
        }
    }

    #[track_caller]
    fn load(&mut self, command: &str, name: &str, (iterator, chunk): &(i64, Vec<u8>)) {
        let reply = self.with_bytes(&format!("{command} {name} {iterator}"), chunk);
        assert_eq!(reply, Wire::Simple("OK".into()), "{command} {name} {iterator}");
    }

    /// Replaces a value by its restored payload, and reloads it from the server's own files if it can.
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
