//! What the `MF.*` family refuses, and in which words.

use std::fmt;

use mayhap::advise::NeedsError;
use mayhap::{BuildError, DecodeError, InsertError, Kind, MergeError, RemoveError};

use crate::refusal::Refusal;

/// Why there is no answer: neither *mayhap* nor *certainly absent*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// There is nothing of this name.
    Missing,
    /// `MF.LOAD` has not brought all of it.
    Loading,
    /// `MF.BUILD` has not committed its first generation.
    Building,
    /// It is of a kind that is built of all its items at once, and was not yet.
    Unbuilt {
        /// The kind.
        kind: Kind,
    },
}

/// Why a request of the `MF.*` family was refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MayhapRefusal {
    /// No answer could be trusted.
    NotReady(NotReady),
    /// The name holds something else.
    WrongType {
        /// What it holds.
        held: &'static str,
    },
    /// The name is taken.
    Exists {
        /// What it holds.
        held: &'static str,
    },
    /// Each tier is larger than the one before.
    TiersDescend {
        /// A tier.
        before: u64,
        /// The one after it.
        after: u64,
    },
    /// No such option.
    UnknownOption {
        /// What stands there.
        word: String,
    },
    /// The option stands there twice.
    Twice {
        /// The option.
        option: &'static str,
    },
    /// The option has no value behind it.
    NoValue {
        /// The option.
        option: &'static str,
    },
    /// The value makes no sense.
    BadValue {
        /// The option.
        option: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// The two exclude each other.
    Conflict {
        /// An option.
        one: &'static str,
        /// Another.
        other: &'static str,
    },
    /// No such kind.
    UnknownKind {
        /// What stands there.
        word: String,
    },
    /// The kind has no such option.
    NotForKind {
        /// The option.
        option: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// The kind cannot be made without it.
    NeedsOption {
        /// The option.
        option: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// No kind does all that is asked for.
    NothingSuits {
        /// In the words of the advice.
        why: String,
    },
    /// No advice.
    Needs(NeedsError),
    /// The filter cannot be made.
    Build(BuildError),
    /// The item cannot be put in.
    Insert(InsertError),
    /// The item cannot be taken out.
    Remove(RemoveError),
    /// The filters do not become one.
    Merge(MergeError),
    /// The bytes are no filter.
    Decode(DecodeError),
    /// The kind does not count copies.
    CountsNoCopies {
        /// The kind.
        kind: Kind,
    },
    /// A bitmap holds numbers.
    NotANumber,
    /// No such field.
    UnknownField {
        /// What stands there.
        word: String,
    },
    /// No such subcommand.
    UnknownStep {
        /// What stands there.
        word: String,
    },
    /// `MF.DUMP` never gave this iterator, or has begun anew since.
    StaleIterator,
    /// `MF.LOAD` was given a piece that is not the next.
    OutOfOrder {
        /// The byte the next piece begins with.
        expected: u64,
        /// The byte this one does.
        got: u64,
    },
    /// `MF.LOAD` was given more bytes than the filter has.
    TooLong {
        /// Bytes too many.
        extra: u64,
    },
    /// Something is being built or loaded already.
    Busy {
        /// `build` or `load`.
        with: &'static str,
    },
    /// There is no build to add to, to commit or to abort.
    NoBuild,
    /// The build could not take changes of the generation that serves.
    Missed {
        /// How many.
        changes: u64,
        /// Why not the first of them.
        why: String,
    },
}

impl MayhapRefusal {
    /// A client's word for a refusal to quote: short, and without what would break the line.
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
                write!(f, "NOTREADY a {kind} answers once MF.BUILD has built it of all its items")
            }
            Self::WrongType { held } => {
                write!(
                    f,
                    "WRONGTYPE Operation against a key holding the wrong kind of value: it holds {held}"
                )
            }
            Self::Exists { held } => {
                write!(f, "ERR item exists: the name is taken, it holds {held}")
            }
            Self::TiersDescend { before, after } => {
                write!(f, "ERR TIERS must ascend, but {after} follows {before}")
            }
            Self::UnknownOption { word } => write!(f, "ERR unknown option '{word}'"),
            Self::Twice { option } => write!(f, "ERR {option} is given twice"),
            Self::NoValue { option } => write!(f, "ERR {option} has no value"),
            Self::BadValue { option, takes } => write!(f, "ERR {option} takes {takes}"),
            Self::Conflict { one, other } => write!(f, "ERR {one} and {other} exclude each other"),
            Self::UnknownKind { word } => {
                write!(f, "ERR unknown kind '{word}', the known ones are {}", super::kind::names())
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
                write!(f, "ERR unknown step '{word}', use BEGIN, ADD, COMMIT, ABORT or INFO")
            }
            Self::StaleIterator => {
                f.write_str("ERR stale iterator: the dump is over or was begun anew, start again at 0")
            }
            Self::OutOfOrder { expected, got } => {
                write!(
                    f,
                    "ERR piece out of order: it begins at byte {got}, the next one begins at byte {expected}"
                )
            }
            Self::TooLong { extra } => write!(f, "ERR bad filter: {extra} bytes too many"),
            Self::Busy { with } => {
                write!(f, "ERR a {with} is going on; end it, or give it up with MF.BUILD name ABORT")
            }
            Self::Missed { changes, why } => write!(
                f,
                "ERR the build could not take {changes} changes made meanwhile ({why}); give it up with MF.BUILD name ABORT"
            ),
            Self::NoBuild => f.write_str("ERR nothing is being built, begin with MF.BUILD name BEGIN"),
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

/// What a filter that could not be made is refused with: memory has words of its own.
pub(crate) fn unbuildable(error: BuildError) -> Refusal {
    match error {
        BuildError::OutOfMemory { .. } => Refusal::OutOfMemory,
        error => MayhapRefusal::Build(error).into(),
    }
}
