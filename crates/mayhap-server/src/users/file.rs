//! The file of users in Redis's format: `user NAME rule …`, one per line. Lines that begin with `#` are
//! comments, which only this server accepts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{error, fmt};

use mayhap::file::{self, Readers};

use super::user::{DEFAULT, RuleError, User};

/// All users, by name.
pub(crate) type ByName = BTreeMap<Vec<u8>, Arc<User>>;

/// Why users could not be loaded or saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line does not begin with `user` and a name.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A user is defined twice.
    Twice {
        /// The file and line, or the setting.
        place: String,
        /// The name.
        name: String,
    },
    /// A rule is invalid. It is not shown if it might contain a password.
    Rule {
        /// The file and line, or the setting.
        place: String,
        /// The rule.
        rule: String,
        /// The reason.
        source: RuleError,
    },
    /// Users are both in a file and in the settings.
    Both,
    /// Other machines can reach the server, and this user has no password.
    Open {
        /// The user.
        name: String,
    },
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Line { path, line } => {
                write!(f, "{}: line {line}: a line must begin with the word user and a name", path.display())
            }
            Self::Twice { place, name } => write!(f, "{place}: user {name} is defined twice"),
            Self::Rule { place, rule, source } => write!(f, "{place}: {rule}: {source}"),
            Self::Both => {
                f.write_str("users must be either in the file of --users or in --user, not in both")
            }
            Self::Open { name } => {
                write!(
                    f,
                    "user {name} has no password, and the server is open to other machines: give the user a \
                     password, or allow this with --unprotected"
                )
            }
        }
    }
}

impl error::Error for UsersError {}

/// A rule as messages show it, without passwords.
pub(crate) fn shown(rule: &[u8]) -> String {
    match rule.first() {
        Some(b'>' | b'<') => format!("{}(redacted)", char::from(rule[0])),
        _ => String::from_utf8_lossy(&rule[..rule.len().min(128)]).into_owned(),
    }
}

/// Whether this is a valid name of a user.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

/// Makes a user from words: a name, then rules.
pub(crate) fn user_of<'w>(
    mut words: impl Iterator<Item = &'w [u8]>,
    place: &str,
) -> Result<Option<User>, UsersError> {
    let Some(name) = words.next().filter(|name| is_name(name)) else { return Ok(None) };
    let mut user = User::new(name);
    for rule in words {
        user.apply(rule).map_err(|source| UsersError::Rule {
            place: place.to_owned(),
            rule: shown(rule),
            source,
        })?;
    }
    Ok(Some(user))
}

/// Parses the users of a file. Adds the default user if the file does not have it.
pub(crate) fn read(path: &Path) -> Result<ByName, UsersError> {
    let bytes = fs::read(path).map_err(|source| UsersError::File { path: path.to_owned(), source })?;
    let mut users = ByName::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let place = || format!("{}: line {}", path.display(), number + 1);
        let user = match words.next() {
            None => continue,
            Some(word) if word.starts_with(b"#") => continue,
            Some(b"user") => user_of(words, &place())?,
            Some(_) => None,
        };
        let user = user.ok_or_else(|| UsersError::Line { path: path.to_owned(), line: number + 1 })?;
        insert(&mut users, user, place)?;
    }
    Ok(with_default(users))
}

/// Makes the users in the settings.
pub(crate) fn of_lines(lines: &[String]) -> Result<ByName, UsersError> {
    let mut users = ByName::new();
    for line in lines {
        if let Some(user) = user_of(line.split_ascii_whitespace().map(str::as_bytes), "user")? {
            insert(&mut users, user, || "user".to_owned())?;
        }
    }
    Ok(with_default(users))
}

fn insert(users: &mut ByName, user: User, place: impl Fn() -> String) -> Result<(), UsersError> {
    match users.contains_key(user.name()) {
        true => Err(UsersError::Twice { place: place(), name: user.shown() }),
        false => {
            users.insert(user.name().to_vec(), Arc::new(user));
            Ok(())
        }
    }
}

fn with_default(mut users: ByName) -> ByName {
    users.entry(DEFAULT.to_vec()).or_insert_with(|| Arc::new(User::unrestricted()));
    users
}

/// `user NAME rule …`.
pub(crate) fn line(user: &User) -> Vec<u8> {
    [b"user ", user.name(), b" ", &user.rules()].concat()
}

/// Writes all users to the file in one step. Only its owner can read it.
pub(crate) fn write(path: &Path, users: &ByName) -> Result<(), UsersError> {
    let mut text = Vec::new();
    for user in users.values() {
        text.extend_from_slice(&line(user));
        text.push(b'\n');
    }
    let written = file::replace(path, Readers::OnlyOwner, |_| Ok(()), |out| out.write_all(&text));
    written.map_err(|error| UsersError::File { path: path.to_owned(), source: error.into() })
}
