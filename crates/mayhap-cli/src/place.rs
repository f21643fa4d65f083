//! The location of a filter: a file or a running server.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::error::CliError;
use crate::remote::Remote;

/// The location of a filter.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a file.
    File(PathBuf),
    /// In a server.
    Server(Box<Remote>),
}

/// The value parser: text that looks like an address is an address; anything else is a file name, of any bytes.
pub(crate) fn parser() -> impl TypedValueParser<Value = Place> {
    OsStringValueParser::new().try_map(Place::new)
}

impl Place {
    fn new(text: OsString) -> Result<Self, String> {
        match text.to_str() {
            Some(address) if is_address(address) => {
                address.parse().map(|remote| Self::Server(Box::new(remote)))
            }
            None if is_address(&text.to_string_lossy()) => {
                Err("an address must be text: write other bytes of a name as %XX".into())
            }
            _ => Ok(Self::File(text.into())),
        }
    }

    /// Returns the file, for commands that do not support servers.
    ///
    /// # Errors
    /// The filter is in a server.
    pub(crate) fn file(&self) -> Result<&Path, CliError> {
        match self {
            Self::File(path) => Ok(path),
            Self::Server(remote) => {
                let what = "is in a server: `mayhap pull` copies it into a file".into();
                Err(CliError::Filter { name: remote.shown(), what })
            }
        }
    }
}

/// Whether it begins with a scheme, known or not.
fn is_address(text: &str) -> bool {
    let of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    text.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(of_scheme))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(remote) => f.write_str(&remote.shown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinguished_from_file_names() {
        for file in ["seen.mayhap", "redis", "redis:seen", "a/redis://x", "://x", ""] {
            assert!(matches!(Place::new(file.into()), Ok(Place::File(_))), "{file}");
        }
        for address in
            ["redis://localhost/seen", "rediss://localhost:1/seen", "redis+unix:///run/m.sock?name=seen"]
        {
            assert!(matches!(Place::new(address.into()), Ok(Place::Server(_))), "{address}");
        }
        assert!(Place::new("redis://localhost".into()).unwrap_err().contains("no name"));
        // Text with an unknown scheme is an invalid address, not a file name.
        for address in ["http://localhost/seen", "redis://localhost:99999/seen", "reddis://localhost/seen"] {
            assert!(Place::new(address.into()).unwrap_err().contains("redis://"), "{address}");
        }
        let place = Place::new("redis://ada:secret@localhost/seen".into()).unwrap();
        assert_eq!(place.to_string(), "redis://localhost/seen");
        assert!(place.file().unwrap_err().to_string().contains("mayhap pull"));
    }
}
