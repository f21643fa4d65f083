//! A whole RDB file, as Redis and Valkey write it: every key with its value, one after the other.
//!
//! ```text
//! ┌───────────────┬──────────────────────────────────────┬───┬────┬──────────┐
//! │ REDIS0012     │ opcodes (database, expiry, aux data) │ … │ ff │ CRC-64   │
//! │ VALKEY080     │ type, key, value                     │   │    │ or zeros │
//! └───────────────┴──────────────────────────────────────┴───┴────┴──────────┘
//! ```
//!
//! [`FileReader`] returns strings, RedisBloom's filters and our own filters as `RESTORE` payloads. It skips all other values and returns only
//! their type. It keeps one value in memory at a time. The checksum is at the end of the file: read a file to its end once before you use its
//! values.

use std::io::{self, Read};

use mayhap::DecodeError;

use super::crc64::Crc64;
use super::{MODULE_2, OwnType, STRING, ValueType, module_name, seal};

/// The newest version of Redis files that can be read: Redis 8.
const NEWEST_REDIS: u16 = 14;
/// Valkey's versions count from 80.
const VALKEY: std::ops::RangeInclusive<u16> = 80..=89;
/// Files have a checksum since this version.
const CHECKSUM_SINCE: u16 = 5;
/// The longest key: the limit for strings in Redis.
const MAX_NAME_BYTES: u64 = 512 << 20;
/// Bytes read at a time; the memory for a string grows with the bytes that arrive.
const PIECE_BYTES: usize = 64 << 10;

/// Why an RDB file could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RdbFileError {
    /// The file could not be read, or is truncated.
    Io {
        /// Bytes read so far.
        offset: u64,
        /// The I/O error.
        source: io::Error,
    },
    /// The file does not begin as an RDB file.
    NotRdb,
    /// The file has an unknown version.
    Version {
        /// The version in the file.
        got: u16,
    },
    /// A number is invalid where it was found.
    Field {
        /// Bytes read so far.
        offset: u64,
        /// The name of the number.
        field: &'static str,
        /// The number.
        got: u64,
    },
    /// A value has an unknown type, so its end and everything after it cannot be read.
    ValueType {
        /// Bytes read so far.
        offset: u64,
        /// The type.
        got: u8,
        /// The key, with special bytes escaped.
        key: String,
    },
    /// A value is larger than the caller allows.
    TooLarge {
        /// The key, with special bytes escaped.
        key: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The checksum of the file does not match its bytes.
    Checksum,
    /// There are bytes after the end of the file's content.
    TrailingBytes,
}

impl std::fmt::Display for RdbFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { offset, source } if source.kind() == io::ErrorKind::UnexpectedEof => {
                write!(f, "rdb file ends at byte {offset}, in the middle of a value")
            }
            Self::Io { offset, .. } => write!(f, "could not read the rdb file at byte {offset}"),
            Self::NotRdb => f.write_str("not an rdb file: it begins with neither REDIS nor VALKEY"),
            Self::Version { got } => {
                write!(
                    f,
                    "rdb version {got} is unknown: supported are versions 1 to {NEWEST_REDIS} of Redis and {} to {} of Valkey",
                    VALKEY.start(),
                    VALKEY.end()
                )
            }
            Self::Field { offset, field, got } => {
                write!(f, "rdb file: {field} cannot be {got}, before byte {offset}")
            }
            Self::ValueType { offset, got, key } => {
                write!(
                    f,
                    "rdb file: key {key} has a value of unknown type {got}, before byte {offset}; nothing after it can be read"
                )
            }
            Self::TooLarge { key, limit } => {
                write!(f, "rdb file: the value of key {key} is larger than the limit of {limit} bytes")
            }
            Self::Checksum => f.write_str("rdb file is damaged: its checksum does not match its bytes"),
            Self::TrailingBytes => f.write_str("rdb file has extra bytes after its end"),
        }
    }
}

impl std::error::Error for RdbFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// One key of an RDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The number of the database.
    pub database: u64,
    /// The key.
    pub name: Vec<u8>,
    /// The expiry time in milliseconds since 1970.
    pub expires_at_ms: Option<u64>,
    /// The value.
    pub value: EntryValue,
}

/// The value of a key in an RDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryValue {
    /// A string, as its `DUMP` payload.
    String(Vec<u8>),
    /// A RedisBloom filter, as its `DUMP` payload.
    RedisBloom(ValueType, Vec<u8>),
    /// A filter of our own module, as its `DUMP` payload.
    Mayhap(Vec<u8>),
    /// A value that is neither a string nor a filter: its type as Redis names it (`list`, `hash`, or a module's type such as `TDIS-TYPE`).
    Other(String),
}

/// An iterator that reads an RDB file key by key. It ends with the file, or after the first error.
#[derive(Debug)]
pub struct FileReader<R> {
    input: R,
    crc: Crc64,
    offset: u64,
    version: u16,
    database: u64,
    /// The bytes of the current value, if they are to be returned.
    kept: Option<Vec<u8>>,
    limit_bytes: u64,
    ended: bool,
}

impl<R: Read> FileReader<R> {
    /// Opens an RDB file. A value may have at most `limit_bytes`.
    ///
    /// # Errors
    /// [`RdbFileError`] for a file that is not an RDB file, or has a newer version.
    pub fn new(input: R, limit_bytes: u64) -> Result<Self, RdbFileError> {
        let mut reader = Self {
            input,
            crc: Crc64::default(),
            offset: 0,
            version: 0,
            database: 0,
            kept: None,
            limit_bytes,
            ended: false,
        };
        let head: [u8; 9] = reader.array()?;
        let digits = head
            .strip_prefix(b"REDIS")
            .or_else(|| head.strip_prefix(b"VALKEY"))
            .ok_or(RdbFileError::NotRdb)?;
        let version = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let version: u16 = version.ok_or(RdbFileError::NotRdb)?;
        if !(1..=NEWEST_REDIS).contains(&version) && !VALKEY.contains(&version) {
            return Err(RdbFileError::Version { got: version });
        }
        reader.version = version;
        Ok(reader)
    }

    /// The version of the file.
    #[must_use]
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the rest of the file, and checks the checksum at its end.
    ///
    /// # Errors
    /// The first [`RdbFileError`].
    pub fn check_to_the_end(self) -> Result<(), RdbFileError> {
        for entry in self {
            entry?;
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RdbFileError> {
        let offset = self.offset;
        self.input.read_exact(bytes).map_err(|source| RdbFileError::Io { offset, source })?;
        self.crc.update(bytes);
        self.offset += bytes.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbFileError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, RdbFileError> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a length, or returns `Err` with the number of a special encoding.
    fn any_length(&mut self) -> Result<Result<u64, u8>, RdbFileError> {
        let first = self.byte()?;
        Ok(match (first >> 6, first & 63) {
            (0, low) => Ok(low.into()),
            (1, high) => Ok(u64::from(high) << 8 | u64::from(self.byte()?)),
            (2, 0) => Ok(u32::from_be_bytes(self.array()?).into()),
            (2, 1) => Ok(u64::from_be_bytes(self.array()?)),
            (3, special) => Err(special),
            _ => {
                return Err(RdbFileError::Field {
                    offset: self.offset,
                    field: "a length",
                    got: first.into(),
                });
            }
        })
    }

    fn length(&mut self) -> Result<u64, RdbFileError> {
        let length = self.any_length()?;
        length.map_err(|got| RdbFileError::Field {
            offset: self.offset,
            field: "a length",
            got: 0xc0 | u64::from(got),
        })
    }

    fn lengths(&mut self, count: u64) -> Result<(), RdbFileError> {
        (0..count).try_for_each(|_| self.length().map(drop))
    }

    /// Skips `count` bytes, and keeps them if the value is kept.
    fn skip(&mut self, mut count: u64) -> Result<(), RdbFileError> {
        let mut piece = [0; PIECE_BYTES];
        while count > 0 {
            let part = count.min(PIECE_BYTES as u64) as usize;
            self.check_limit(part)?;
            self.fill(&mut piece[..part])?;
            count -= part as u64;
        }
        Ok(())
    }

    /// Reserves room for `more` bytes of the kept value.
    fn check_limit(&mut self, more: usize) -> Result<(), RdbFileError> {
        let limit = self.limit_bytes;
        let too_large = || RdbFileError::TooLarge { key: String::new(), limit };
        let Some(kept) = &mut self.kept else { return Ok(()) };
        if (kept.len() + more) as u64 > limit || kept.try_reserve(more).is_err() {
            return Err(too_large());
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), RdbFileError> {
        let bytes = match self.any_length()? {
            Ok(length) => length,
            Err(special @ 0..=2) => 1 << special,
            Err(3) => {
                let packed = self.length()?;
                self.length()?;
                packed
            }
            Err(got) => {
                let got = 0xc0 | u64::from(got);
                return Err(RdbFileError::Field { offset: self.offset, field: "a string", got });
            }
        };
        self.skip(bytes)
    }

    fn strings(&mut self, count: u64) -> Result<(), RdbFileError> {
        (0..count).try_for_each(|_| self.string())
    }

    /// Reads the uncompressed bytes of a string.
    fn name(&mut self) -> Result<Vec<u8>, RdbFileError> {
        let limit = std::mem::replace(&mut self.limit_bytes, MAX_NAME_BYTES);
        self.kept = Some(Vec::new());
        let read = self.string();
        self.limit_bytes = limit;
        let bytes = self.kept.take().unwrap_or_default();
        read?;
        let mut fields = super::DumpFields::new(&bytes, MAX_NAME_BYTES);
        let name = fields.raw_string();
        let bad =
            |_: DecodeError| RdbFileError::Field { offset: self.offset, field: "a packed string", got: 0xc3 };
        name.map(std::borrow::Cow::into_owned).map_err(bad)
    }

    /// Skips the fields of a module's value.
    fn module_fields(&mut self) -> Result<(), RdbFileError> {
        loop {
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => drop(self.length()?),
                3 => self.skip(4)?,
                4 => self.skip(8)?,
                5 => self.string()?,
                got => {
                    return Err(RdbFileError::Field {
                        offset: self.offset,
                        field: "type of a module's field",
                        got,
                    });
                }
            }
        }
    }

    /// Skips a stream of one of its three types.
    fn stream(&mut self, value_type: u8) -> Result<(), RdbFileError> {
        let (second, third) = (value_type >= 19, value_type >= 21);
        let nodes = self.length()?;
        self.strings(nodes.saturating_mul(2))?;
        self.lengths(if second { 8 } else { 3 })?;
        for _ in 0..self.length()? {
            self.string()?;
            self.lengths(if second { 3 } else { 2 })?;
            for _ in 0..self.length()? {
                self.skip(16 + 8)?;
                self.length()?;
            }
            for _ in 0..self.length()? {
                self.string()?;
                self.skip(if third { 16 } else { 8 })?;
                let pending = self.length()?;
                self.skip(pending.saturating_mul(16))?;
            }
        }
        Ok(())
    }

    /// Skips a value that is neither a string nor a module's, and returns its type.
    fn other(&mut self, value_type: u8) -> Result<Option<&'static str>, RdbFileError> {
        let valkey = VALKEY.contains(&self.version);
        Ok(Some(match value_type {
            1 | 2 | 14 => {
                let count = self.length()?;
                self.strings(count)?;
                if value_type == 2 { "set" } else { "list" }
            }
            3 => {
                for _ in 0..self.length()? {
                    self.string()?;
                    let digits = self.byte()?;
                    // 253 to 255 encode NaN and the infinities.
                    self.skip(if digits < 253 { digits.into() } else { 0 })?;
                }
                "zset"
            }
            4 => {
                let count = self.length()?;
                self.strings(count.saturating_mul(2))?;
                "hash"
            }
            5 => {
                for _ in 0..self.length()? {
                    self.string()?;
                    self.skip(8)?;
                }
                "zset"
            }
            9 | 13 | 16 => self.string().map(|()| "hash")?,
            10 => self.string().map(|()| "list")?,
            11 | 20 => self.string().map(|()| "set")?,
            12 | 17 => self.string().map(|()| "zset")?,
            15 | 19 | 21 => self.stream(value_type).map(|()| "stream")?,
            18 => {
                for _ in 0..self.length()? {
                    self.length()?;
                    self.string()?;
                }
                "list"
            }
            // Hashes with expiring fields: Valkey uses the number for something else.
            22 if valkey => {
                for _ in 0..self.length()? {
                    self.strings(2)?;
                    self.skip(8)?;
                }
                "hash"
            }
            24 => {
                self.skip(8)?;
                for _ in 0..self.length()? {
                    self.length()?;
                    self.strings(2)?;
                }
                "hash"
            }
            25 => {
                self.skip(8)?;
                self.string()?;
                "hash"
            }
            _ => return Ok(None),
        }))
    }

    /// Reads the value after a key, as a payload if it is a string or a filter.
    fn value(&mut self, value_type: u8, name: &[u8]) -> Result<EntryValue, RdbFileError> {
        let payload = |kept: Option<Vec<u8>>| {
            let mut payload = kept.unwrap_or_default();
            seal(&mut payload, PAYLOAD_VERSION);
            payload
        };
        match value_type {
            STRING => {
                self.kept = Some(vec![STRING]);
                self.string()?;
                Ok(EntryValue::String(payload(self.kept.take())))
            }
            MODULE_2 => {
                self.kept = Some(vec![MODULE_2]);
                let id = self.length()?;
                let filter = ValueType::of_id(id).ok().map(|(filter, _)| filter);
                let is_mayhap = OwnType::of_id(id).is_some();
                if filter.is_none() && !is_mayhap {
                    self.kept = None;
                }
                self.module_fields()?;
                let kept = self.kept.take();
                Ok(match filter {
                    Some(filter) => EntryValue::RedisBloom(filter, payload(kept)),
                    None if is_mayhap => EntryValue::Mayhap(payload(kept)),
                    None => EntryValue::Other(module_name(id)),
                })
            }
            _ => {
                let known = self.other(value_type)?;
                let unknown =
                    || RdbFileError::ValueType { offset: self.offset, got: value_type, key: escaped(name) };
                known.map(|name| EntryValue::Other(name.to_owned())).ok_or_else(unknown)
            }
        }
    }

    /// Reads the next key; `None` after the last key, if the checksum is right.
    fn entry(&mut self) -> Result<Option<Entry>, RdbFileError> {
        let mut expires_at_ms = None;
        loop {
            match self.byte()? {
                // The cluster slot of the next keys, and their number.
                244 => self.lengths(3)?,
                245 => self.string()?,
                247 => {
                    self.lengths(3)?;
                    self.module_fields()?;
                }
                248 => drop(self.length()?),
                249 => drop(self.byte()?),
                250 => self.strings(2)?,
                251 => self.lengths(2)?,
                252 => expires_at_ms = Some(u64::from_le_bytes(self.array()?)),
                253 => expires_at_ms = Some(u64::from(u32::from_le_bytes(self.array()?)) * 1000),
                254 => self.database = self.length()?,
                255 => return self.end().map(|()| None),
                value_type @ 0..=63 => {
                    let name = self.name()?;
                    let value = self.value(value_type, &name).map_err(|error| match error {
                        RdbFileError::TooLarge { limit, .. } => {
                            RdbFileError::TooLarge { key: escaped(&name), limit }
                        }
                        other => other,
                    })?;
                    return Ok(Some(Entry { database: self.database, name, expires_at_ms, value }));
                }
                got => {
                    return Err(RdbFileError::Field {
                        offset: self.offset,
                        field: "an opcode",
                        got: got.into(),
                    });
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), RdbFileError> {
        let computed = self.crc.value();
        if self.version >= CHECKSUM_SINCE {
            let said = u64::from_le_bytes(self.array()?);
            // Zero: the server was configured to write no checksum.
            if said != 0 && said != computed {
                return Err(RdbFileError::Checksum);
            }
        }
        let offset = self.offset;
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(RdbFileError::TrailingBytes),
            Err(source) => Err(RdbFileError::Io { offset, source }),
        }
    }
}

/// The version of payloads made from a file's values. Every server reads it, and the fields are the same in all versions.
const PAYLOAD_VERSION: u16 = 10;

impl<R: Read> Iterator for FileReader<R> {
    type Item = Result<Entry, RdbFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.entry().transpose();
        self.ended = !matches!(entry, Some(Ok(_)));
        entry
    }
}

/// The key as printable text.
fn escaped(name: &[u8]) -> String {
    const SHOWN: usize = 80;
    name[..name.len().min(SHOWN)].escape_ascii().to_string()
}
