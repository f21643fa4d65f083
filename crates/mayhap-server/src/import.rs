//! `mayhap serve --load dump.rdb`: imports the filters and strings of a Redis or Valkey server before the
//! first client connects.
//!
//! The file is read twice: first to its end, to verify its checksum, then to load it. A mark file in the data
//! folder shows that an import has begun. It is removed after the last key is safe, so an incomplete import
//! is never served.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use mayhap_command::Scratch;
use mayhap_command::{Refusal, Reply, Request, table};
use mayhap_engine::Engine;
use mayhap_formats::redis_rdb::{EntryValue, FileReader, RdbFileError};

use crate::durable;

/// The mark file in the data folder while an import is incomplete. It contains the path of the RDB file.
pub const MARK_FILE: &str = "mayhap.import";
/// The number of keys that are committed together.
const KEYS_AT_ONCE: usize = 1_000;
/// Bytes after which keys are committed, even if they are fewer.
const BYTES_AT_ONCE: usize = 16 << 20;
/// The number of skipped keys that the log names. All others are only counted.
const NAMED: u64 = 20;
/// The limit for times in milliseconds since 1970, so that they fit an integer argument.
const LAST_MS: u64 = i64::MAX as u64;

/// The numbers of keys that were loaded and skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Filters that were loaded.
    pub filters: u64,
    /// Strings that were loaded.
    pub strings: u64,
    /// Keys that had expired.
    pub expired: u64,
    /// Keys that are neither a filter nor a string.
    pub other_types: u64,
    /// Keys of databases other than 0.
    pub other_databases: u64,
}

/// Why a file was not loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be opened, or the mark cannot be written.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be read to its end.
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: RdbFileError,
    },
    /// The path does not name a regular file.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The data folder already holds names.
    NotEmpty {
        /// The number of names.
        names: u64,
    },
    /// The folder holds a part of an earlier import.
    Unfinished {
        /// The mark.
        mark: PathBuf,
    },
    /// A key was refused.
    Refused {
        /// The key, with odd bytes escaped.
        key: String,
        /// The error that a client would have got.
        refusal: String,
    },
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, .. } => write!(f, "cannot open {}", path.display()),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NotAFile { path } => write!(f, "{} is not a regular file", path.display()),
            Self::NotEmpty { names } => {
                write!(
                    f,
                    "--load needs an empty data folder, this one holds {names} names: choose another --dir, or start without --load"
                )
            }
            Self::Unfinished { mark } => write!(
                f,
                "an import was interrupted, see {}: start again with --load to delete the imported keys and import the file again",
                mark.display()
            ),
            Self::Refused { key, refusal } => write!(f, "key {key} cannot be loaded: {refusal}"),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::File { source, .. } => std::error::Error::source(source),
            _ => None,
        }
    }
}

/// Rejects a folder with an incomplete import.
///
/// # Errors
/// [`ImportError::Unfinished`].
pub(crate) fn check_unfinished(folder: Option<&Path>) -> Result<(), ImportError> {
    match folder.map(|folder| folder.join(MARK_FILE)) {
        Some(mark) if mark.symlink_metadata().is_ok() => Err(ImportError::Unfinished { mark }),
        _ => Ok(()),
    }
}

/// Loads the filters and strings of the RDB file at `path`. The engine is empty or holds an interrupted
/// import.
///
/// # Errors
/// [`ImportError`]. The mark stays in the folder if loading had begun.
pub(crate) fn load(path: &Path, engine: &Engine, folder: Option<&Path>) -> Result<Imported, ImportError> {
    let mark = folder.map(|folder| folder.join(MARK_FILE));
    let unfinished = check_unfinished(folder).is_err();
    let names = engine.totals().names;
    if names > 0 && !unfinished {
        return Err(ImportError::NotEmpty { names });
    }
    let limit_bytes = engine.limits().filter_bytes;
    open(path, limit_bytes)?.check_to_the_end().map_err(|source| in_file(path, source))?;
    if let Some(mark) = &mark {
        set_mark(mark, path).map_err(|source| ImportError::Io { path: mark.clone(), source })?;
    }
    let mut loading = Loading { engine, scratch: Scratch::default(), waiting: 0, waiting_bytes: 0 };
    if unfinished {
        loading.run(&[b"FLUSHALL"], b"")?;
    }
    let mut imported = Imported::default();
    for entry in open(path, limit_bytes)? {
        let entry = entry.map_err(|source| in_file(path, source))?;
        let left_out = imported.other_types + imported.other_databases;
        let key = entry.name.escape_ascii();
        if entry.database != 0 {
            if left_out < NAMED {
                tracing::warn!(%key, database = entry.database, "key skipped: only database 0 is loaded");
            }
            imported.other_databases += 1;
            continue;
        }
        if entry.expires_at_ms.is_some_and(|at| at <= engine.environment().now_ms()) {
            imported.expired += 1;
            continue;
        }
        let payload = match &entry.value {
            EntryValue::String(payload) => {
                imported.strings += 1;
                payload
            }
            EntryValue::RedisBloom(_, payload) | EntryValue::Mayhap(payload) => {
                imported.filters += 1;
                payload
            }
            EntryValue::Other(what) => {
                if left_out < NAMED {
                    tracing::warn!(%key, r#type = what, "key skipped: neither a filter nor a string");
                }
                imported.other_types += 1;
                continue;
            }
            _ => continue,
        };
        let expires_at_ms = entry.expires_at_ms.unwrap_or(0).min(LAST_MS).to_string();
        loading.run(&[b"RESTORE", &entry.name, expires_at_ms.as_bytes(), payload, b"ABSTTL"], &entry.name)?;
    }
    loading.make_safe(b"")?;
    if let Some(mark) = &mark {
        remove_mark(mark).map_err(|source| ImportError::Io { path: mark.clone(), source })?;
    }
    tracing::info!(
        file = %path.display(),
        filters = imported.filters,
        strings = imported.strings,
        expired = imported.expired,
        other_types = imported.other_types,
        other_databases = imported.other_databases,
        "rdb file loaded"
    );
    Ok(imported)
}

fn in_file(path: &Path, source: RdbFileError) -> ImportError {
    ImportError::File { path: path.to_owned(), source }
}

fn open(path: &Path, limit_bytes: u64) -> Result<FileReader<BufReader<File>>, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    // Checked before opening: opening a pipe would wait for a writer.
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(ImportError::NotAFile { path: path.to_owned() });
    }
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(io)?);
    FileReader::new(file, limit_bytes).map_err(|source| in_file(path, source))
}

fn set_mark(mark: &Path, path: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(mark)?;
    io::Write::write_all(&mut file, path.as_os_str().as_encoded_bytes())?;
    file.sync_all()?;
    sync_folder_of(mark)
}

fn remove_mark(mark: &Path) -> io::Result<()> {
    fs::remove_file(mark)?;
    sync_folder_of(mark)
}

fn sync_folder_of(mark: &Path) -> io::Result<()> {
    mark.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Runs requests as a client would, and commits them to the log in groups.
struct Loading<'e> {
    engine: &'e Engine,
    scratch: Scratch,
    waiting: usize,
    waiting_bytes: usize,
}

impl Loading<'_> {
    fn run(&mut self, words: &[&[u8]], key: &[u8]) -> Result<(), ImportError> {
        let refused = |refusal: &Refusal| ImportError::Refused {
            key: key.escape_ascii().to_string(),
            refusal: refusal.to_string(),
        };
        let command = table::find(words[0]).ok_or_else(|| refused(&Refusal::Syntax))?;
        let mut replies = Vec::new();
        self.engine.run_long(Request { command, words }, &mut self.scratch, &mut replies);
        if let Some(Reply::Refused(refusal)) = replies.first() {
            return Err(refused(refusal));
        }
        self.waiting += 1;
        self.waiting_bytes += words.iter().map(|word| word.len()).sum::<usize>();
        if self.waiting >= KEYS_AT_ONCE || self.waiting_bytes >= BYTES_AT_ONCE {
            self.make_safe(key)?;
        }
        Ok(())
    }

    /// Waits until the log has all changes so far.
    fn make_safe(&mut self, key: &[u8]) -> Result<(), ImportError> {
        (self.waiting, self.waiting_bytes) = (0, 0);
        let synced = self.engine.log().map_or(Ok(()), |log| log.sync());
        synced.map_err(|refused| ImportError::Refused {
            key: key.escape_ascii().to_string(),
            refusal: durable::refusal(refused).to_string(),
        })
    }
}
