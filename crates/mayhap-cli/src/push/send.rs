//! Pieces on their way to a temporary name, which takes the real one in the end.

use std::io::Read as _;

use mayhap::advise::say;
use mayhap::{Filter, Kind};
use redis::Value;

use super::pieces::Pieces;
use crate::interrupt;
use crate::progress::Progress;
use crate::remote::{Connection, Family, Remote};
use crate::trouble::Trouble;

/// A temporary name whose sender is gone goes away after so long; every piece begins it anew.
const FORGOTTEN_SECS: u64 = 600;

/// What went over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) pieces: u64,
}

/// A filter on its way.
pub(super) struct Sending<'a> {
    connection: &'a mut Connection,
    remote: &'a Remote,
    family: Family,
    /// Where the pieces go.
    loading: Vec<u8>,
}

impl<'a> Sending<'a> {
    pub(super) fn new(connection: &'a mut Connection, remote: &'a Remote, family: Family) -> Self {
        let loading = [slot_twin(remote.name()), format!(":loading:{:016x}", random()).into_bytes()].concat();
        Self { connection, remote, family, loading }
    }

    /// Sends all pieces; the server has said yes to each of them.
    pub(super) fn send_all(
        &mut self,
        pieces: &mut Pieces<'_>,
        progress: &Progress,
        kind: Kind,
    ) -> Result<Sent, Trouble> {
        let command = self.family.load_command();
        let mut sent = Sent::default();
        while let Some((iterator, piece)) = pieces.next()? {
            interrupt::check()?;
            let load = redis::cmd(command).arg(&self.loading).arg(iterator).arg(&piece[..]).to_owned();
            let answer = match self.connection.try_ask(&load)? {
                Ok(answer) => answer,
                Err(text) if sent.pieces == 0 && text.starts_with("unknown command") => {
                    return Err(cannot_take(self.connection, self.family, kind));
                }
                Err(text) => return Err(self.connection.odd(&text)),
            };
            sent.bytes += piece.len() as u64;
            sent.pieces += 1;
            // `MF.LOAD` says how many bytes are missing, the others that all is well.
            let missing = pieces.total_bytes() - sent.bytes;
            let well = match self.family {
                Family::Mayhap => answer == Value::Int(missing as i64),
                Family::Bloom | Family::Cuckoo => matches!(answer, Value::Okay),
            };
            if !well {
                return Err(self.connection.unexpected(command, &answer));
            }
            self.connection.ask(redis::cmd("EXPIRE").arg(&self.loading).arg(FORGOTTEN_SECS))?;
            progress.done_bytes(sent.bytes);
        }
        Ok(sent)
    }

    /// Has the server as many items in it as the file?
    pub(super) fn check(&mut self, filter: &Filter) -> Result<(), Trouble> {
        let counted = match self.family {
            Family::Bloom => self.connection.ask(redis::cmd("BF.CARD").arg(&self.loading))?,
            Family::Cuckoo => {
                let info = self.connection.ask(redis::cmd("CF.INFO").arg(&self.loading))?;
                field(&info, "Number of items inserted").unwrap_or(info)
            }
            // It was told apart from its checksum before it said that nothing is missing.
            Family::Mayhap => return Ok(()),
        };
        if counted == Value::Int(filter.inserted() as i64) {
            return Ok(());
        }
        let counted = match counted {
            Value::Int(counted) => format!("{counted}"),
            _ => "no number of".to_owned(),
        };
        Err(self.connection.odd(&format!("has {counted} items of {}", say::items(filter.inserted()))))
    }

    /// Gives the filter its name, in one step.
    pub(super) fn take_name(&mut self, force: bool) -> Result<(), Trouble> {
        interrupt::check()?;
        let taken = || Trouble::Filter {
            name: self.remote.shown(),
            what: "was made by somebody else meanwhile: --force replaces it".into(),
        };
        if !force {
            self.connection.ask(redis::cmd("WATCH").arg(self.remote.name()))?;
            if self.connection.type_of(self.remote.name())? != "none" {
                return Err(taken());
            }
        }
        let mut commands = redis::pipe();
        commands.cmd("PERSIST").arg(&self.loading);
        commands.cmd(if force { "RENAME" } else { "RENAMENX" }).arg(&self.loading).arg(self.remote.name());
        let answers = self.connection.at_once(&mut commands)?.ok_or_else(taken)?;
        match (force, answers.last()) {
            (true, Some(Value::Okay)) | (false, Some(Value::Int(1))) => Ok(()),
            (false, Some(Value::Int(0))) => Err(taken()),
            (_, answer) => Err(self.connection.unexpected("RENAME", answer.unwrap_or(&Value::Nil))),
        }
    }

    /// Removes what was sent, through another connection where this one is broken. If that cannot be done it goes away by itself.
    pub(super) fn give_up(&mut self, connect: impl FnOnce() -> Result<Connection, Trouble>) {
        let mut remove = redis::cmd("DEL");
        remove.arg(&self.loading);
        if self.connection.ask(&remove).is_err()
            && let Ok(mut another) = connect()
        {
            let _ = another.ask(&remove);
        }
    }
}

/// The beginning of names that are in one slot of a cluster with `name`: in braces, unless those would be others.
fn slot_twin(name: &[u8]) -> Vec<u8> {
    if name.iter().any(|byte| b"{}".contains(byte)) { name.to_vec() } else { [b"{", name, b"}"].concat() }
}

/// The server has no command for such a filter.
pub(super) fn cannot_take(connection: &Connection, family: Family, kind: Kind) -> Trouble {
    let command = family.load_command();
    connection.odd(&match family {
        Family::Mayhap => format!(
            "has no {command}: a Redis without mayhap's module takes filters in the layouts of RedisBloom (with its module), of \
             Redisson and of Guava (--as guava), and this {} filter is in another; build one from the items with \
             `mayhap build --format redis-bloom`, redis-cuckoo, redisson or guava",
            kind.name()
        ),
        Family::Bloom | Family::Cuckoo => {
            format!(
                "has no {command}: it is neither mayhap's server nor a Redis with a module for it; `mayhap module` says how \
                 to load ours, and --format redisson or guava of `mayhap build` makes filters that need none"
            )
        }
    })
}

/// The number of a field in what `INFO` commands answer: pairs, or a list in which names and values alternate.
fn field(info: &Value, name: &str) -> Option<Value> {
    let is_name = |value: &Value| match value {
        Value::SimpleString(text) => text == name,
        Value::BulkString(bytes) => bytes == name.as_bytes(),
        _ => false,
    };
    match info {
        Value::Array(list) => list.chunks_exact(2).find(|pair| is_name(&pair[0])).map(|pair| pair[1].clone()),
        Value::Map(pairs) => pairs.iter().find(|(field, _)| is_name(field)).map(|(_, value)| value.clone()),
        _ => None,
    }
}

/// A number that no other sender has.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id()) << 40
        }
    }
}
