//! Errors of settings.

use std::path::PathBuf;
use std::{fmt, io};

/// The place a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A flag, as it is written on the command line.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A key in a file.
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

/// Why settings are rejected.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// A value is invalid.
    BadValue {
        /// The place it came from.
        origin: Origin,
        /// The value.
        value: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// The file has an unknown key.
    UnknownKey {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// The known key with the most similar name, if one is similar.
        meant: Option<&'static str>,
    },
    /// The file is not valid TOML.
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line of the error, counted from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The first line of the password file is empty.
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
                    "{}: unknown key {key:?}, `mayhap serve --print-config` lists all keys",
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
