//! An engine in isolation: its clock, randomness and disk are in memory and deterministic.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mayhap_command::{Environment, Limits, Reply, Request, Scratch, table};
use mayhap_engine::{AppendFile, Disk, DiskFile, Engine};

use crate::meter;

/// The memory limit of one filter.
pub const FILTER_BYTES: u64 = 1 << 20;
/// The memory limit of all filters.
pub const ALL_BYTES: u64 = 8 << 20;

/// A clock that the test sets, and reproducible randomness.
#[derive(Debug)]
pub struct Fixed {
    now_ms: AtomicU64,
    random: AtomicU64,
}

impl Default for Fixed {
    fn default() -> Self {
        Self { now_ms: AtomicU64::new(1_700_000_000_000), random: AtomicU64::new(1) }
    }
}

impl Fixed {
    /// Advances the clock.
    pub fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Environment for Fixed {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let seed = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            *byte = (seed.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56) as u8;
        }
    }
}

/// Creates an engine with small limits, and its clock.
#[must_use]
pub fn engine() -> (Engine, Arc<Fixed>) {
    let clock = Arc::new(Fixed::default());
    let environment: Arc<dyn Environment> = Arc::<Fixed>::clone(&clock);
    let engine = Engine::new(Limits { filter_bytes: FILTER_BYTES, ..Limits::default() }, environment);
    engine.budget().set_limit(ALL_BYTES);
    (engine, clock)
}

/// Returns the reply of the engine to a request; `None` for words that are not a request of the engine.
pub fn ask(engine: &Engine, words: &[&[u8]]) -> Option<Reply> {
    let command = table::find(words.first()?)?;
    if !command.arity.admits(words.len()) || matches!(command.run, mayhap_command::Run::Server(_)) {
        return None;
    }
    let mut replies = Vec::new();
    meter::measure(words, || {
        engine.execute(&[Request { command, words }], &mut Scratch::default(), &mut replies);
    });
    assert_eq!(replies.len(), 1, "one reply for one request: {:?}", command.name);
    replies.pop()
}

/// Like [`ask`], for words separated by blanks.
///
/// # Panics
/// If they are not a request of the engine.
pub fn ask_line(engine: &Engine, line: &str) -> Reply {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    ask(engine, &words).unwrap_or_else(|| panic!("not a request of the engine: {line}"))
}

/// Arguments of `MF.RESERVE` after the name, for every kind whose `no` is always certain.
pub const CERTAIN_KINDS: [&str; 9] = [
    "kind bloom capacity 20",
    "kind blocked capacity 20 fpr 0.1",
    "kind scalable capacity 2",
    "kind cuckoo capacity 50 fpr 0.1",
    "kind quotient capacity 50 fpr 0.2",
    "kind counting capacity 50",
    "kind d-left capacity 50",
    "kind growing capacity 2",
    "kind fingerprints",
];
/// The same for kinds whose `no` is not certain, or that accept only numbers.
pub const OTHER_KINDS: [&str; 3] =
    ["kind dual capacity 50", "kind window window 50 fpr 0.1", "kind bitmap range 0 100"];

/// Returns whether the reply is an error.
#[must_use]
pub const fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused(_))
}

/// A file, with any name.
type Content = Arc<Mutex<Vec<u8>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock is fine here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<String, Content>>>);

impl Memory {
    /// Creates a disk with these files.
    #[must_use]
    pub fn of(files: BTreeMap<String, Vec<u8>>) -> Self {
        let file = |(name, bytes)| (name, Content::new(Mutex::new(bytes)));
        Self(Arc::new(Mutex::new(files.into_iter().map(file).collect())))
    }

    /// Returns an independent copy of the disk.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self::of(self.files())
    }

    /// Returns a copy of all files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        lock(&self.0).iter().map(|(name, file)| (name.clone(), lock(file).clone())).collect()
    }

    /// Creates a file.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        self.make(name, bytes);
    }

    fn make(&self, name: &str, bytes: &[u8]) -> File {
        let content = Content::new(Mutex::new(bytes.to_vec()));
        lock(&self.0).insert(name.to_owned(), Arc::clone(&content));
        File(content)
    }

    /// Returns the contents of a file.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        lock(&self.0).get(name).map(|file| lock(file).clone())
    }
}

#[derive(Debug)]
struct File(Content);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AppendFile for File {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        lock(&self.0).resize(length, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for Memory {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.make(name, &[])))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        Ok(Arc::new(self.make(name, &[])))
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let file = self.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.0);
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        lock(&self.0).remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}
