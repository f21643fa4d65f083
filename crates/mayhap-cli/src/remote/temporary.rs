//! A temporary name for a new filter, until the filter takes the real name in one step.

use std::io::Read as _;

use redis::Value;

use super::{Connection, Remote};
use crate::error::CliError;
use crate::interrupt;

/// If its creator is gone, a temporary name expires after this many seconds.
const FORGOTTEN_SECS: u64 = 600;

/// A name that no other program uses, in the same cluster slot as the real name.
#[derive(Debug)]
pub(crate) struct TemporaryName {
    name: Vec<u8>,
}

impl TemporaryName {
    /// Makes a temporary name for the name of `remote`.
    pub(crate) fn new(remote: &Remote) -> Self {
        let random = format!(":loading:{:016x}", random()).into_bytes();
        Self { name: [slot_twin(remote.name()), random].concat() }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.name
    }

    /// Restarts the time after which the name expires.
    pub(crate) fn keep(&self, connection: &mut Connection) -> Result<(), CliError> {
        connection.ask(redis::cmd("EXPIRE").arg(&self.name).arg(FORGOTTEN_SECS)).map(drop)
    }

    /// Renames the filter to the real name in one step; without `force`, only if that name is free.
    pub(crate) fn take_real(
        &self,
        connection: &mut Connection,
        remote: &Remote,
        force: bool,
    ) -> Result<(), CliError> {
        interrupt::check()?;
        let taken = || CliError::Filter {
            name: remote.shown(),
            what: "was created by another program in the meantime: --force replaces it".into(),
        };
        if !force {
            connection.ask(redis::cmd("WATCH").arg(remote.name()))?;
            if connection.type_of(remote.name())? != "none" {
                return Err(taken());
            }
        }
        let mut commands = redis::pipe();
        commands.cmd("PERSIST").arg(&self.name);
        commands.cmd(if force { "RENAME" } else { "RENAMENX" }).arg(&self.name).arg(remote.name());
        let answers = connection.at_once(&mut commands)?.ok_or_else(taken)?;
        match (force, answers.last()) {
            (true, Some(Value::Okay)) | (false, Some(Value::Int(1))) => Ok(()),
            (false, Some(Value::Int(0))) => Err(taken()),
            (_, answer) => Err(connection.unexpected("RENAME", answer.unwrap_or(&Value::Nil))),
        }
    }

    /// Removes the name, over a new connection if this one is broken. If both fail, the name expires.
    pub(crate) fn remove(
        &self,
        connection: &mut Connection,
        connect: impl FnOnce() -> Result<Connection, CliError>,
    ) {
        connection.ask_or_by_another(redis::cmd("DEL").arg(&self.name), connect);
    }
}

/// The beginning of names in the same cluster slot as `name`: in braces, unless `name` contains braces.
fn slot_twin(name: &[u8]) -> Vec<u8> {
    if name.iter().any(|byte| b"{}".contains(byte)) { name.to_vec() } else { [b"{", name, b"}"].concat() }
}

/// A random number that no other program uses.
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
