//! Reads a filter from a server, piece by piece. Everything the server sends is checked before it is used.

use mayhap::codec;
use mayhap::{DecodeError, Filter};
use mayhap_formats::redis_rdb::{self, RdbPayload, Value as Restored};
use mayhap_formats::{redis_bloom, redis_cuckoo};
use redis::Value;

use crate::error::CliError;
use crate::progress::Progress;
use crate::remote::{Connection, Family, Remote};

/// The number of attempts to read a filter that changes in between.
const TRIES: u32 = 5;

/// Reads the filter of this name.
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
                "changed during each of {TRIES} attempts to read it: stop writing to it while it is pulled"
            )))
        }
    }
}

/// Reads a filter with a secret key: in one piece, with `DUMP`.
pub(super) fn keyed_filter(
    connection: &mut Connection,
    remote: &Remote,
    family: Family,
    progress: &Progress,
) -> Result<Filter, CliError> {
    Fetching { connection, remote, family, progress }.keyed()
}

/// A filter being read.
struct Fetching<'a> {
    connection: &'a mut Connection,
    remote: &'a Remote,
    family: Family,
    progress: &'a Progress,
}

impl Fetching<'_> {
    /// Reads a filter of RedisBloom; `None` if it changed in between, so that the pieces may not fit together.
    fn redis(&mut self) -> Result<Option<Filter>, CliError> {
        let (first, header) = self.piece(0)?;
        if self.family == Family::Cuckoo && first == 0 && header.is_empty() {
            // An empty cuckoo filter has no chunks.
            return self.restored().map(Some);
        }
        if first != 1 {
            return Err(self.invalid_reply("the first piece is not a header"));
        }
        let remaining = match self.family {
            Family::Cuckoo => redis_cuckoo::bytes_behind(&header),
            _ => redis_bloom::bytes_behind(&header),
        };
        let remaining = remaining.map_err(|error| self.undecodable(&error))?;
        self.progress.phase("receiving", Some(remaining));
        let mut bytes = header.clone();
        // The iterator is the number of received bytes plus 1.
        let (mut iterator, mut came) = (1_i64, 0_u64);
        while came < remaining {
            let (next, piece) = self.piece(iterator)?;
            came += piece.len() as u64;
            let expected = i64::try_from(came).ok().and_then(|came| came.checked_add(1));
            if piece.is_empty() || came > remaining || Some(next) != expected {
                return Err(self.invalid_reply("the pieces are not consecutive"));
            }
            bytes.extend_from_slice(&piece);
            iterator = next;
            self.progress.done_bytes(came);
        }
        let (_, now) = self.piece(0)?;
        let read = match self.family {
            Family::Cuckoo if now != header => return Ok(None),
            Family::Cuckoo => redis_cuckoo::read(&bytes).map(Filter::ScalableCuckoo),
            // Bits are never cleared: if the layers are the same, all items from the beginning are in what was read.
            _ if redis_bloom::bytes_behind(&now) != Ok(remaining) => return Ok(None),
            _ => redis_bloom::read(&bytes).map(Filter::ScalableBloom),
        };
        read.map(Some).map_err(|error| self.undecodable(&error))
    }

    /// Returns the reply to `DUMP`.
    fn payload(&mut self) -> Result<Vec<u8>, CliError> {
        match self.connection.ask(redis::cmd("DUMP").arg(self.remote.name()))? {
            Value::BulkString(payload) => Ok(payload),
            answer => Err(self.connection.unexpected("DUMP", &answer)),
        }
    }

    /// Reads a filter with a secret key.
    fn keyed(&mut self) -> Result<Filter, CliError> {
        let payload = self.payload()?;
        match redis_rdb::read_payload(&payload, u64::MAX) {
            Ok(RdbPayload::Mayhap { bytes, .. }) => {
                Filter::decode(&bytes).map_err(|error| self.undecodable(&error))
            }
            Ok(_) => Err(self.cli_error("invalid reply to DUMP: it is of another filter")),
            Err(error) => Err(self.undecodable(&error)),
        }
    }

    /// Reads a filter from its `DUMP`.
    fn restored(&mut self) -> Result<Filter, CliError> {
        let payload = self.payload()?;
        // No size limit: an empty filter compresses well, but unpacks to no more than a filter with items.
        match redis_rdb::read_dump(&payload, u64::MAX) {
            Ok(Restored::Cuckoo(filter)) => Ok(Filter::ScalableCuckoo(filter)),
            Ok(_) => Err(self.invalid_reply("the dump is of another filter")),
            Err(error) => Err(self.undecodable(&error)),
        }
    }

    /// Reads an MF.* filter.
    fn mayhap(&mut self) -> Result<Filter, CliError> {
        let (mut iterator, mut bytes) = self.piece(0)?;
        let total = codec::length_of(&bytes).map_err(|error| self.undecodable(&error))?;
        self.progress.phase("receiving", Some(total));
        while iterator != 0 {
            self.progress.done_bytes(bytes.len() as u64);
            let (next, piece) = self.piece(iterator)?;
            if piece.is_empty() || bytes.len() as u64 + piece.len() as u64 > total {
                return Err(self.invalid_reply("the pieces are not consecutive"));
            }
            bytes.extend_from_slice(&piece);
            iterator = next;
        }
        Filter::decode(&bytes).map_err(|error| self.undecodable(&error))
    }

    /// Returns a piece and its iterator.
    fn piece(&mut self, iterator: i64) -> Result<(i64, Vec<u8>), CliError> {
        let command = self.family.dump_command();
        let answer = self.connection.ask(redis::cmd(command).arg(self.remote.name()).arg(iterator))?;
        match answer {
            Value::Array(mut pair) if pair.len() == 2 => match (pair.pop(), pair.pop()) {
                (Some(Value::BulkString(piece)), Some(Value::Int(next))) => Ok((next, piece)),
                (Some(Value::Nil), Some(Value::Int(next))) => Ok((next, Vec::new())),
                _ => Err(self.invalid_reply("the reply is not a piece of a filter")),
            },
            other => Err(self.connection.unexpected(command, &other)),
        }
    }

    fn undecodable(&self, error: &DecodeError) -> CliError {
        let what = format!("invalid reply to {}: it is not a filter: {error}", self.family.dump_command());
        CliError::WrongFormat { name: self.remote.shown(), format: self.family.format(), what }
    }

    fn invalid_reply(&self, what: &str) -> CliError {
        self.cli_error(&format!("invalid reply to {}: {what}", self.family.dump_command()))
    }

    fn cli_error(&self, what: &str) -> CliError {
        CliError::Filter { name: self.remote.shown(), what: what.to_owned() }
    }
}
