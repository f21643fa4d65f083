//! Why settings are refused.

use std::path::PathBuf;
use std::{fmt, io};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A flag, as it is written.
    Flag(String),
    /// A variable of the environment.
    Variable(String),
    /// A key of a file.
    File {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { key, path } => write!(f, "{}: {key}", path.display()),
        }
    }
}

/// Why settings are refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// A value that makes no sense.
    BadValue {
        /// Where it came from.
        origin: Origin,
        /// The value.
        value: String,
        /// What could stand there.
        allowed: &'static str,
    },
    /// A key that is none.
    UnknownKey {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
    /// A file that is no TOML.
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong, in lines from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file without a password in its first line.
    NoPassword {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue { origin, value, allowed } => {
                write!(f, "{origin}: {value:?} is not allowed, it must be {allowed}")
            }
            Self::UnknownKey { key, path, meant: Some(meant) } => {
                write!(f, "{}: unknown key {key:?}, did you mean {meant:?}?", path.display())
            }
            Self::UnknownKey { key, path, meant: None } => {
                write!(
                    f,
                    "{}: unknown key {key:?}, `mayhap serve --print-config` shows all there are",
                    path.display()
                )
            }
            Self::NotToml { path, line, what } => write!(f, "{}: line {line}: {what}", path.display()),
            Self::Unreadable { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::NoPassword { path } => write!(f, "{}: the first line must be the password", path.display()),
        }
    }
}

impl std::error::Error for SettingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
