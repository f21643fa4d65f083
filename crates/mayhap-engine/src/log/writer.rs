//! The segment that is being written, and those before it.

use std::io;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::frame::{self, HEADER_BYTES, Kind, SEGMENT_BYTES, Segment};
use super::handover::{Handover, Taken};
use super::name;
use crate::disk::{AppendFile, Disk};

/// More memory than this is not kept for the next frame.
const KEPT_BYTES: usize = 1 << 20;

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of its first record.
    pub(super) first: u64,
    /// Its bytes.
    pub(super) bytes: u64,
}

/// What went wrong at a write.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The disk is full; everything is as it was, and what was to be written is kept.
    NoSpace,
    /// Anything else.
    Failed(&'static str, io::Error),
}

impl From<NotBegun> for NotWritten {
    fn from(error: NotBegun) -> Self {
        match error {
            NotBegun::Unfinished(error) if is_full(&error) => Self::NoSpace,
            NotBegun::Unfinished(error) => Self::Failed("begin a file of the log", error),
            NotBegun::Unnamed(error) => Self::Failed("put a file of the log in its place", error),
        }
    }
}

/// Is this an error that goes away when somebody makes room?
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Puts all of `bytes` behind the end.
fn write_all(file: &dyn AppendFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Where salts come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Salts {
    /// Nobody can guess them: no bytes that a client sends are taken for a frame.
    #[default]
    Random,
    /// They can be had again, for tests. No two logs on the same disk, one after the other, may have the same.
    Seeded(u64),
}

impl Salts {
    fn salt(self, first: u64) -> io::Result<u64> {
        match self {
            Self::Random => {
                let mut salt = [0; 8];
                getrandom::fill(&mut salt).map_err(|error| io::Error::other(error.to_string()))?;
                Ok(u64::from_le_bytes(salt))
            }
            Self::Seeded(seed) => Ok(xxh3_64_with_seed(&first.to_le_bytes(), seed)),
        }
    }
}

/// What the file is called before it counts.
pub(super) const UNFINISHED: &str = "log-new";

/// A segment that is to be begun.
#[derive(Debug, Default)]
pub(super) struct Begin {
    /// The number of its first record.
    pub(super) first: u64,
    /// The bodies of frames of another segment that are to be in it: the number of the first record, how many, their bytes.
    pub(super) copied: Vec<(u64, u32, Vec<u8>)>,
}

/// How far a segment came that could not be begun.
#[derive(Debug)]
pub(super) enum NotBegun {
    /// It does not count, and nothing changed.
    Unfinished(io::Error),
    /// It may be there after a crash, or not.
    Unnamed(io::Error),
}

impl Begin {
    /// A segment without records.
    pub(super) fn empty(first: u64) -> Self {
        Self { first, copied: Vec::new() }
    }

    /// The number behind its last record.
    fn next(&self) -> u64 {
        self.copied.last().map_or(self.first, |(first, count, _)| first + u64::from(*count))
    }

    /// Makes it, safely, and gives it its name then: from there on it counts.
    pub(super) fn finish(&self, disk: &dyn Disk, salts: Salts) -> Result<Current, NotBegun> {
        let current = self.write(disk, salts).map_err(|error| {
            // It is of no use, and takes room.
            let _ = disk.remove(UNFINISHED);
            NotBegun::Unfinished(error)
        })?;
        if let Err(error) = disk.rename(UNFINISHED, &name(self.first)) {
            // If it is still there under that name, it did not get the other.
            let undone = disk.list().is_ok_and(|names| names.iter().any(|name| name == UNFINISHED));
            return Err(match undone && disk.remove(UNFINISHED).is_ok() {
                true => NotBegun::Unfinished(error),
                false => NotBegun::Unnamed(error),
            });
        }
        disk.sync_dir().map_err(NotBegun::Unnamed)?;
        Ok(current)
    }

    fn write(&self, disk: &dyn Disk, salts: Salts) -> io::Result<Current> {
        let segment = Segment { salt: salts.salt(self.first)?, first: self.first };
        let mut current = Current { file: disk.append(UNFINISHED)?, segment, bytes: SEGMENT_BYTES as u64 };
        write_all(&*current.file, &segment.encode())?;
        // The frames say that all of them are safe, which is true as soon as the segment has its name.
        let next = self.next();
        for (first, count, body) in &self.copied {
            current.put(body, *first, *count, next, Kind::Records)?;
        }
        if !self.copied.is_empty() {
            current.put(&[], next, 0, next, Kind::Safe)?;
        }
        current.file.sync_data()?;
        Ok(current)
    }
}

/// The segment that is being written.
pub(super) struct Current {
    pub(super) file: Arc<dyn AppendFile>,
    pub(super) segment: Segment,
    /// Its bytes: where the next frame begins.
    pub(super) bytes: u64,
}

impl Current {
    /// Appends a frame.
    fn put(&mut self, body: &[u8], first: u64, count: u32, synced: u64, kind: Kind) -> io::Result<()> {
        let mut frame = vec![0; HEADER_BYTES];
        frame.extend_from_slice(body);
        frame::seal(&mut frame, self.segment.salt, self.bytes, first, count, synced, kind);
        write_all(&*self.file, &frame)?;
        self.bytes += frame.len() as u64;
        Ok(())
    }
}

/// Where the log goes on.
pub(super) enum Place {
    /// Here.
    Current(Current),
    /// In a segment for which there was no room when the log was opened.
    Later(Begin),
}

/// Whoever has it writes.
pub(super) struct Writer {
    place: Place,
    salts: Salts,
    /// The segments before it.
    pub(super) older: Vec<Extent>,
    /// What did not fit.
    stuck: Option<Taken>,
    spare: Vec<u8>,
}

impl Writer {
    pub(super) fn new(place: Place, older: Vec<Extent>, salts: Salts) -> Self {
        Self { place, salts, older, stuck: None, spare: Vec::new() }
    }

    /// Bytes that did not fit.
    pub(super) fn stuck_bytes(&self) -> usize {
        self.stuck.as_ref().map_or(0, |taken| taken.frame.len())
    }

    /// Bytes of the segment that is being written.
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            Place::Current(current) => current.bytes,
            Place::Later(_) => 0,
        }
    }

    /// The number of the first record of the segment that is being written.
    pub(super) fn first(&self) -> u64 {
        match &self.place {
            Place::Current(current) => current.segment.first,
            Place::Later(begin) => begin.first,
        }
    }

    /// The file that is being written.
    pub(super) fn file(&self) -> Option<Arc<dyn AppendFile>> {
        match &self.place {
            Place::Current(current) => Some(Arc::clone(&current.file)),
            Place::Later(_) => None,
        }
    }

    /// Writes everything that is pending when it is called.
    pub(super) fn write(&mut self, handover: &Handover, disk: &dyn Disk) -> Result<(), NotWritten> {
        if let Place::Later(begin) = &self.place {
            let begun = begin.finish(disk, self.salts);
            self.place = Place::Current(begun.map_err(NotWritten::from)?);
            handover.safe(handover.written());
        }
        if let Some(taken) = self.stuck.take() {
            self.write_one(taken, handover)?;
        }
        match handover.take(std::mem::take(&mut self.spare)) {
            Ok(taken) => self.write_one(taken, handover),
            Err(spare) => {
                self.spare = spare;
                Ok(())
            }
        }
    }

    fn write_one(&mut self, mut taken: Taken, handover: &Handover) -> Result<(), NotWritten> {
        let Place::Current(Current { file, segment, bytes }) = &mut self.place else {
            self.stuck = Some(taken);
            return Err(NotWritten::NoSpace);
        };
        let (records, next, synced) = (taken.frame.len(), taken.next(), handover.synced());
        frame::seal(&mut taken.frame, segment.salt, *bytes, taken.first, taken.count, synced, Kind::Records);
        match write_all(&**file, &taken.frame) {
            Ok(()) => {
                *bytes += taken.frame.len() as u64;
                handover.wrote(next);
                if taken.frame.capacity() <= KEPT_BYTES {
                    self.spare = taken.frame;
                }
                Ok(())
            }
            Err(error) if is_full(&error) => {
                file.set_len(*bytes).map_err(|error| NotWritten::Failed("cut the log", error))?;
                taken.frame.truncate(records);
                self.stuck = Some(taken);
                Err(NotWritten::NoSpace)
            }
            Err(error) => Err(NotWritten::Failed("write the log", error)),
        }
    }

    /// Appends a frame that says that all was safe when the log was closed.
    pub(super) fn mark_clean(&mut self, next: u64) -> io::Result<()> {
        match &mut self.place {
            Place::Current(current) => {
                current.put(&[], next, 0, next, Kind::Clean)?;
                current.file.sync_data()
            }
            Place::Later(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Goes on in a new segment, at number `next`. Everything before it is safe. If it cannot be begun, the old one can be gone on with; but not
    /// if it may be there: then what is behind its number in the old one does not count.
    pub(super) fn rotate(&mut self, next: u64, disk: &dyn Disk) -> Result<(), NotBegun> {
        let new = Begin::empty(next).finish(disk, self.salts)?;
        if let Place::Current(old) = std::mem::replace(&mut self.place, Place::Current(new)) {
            self.older.push(Extent { first: old.segment.first, bytes: old.bytes });
        }
        Ok(())
    }

    /// Takes the segments that have only records below `number`.
    pub(super) fn take_before(&mut self, number: u64) -> Vec<Extent> {
        let begins = self.extents().skip(1);
        let count = begins.take_while(|after| after.first <= number).count();
        self.older.drain(..count).collect()
    }

    /// All segments.
    pub(super) fn extents(&self) -> impl DoubleEndedIterator<Item = Extent> + '_ {
        let last = Extent { first: self.first(), bytes: self.bytes() };
        self.older.iter().copied().chain([last])
    }
}
