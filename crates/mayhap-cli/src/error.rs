//! The errors of the program. Each is printed on one line.

use std::path::PathBuf;
use std::{fmt, io};

use mayhap::file::FileError;
use mayhap::{BuildError, say};
use mayhap_advise::{CreateError, NeedsError};
use mayhap_formats::Format;
use mayhap_server::settings::SettingsError;
use mayhap_server::{SaveError, StartError};

/// Why the program failed.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// The command line is invalid.
    Usage(String),
    /// The numbers contradict each other or are out of range.
    Needs(NeedsError),
    /// The output could not be written.
    Write(io::Error),
    /// A file or stream could not be read.
    Read {
        /// What.
        name: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The input was read but is invalid.
    Input {
        /// The name of the input, with the line number if it is known.
        name: String,
        /// What.
        what: String,
    },
    /// The bytes of a file are not a valid filter of another program's format.
    WrongFormat {
        /// The file.
        name: String,
        /// The format it was read as.
        format: Format,
        /// Why it is invalid.
        what: String,
    },
    /// A filter's file could not be read or written.
    File(FileError),
    /// A file could not be written.
    CannotWrite {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The operating system refused to allocate memory.
    NoMemory {
        /// The size of the allocation.
        bytes: u64,
        /// What it was for.
        what: String,
    },
    /// No filter can be built from these numbers.
    Create(CreateError),
    /// A filter does not support the operation.
    Filter {
        /// Which.
        name: String,
        /// Why.
        what: String,
    },
    /// A server is missing, refuses a request, or sends an invalid reply.
    Server {
        /// Which.
        address: String,
        /// The problem.
        what: String,
    },
    /// A server does not answer now, but may answer later.
    Unreachable {
        /// Which.
        address: String,
        /// The result of the attempt.
        what: String,
    },
    /// A filter on a server could not answer for all lines.
    NotReady {
        /// Which.
        name: String,
        /// Lines without an answer.
        lines: u64,
        /// All lines that were asked about.
        of: u64,
        /// Why the last of them has no answer.
        why: String,
    },
    /// The server cannot be started.
    Start(StartError),
    /// The server's settings are invalid.
    Settings(SettingsError),
    /// The server's data could not be saved on exit.
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
            Self::Write(error) => write!(f, "cannot write the output: {}", os_error_text(error)),
            Self::Read { name, cause } => write!(f, "cannot read {name}: {}", os_error_text(cause)),
            Self::Input { name, what }
            | Self::WrongFormat { name, what, .. }
            | Self::Filter { name, what } => {
                write!(f, "{}: {}", one_line(name), one_line(what))
            }
            Self::Server { address, what } | Self::Unreachable { address, what } => {
                write!(f, "{address}: {}", one_line(what))
            }
            Self::NotReady { name, lines, of, why } => {
                let (lines, of) = (say::count(*lines), say::count(*of));
                write!(f, "{name}: no answer for {lines} of {of} lines (not ready): {}", one_line(why))
            }
            Self::File(FileError::Io { action, path, cause, .. }) => {
                write!(f, "cannot {action} {}: {}", path.display(), os_error_text(cause))
            }
            Self::File(error) => error.fmt(f),
            Self::CannotWrite { path, cause } => {
                write!(f, "cannot write {}: {}", path.display(), os_error_text(cause))
            }
            Self::NoMemory { bytes, what } => {
                write!(f, "cannot allocate {} bytes of memory for {what}", say::count(*bytes))
            }
            Self::Create(error) => error.fmt(f),
            Self::Settings(error) => match cause(error) {
                Some(cause) => write!(f, "{error}: {}", os_error_text(cause)),
                None => error.fmt(f),
            },
            Self::Save(error) => write!(f, "data not saved: {error}"),
            Self::Start(error) => match cause(error) {
                Some(cause) => write!(f, "{error}: {}", os_error_text(cause)),
                None => error.fmt(f),
            },
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// `text` without trailing white space, and with line feeds and other control characters escaped.
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

/// The operating system's error that made the server fail, if that was the cause.
fn cause(error: &dyn std::error::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

/// The text of an operating system error as other programs print it: without the error number, first letter in lower
/// case.
fn os_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    // Keeps `I/O error` as it is.
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// The flag whose value is invalid, if one flag is to blame.
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
            | Self::WrongFormat { .. }
            | Self::Filter { .. }
            | Self::Server { .. }
            | Self::Unreachable { .. }
            | Self::NotReady { .. }
            | Self::NoMemory { .. }
            | Self::Interrupted => None,
            Self::Needs(error) => Some(error),
            Self::Write(error) | Self::Read { cause: error, .. } | Self::CannotWrite { cause: error, .. } => {
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

/// Clap's error message and its tip, without the usage text.
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

/// `text` without the user name and password of an address in it: the part between `://` and the last `@`.
fn without_password(text: &str) -> String {
    let Some((before, after)) = text.split_once("://") else { return text.to_owned() };
    let address = after.find('\'').unwrap_or(after.len());
    let shown = after[..address].rfind('@').map_or(after, |at| &after[at + 1..]);
    format!("{before}://{shown}")
}
