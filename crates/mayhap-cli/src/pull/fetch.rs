//! A filter out of a server, piece by piece. Nothing the server says is believed before it was checked.

use mayhap::codec::redis_rdb::{self, Payload, Value as Restored};
use mayhap::codec::{self, redis_bloom, redis_cuckoo};
use mayhap::{DecodeError, Filter};
use redis::Value;

use crate::error::CliError;
use crate::progress::Progress;
use crate::remote::{Connection, Family, Remote};

/// So often a filter is begun anew that changes under our hands.
const TRIES: u32 = 5;

/// The filter of this name.
pub(crate) fn filter(
    connection: &mut Connection,
    remote: &Remote,
    family: Family,
    progress: &Progress,
) -> Result<Filter, CliError> {
    let mut fetching = Fetching { connection, remote, family, progress };
    match family {
        Family::Mayhap => fetching.mayhap(),
        Family::Bloom | Family::Cuckoo => {
            for _ in 0..TRIES {
                if let Some(filter) = fetching.redis()? {
                    return Ok(filter);
                }
            }
            Err(fetching.cli_error(&format!(
                "changed while it was read, {TRIES} times: nobody may write to it meanwhile"
            )))
        }
    }
}

/// The filter of this name, which has a secret key: whole, as `DUMP` has it.
pub(super) fn keyed_filter(
    connection: &mut Connection,
    remote: &Remote,
    family: Family,
    progress: &Progress,
) -> Result<Filter, CliError> {
    Fetching { connection, remote, family, progress }.keyed()
}

/// A filter that is being read.
struct Fetching<'a> {
    connection: &'a mut Connection,
    remote: &'a Remote,
    family: Family,
    progress: &'a Progress,
}

impl Fetching<'_> {
    /// A filter of RedisBloom's; `None`: it changed meanwhile, so that pieces may not fit together.
    fn redis(&mut self) -> Result<Option<Filter>, CliError> {
        let (first, header) = self.piece(0)?;
        if self.family == Family::Cuckoo && first == 0 && header.is_empty() {
            // An empty cuckoo filter has no chunks.
            return self.restored().map(Some);
        }
        if first != 1 {
            return Err(self.nonsense("its first piece is no header"));
        }
        let behind = match self.family {
            Family::Cuckoo => redis_cuckoo::bytes_behind(&header),
            _ => redis_bloom::bytes_behind(&header),
        };
        let behind = behind.map_err(|error| self.undecodable(&error))?;
        self.progress.phase("receiving", Some(behind));
        let mut bytes = header.clone();
        // The iterator is 1 more than the bytes that came.
        let (mut iterator, mut came) = (1_i64, 0_u64);
        while came < behind {
            let (next, piece) = self.piece(iterator)?;
            came += piece.len() as u64;
            let expected = i64::try_from(came).ok().and_then(|came| came.checked_add(1));
            if piece.is_empty() || came > behind || Some(next) != expected {
                return Err(self.nonsense("its pieces do not follow each other"));
            }
            bytes.extend_from_slice(&piece);
            iterator = next;
            self.progress.done_bytes(came);
        }
        let (_, now) = self.piece(0)?;
        let read = match self.family {
            Family::Cuckoo if now != header => return Ok(None),
            Family::Cuckoo => redis_cuckoo::read(&bytes).map(Filter::ScalableCuckoo),
            // Bits are never cleared: whoever was in it at the beginning is in what was read, as long as it has the same layers.
            _ if redis_bloom::bytes_behind(&now) != Ok(behind) => return Ok(None),
            _ => redis_bloom::read(&bytes).map(Filter::ScalableBloom),
        };
        read.map(Some).map_err(|error| self.undecodable(&error))
    }

    /// What `DUMP` answers.
    fn payload(&mut self) -> Result<Vec<u8>, CliError> {
        match self.connection.ask(redis::cmd("DUMP").arg(self.remote.name()))? {
            Value::BulkString(payload) => Ok(payload),
            answer => Err(self.connection.unexpected("DUMP", &answer)),
        }
    }

    /// A filter with a secret key.
    fn keyed(&mut self) -> Result<Filter, CliError> {
        let payload = self.payload()?;
        match redis_rdb::read_payload(&payload, u64::MAX) {
            Ok(Payload::Mayhap { bytes, .. }) => {
                Filter::decode(&bytes).map_err(|error| self.undecodable(&error))
            }
            Ok(_) => Err(self.cli_error("DUMP makes no sense: it is of another filter")),
            Err(error) => Err(self.undecodable(&error)),
        }
    }

    /// A filter as `DUMP` has it.
    fn restored(&mut self) -> Result<Filter, CliError> {
        let payload = self.payload()?;
        // An empty filter is packed well, and yet the payload of one that is not empty would be no longer.
        match redis_rdb::read_dump(&payload, u64::MAX) {
            Ok(Restored::Cuckoo(filter)) => Ok(Filter::ScalableCuckoo(filter)),
            Ok(_) => Err(self.nonsense("its dump is of another filter")),
            Err(error) => Err(self.undecodable(&error)),
        }
    }

    /// A filter of ours.
    fn mayhap(&mut self) -> Result<Filter, CliError> {
        let (mut iterator, mut bytes) = self.piece(0)?;
        let total = codec::length_of(&bytes).map_err(|error| self.undecodable(&error))?;
        self.progress.phase("receiving", Some(total));
        while iterator != 0 {
            self.progress.done_bytes(bytes.len() as u64);
            let (next, piece) = self.piece(iterator)?;
            if piece.is_empty() || bytes.len() as u64 + piece.len() as u64 > total {
                return Err(self.nonsense("its pieces do not follow each other"));
            }
            bytes.extend_from_slice(&piece);
            iterator = next;
        }
        Filter::decode(&bytes).map_err(|error| self.undecodable(&error))
    }

    /// A piece, and the iterator that came with it.
    fn piece(&mut self, iterator: i64) -> Result<(i64, Vec<u8>), CliError> {
        let command = self.family.dump_command();
        let answer = self.connection.ask(redis::cmd(command).arg(self.remote.name()).arg(iterator))?;
        match answer {
            Value::Array(mut pair) if pair.len() == 2 => match (pair.pop(), pair.pop()) {
                (Some(Value::BulkString(piece)), Some(Value::Int(next))) => Ok((next, piece)),
                (Some(Value::Nil), Some(Value::Int(next))) => Ok((next, Vec::new())),
                _ => Err(self.nonsense("an answer is no piece of a filter")),
            },
            other => Err(self.connection.unexpected(command, &other)),
        }
    }

    fn undecodable(&self, error: &DecodeError) -> CliError {
        let what = format!("{} makes no sense: what came is no filter: {error}", self.family.dump_command());
        CliError::NotSuch { name: self.remote.shown(), format: self.family.format(), what }
    }

    fn nonsense(&self, what: &str) -> CliError {
        self.cli_error(&format!("{} makes no sense: {what}", self.family.dump_command()))
    }

    fn cli_error(&self, what: &str) -> CliError {
        CliError::Filter { name: self.remote.shown(), what: what.to_owned() }
    }
}
