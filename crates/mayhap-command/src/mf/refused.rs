//! The errors of the `MF.*` family and their texts.

use std::fmt;

use mayhap::{BuildError, DecodeError, InsertError, Kind, MergeError, RemoveError};
use mayhap_advise::NeedsError;

use crate::refusal::Refusal;

/// Why a filter cannot answer, neither *maybe* nor *no*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// The key does not exist.
    Missing,
    /// `MF.LOAD` has not loaded all of it.
    Loading,
    /// `MF.BUILD` has not committed its first generation.
    Building,
    /// It is of a static kind and was not built yet.
    Unbuilt {
        /// The kind.
        kind: Kind,
    },
}

/// Why a request of the `MF.*` family was refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MayhapRefusal {
    /// The filter cannot answer.
    NotReady(NotReady),
    /// The key holds a value of another type.
    WrongType {
        /// The value it holds.
        held: &'static str,
    },
    /// The key exists already.
    Exists {
        /// The value it holds.
        held: &'static str,
    },
    /// A tier is not larger than the tier before it.
    TiersDescend {
        /// A tier.
        before: u64,
        /// The tier after it.
        after: u64,
    },
    /// An unknown option.
    UnknownOption {
        /// The word in its place.
        word: String,
    },
    /// The option is given twice.
    Twice {
        /// The option.
        option: &'static str,
    },
    /// The option has no value after it.
    NoValue {
        /// The option.
        option: &'static str,
    },
    /// The value of an option is invalid.
    BadValue {
        /// The option.
        option: &'static str,
        /// The valid values.
        valid: &'static str,
    },
    /// Two options exclude each other.
    Conflict {
        /// An option.
        one: &'static str,
        /// Another.
        other: &'static str,
    },
    /// An unknown kind.
    UnknownKind {
        /// The word in its place.
        word: String,
    },
    /// The kind has no such option.
    NotForKind {
        /// The option.
        option: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// The kind needs this option.
    NeedsOption {
        /// The option.
        option: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// No kind meets all requirements.
    NothingSuits {
        /// The reasons, in the words of the advice.
        why: String,
    },
    /// The requirements are invalid.
    Needs(NeedsError),
    /// The filter cannot be created.
    Build(BuildError),
    /// The item cannot be inserted.
    Insert(InsertError),
    /// The item cannot be removed.
    Remove(RemoveError),
    /// The filters cannot be merged.
    Merge(MergeError),
    /// The bytes are not a valid filter.
    Decode(DecodeError),
    /// The kind does not count copies.
    CountsNoCopies {
        /// The kind.
        kind: Kind,
    },
    /// A bitmap stores numbers only.
    NotANumber,
    /// An unknown field.
    UnknownField {
        /// The word in its place.
        word: String,
    },
    /// An unknown subcommand.
    UnknownStep {
        /// The word in its place.
        word: String,
    },
    /// `MF.DUMP` never returned this iterator, or the dump was restarted since.
    StaleIterator,
    /// `MF.LOAD`: the piece is not the next one.
    OutOfOrder {
        /// The first byte of the next piece.
        expected: u64,
        /// The first byte of this piece.
        got: u64,
    },
    /// `MF.LOAD`: the piece has more bytes than the filter still needs.
    TooLong {
        /// The number of excess bytes.
        extra: u64,
    },
    /// A build or a load is in progress already.
    Busy {
        /// `build` or `load`.
        with: &'static str,
    },
    /// There is no build to add to, commit or abort.
    NoBuild,
    /// The build could not apply changes that were made to the current generation.
    Missed {
        /// The number of changes.
        changes: u64,
        /// The error of the first of them.
        why: String,
    },
}

impl MayhapRefusal {
    /// Shortens a client's word and removes line breaks, so that an error can quote it.
    pub(crate) fn quote(word: &[u8]) -> String {
        const MOST: usize = 64;
        let text = String::from_utf8_lossy(&word[..word.len().min(MOST)]);
        let more = if word.len() > MOST { "..." } else { "" };
        format!("{}{more}", text.escape_debug())
    }
}

impl fmt::Display for MayhapRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady(NotReady::Missing) => f.write_str("NOTREADY there is no filter of this name"),
            Self::NotReady(NotReady::Loading) => f.write_str("NOTREADY the filter is being loaded"),
            Self::NotReady(NotReady::Building) => f.write_str("NOTREADY the filter is being built"),
            Self::NotReady(NotReady::Unbuilt { kind }) => {
                write!(f, "NOTREADY a {kind} answers only after MF.BUILD has built it from all its items")
            }
            Self::WrongType { held } => {
                write!(
                    f,
                    "WRONGTYPE Operation against a key holding the wrong kind of value: it holds {held}"
                )
            }
            Self::Exists { held } => {
                write!(f, "ERR item exists: the key holds {held}")
            }
            Self::TiersDescend { before, after } => {
                write!(f, "ERR TIERS must ascend, but {after} follows {before}")
            }
            Self::UnknownOption { word } => write!(f, "ERR unknown option '{word}'"),
            Self::Twice { option } => write!(f, "ERR {option} is given twice"),
            Self::NoValue { option } => write!(f, "ERR {option} has no value"),
            Self::BadValue { option, valid } => write!(f, "ERR {option} must be {valid}"),
            Self::Conflict { one, other } => write!(f, "ERR {one} and {other} exclude each other"),
            Self::UnknownKind { word } => {
                write!(f, "ERR unknown kind '{word}', use one of {}", super::kind::names())
            }
            Self::NotForKind { option, kind } => write!(f, "ERR a {kind} has no {option}"),
            Self::NeedsOption { option, kind } => write!(f, "ERR a {kind} needs {option}"),
            Self::NothingSuits { why } => write!(f, "ERR {why}"),
            Self::Needs(error) => write!(f, "ERR {error}"),
            Self::Build(error) => write!(f, "ERR {error}"),
            Self::Insert(error) => write!(f, "ERR {error}"),
            Self::Remove(error) => write!(f, "ERR {error}"),
            Self::Merge(error) => write!(f, "ERR {error}"),
            Self::Decode(error) => write!(f, "ERR bad filter: {error}"),
            Self::CountsNoCopies { kind } => write!(f, "ERR a {kind} does not count copies"),
            Self::NotANumber => f.write_str("ERR a bitmap holds numbers, from 0 to 18446744073709551615"),
            Self::UnknownField { word } => write!(f, "ERR unknown field '{word}'"),
            Self::UnknownStep { word } => {
                write!(f, "ERR unknown subcommand '{word}', use BEGIN, ADD, COMMIT, ABORT or INFO")
            }
            Self::StaleIterator => {
                f.write_str("ERR stale iterator: the dump has ended or was restarted, start again at 0")
            }
            Self::OutOfOrder { expected, got } => {
                write!(
                    f,
                    "ERR piece out of order: it begins at byte {got}, the next one begins at byte {expected}"
                )
            }
            Self::TooLong { extra } => write!(f, "ERR bad filter: {extra} bytes too many"),
            Self::Busy { with } => {
                write!(f, "ERR a {with} is in progress; finish it, or cancel it with MF.BUILD key ABORT")
            }
            Self::Missed { changes, why } => write!(
                f,
                "ERR the build could not apply {changes} changes made during it ({why}); cancel it with MF.BUILD key ABORT"
            ),
            Self::NoBuild => f.write_str("ERR no build is in progress, start one with MF.BUILD key BEGIN"),
        }
    }
}

impl std::error::Error for MayhapRefusal {}

impl From<MayhapRefusal> for Refusal {
    fn from(refusal: MayhapRefusal) -> Self {
        Self::Mayhap(Box::new(refusal))
    }
}

impl From<NotReady> for Refusal {
    fn from(why: NotReady) -> Self {
        MayhapRefusal::NotReady(why).into()
    }
}

impl From<BuildError> for MayhapRefusal {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

/// The refusal for a filter that cannot be created. Lack of memory has its own text.
pub(crate) fn unbuildable(error: BuildError) -> Refusal {
    match error {
        BuildError::OutOfMemory { .. } => Refusal::OutOfMemory,
        error => MayhapRefusal::Build(error).into(),
    }
}
