//! The contents of a log record, as bytes. `docs/format.md` draws them.
//!
//! ```text
//! 1 items       name length u32 │ name │ hashes of the items that were new, 16 bytes each
//! 2 words       time ms u64 │ bytes drawn u32 │ random bytes │ words u32 │ words: length u32, bytes
//! 3 removed     name
//! 4 parameters  pairs: length u32, name, length u32, value; one of them is the parts that lost names, if there are any
//! ```
//!
//! All numbers are little-endian. Records come from our own log, whose frames have checksums. The decoder
//! still validates everything.

use std::fmt;

use mayhap::{ItemHash, WellMixed};
use mayhap_command::run::kept_words;
use mayhap_command::{Parameters, parameters};

const ITEMS: u8 = 1;
const WORDS: u8 = 2;
const REMOVED: u8 = 3;
const PARAMETERS: u8 = 4;
/// The name of the pair that is not a parameter.
const LOST_PARTS: &[u8] = b"lost-parts";
const HASH_BYTES: usize = size_of::<u128>();

/// A decoded record.
#[derive(Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// These items were new to the Bloom filter with this name, and were inserted.
    Items { name: &'a [u8], hashes: Vec<ItemHash> },
    /// This request changed something.
    Words {
        /// When it ran, in milliseconds since 1970.
        ms: u64,
        /// The random bytes it drew.
        random: &'a [u8],
        words: Vec<&'a [u8]>,
    },
    /// This name was removed: it expired or was deleted.
    Removed { name: &'a [u8] },
    /// The defaults for new filters from here on, and the parts that lost names.
    Parameters(Box<Parameters>, u64),
}

/// Why a record could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// The record is too short.
    TooShort,
    /// A newer version of the program wrote it.
    UnknownKind {
        /// The kind in its first byte.
        got: u8,
    },
    /// The command is unknown, or has the wrong number of words.
    UnknownCommand {
        /// The name of the command.
        word: String,
    },
    /// The parameter is unknown, or its value is invalid.
    UnknownParameter {
        /// The parameter.
        name: String,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("the record ends too early"),
            Self::UnknownKind { got } => write!(f, "unknown record kind {got}"),
            Self::UnknownCommand { word } => write!(f, "unknown command {word:?}"),
            Self::UnknownParameter { name } => write!(f, "unknown parameter or invalid value: {name:?}"),
        }
    }
}

impl std::error::Error for RecordError {}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    // All words are far shorter: at most 512 MiB.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn items(name: &[u8], hashes: &[ItemHash], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(5 + name.len() + hashes.len() * HASH_BYTES);
    out.push(ITEMS);
    put(name, out);
    for hash in hashes {
        out.extend_from_slice(&hash.to_u128().to_le_bytes());
    }
}

/// Encodes a request without the words in `left_out`, which are counted from its end.
pub(crate) fn words(ms: u64, random: &[u8], words: &[&[u8]], left_out: &[usize]) -> Vec<u8> {
    let kept = kept_words(words.len(), left_out);
    let length: usize = words.iter().map(|word| word.len() + 4).sum();
    let mut out = Vec::with_capacity(17 + random.len() + length);
    out.push(WORDS);
    out.extend_from_slice(&ms.to_le_bytes());
    put(random, &mut out);
    out.extend_from_slice(&u32::try_from(kept.len()).unwrap_or(u32::MAX).to_le_bytes());
    kept.into_iter().for_each(|at| put(words[at], &mut out));
    out
}

pub(crate) fn removed(name: &[u8]) -> Vec<u8> {
    [&[REMOVED], name].concat()
}

/// Encodes the defaults for new filters, and the parts that lost names.
pub(crate) fn parameters(parameters: &Parameters, lost_parts: u64) -> Vec<u8> {
    let mut out = vec![PARAMETERS];
    if lost_parts != 0 {
        put(LOST_PARTS, &mut out);
        put(&lost_parts.to_le_bytes(), &mut out);
    }
    for parameter in parameters::ALL {
        put(parameter.name.as_bytes(), &mut out);
        put((parameter.get)(parameters).as_bytes(), &mut out);
    }
    out
}

impl<'a> Record<'a> {
    /// Decodes a record.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are not what this module writes.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let (&kind, mut rest) = bytes.split_first().ok_or(RecordError::TooShort)?;
        match kind {
            ITEMS => {
                let name = take(&mut rest)?;
                let (hashes, []) = rest.as_chunks::<HASH_BYTES>() else { return Err(RecordError::TooShort) };
                let hash = |hash: &[u8; HASH_BYTES]| ItemHash::from(WellMixed(u128::from_le_bytes(*hash)));
                Ok(Self::Items { name, hashes: hashes.iter().map(hash).collect() })
            }
            WORDS => {
                let (ms, after) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
                rest = after;
                let random = take(&mut rest)?;
                let (count, after) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
                rest = after;
                let count = u32::from_le_bytes(*count);
                let mut words = Vec::new();
                for _ in 0..count {
                    words.push(take(&mut rest)?);
                }
                match rest {
                    [] => Ok(Self::Words { ms: u64::from_le_bytes(*ms), random, words }),
                    _ => Err(RecordError::TooShort),
                }
            }
            REMOVED => Ok(Self::Removed { name: rest }),
            PARAMETERS => read_parameters(rest)
                .map(|(parameters, lost_parts)| Self::Parameters(Box::new(parameters), lost_parts)),
            got => Err(RecordError::UnknownKind { got }),
        }
    }
}

/// Decodes the parameters after the kind. Missing ones have their default values.
fn read_parameters(mut rest: &[u8]) -> Result<(Parameters, u64), RecordError> {
    let (mut pairs, mut lost_parts) = (Vec::new(), 0);
    while !rest.is_empty() {
        match (take(&mut rest)?, take(&mut rest)?) {
            (LOST_PARTS, parts) => {
                lost_parts = u64::from_le_bytes(parts.try_into().map_err(|_| RecordError::TooShort)?);
            }
            pair => pairs.push(pair),
        }
    }
    let unknown =
        |name: &[u8]| RecordError::UnknownParameter { name: String::from_utf8_lossy(name).into_owned() };
    Parameters::from_pairs(&pairs).map_err(unknown).map(|parameters| (parameters, lost_parts))
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RecordError> {
    let (length, after) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (taken, after) = after.split_at_checked(length).ok_or(RecordError::TooShort)?;
    *rest = after;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u128) -> ItemHash {
        ItemHash::from(WellMixed(number))
    }

    #[test]
    fn records_are_decoded_as_written_and_invalid_bytes_are_rejected() {
        let hashes = [hash(1), hash(u128::MAX)];
        let mut bytes = vec![9; 100];
        items(b"name", &hashes, &mut bytes);
        let requests: &[&[u8]] = &[b"SET", b"a", b"", b"x"];
        let all = [
            (bytes.clone(), Record::Items { name: b"name", hashes: hashes.to_vec() }),
            (
                words(7, b"chance", requests, &[]),
                Record::Words { ms: 7, random: b"chance", words: requests.to_vec() },
            ),
            (
                words(7, b"", requests, &[1, 3]),
                Record::Words { ms: 7, random: b"", words: vec![b"SET", b""] },
            ),
            (removed(b"name"), Record::Removed { name: b"name" }),
        ];
        for (bytes, record) in &all {
            assert_eq!(Record::read(bytes).as_ref(), Ok(record));
            for end in 0..bytes.len() {
                assert_ne!(Record::read(&bytes[..end]).as_ref(), Ok(record));
            }
        }
        assert_eq!(Record::read(&[]), Err(RecordError::TooShort));
        assert_eq!(Record::read(&[77, 1]), Err(RecordError::UnknownKind { got: 77 }));
    }

    #[test]
    fn parameters_survive_encoding() {
        let mut changed = Parameters::default();
        let set = |parameters: &mut Parameters, name: &str, value: &str| {
            (parameters::find(name.as_bytes()).unwrap().set)(parameters, value.as_bytes()).unwrap();
        };
        for (name, value) in [
            ("cf-initial-size", "8192"),
            ("cf-bucket-size", "200"),
            ("bf-error-rate", "0.123456789012345"),
            ("bf-growth", "compact"),
        ] {
            set(&mut changed, name, value);
        }
        for (wanted, lost_parts) in [(Parameters::default(), 0), (changed, 1 << 63)] {
            let bytes = parameters(&wanted, lost_parts);
            assert_eq!(Record::read(&bytes), Ok(Record::Parameters(Box::new(wanted), lost_parts)));
        }
        let mut bytes = vec![PARAMETERS];
        put(b"no-such", &mut bytes);
        put(b"1", &mut bytes);
        assert!(matches!(Record::read(&bytes), Err(RecordError::UnknownParameter { .. })));
    }
}
