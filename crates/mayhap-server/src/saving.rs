//! The data folder. Only one server uses it at a time. At the start the last snapshot and the log after it
//! are read; from then on every change is logged.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mayhap_engine::log::{Policy, Refused};
use mayhap_engine::snapshot::{Done, SnapshotError};
use mayhap_engine::{Engine, Files, RecoverError, Recovery};
use parking_lot::Mutex;

/// The file that is locked while a server uses the folder. It contains the process id of the server.
pub const LOCK_FILE: &str = "mayhap.lock";

/// Why a folder cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum FolderError {
    /// The operating system reported an error.
    Io(io::Error),
    /// Another server uses it.
    InUse {
        /// The process id of that server, if it could be read.
        process: Option<u32>,
    },
    /// The lock file is a symbolic link: writing to it would overwrite another file.
    LinkedLock,
    /// The data in the folder cannot be read.
    Damaged(RecoverError),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("cannot use the data folder"),
            Self::InUse { process: Some(process) } => {
                write!(
                    f,
                    "the data folder is in use by another server (process {process}): choose another --dir"
                )
            }
            Self::InUse { process: None } => {
                f.write_str("the data folder is in use by another server: choose another --dir")
            }
            Self::LinkedLock => write!(f, "{LOCK_FILE} is a symbolic link: remove it"),
            Self::Damaged(error) => {
                write!(f, "{error}: nothing was changed; `mayhap repair` shows what can be recovered")
            }
        }
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            Self::InUse { .. } | Self::LinkedLock => None,
            Self::Damaged(source) => Some(source),
        }
    }
}

/// Why data was not saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// The server has no data folder.
    NoFolder,
    /// Another thread is writing a snapshot.
    UnderWay,
    /// The snapshot failed.
    Failed(SnapshotError),
    /// The log could not be closed.
    Log(Refused),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => f.write_str("the server has no data folder"),
            Self::UnderWay => f.write_str("a snapshot is already being written"),
            Self::Failed(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(source) => Some(source),
            Self::Log(source) => Some(source),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    files: Arc<Files>,
    /// The locked lock file.
    _lock: File,
    /// The folder itself, locked as well: no second server gets in if the lock file was deleted.
    _folder_lock: File,
}

/// The last snapshot.
#[derive(Clone, Copy, Debug)]
pub struct LastSave {
    /// Unix time when it was written; the time of the start if there was none since.
    pub unix_secs: u64,
    /// The time it took; `None` if there was none yet.
    pub took: Option<Duration>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether the last attempt succeeded.
    pub worked: bool,
}

/// Keeps the data in its folder, or nowhere if there is no folder.
#[derive(Debug)]
pub struct Saving {
    folder: Option<Folder>,
    /// Held while a snapshot is written: only one at a time.
    at_work: Mutex<()>,
    under_way: AtomicBool,
    last: Mutex<LastSave>,
    /// The value of [`changes`] when the last snapshot began.
    saved_changes: AtomicU64,
    saves: AtomicU64,
}

impl Saving {
    /// Locks the data folder, if the settings name one.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(folder: Option<&Path>, now_ms: u64) -> Result<Self, FolderError> {
        let folder = folder.map(Folder::open).transpose()?;
        Ok(Self {
            folder,
            at_work: Mutex::default(),
            under_way: AtomicBool::new(false),
            last: Mutex::new(LastSave { unix_secs: now_ms / 1_000, took: None, bytes: 0, worked: true }),
            saved_changes: AtomicU64::new(0),
            saves: AtomicU64::new(0),
        })
    }

    /// The data folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| &*folder.path)
    }

    /// Loads the data folder into an empty engine, which logs every change from then on.
    ///
    /// # Errors
    /// [`FolderError::Damaged`]. Nothing on the disk was changed in that case.
    pub fn load(&self, engine: &Engine, policy: Policy) -> Result<Recovery, FolderError> {
        let Some(folder) = &self.folder else { return Ok(Recovery::default()) };
        let begun = Instant::now();
        let files = Arc::clone(&folder.files);
        let recovery = engine.recover(files, policy).map_err(FolderError::Damaged)?;
        // All loaded changes are on the disk.
        self.saved_changes.store(changes(engine), Ordering::Release);
        tracing::info!(
            filters = engine.totals().names,
            expired = recovery.snapshot.skipped,
            snapshot_bytes = recovery.snapshot.bytes,
            played = recovery.log.played,
            millis = begun.elapsed().as_millis(),
            "data loaded"
        );
        if recovery.log.cut_bytes > 0 {
            tracing::warn!(
                file = recovery.log.cut_file,
                bytes = recovery.log.cut_bytes,
                "the end of the log is incomplete and was cut off: the last write before a crash, or damage to the end of the file"
            );
        }
        let lost = engine.totals().lost();
        if lost > 0 {
            tracing::warn!(
                names = lost,
                "the data of these names is lost: they answer NOTREADY until they are created again or deleted; SCAN 0 TYPE lost lists them"
            );
        }
        if engine.has_unknown_losses() {
            tracing::warn!(
                "names are lost and it is unknown which: every name that does not exist answers NOTREADY until it is created; FLUSHALL or `mayhap repair --accept-loss` ends this"
            );
        }
        self.last.lock().bytes = recovery.snapshot.bytes;
        Ok(recovery)
    }

    /// Writes a snapshot now.
    ///
    /// # Errors
    /// [`SaveError`]. The previous snapshot stays.
    pub fn save(&self, engine: &Engine) -> Result<Done, SaveError> {
        let folder = self.folder.as_ref().ok_or(SaveError::NoFolder)?;
        let _mine = self.at_work.try_lock().ok_or(SaveError::UnderWay)?;
        self.write(engine, folder)
    }

    /// Begins to write a snapshot on a thread of its own.
    ///
    /// # Errors
    /// [`SaveError::NoFolder`], [`SaveError::UnderWay`].
    pub fn save_in_background(self: &Arc<Self>, engine: &Arc<Engine>) -> Result<(), SaveError> {
        if self.folder.is_none() {
            return Err(SaveError::NoFolder);
        }
        if self.is_under_way() {
            return Err(SaveError::UnderWay);
        }
        let (saving, engine) = (Arc::clone(self), Arc::clone(engine));
        // Set here, not by the thread: a client that asks right after this call must see it.
        saving.under_way.store(true, Ordering::Release);
        let begun = std::thread::Builder::new().name("save".to_owned()).spawn(move || {
            let Some(folder) = &saving.folder else { return };
            // Wait for a snapshot that is just ending. Giving up here would leave `under_way` set for ever.
            let _mine = saving.at_work.lock();
            // A failure is in the log and in `INFO`.
            let _ = saving.write(&engine, folder);
        });
        if let Err(error) = begun {
            self.under_way.store(false, Ordering::Release);
            tracing::error!(%error, "snapshot not written: cannot start a thread");
        }
        Ok(())
    }

    /// Closes the log after a running snapshot has ended. No other thread may change anything any more.
    ///
    /// # Errors
    /// [`SaveError::Log`].
    pub fn close(&self, engine: &Engine) -> Result<(), SaveError> {
        let _mine = self.at_work.lock();
        engine.log().map_or(Ok(()), |log| log.close().map_err(SaveError::Log))
    }

    /// Syncs the log. If it succeeds, the server can end without losing a change made before.
    ///
    /// # Errors
    /// [`SaveError::Log`].
    pub fn can_end(&self, engine: &Engine) -> Result<(), SaveError> {
        engine.log().map_or(Ok(()), |log| log.sync().map_err(SaveError::Log))
    }

    fn write(&self, engine: &Engine, folder: &Folder) -> Result<Done, SaveError> {
        self.under_way.store(true, Ordering::Release);
        let changes = changes(engine);
        let begun = Instant::now();
        let done = engine.snapshot(&*folder.files);
        let took = begun.elapsed();
        {
            let mut last = self.last.lock();
            last.worked = done.is_ok();
            if let Ok(done) = &done {
                let unix_secs = engine.environment().now_ms() / 1_000;
                *last = LastSave { unix_secs, took: Some(took), bytes: done.bytes, worked: true };
                self.saved_changes.store(changes, Ordering::Release);
                self.saves.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.under_way.store(false, Ordering::Release);
        match &done {
            Ok(done) => tracing::info!(
                filters = done.names,
                bytes = done.bytes,
                written_bytes = done.written_bytes,
                millis = took.as_millis(),
                "snapshot saved"
            ),
            Err(error) => tracing::error!(
                %error,
                "snapshot failed; the previous one stays and changes are still logged. SAVE or BGSAVE tries again"
            ),
        }
        done.map_err(SaveError::Failed)
    }

    /// Whether a snapshot is being written.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    /// The last snapshot.
    #[must_use]
    pub fn last(&self) -> LastSave {
        *self.last.lock()
    }

    /// The number of snapshots written since the start.
    #[must_use]
    pub fn saves(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    /// The number of changes since the last snapshot. Requests that changed nothing do not count.
    #[must_use]
    pub fn changes(&self, engine: &Engine) -> u64 {
        changes(engine).saturating_sub(self.saved_changes.load(Ordering::Acquire))
    }
}

/// The number of changes so far.
fn changes(engine: &Engine) -> u64 {
    engine.totals().changes
}

impl Folder {
    fn open(path: &Path) -> Result<Self, FolderError> {
        let files = Files::open(path).map_err(FolderError::Io)?;
        let name = path.join(LOCK_FILE);
        if name.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Err(FolderError::LinkedLock);
        }
        let lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(name);
        let mut lock = lock.map_err(FolderError::Io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(FolderError::Io(error)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = lock.take(32).read_to_string(&mut text);
                return Err(FolderError::InUse { process: text.trim().parse().ok() });
            }
        }
        let folder_lock = File::open(path).map_err(FolderError::Io)?;
        match folder_lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(FolderError::Io(error)),
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse { process: None }),
        }
        for (name, mode) in files.restrict_to_owner().map_err(FolderError::Io)? {
            tracing::warn!(
                name,
                mode = format!("{mode:04o}"),
                "other users could read this file; its mode was changed so that only the owner can"
            );
        }
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(FolderError::Io)?;
        Ok(Self { path: path.to_owned(), files: Arc::new(files), _lock: lock, _folder_lock: folder_lock })
    }
}
