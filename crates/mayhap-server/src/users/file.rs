//! A file of users, as Redis has it: `user NAME rule …`, one to a line. Lines that begin with `#` are ours, for people.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{error, fmt};

use super::user::{DEFAULT, RuleError, User};

/// All users, by name.
pub(crate) type ByName = BTreeMap<Vec<u8>, Arc<User>>;

/// Why there are no such users.
#[derive(Debug)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line that does not begin with `user` and a name.
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A user is there twice.
    Twice {
        /// Where.
        place: String,
        /// The name.
        name: String,
    },
    /// A rule that is none. Which one it was is not told if it might be a password.
    Rule {
        /// Where.
        place: String,
        /// The rule.
        rule: String,
        /// What is wrong with it.
        source: RuleError,
    },
    /// Users in a file and in the settings.
    Both,
    /// The server is open to other machines, and this user to everybody there.
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
                write!(f, "{}: line {line}: it must begin with the word user and a name", path.display())
            }
            Self::Twice { place, name } => write!(f, "{place}: user {name} is there twice"),
            Self::Rule { place, rule, source } => write!(f, "{place}: {rule}: {source}"),
            Self::Both => {
                f.write_str("users are either in the file that --users names or in --user, not in both")
            }
            Self::Open { name } => {
                write!(f, "user {name} has no password, and the server is open to other machines")
            }
        }
    }
}

impl error::Error for UsersError {}

/// A rule as messages show it: passwords are not.
pub(crate) fn shown(rule: &[u8]) -> String {
    match rule.first() {
        Some(b'>' | b'<') => format!("{}(redacted)", char::from(rule[0])),
        _ => String::from_utf8_lossy(&rule[..rule.len().min(128)]).into_owned(),
    }
}

/// May a user be called this?
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

/// The user that words make: a name, and rules.
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

/// The users of a file. The default user is among them, whether or not the file has it.
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

/// The users of the settings.
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
    users.entry(DEFAULT.to_vec()).or_insert_with(|| Arc::new(User::everybody()));
    users
}

/// `user NAME rule …`.
pub(crate) fn line(user: &User) -> Vec<u8> {
    [b"user ", user.name(), b" ", &user.rules()].concat()
}

/// Writes all users: beside the file, for its owner's eyes only, and then in its place.
pub(crate) fn write(path: &Path, users: &ByName) -> Result<(), UsersError> {
    let failed = |source| UsersError::File { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let aside = path.with_file_name(name);
    // A file that is there already might be open to others.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(failed)?;
    let mut text = Vec::new();
    for user in users.values() {
        text.extend_from_slice(&line(user));
        text.push(b'\n');
    }
    let written =
        file.write_all(&text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&aside, path));
    written.and_then(|()| sync_folder(path)).map_err(failed)
}

/// The new name is safe only when the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}
