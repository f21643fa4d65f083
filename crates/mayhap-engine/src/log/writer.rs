//! Writes the current segment.

use std::io;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::frame::{self, HEADER_BYTES, Kind, SEGMENT_BYTES, Segment};
use super::handover::{Handover, Taken};
use super::name;
use crate::disk::{AppendFile, Disk};

/// A frame buffer larger than this is not kept.
const KEPT_BYTES: usize = 1 << 20;

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of its first record.
    pub(super) first: u64,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

/// Why a write failed.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The disk is full. Nothing was changed, and the records are kept.
    NoSpace,
    /// Any other error.
    Failed(&'static str, io::Error),
}

impl From<NotBegun> for NotWritten {
    fn from(error: NotBegun) -> Self {
        match error {
            NotBegun::Unfinished(error) if is_full(&error) => Self::NoSpace,
            NotBegun::Unfinished(error) => Self::Failed("create a log file", error),
            NotBegun::Unnamed(error) => Self::Failed("rename a new log file into place", error),
        }
    }
}

/// Whether the error goes away when there is space on the disk.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Appends all of `bytes`.
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

/// The source of salts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Salts {
    /// Random, so that clients cannot guess them: bytes from a client are never mistaken for a frame.
    #[default]
    Random,
    /// Reproducible, for tests. Two logs on the same disk, one after the other, must not have the same salts.
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

/// The name of a file before it counts.
pub(super) const UNFINISHED: &str = "log-new";

/// A segment to begin.
#[derive(Debug, Default)]
pub(super) struct Begin {
    /// The number of its first record.
    pub(super) first: u64,
    /// The bodies of frames to copy from another segment: number of the first record, number of records,
    /// bytes.
    pub(super) copied: Vec<(u64, u32, Vec<u8>)>,
}

/// Why a segment could not be begun.
#[derive(Debug)]
pub(super) enum NotBegun {
    /// It does not count, and nothing was changed.
    Unfinished(io::Error),
    /// After a crash it may or may not exist.
    Unnamed(io::Error),
}

impl Begin {
    /// A segment without records.
    pub(super) fn empty(first: u64) -> Self {
        Self { first, copied: Vec::new() }
    }

    /// The number after its last record.
    fn next(&self) -> u64 {
        self.copied.last().map_or(self.first, |(first, count, _)| first + u64::from(*count))
    }

    /// Writes and syncs the file, then gives it its name. From then on it counts.
    pub(super) fn finish(&self, disk: &dyn Disk, salts: Salts) -> Result<Current, NotBegun> {
        let current = self.write(disk, salts).map_err(|error| {
            // It is useless and takes space.
            let _ = disk.remove(UNFINISHED);
            NotBegun::Unfinished(error)
        })?;
        if let Err(error) = disk.rename(UNFINISHED, &name(self.first)) {
            // If it still exists under that name, it was not renamed.
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
        // The frames claim that all of them are safe. That is true as soon as the segment has its name.
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

/// The current segment.
pub(super) struct Current {
    pub(super) file: Arc<dyn AppendFile>,
    pub(super) segment: Segment,
    /// Its size in bytes: the offset of the next frame.
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

/// The segment in which the log continues.
pub(super) enum Place {
    /// The current segment.
    Current(Current),
    /// A segment for which there was no space when the log was opened.
    Later(Begin),
}

/// The writer. The thread that holds its lock writes.
pub(super) struct Writer {
    place: Place,
    salts: Salts,
    /// The older segments.
    pub(super) older: Vec<Extent>,
    /// Records that found no space.
    stuck: Option<Taken>,
    spare: Vec<u8>,
}

impl Writer {
    pub(super) fn new(place: Place, older: Vec<Extent>, salts: Salts) -> Self {
        Self { place, salts, older, stuck: None, spare: Vec::new() }
    }

    /// Bytes that found no space.
    pub(super) fn stuck_bytes(&self) -> usize {
        self.stuck.as_ref().map_or(0, |taken| taken.frame.len())
    }

    /// The size of the current segment in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            Place::Current(current) => current.bytes,
            Place::Later(_) => 0,
        }
    }

    /// The number of the first record of the current segment.
    pub(super) fn first(&self) -> u64 {
        match &self.place {
            Place::Current(current) => current.segment.first,
            Place::Later(begin) => begin.first,
        }
    }

    /// The current file.
    pub(super) fn file(&self) -> Option<Arc<dyn AppendFile>> {
        match &self.place {
            Place::Current(current) => Some(Arc::clone(&current.file)),
            Place::Later(_) => None,
        }
    }

    /// Writes all records that are pending at the time of the call.
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
                file.set_len(*bytes).map_err(|error| NotWritten::Failed("truncate the log", error))?;
                taken.frame.truncate(records);
                self.stuck = Some(taken);
                Err(NotWritten::NoSpace)
            }
            Err(error) => Err(NotWritten::Failed("write the log", error)),
        }
    }

    /// Appends a frame that marks the log as closed, with everything safe.
    pub(super) fn mark_clean(&mut self, next: u64) -> io::Result<()> {
        match &mut self.place {
            Place::Current(current) => {
                current.put(&[], next, 0, next, Kind::Clean)?;
                current.file.sync_data()
            }
            Place::Later(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Begins a new segment at number `next`. Everything before it is safe. If it cannot be begun, the old
    /// one continues, unless the new one may exist: then records from that number on in the old one do not
    /// count.
    pub(super) fn rotate(&mut self, next: u64, disk: &dyn Disk) -> Result<(), NotBegun> {
        let new = Begin::empty(next).finish(disk, self.salts)?;
        if let Place::Current(old) = std::mem::replace(&mut self.place, Place::Current(new)) {
            self.older.push(Extent { first: old.segment.first, bytes: old.bytes });
        }
        Ok(())
    }

    /// Removes and returns the segments that only have records below `number`.
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
