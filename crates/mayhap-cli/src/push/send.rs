//! Sends pieces to a temporary name, which finally takes the real one.

use std::path::Path;
use std::thread;

use mayhap::{Filter, Kind, say};
use mayhap_formats::Format;
use redis::Value;

use super::pieces::Pieces;
use crate::error::CliError;
use crate::interrupt;
use crate::progress::Progress;
use crate::remote::{Connection, Family, Remote, RemoteArgs, TemporaryName};

/// The amount of data sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) pieces: u64,
}

/// The destination of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) remote: &'a Remote,
    pub(crate) args: &'a RemoteArgs,
    pub(crate) family: Family,
    /// Replace an existing value of the name.
    pub(crate) force: bool,
}

impl Goal<'_> {
    /// Sends `filter`, which is the one in the file `path`, and gives it its name in one step.
    ///
    /// # Errors
    /// The filter was not stored, and no other data of it remains.
    pub(crate) fn send(
        &self,
        connection: &mut Connection,
        (filter, format): (&Filter, Format),
        path: &Path,
        progress: &Progress,
    ) -> Result<Sent, CliError> {
        let mut pieces = Pieces::of(filter, format, self.family, path)?;
        progress.phase("sending", Some(pieces.total_bytes()));
        // From here on, errors need cleaning up.
        let _polite = interrupt::polite();
        let loading = TemporaryName::new(self.remote);
        let mut sending = Sending { connection, family: self.family, loading: &loading };
        let mut send = || {
            let sent = sending.send_all(&mut pieces, progress, filter.kind())?;
            sending.check(filter)?;
            loading.take_real(sending.connection, self.remote, self.force)?;
            Ok(sent)
        };
        // A signal interrupts system calls of the first thread, so another thread talks to the server.
        let sent = thread::scope(|scope| scope.spawn(&mut send).join().unwrap_or(Err(CliError::Interrupted)));
        if sent.is_err() {
            loading.remove(connection, || self.remote.connect(self.args));
            interrupt::check()?;
        }
        sent
    }
}

/// A filter being sent.
struct Sending<'a> {
    connection: &'a mut Connection,
    family: Family,
    /// The name to send the pieces to.
    loading: &'a TemporaryName,
}

impl Sending<'_> {
    /// Sends all pieces; the server confirms each of them.
    fn send_all(
        &mut self,
        pieces: &mut Pieces<'_>,
        progress: &Progress,
        kind: Kind,
    ) -> Result<Sent, CliError> {
        let command = self.family.load_command();
        let mut sent = Sent::default();
        while let Some((iterator, piece)) = pieces.next()? {
            interrupt::check()?;
            let load =
                redis::cmd(command).arg(self.loading.as_bytes()).arg(iterator).arg(&piece[..]).to_owned();
            let answer = match self.connection.try_ask(&load)? {
                Ok(answer) => answer,
                Err(text) if sent.pieces == 0 && text.starts_with("unknown command") => {
                    return Err(cannot_take(self.connection, self.family, kind));
                }
                Err(text) => return Err(self.connection.odd(&text)),
            };
            sent.bytes += piece.len() as u64;
            sent.pieces += 1;
            // `MF.LOAD` replies with the number of missing bytes, the others with OK.
            let missing = pieces.total_bytes() - sent.bytes;
            let well = match self.family {
                Family::Mayhap => answer == Value::Int(missing as i64),
                Family::Bloom | Family::Cuckoo => matches!(answer, Value::Okay),
            };
            if !well {
                return Err(self.connection.unexpected(command, &answer));
            }
            self.loading.keep(self.connection)?;
            progress.done_bytes(sent.bytes);
        }
        Ok(sent)
    }

    /// Checks that the server counts as many items as the file.
    fn check(&mut self, filter: &Filter) -> Result<(), CliError> {
        let counted = match self.family {
            Family::Bloom => self.connection.ask(redis::cmd("BF.CARD").arg(self.loading.as_bytes()))?,
            Family::Cuckoo => {
                let info = self.connection.ask(redis::cmd("CF.INFO").arg(self.loading.as_bytes()))?;
                field(&info, "Number of items inserted").unwrap_or(info)
            }
            // The server checked the checksum before it replied that nothing is missing.
            Family::Mayhap => return Ok(()),
        };
        if counted == Value::Int(filter.inserted() as i64) {
            return Ok(());
        }
        let counted = match counted {
            Value::Int(counted) => format!("{counted}"),
            _ => "no number of".to_owned(),
        };
        Err(self
            .connection
            .odd(&format!("counts {counted} items instead of {}", say::items(filter.inserted()))))
    }
}

/// The error for a server that has no command for this filter.
pub(super) fn cannot_take(connection: &Connection, family: Family, kind: Kind) -> CliError {
    let command = family.load_command();
    connection.odd(&match family {
        Family::Mayhap => format!(
            "has no {command}: a Redis without mayhap's module accepts filters in the layouts of RedisBloom (with its module), \
             Redisson and Guava (--as guava), and this {} filter has another; build one from the items with \
             `mayhap build --format redis-bloom`, redis-cuckoo, redisson or guava",
            kind.name()
        ),
        Family::Bloom | Family::Cuckoo => {
            format!(
                "has no {command}: it is neither mayhap's server nor a Redis with a module for it; `mayhap module` shows how \
                 to load mayhap's, and `mayhap build --format redisson` or guava makes filters that need none"
            )
        }
    })
}

/// Returns a field of an `INFO` reply: a map, or a list in which names and values alternate.
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
