//! A disk in memory that loses what a real one may lose.
//!
//! ```text
//! write ─▶ unsynced ─ sync ─▶ safe          create, rename, remove ─▶ unsynced ─ sync_dir ─▶ safe
//!              └── crash: of every 512-byte sector any version since the last sync, torn or complete; any length in between;
//!                  of the names any subset of the changes
//! ```
//!
//! A failed sync leaves the bytes readable, but they can no longer become safe: only writing them again does
//! that. A sync makes the bytes safe that were written when it began, not those that a hook writes meanwhile.
//! Everything random comes from the generator that the test passes in.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use mayhap_engine::{AppendFile, Disk, DiskFile};
use mayhap_testkit::rng::Rng;

/// The unit that is usually written as a whole.
const SECTOR: usize = 512;

/// The promise that a disk breaks, if any. A test that does not detect such a disk is useless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spoiled {
    #[default]
    Not,
    /// Reports that bytes are safe, but does nothing.
    Sync,
    /// Reports that names are safe, but does nothing.
    SyncDir,
    /// Reports that the parts and values of a snapshot are safe, but does nothing: as if the manifest were
    /// replaced before.
    Parts,
    /// Does not truncate.
    SetLen,
    /// Changes safe bytes at a crash.
    Rots,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// The bytes that are read.
    live: Arc<Vec<u8>>,
    /// The bytes that survive for certain.
    safe: Arc<Vec<u8>>,
    /// The changes since, in order.
    unsynced: Vec<Change>,
    /// A sync failed: `live` has bytes that are neither safe nor unsynced.
    forgot: bool,
}

impl Inode {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write { at, bytes: new } => {
                if bytes.len() < at + new.len() {
                    bytes.resize(at + new.len(), 0);
                }
                bytes[*at..at + new.len()].copy_from_slice(new);
            }
            Change::SetLen(length) => bytes.resize(*length, 0),
        }
    }

    fn change(&mut self, change: Change) {
        Self::apply(Arc::make_mut(&mut self.live), &change);
        self.unsynced.push(change);
    }

    /// The bytes that may be there after a crash. Where nothing was written yet there are zeros, or bytes of
    /// another file.
    fn survivor(&self, others: &[Self], rng: &mut Rng) -> Arc<Vec<u8>> {
        if self.unsynced.is_empty() {
            return Arc::clone(&self.safe);
        }
        // The file after each change.
        let mut versions = vec![Vec::clone(&self.safe)];
        for change in &self.unsynced {
            let mut next = versions.last().unwrap().clone();
            Self::apply(&mut next, change);
            versions.push(next);
        }
        let any = |rng: &mut Rng| rng.below(versions.len() as u64) as usize;
        let longest = versions.iter().map(Vec::len).max().unwrap();
        let length = match rng.below(4) {
            0 => versions[any(rng)].len(),
            1 => longest,
            2 => {
                self.safe.len().min(longest)
                    + rng.below((longest - self.safe.len().min(longest)) as u64 + 1) as usize
            }
            _ => versions.last().unwrap().len(),
        };
        // Safe bytes that are in all versions are never cut off.
        let length = length.max(versions.iter().map(Vec::len).min().unwrap());
        // Most crashes keep nearly all or nearly nothing: with even chances per sector, a long frame would
        // hardly ever survive.
        let keeps = [0, 5, 50, 95, 100][rng.below(5) as usize];
        let mut bytes = vec![0; length];
        let sector_of = |version: &[u8], from: usize, to: usize, out: &mut [u8]| {
            out.fill(0);
            let some = version.get(from..to.min(version.len()).max(from)).unwrap_or_default();
            out[..some.len()].copy_from_slice(some);
        };
        for from in (0..length).step_by(SECTOR) {
            let to = (from + SECTOR).min(length);
            let pick = |rng: &mut Rng| if rng.below(100) < keeps { versions.len() - 1 } else { any(rng) };
            let version = pick(rng);
            sector_of(&versions[version], from, to, &mut bytes[from..to]);
            if versions[version].len() <= from && rng.below(2) == 0 {
                let other = &others[rng.below(others.len() as u64) as usize];
                sector_of(&other.live, from, to, &mut bytes[from..to]);
            }
            if rng.below(8) == 0 {
                // Torn: its first bytes are from another version.
                let cut = from + rng.below((to - from) as u64) as usize;
                let other = pick(rng);
                sector_of(&versions[other], from, cut, &mut bytes[from..cut]);
            }
        }
        Arc::new(bytes)
    }
}

/// A change of names: a name that gets a file, and a name that goes.
#[derive(Clone, Debug)]
struct NameChange {
    set: Option<(String, usize)>,
    unset: Option<String>,
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        if let Some(name) = &self.unset {
            names.remove(name);
        }
        if let Some((name, inode)) = &self.set {
            names.insert(name.clone(), *inode);
        }
    }
}

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of calls before it that succeed.
    pub(crate) after: u64,
    /// Its error.
    pub(crate) error: io::ErrorKind,
}

/// A disk as it was before a call, and the promises at that time.
pub(crate) struct DiskState {
    pub(crate) disk: Simulated,
    pub(crate) promised: u64,
}

/// Takes the pictures.
struct StateRecorder {
    /// One of this many calls is chosen at random.
    one_in: u64,
    rng: Rng,
    promises: Box<dyn Fn() -> u64 + Send>,
    shots: Vec<DiskState>,
}

#[derive(Default)]
struct Inside {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    safe_names: BTreeMap<String, usize>,
    namings: Vec<NameChange>,
    fault: Option<Fault>,
    /// Bytes that still fit.
    room: Option<u64>,
    /// The maximum number of bytes per write.
    short: Option<usize>,
    spoiled: Spoiled,
    calls: u64,
    camera: Option<StateRecorder>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("names", &self.names)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl Inside {
    /// The same files, with space and without a fault.
    fn sound_copy(&self) -> Self {
        Self {
            inodes: self.inodes.clone(),
            names: self.names.clone(),
            safe_names: self.safe_names.clone(),
            namings: self.namings.clone(),
            spoiled: self.spoiled,
            ..Self::default()
        }
    }

    /// Every call that can fail comes here first.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        if let Some(mut camera) = self.camera.take() {
            if camera.rng.below(camera.one_in) == 0 {
                let (disk, promised) = (Simulated::from(self.sound_copy()), (camera.promises)());
                camera.shots.push(DiskState { disk, promised });
            }
            self.camera = Some(camera);
        }
        match &mut self.fault {
            Some(Fault { after: 0, error }) => {
                let error = *error;
                self.fault = None;
                Err(error.into())
            }
            Some(fault) => {
                fault.after -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn name(&mut self, naming: NameChange) {
        naming.apply(&mut self.names);
        self.namings.push(naming);
    }

    fn write(&mut self, inode: usize, bytes: &[u8]) -> io::Result<usize> {
        let at = self.inodes[inode].live.len();
        let mut taken = bytes.len().min(self.short.unwrap_or(usize::MAX));
        if let Err(error) = self.call() {
            if error.kind() != io::ErrorKind::Interrupted {
                // Some of the bytes arrive anyway.
                let some = bytes[..taken / 2].to_vec();
                self.inodes[inode].change(Change::Write { at, bytes: some });
            }
            return Err(error);
        }
        if let Some(room) = &mut self.room {
            taken = taken.min(usize::try_from(*room).unwrap_or(usize::MAX));
            *room -= taken as u64;
            if taken == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.inodes[inode].change(Change::Write { at, bytes: bytes[..taken].to_vec() });
        Ok(taken)
    }
}

/// Called in the middle of a sync.
type Hook = Box<dyn FnOnce() + Send>;

/// See the module documentation.
#[derive(Clone, Default)]
pub(crate) struct Simulated(Arc<Mutex<Inside>>, Arc<Mutex<Option<Hook>>>);

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Simulated").field(&self.0).finish()
    }
}

impl Simulated {
    pub(crate) fn new(spoiled: Spoiled) -> Self {
        Self::from(Inside { spoiled, ..Inside::default() })
    }

    fn from(inside: Inside) -> Self {
        Self(Arc::new(Mutex::new(inside)), Arc::default())
    }

    /// Calls a hook in the middle of the next sync of a file.
    pub(crate) fn during_sync(&self, hook: impl FnOnce() + Send + 'static) {
        *self.1.lock().unwrap() = Some(Box::new(hook));
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }

    /// Another disk with what this one may have after a power loss.
    pub(crate) fn crashed(&self, rng: &mut Rng) -> Self {
        let inside = self.inside();
        let mut names = inside.safe_names.clone();
        // A prefix of the changes, as with a journal; or any subset, because nothing forbids it.
        let keeps = rng.below(inside.namings.len() as u64 + 1) as usize;
        let any = rng.below(2) == 0;
        for (at, naming) in inside.namings.iter().enumerate() {
            if if any { rng.below(2) == 0 } else { at < keeps } {
                naming.apply(&mut names);
            }
        }
        let mut after = Inside { spoiled: inside.spoiled, ..Inside::default() };
        for (name, inode) in names {
            let mut bytes = inside.inodes[inode].survivor(&inside.inodes, rng);
            if inside.spoiled == Spoiled::Rots && !bytes.is_empty() && rng.below(4) == 0 {
                let at = rng.below(bytes.len() as u64) as usize;
                Arc::make_mut(&mut bytes)[at] ^= 1 << rng.below(8);
            }
            after.names.insert(name, after.inodes.len());
            after.inodes.push(Inode { live: Arc::clone(&bytes), safe: bytes, ..Inode::default() });
        }
        after.safe_names.clone_from(&after.names);
        Self::from(after)
    }

    /// Another disk in the current state of this one.
    pub(crate) fn copied(&self) -> Self {
        let inside = self.inside();
        let (fault, room, short) = (inside.fault, inside.room, inside.short);
        Self::from(Inside { fault, room, short, ..inside.sound_copy() })
    }

    /// Another disk with the same files, with space and without a fault.
    pub(crate) fn sound_copy(&self) -> Self {
        Self::from(self.inside().sound_copy())
    }

    /// Takes pictures before one in `of` calls from now on, each with what `promises` returns at that moment.
    pub(crate) fn watch(&self, one_in: u64, rng: Rng, promises: impl Fn() -> u64 + Send + 'static) {
        self.inside().camera =
            Some(StateRecorder { one_in, rng, promises: Box::new(promises), shots: Vec::new() });
    }

    /// Takes the pictures, and stops taking more.
    pub(crate) fn shots(&self) -> Vec<DiskState> {
        self.inside().camera.take().map(|camera| camera.shots).unwrap_or_default()
    }

    /// Whether there is space and no fault to come.
    pub(crate) fn is_sound(&self) -> bool {
        let inside = self.inside();
        inside.fault.is_none() && inside.room.is_none()
    }

    /// Makes the call after `fault.after` others fail.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        self.inside().fault = fault;
    }

    /// Limits the bytes that fit from now on.
    pub(crate) fn set_room(&self, room: Option<u64>) {
        self.inside().room = room;
    }

    /// Limits the number of bytes per write.
    pub(crate) fn set_short(&self, short: Option<usize>) {
        self.inside().short = short;
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.inside().calls
    }

    /// The current bytes of a file.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let inside = self.inside();
        Vec::clone(&inside.inodes[inside.names[name]].live)
    }

    /// Changes a file directly, without a call.
    pub(crate) fn tamper(&self, name: &str, tamper: impl FnOnce(&mut Vec<u8>)) {
        let mut inside = self.inside();
        let inode = inside.names[name];
        let inode = &mut inside.inodes[inode];
        tamper(Arc::make_mut(&mut inode.live));
        inode.safe = Arc::clone(&inode.live);
        inode.unsynced.clear();
    }
}

/// A file while it is read.
struct Bytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// An open file.
struct Open(Simulated, usize, Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Whether it is a part or a value of a snapshot.
    Part,
    Other,
}

impl AppendFile for Open {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.inside().write(self.1, bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut inside = self.0.inside();
        inside.call()?;
        if inside.spoiled != Spoiled::SetLen {
            let cut = inside.inodes[self.1].live.len() as u64 - bytes;
            inside.room = inside.room.map(|room| room + cut);
            inside.inodes[self.1].change(Change::SetLen(bytes as usize));
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let begun = self.0.inside().inodes[self.1].unsynced.len();
        let hook = self.0.1.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        let mut inside = self.0.inside();
        let called = inside.call();
        let spoiled = inside.spoiled;
        let inode = &mut inside.inodes[self.1];
        if let Err(error) = called {
            // The system gave up on these bytes: they are read until the power fails, and never written
            // again.
            inode.forgot |= !inode.unsynced.is_empty();
            inode.unsynced.clear();
            return Err(error);
        }
        let lies = spoiled == Spoiled::Sync || spoiled == Spoiled::Parts && self.2 == Kind::Part;
        if !lies {
            if inode.forgot || begun < inode.unsynced.len() {
                let safe = Arc::make_mut(&mut inode.safe);
                inode.unsynced.drain(..begun).for_each(|change| Inode::apply(safe, &change));
            } else {
                inode.unsynced.clear();
                inode.safe = Arc::clone(&inode.live);
            }
        }
        Ok(())
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        AppendFile::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Simulated {
    fn new_file(&self, name: &str, kind: Kind) -> io::Result<Open> {
        let mut inside = self.inside();
        inside.call()?;
        let inode = inside.inodes.len();
        inside.inodes.push(Inode::default());
        inside.name(NameChange { set: Some((name.into(), inode)), unset: None });
        Ok(Open(self.clone(), inode, kind))
    }
}

impl Disk for Simulated {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let is_part = name.starts_with("part-") || name.starts_with("value-");
        let kind = if is_part { Kind::Part } else { Kind::Other };
        let known = self.inside().names.get(name).copied();
        let Some(inode) = known else { return Ok(Box::new(self.new_file(name, kind)?)) };
        // An existing file is truncated and continues.
        let mut inside = self.inside();
        inside.call()?;
        inside.inodes[inode].change(Change::SetLen(0));
        Ok(Box::new(Open(self.clone(), inode, kind)))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        Ok(Arc::new(self.new_file(name, Kind::Other)?))
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let mut inside = self.inside();
        inside.call()?;
        let inode = *inside.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(Bytes(Arc::clone(&inside.inodes[inode].live)))))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inside = self.inside();
        inside.call()?;
        let inode = *inside.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        inside.name(NameChange { set: Some((to.into(), inode)), unset: Some(from.into()) });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inside = self.inside();
        inside.call()?;
        if !inside.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        inside.name(NameChange { set: None, unset: Some(name.into()) });
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut inside = self.inside();
        inside.call()?;
        Ok(inside.names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut inside = self.inside();
        inside.call()?;
        if inside.spoiled != Spoiled::SyncDir {
            inside.safe_names = inside.names.clone();
            inside.namings.clear();
        }
        Ok(())
    }
}
