//! Where a filter is: in a file, or in a running server.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::error::CliError;
use crate::remote::Remote;

/// Where a filter is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a file.
    File(PathBuf),
    /// In a server.
    Server(Box<Remote>),
}

/// What clap reads it with: an address if it looks like one, else the name of a file, whatever its bytes are.
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
                Err("an address is text: write other bytes of a name as %XX".into())
            }
            _ => Ok(Self::File(text.into())),
        }
    }

    /// The file, for those who have no use for a server.
    ///
    /// # Errors
    /// It is in a server.
    pub(crate) fn file(&self) -> Result<&Path, CliError> {
        match self {
            Self::File(path) => Ok(path),
            Self::Server(remote) => {
                let what = "is in a server: `mayhap pull` takes it into a file".into();
                Err(CliError::Filter { name: remote.shown(), what })
            }
        }
    }
}

/// Does it begin with a scheme, whether that is one we know or not?
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
    fn an_address_is_told_from_the_name_of_a_file() {
        for file in ["seen.mayhap", "redis", "redis:seen", "a/redis://x", "://x", ""] {
            assert!(matches!(Place::new(file.into()), Ok(Place::File(_))), "{file}");
        }
        for address in
            ["redis://localhost/seen", "rediss://localhost:1/seen", "redis+unix:///run/m.sock?name=seen"]
        {
            assert!(matches!(Place::new(address.into()), Ok(Place::Server(_))), "{address}");
        }
        assert!(Place::new("redis://localhost".into()).unwrap_err().contains("no name"));
        // What nobody would call a file is not looked for among files.
        for address in ["http://localhost/seen", "redis://localhost:99999/seen", "reddis://localhost/seen"] {
            assert!(Place::new(address.into()).unwrap_err().contains("redis://"), "{address}");
        }
        let place = Place::new("redis://ada:secret@localhost/seen".into()).unwrap();
        assert_eq!(place.to_string(), "redis://localhost/seen");
        assert!(place.file().unwrap_err().to_string().contains("mayhap pull"));
    }
}
