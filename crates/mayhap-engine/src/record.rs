//! What a record of the log says, as bytes. `docs/format.md` draws them.
//!
//! ```text
//! 1 items       name length u32 │ name │ hashes of the items that were new, 16 bytes each
//! 2 words       time ms u64 │ bytes drawn u32 │ random bytes │ words u32 │ words: length u32, bytes
//! 3 removed     name
//! 4 parameters  pairs: length u32, name, length u32, value; the parts of which names are lost are one of them, if there are any
//! ```
//!
//! All numbers are little-endian. Records come from our own log, whose frames have checksums; reading them trusts nothing all the same.

use std::fmt;

use mayhap::{ItemHash, WellMixed};
use mayhap_command::run::kept_words;
use mayhap_command::{Parameters, parameters};

const ITEMS: u8 = 1;
const WORDS: u8 = 2;
const REMOVED: u8 = 3;
const PARAMETERS: u8 = 4;
/// The pair that is no parameter.
const LOST_PARTS: &[u8] = b"lost-parts";
const HASH_BYTES: usize = size_of::<u128>();

/// A record that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// These items were new to the Bloom filter of this name, and are in now.
    Items { name: &'a [u8], hashes: Vec<ItemHash> },
    /// This request changed something.
    Words {
        /// When it was run, in milliseconds since 1970.
        ms: u64,
        /// The randomness it was given.
        random: &'a [u8],
        words: Vec<&'a [u8]>,
    },
    /// This name is gone: it expired, or was deleted.
    Removed { name: &'a [u8] },
    /// What new filters are like from here on, and the parts of which names are lost.
    Parameters(Box<Parameters>, u64),
}

/// Why a record could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// It ends where something should be.
    TooShort,
    /// A newer program wrote it.
    UnknownKind {
        /// What it begins with.
        got: u8,
    },
    /// No such command, or not with so many words.
    UnknownCommand {
        /// The command's word.
        word: String,
    },
    /// No such parameter, or not this value.
    UnknownParameter {
        /// The parameter.
        name: String,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("the record ends too early"),
            Self::UnknownKind { got } => write!(f, "a record of kind {got}, which is not known"),
            Self::UnknownCommand { word } => write!(f, "no such command: {word:?}"),
            Self::UnknownParameter { name } => write!(f, "no such parameter or value: {name:?}"),
        }
    }
}

impl std::error::Error for RecordError {}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    // Whatever is sent is far shorter: a word has at most 512 MiB.
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

/// A request without those of its words that are `left_out`, counted from its end.
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

/// What new filters are like, and the parts of which names are lost.
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
    /// The record in these bytes.
    ///
    /// # Errors
    /// [`RecordError`] for anything but what this module wrote.
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
                let (ms, behind) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
                rest = behind;
                let random = take(&mut rest)?;
                let (count, behind) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
                rest = behind;
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

/// The parameters behind the kind; those that are not in it are what they are by default.
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
    let (length, behind) = rest.split_first_chunk().ok_or(RecordError::TooShort)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (taken, behind) = behind.split_at_checked(length).ok_or(RecordError::TooShort)?;
    *rest = behind;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u128) -> ItemHash {
        ItemHash::from(WellMixed(number))
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
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
    fn parameters_come_back_whatever_they_were() {
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
