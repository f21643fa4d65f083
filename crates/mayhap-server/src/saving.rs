//! The folder of the data: one server at a time; the last snapshot and the log since are read at the start, and every change is logged.

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

/// The file that is locked as long as a server uses the folder. It has the number of its process.
pub const LOCK_FILE: &str = "mayhap.lock";

/// Why a folder cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum FolderError {
    /// The system refuses it.
    Io(io::Error),
    /// Another server uses it.
    InUse {
        /// The number of its process, if it could be read.
        process: Option<u32>,
    },
    /// The lock file is a symbolic link: to write into it would overwrite another file.
    LinkedLock,
    /// What is in it cannot be read.
    Damaged(RecoverError),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("the data cannot be kept there"),
            Self::InUse { process: Some(process) } => {
                write!(f, "another server keeps its data there, process {process}: choose another --dir")
            }
            Self::InUse { process: None } => {
                f.write_str("another server keeps its data there: choose another --dir")
            }
            Self::LinkedLock => write!(f, "{LOCK_FILE} is a symbolic link: remove it"),
            Self::Damaged(error) => {
                write!(f, "{error}: nothing was changed; `mayhap repair` shows what can be kept")
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

/// Why nothing was saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum SaveError {
    /// There is no folder.
    NoFolder,
    /// Somebody else is at it.
    UnderWay,
    /// It failed.
    Failed(SnapshotError),
    /// The log could not be closed.
    Log(Refused),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => f.write_str("there is no folder for it"),
            Self::UnderWay => f.write_str("a snapshot is being written already"),
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
    /// Holds the lock.
    _lock: File,
    /// The folder itself, locked as well: a lock file that was deleted lets no second server in.
    _folder_lock: File,
}

/// The last snapshot.
#[derive(Clone, Copy, Debug)]
pub struct LastSave {
    /// Seconds since 1970 when it was written; when the server started if none was since.
    pub unix_secs: u64,
    /// How long it took; `None` if there was none yet.
    pub took: Option<Duration>,
    /// Bytes of it.
    pub bytes: u64,
    /// Did the last attempt work?
    pub worked: bool,
}

/// Keeps the data in its folder, or nowhere if there is none.
#[derive(Debug)]
pub struct Saving {
    folder: Option<Folder>,
    /// Only one at a time.
    at_work: Mutex<()>,
    under_way: AtomicBool,
    last: Mutex<LastSave>,
    /// [`changes`] when the last snapshot was begun.
    saved_changes: AtomicU64,
    saves: AtomicU64,
}

impl Saving {
    /// Takes possession of the folder, if there is to be one.
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

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| &*folder.path)
    }

    /// Reads what is there into an engine that is empty, which logs every change from then on.
    ///
    /// # Errors
    /// [`FolderError::Damaged`]; nothing on the disk was changed then.
    pub fn load(&self, engine: &Engine, policy: Policy) -> Result<Recovery, FolderError> {
        let Some(folder) = &self.folder else { return Ok(Recovery::default()) };
        let begun = Instant::now();
        let files = Arc::clone(&folder.files);
        let recovery = engine.recover(files, policy).map_err(FolderError::Damaged)?;
        // What was read is on the disk.
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
                "the end of the log is incomplete: cut off; it is the last write before a crash, or damage to the end of the file"
            );
        }
        let lost = engine.totals().lost();
        if lost > 0 {
            tracing::warn!(
                names = lost,
                "data of names is lost: they answer NOTREADY until they are made again or deleted; SCAN 0 TYPE lost lists them"
            );
        }
        if engine.has_unknown_losses() {
            tracing::warn!(
                "names are lost, and which ones is not known: those that are not there answer NOTREADY until they are made; FLUSHALL and `mayhap repair --accept-loss` end this"
            );
        }
        self.last.lock().bytes = recovery.snapshot.bytes;
        Ok(recovery)
    }

    /// Writes a snapshot now.
    ///
    /// # Errors
    /// [`SaveError`]; the one that was there stays.
    pub fn save(&self, engine: &Engine) -> Result<Done, SaveError> {
        let folder = self.folder.as_ref().ok_or(SaveError::NoFolder)?;
        let _mine = self.at_work.try_lock().ok_or(SaveError::UnderWay)?;
        self.write(engine, folder)
    }

    /// Begins to write a snapshot, on a thread of its own.
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
        // Seen at once by who asks, not only when the thread has begun.
        saving.under_way.store(true, Ordering::Release);
        let begun = std::thread::Builder::new().name("save".to_owned()).spawn(move || {
            let Some(folder) = &saving.folder else { return };
            // Whoever is at it still is done soon; giving up here would leave it under way for ever.
            let _mine = saving.at_work.lock();
            // What went wrong is in the log, and in `INFO`.
            let _ = saving.write(&engine, folder);
        });
        if let Err(error) = begun {
            self.under_way.store(false, Ordering::Release);
            tracing::error!(%error, "no thread for the snapshot");
        }
        Ok(())
    }

    /// Closes the log when nobody changes anything any more: waits for a snapshot that is under way first.
    ///
    /// # Errors
    /// [`SaveError::Log`].
    pub fn close(&self, engine: &Engine) -> Result<(), SaveError> {
        let _mine = self.at_work.lock();
        engine.log().map_or(Ok(()), |log| log.close().map_err(SaveError::Log))
    }

    /// Can the server end without losing anything? Everything so far is safe then.
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
            Err(error) => tracing::error!(%error, "snapshot not saved"),
        }
        done.map_err(SaveError::Failed)
    }

    /// Is a snapshot being written?
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    /// The last snapshot.
    #[must_use]
    pub fn last(&self) -> LastSave {
        *self.last.lock()
    }

    /// How many snapshots were written since the start.
    #[must_use]
    pub fn saves(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    /// Changes since the last snapshot. A request that changed nothing is none.
    #[must_use]
    pub fn changes(&self, engine: &Engine) -> u64 {
        changes(engine).saturating_sub(self.saved_changes.load(Ordering::Acquire))
    }
}

/// Changes so far.
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
        for (name, mode) in files.close_to_others().map_err(FolderError::Io)? {
            tracing::warn!(
                name,
                mode = format!("{mode:04o}"),
                "other users could read the data: now only its owner can"
            );
        }
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(FolderError::Io)?;
        Ok(Self { path: path.to_owned(), files: Arc::new(files), _lock: lock, _folder_lock: folder_lock })
    }
}
