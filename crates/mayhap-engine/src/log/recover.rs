//! Recovery: reads everything that was safe, in order, and nothing else.
//!
//! * Below the first number of the next segment every frame must be valid, because a segment begins only when
//!   everything before it is safe. Frames from that number on are left over from an earlier use of the file
//!   and are ignored.
//! * In the last segment, the first invalid frame may be one that was never safe: torn, zeroed, or missing
//!   although later ones exist. Every frame records what was safe when it was written. If a later frame shows
//!   that something was safe that is missing now, this is damage, and the log is rejected. Otherwise the rest
//!   is cut off.
//! * The log continues in a new segment with another salt. Records that were read but are not known to be
//!   safe are copied into it: a disk may report a failed sync only once, and keep the data in memory only.

use std::error::Error;
use std::io::Read;

use super::error::LogError;
use super::frame::{ALIGN, Frame, Kind, NoSegment, SEGMENT_BYTES, Segment, VERSION, known_safe};
use super::writer::{Begin, Extent, NotWritten, Place, Salts, UNFINISHED, Writer};
use super::{Needed, Recovered, failed, name, newest, number_of};
use crate::disk::Disk;

/// Reads all records from number `needed.from` on and begins a new segment. The segment `newest`, or a newer
/// one, must exist.
pub(super) fn recover<E: Into<Box<dyn Error + Send + Sync>>>(
    disk: &dyn Disk,
    needed: Needed,
    newest: Option<u64>,
    salts: Salts,
    mut play: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(Writer, Recovered), LogError> {
    let Needed { from, seen, .. } = needed;
    let names = disk.list().map_err(failed("list the files of the log"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    firsts.sort_unstable();
    if let Some(newest) = newest.filter(|newest| firsts.last().is_none_or(|last| last < newest)) {
        return Err(LogError::NewestMissing { file: name(newest) });
    }
    if names.iter().any(|name| name == UNFINISHED) {
        disk.remove(UNFINISHED).map_err(failed("remove an unfinished log file"))?;
    }
    let mut found = Recovered { from, next: from, ..Recovered::default() };
    // Segments entirely before `from` are no longer needed, and some may be missing.
    let begin = match firsts.iter().rposition(|&first| first <= from) {
        Some(begin) => begin,
        None if firsts.is_empty() && from == 0 => 0,
        None => return Err(LogError::Missing { number: from }),
    };
    let mut bytes = Vec::new();
    let mut older = Vec::new();
    for &first in &firsts[..begin] {
        older.push(Extent { first, bytes: length(disk, first, &mut bytes)? });
    }
    let mut goes_on = Begin::empty(from);
    for (index, &first) in firsts.iter().enumerate().skip(begin) {
        length(disk, first, &mut bytes)?;
        let end = firsts.get(index + 1).copied();
        let scan = scan(&bytes, first, end)?;
        for frame in &scan.frames {
            for (number, record) in (frame.header.first..).zip(frame.records()) {
                if number >= from {
                    play(number, record).map_err(|e| LogError::Play { number, source: e.into() })?;
                    found.played += 1;
                }
            }
        }
        found.next = scan.next;
        if end.is_some() {
            older.push(Extent { first, bytes: bytes.len() as u64 });
        } else {
            found.cut_bytes = scan.cut_bytes;
            found.cut_file = (scan.cut_bytes > 0).then(|| name(first));
            found.clean = scan.clean;
            found.safe = scan.safe;
            let begin = copied(&scan);
            // A segment whose records are all copied is replaced.
            if begin.first > first {
                older.push(Extent { first, bytes: bytes.len() as u64 });
            }
            goes_on = begin;
        }
    }
    if found.next < from.max(seen) {
        let missing = LogError::Missing { number: found.next };
        // The bytes are those of the last file.
        return Err(found.cut_file.map_or(missing, |file| LogError::Damaged {
            file,
            offset: bytes.len() as u64 - found.cut_bytes,
            what: "records that a snapshot contains are damaged",
        }));
    }
    let place = match goes_on.finish(disk, salts).map_err(NotWritten::from) {
        Ok(current) => {
            found.safe = found.next;
            Place::Current(current)
        }
        Err(NotWritten::NoSpace) => Place::Later(goes_on),
        Err(NotWritten::Failed(doing, source)) => return Err(LogError::Disk { doing, source }),
    };
    Ok((Writer::new(place, older, salts), found))
}

/// The readable part of a damaged log.
#[derive(Debug, Default)]
pub(crate) struct SalvagedLog {
    /// The number of replayed records.
    pub(crate) played: u64,
    /// The number of missing records, as far as they can be counted.
    pub(crate) missing: u64,
    /// File, position and kind of each damage.
    pub(crate) damage: Vec<(String, u64, &'static str)>,
}

/// A piece of a damaged log.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// A record, and its number.
    Record(u64, &'a [u8]),
    /// Records below this number are missing.
    Missing { below: u64 },
}

/// Replays every undamaged record from number `needed.from` on and reports missing records in between.
/// Changes nothing.
pub(crate) fn salvage(
    disk: &dyn Disk,
    needed: Needed,
    mut play: impl FnMut(Piece<'_>),
) -> Result<SalvagedLog, LogError> {
    let Needed { from, seen, .. } = needed;
    let names = disk.list().map_err(failed("list the files of the log"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    firsts.sort_unstable();
    let begin = firsts.iter().rposition(|&first| first <= from).unwrap_or(0);
    let (mut found, mut bytes, mut next) = (SalvagedLog::default(), Vec::new(), from);
    // Whether records after the end are lost.
    let mut is_cut = false;
    for (index, &first) in firsts.iter().enumerate().skip(begin) {
        if first > next {
            found.missing += first - next;
            play(Piece::Missing { below: first });
            next = first;
        }
        let file = name(first);
        let end = firsts.get(index + 1).copied();
        let segment = length(disk, first, &mut bytes).and_then(|_| {
            let unreadable = LogError::Missing { number: first };
            Segment::decode(&bytes).map_err(|_| unreadable)
        });
        let Ok(segment) = segment else {
            let what = "the header is damaged: none of its records can be read";
            found.damage.push((file, 0, what));
            is_cut |= end.is_none();
            continue;
        };
        let mut offset = SEGMENT_BYTES;
        while offset < bytes.len() && end.is_none_or(|end| next < end) {
            let frame = (offset..bytes.len()).step_by(ALIGN).find_map(|at| {
                Frame::at(&bytes, segment.salt, at)
                    .filter(|frame| frame.next() >= next)
                    .filter(|frame| end.is_none_or(|end| frame.header.first < end))
                    .map(|frame| (at, frame))
            });
            // Torn or lost? Decided as at the start of a server.
            let is_right =
                frame.as_ref().is_some_and(|(at, frame)| *at == offset && frame.header.first <= next);
            let was_safe = || known_safe(&bytes, segment.salt, offset).is_some_and(|safe| safe > next);
            if !is_right && end.is_none() && !was_safe() {
                found.damage.push((file.clone(), offset as u64, "the end is incomplete and was cut off"));
                break;
            }
            let Some((at, frame)) = frame else {
                found.damage.push((file.clone(), offset as u64, "everything from here on is damaged"));
                is_cut |= end.is_none();
                break;
            };
            if at > offset {
                found.damage.push((file.clone(), offset as u64, "a frame is damaged"));
            }
            if frame.header.first > next {
                found.missing += frame.header.first - next;
                play(Piece::Missing { below: frame.header.first });
            }
            for (number, record) in (frame.header.first..).zip(frame.records()) {
                if number >= next {
                    play(Piece::Record(number, record));
                    found.played += 1;
                }
            }
            next = frame.next();
            offset = frame.end;
        }
        if let Some(end) = end.filter(|end| *end > next) {
            found.missing += end - next;
            play(Piece::Missing { below: end });
            next = end;
        }
    }
    match newest::read(disk) {
        Ok(Some(newest)) if firsts.last().is_none_or(|last| *last < newest) => {
            found.damage.push((name(newest), 0, "the file is missing; it was the newest file of the log"));
            is_cut = true;
        }
        Ok(_) => {}
        Err(_) => {
            // Whether a newer file existed is unknown.
            found.damage.push((newest::FILE.into(), 0, "the file does not match its checksum"));
            is_cut = true;
        }
    }
    if next < from.max(seen) || is_cut {
        found.missing += from.max(seen).saturating_sub(next);
        if !is_cut {
            let what = "the log ends before records that a snapshot contains";
            found.damage.push((firsts.last().map_or_else(|| name(from), |last| name(*last)), 0, what));
        }
        play(Piece::Missing { below: u64::MAX });
    }
    Ok(found)
}

/// Reads a whole segment into memory. It has at most the limit of a segment plus one frame.
fn length(disk: &dyn Disk, first: u64, bytes: &mut Vec<u8>) -> Result<u64, LogError> {
    bytes.clear();
    let mut file = disk.read(&name(first)).map_err(failed("open a log file"))?;
    file.read_to_end(bytes).map_err(failed("read a log file"))?;
    Ok(bytes.len() as u64)
}

/// The contents of a segment.
struct Scan<'a> {
    frames: Vec<Frame<'a>>,
    /// The number after its last record.
    next: u64,
    /// Everything below this number is known to be safe.
    safe: u64,
    clean: bool,
    cut_bytes: u64,
}

/// Finds the frames of segment `first` up to number `end`, where the next segment begins.
fn scan(bytes: &[u8], first: u64, end: Option<u64>) -> Result<Scan<'_>, LogError> {
    let file = || name(first);
    let damaged = |offset: usize, what| LogError::Damaged { file: file(), offset: offset as u64, what };
    let segment = Segment::decode(bytes).map_err(|error| match error {
        NoSegment::Damaged(what) => damaged(0, what),
        NoSegment::Version(got) => LogError::Version { file: file(), got, newest: VERSION },
    })?;
    if segment.first != first {
        return Err(damaged(0, "the number in the header differs from the file name"));
    }
    let mut scan = Scan { frames: Vec::new(), next: first, safe: first, clean: false, cut_bytes: 0 };
    let mut offset = SEGMENT_BYTES;
    while end.is_none_or(|end| scan.next < end) && offset < bytes.len() {
        let frame = Frame::at(bytes, segment.salt, offset).filter(|frame| frame.header.first == scan.next);
        let Some(frame) = frame else { break };
        scan.next = frame.next();
        scan.safe = scan.safe.max(frame.header.synced);
        scan.clean = frame.header.kind == Kind::Clean;
        offset = frame.end;
        scan.frames.push(frame);
    }
    match end {
        Some(end) if scan.next == end => return Ok(scan),
        Some(_) => return Err(damaged(offset, "records that were synced to the disk are missing")),
        None => {}
    }
    let safe = known_safe(bytes, segment.salt, offset).map_or(scan.safe, |safe| safe.max(scan.safe));
    if safe > scan.next {
        return Err(damaged(offset, "records that were synced to the disk are damaged"));
    }
    if offset < bytes.len() {
        scan.cut_bytes = (bytes.len() - offset) as u64;
        scan.clean = false;
    }
    Ok(scan)
}

/// The segment in which the log continues, with all records that are not known to be safe.
fn copied(scan: &Scan<'_>) -> Begin {
    let copied: Vec<_> = scan
        .frames
        .iter()
        .filter(|frame| frame.next() > scan.safe)
        .map(|frame| (frame.header.first, frame.header.count, frame.body.to_vec()))
        .collect();
    Begin { first: copied.first().map_or(scan.next, |(first, ..)| *first), copied }
}
