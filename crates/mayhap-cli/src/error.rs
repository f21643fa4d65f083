//! What can go wrong in the program; each is one line.

use std::path::PathBuf;
use std::{fmt, io};

use mayhap::BuildError;
use mayhap::advise::{CreateError, NeedsError, say};
use mayhap::codec::format::Format;
use mayhap::file::FileError;
use mayhap_server::settings::SettingsError;
use mayhap_server::{SaveError, StartError};

/// Why the program could not do what it was asked to.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// The command line makes no sense.
    Usage(String),
    /// The numbers make no sense together.
    Needs(NeedsError),
    /// The answer could not be written.
    Write(io::Error),
    /// Something could not be read.
    Read {
        /// What.
        name: String,
        /// What the system said.
        cause: io::Error,
    },
    /// Something is wrong with what was read.
    Input {
        /// Where it was read, with the line where that is known.
        name: String,
        /// What.
        what: String,
    },
    /// The bytes of a file are not such a filter of another program.
    NotSuch {
        /// Which file.
        name: String,
        /// What it was taken for.
        format: Format,
        /// Why it is none.
        what: String,
    },
    /// A filter's file could not be read or written.
    File(FileError),
    /// There is no place for a file.
    NoPlace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The system refused memory.
    NoMemory {
        /// How much.
        bytes: u64,
        /// What for.
        what: String,
    },
    /// A filter cannot be made of these numbers.
    Create(CreateError),
    /// A filter cannot do what it was asked to.
    Filter {
        /// Which.
        name: String,
        /// Why not.
        what: String,
    },
    /// A server is not there, refuses, or makes no sense.
    Server {
        /// Which.
        address: String,
        /// What is wrong.
        what: String,
    },
    /// A server does not answer now. It may later.
    Away {
        /// Which.
        address: String,
        /// What became of the attempt.
        what: String,
    },
    /// A filter in a server could not answer for all lines.
    NotReady {
        /// Which.
        name: String,
        /// How many lines have no answer.
        lines: u64,
        /// Of how many.
        of: u64,
        /// Why the last of them has none.
        why: String,
    },
    /// The server cannot be started.
    Start(StartError),
    /// Its settings make no sense.
    Settings(SettingsError),
    /// What it had could not be saved in the end.
    Save(SaveError),
    /// Ctrl-C.
    Interrupted,
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => f.write_str(what),
            Self::Needs(error) => match flag(error) {
                Some(flag) => write!(f, "{flag}: {error}"),
                None => error.fmt(f),
            },
            Self::Write(error) => write!(f, "cannot write the answer: {}", said(error)),
            Self::Read { name, cause } => write!(f, "cannot read {name}: {}", said(cause)),
            Self::Input { name, what } | Self::NotSuch { name, what, .. } | Self::Filter { name, what } => {
                write!(f, "{}: {}", one_line(name), one_line(what))
            }
            Self::Server { address, what } | Self::Away { address, what } => {
                write!(f, "{address}: {}", one_line(what))
            }
            Self::NotReady { name, lines, of, why } => {
                let (lines, of) = (say::count(*lines), say::count(*of));
                write!(
                    f,
                    "{name}: not ready for {lines} of {of} lines, which got no answer: {}",
                    one_line(why)
                )
            }
            Self::File(FileError::Io { action, path, cause, .. }) => {
                write!(f, "cannot {action} {}: {}", path.display(), said(cause))
            }
            Self::File(error) => error.fmt(f),
            Self::NoPlace { path, cause } => write!(f, "cannot write {}: {}", path.display(), said(cause)),
            Self::NoMemory { bytes, what } => {
                write!(f, "{} bytes of memory are refused, for {what}", say::count(*bytes))
            }
            Self::Create(error) => error.fmt(f),
            Self::Settings(error) => match cause(error) {
                Some(cause) => write!(f, "{error}: {}", said(cause)),
                None => error.fmt(f),
            },
            Self::Save(error) => write!(f, "not saved: {error}"),
            Self::Start(error) => match cause(error) {
                Some(cause) => write!(f, "{error}: {}", said(cause)),
                None => error.fmt(f),
            },
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// A text whose line feeds, and other letters that move a cursor, are written as programs write them.
pub(crate) fn one_line(text: &str) -> String {
    let escaped = |letter: char| letter.is_control().then(|| letter.escape_default());
    text.trim_end()
        .chars()
        .flat_map(|letter| match escaped(letter) {
            Some(escape) => escape.collect::<Vec<_>>(),
            None => vec![letter],
        })
        .collect()
}

/// What the system said to make the server fail.
fn cause(error: &dyn std::error::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

/// What the system said, in the words of other programs: without the number of the error, beginning small.
fn said(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    // Not `I/O error`.
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// The flag whose value is at fault, where it is one.
fn flag(error: &NeedsError) -> Option<&'static str> {
    Some(match error {
        NeedsError::Build(BuildError::CapacityOutOfRange { .. }) => "--items",
        NeedsError::Build(BuildError::RateOutOfRange { .. } | BuildError::RateTooLow { .. }) => "--fpr",
        NeedsError::Build(BuildError::ProbesOutOfRange { .. }) => "--probes",
        NeedsError::EmptyRange { .. } | NeedsError::MoreItemsThanRange { .. } => "--range",
        NeedsError::EmptyItems => "--item-bytes",
        NeedsError::NoMemory | NeedsError::TooLittleMemory { .. } => "--memory",
        NeedsError::NoDeletes => "--deletes",
        NeedsError::NoLookups => "--lookups",
        _ => return None,
    })
}

impl std::error::Error for CliError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Usage(_)
            | Self::Input { .. }
            | Self::NotSuch { .. }
            | Self::Filter { .. }
            | Self::Server { .. }
            | Self::Away { .. }
            | Self::NotReady { .. }
            | Self::NoMemory { .. }
            | Self::Interrupted => None,
            Self::Needs(error) => Some(error),
            Self::Write(error) | Self::Read { cause: error, .. } | Self::NoPlace { cause: error, .. } => {
                Some(error)
            }
            Self::File(error) => Some(error),
            Self::Create(error) => Some(error),
            Self::Start(error) => Some(error),
            Self::Settings(error) => Some(error),
            Self::Save(error) => Some(error),
        }
    }
}

impl From<NeedsError> for CliError {
    fn from(error: NeedsError) -> Self {
        Self::Needs(error)
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<CreateError> for CliError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The first thing clap says, and its tip, without the usage text around them.
impl From<&clap::Error> for CliError {
    fn from(error: &clap::Error) -> Self {
        let said = error.render().to_string();
        let mut paragraphs = said.split("\n\n");
        let one_line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let first = one_line(paragraphs.next().unwrap_or_default());
        let tip = paragraphs.map(one_line).find(|text| text.starts_with("tip: "));
        let tip = tip.map(|tip| format!(" ({tip})")).unwrap_or_default();
        Self::Usage(format!("{}{tip}", without_password(first.trim_start_matches("error: "))))
    }
}

/// A text without what stands between `://` and the last `@` of an address in it.
fn without_password(text: &str) -> String {
    let Some((before, behind)) = text.split_once("://") else { return text.to_owned() };
    let address = behind.find('\'').unwrap_or(behind.len());
    let shown = behind[..address].rfind('@').map_or(behind, |at| &behind[at + 1..]);
    format!("{before}://{shown}")
}
