//! `MEMORY`, `OBJECT`.

use mayhap_command::{Refusal, Reply, Request, Value, args};

use super::quoted;
use crate::engine::Engine;
use crate::entry::{Entry, Now};

const MEMORY_HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
    "HELP",
    "    Prints this help.",
];

const OBJECT_HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

fn help(lines: &[&'static str]) -> Reply {
    Reply::Array(lines.iter().map(|line| Reply::simple(line)).collect())
}

impl Engine {
    pub(super) fn memory(&self, request: &Request<'_>, now: Now) -> Result<Reply, Refusal> {
        let words = &request.words[2..];
        let arity = |word: &'static str, fits: bool| match fits {
            true => Ok(()),
            false => Err(Refusal::WrongSubcommandArity { command: request.command.name, word }),
        };
        match &request.words[1].to_ascii_lowercase()[..] {
            b"usage" => {
                arity("usage", !words.is_empty())?;
                match words[1..] {
                    [] => {}
                    [word, samples] if word.eq_ignore_ascii_case(b"samples") => {
                        let samples = args::integer(samples).ok_or(Refusal::NotAnInteger)?;
                        if samples < 0 {
                            return Err(Refusal::Syntax);
                        }
                    }
                    _ => return Err(Refusal::Syntax),
                }
                Ok(self.with_value(words[0], now, |entry, value| {
                    Reply::count(self.account(entry, Some(value)).memory_bytes)
                }))
            }
            b"doctor" => {
                arity("doctor", words.is_empty())?;
                let limit = self.budget.limit();
                Ok(Reply::Text(match limit {
                    0 => "No memory limit is set: filters may take all the memory there is.".into(),
                    limit => format!("{} of {limit} bytes are taken.", self.budget.used()),
                }))
            }
            b"malloc-stats" => {
                arity("malloc-stats", words.is_empty())?;
                Ok(Reply::Text("Stats not supported for the current allocator".into()))
            }
            b"purge" => arity("purge", words.is_empty()).map(|()| Reply::Ok),
            b"stats" => {
                arity("stats", words.is_empty())?;
                let totals = self.totals();
                let field = |name: &str, count: u64| (Reply::bulk(name), Reply::count(count));
                Ok(Reply::Map(vec![
                    field("total.allocated", totals.memory_bytes),
                    field("dataset.bytes", totals.memory_bytes),
                    field("keys.count", totals.names),
                    field("keys.bytes-per-key", totals.memory_bytes.checked_div(totals.names).unwrap_or(0)),
                ]))
            }
            b"help" => arity("help", words.is_empty()).map(|()| help(MEMORY_HELP)),
            _ => Err(unknown(request)),
        }
    }

    pub(super) fn object(&self, request: &Request<'_>, now: Now) -> Result<Reply, Refusal> {
        let asked: &'static str = match &request.words[1].to_ascii_lowercase()[..] {
            b"encoding" => "encoding",
            b"refcount" => "refcount",
            b"idletime" => "idletime",
            b"freq" => "freq",
            b"help" => "help",
            _ => return Err(unknown(request)),
        };
        let name = match (asked, &request.words[2..]) {
            ("help", []) => return Ok(help(OBJECT_HELP)),
            (asked, [name]) if asked != "help" => *name,
            _ => return Err(Refusal::WrongSubcommandArity { command: request.command.name, word: asked }),
        };
        let reply = self.with_value(name, now, |entry, value| match asked {
            "encoding" => Reply::bulk(encoding(value)),
            "refcount" => Reply::Integer(1),
            "idletime" => Reply::Integer(entry.idle_secs(now).into()),
            _ => Refusal::NoFrequency.into(),
        });
        match reply {
            Reply::Refused(refusal) => Err(*refusal),
            reply => Ok(reply),
        }
    }

    /// Looks at the value of a name without counting as use.
    fn with_value(&self, name: &[u8], now: Now, look: impl FnOnce(&Entry, &Value) -> Reply) -> Reply {
        let Some(entry) = self.find(name, now) else { return Reply::Null };
        let value = entry.read();
        value.as_ref().map_or(Reply::Null, |value| look(&entry, value))
    }
}

/// The encoding that Redis would use: integers as such, short strings embedded.
fn encoding(value: &Value) -> &'static str {
    const SHORT: usize = 44;
    match value {
        Value::Text(text) if args::integer(text.bytes()).is_some() => "int",
        Value::Text(text) if text.bytes().len() <= SHORT => "embstr",
        _ => "raw",
    }
}

fn unknown(request: &Request<'_>) -> Refusal {
    Refusal::UnknownSubcommand { command: request.command.name, word: quoted(request.words[1]) }
}
