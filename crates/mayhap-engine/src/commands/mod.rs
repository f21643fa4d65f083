//! The commands on the keyspace, with the replies of Redis 7.

mod dump;
mod expire;
mod inspect;
mod rename;
mod scan;

use mayhap_command::run::Keyspace as Command;
use mayhap_command::{Refusal, Reply, Request, Value, args};

use crate::engine::{Engine, Turn};
use crate::entry::{Entry, Now};

impl Engine {
    pub(crate) fn apply_to_keyspace(
        &self,
        command: Command,
        request: &Request<'_>,
        turn: &Turn<'_>,
    ) -> Result<Reply, Refusal> {
        let now = turn.now;
        match command {
            Command::Delete => self.delete(request, turn),
            Command::Exists => Ok(self.count_held(request, now, |_| {})),
            Command::Touch => Ok(self.count_held(request, now, |entry| entry.touch(now))),
            Command::Type => Ok(Reply::simple(
                self.find(request.name(), now)
                    .and_then(|entry| entry.read().as_ref().map(Value::type_name))
                    .unwrap_or("none"),
            )),
            Command::Rename => self.rename(request, turn),
            Command::RenameNew => self.rename_new(request, turn),
            Command::Copy => self.copy(request, turn),
            Command::Move => {
                only_database(args::integer(request.words[2]).ok_or(Refusal::NotAnInteger)?)?;
                Err(Refusal::SameName)
            }
            Command::Scan => self.scan(request, now),
            Command::List => self.list(request, now),
            Command::Random => Ok(self.random(now)),
            Command::Count => Ok(Reply::count(self.statistics.names())),
            Command::Flush => {
                match request.words[1..] {
                    [] => {}
                    [word] if word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync") => {}
                    _ => return Err(Refusal::Syntax),
                }
                self.log_flush(request, turn.moment);
                self.flush();
                Ok(Reply::Ok)
            }
            Command::Expire(moment) => self.expire(request, moment, turn),
            Command::Remaining(moment) => Ok(self.remaining(request, moment, now)),
            Command::Persist => Ok(self.persist(request, turn)),
            Command::Dump => self.dump(request, now),
            Command::Restore => self.restore(request, turn),
            Command::Memory => self.memory(request, now),
            Command::Object => self.object(request, now),
            Command::Wait => {
                args::integer(request.words[1]).ok_or(Refusal::NotAnInteger)?;
                match args::integer(request.words[2]).ok_or(Refusal::BadTimeout)? {
                    ..0 => Err(Refusal::NegativeTimeout),
                    _ => Ok(Reply::Integer(0)),
                }
            }
            // A command from a newer table than this engine.
            _ => Err(Refusal::Syntax),
        }
    }

    fn delete(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let now = turn.now;
        let mut removed = 0;
        for name in &request.words[1..] {
            // Names that do not exist are not created just to be removed.
            if self.find(name, now).is_some() {
                removed += self.hold(name, now, |hold| {
                    let held = hold.remove();
                    if held {
                        hold.log(self.log_removed(name, Some(turn.moment)));
                    }
                    u64::from(held)
                });
            }
        }
        Ok(Reply::count(removed))
    }

    fn count_held(&self, request: &Request<'_>, now: Now, each: impl Fn(&Entry)) -> Reply {
        let held = request.words[1..].iter().filter(|name| {
            self.find(name, now).is_some_and(|entry| {
                let held = entry.read();
                each(&entry);
                held.is_some()
            })
        });
        Reply::count(held.count() as u64)
    }
}

/// There is only one database.
fn only_database(number: i64) -> Result<(), Refusal> {
    match number {
        0 => Ok(()),
        _ => Err(Refusal::NoSuchDatabase),
    }
}

/// The part of a word that a refusal repeats, without line breaks.
fn quoted(word: &[u8]) -> String {
    String::from_utf8_lossy(word)
        .chars()
        .take(128)
        .map(|c| if c == '\r' || c == '\n' { ' ' } else { c })
        .collect()
}
