//! Reading a log again: everything that was safe, in order, and never anything else.
//!
//! * Below the first number of the next segment every frame must be right: nobody begins a segment before that is safe. What is
//!   behind that number is left over from an earlier life, and nobody looks at it.
//! * In the last segment the first frame that is not right may be one that was never safe: torn, zeroed, or missing while later ones are
//!   there. Every frame says what was safe when it was written. If one behind says that something was safe which is missing now,
//!   this is damage, and refused. Otherwise the rest is cut off.
//! * The log goes on in a new segment, with another salt. What was read and is not known to be safe is copied into it: a disk that
//!   failed to sync it once may say so only once, and keep it in memory only.

use std::error::Error;
use std::io::Read;

use super::error::LogError;
use super::frame::{ALIGN, Frame, Kind, NoSegment, SEGMENT_BYTES, Segment, VERSION, known_safe};
use super::writer::{Begin, Extent, NotWritten, Place, Salts, UNFINISHED, Writer};
use super::{Needed, Recovered, failed, name, newest, number_of};
use crate::disk::Disk;

/// Reads everything from number `needed.from` on, and begins a new segment. The segment `newest` must be there, or a newer one.
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
        disk.remove(UNFINISHED).map_err(failed("remove an unfinished file of the log"))?;
    }
    let mut found = Recovered { from, next: from, ..Recovered::default() };
    // Segments wholly in front of `from` were to be forgotten, and some may be missing.
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
            // A segment of which everything is copied is replaced.
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
            what: "records that a snapshot has seen are not as they were written",
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

/// What was found of a log of which not everything is as it was written.
#[derive(Debug, Default)]
pub(crate) struct Salvaged {
    /// Records that were played.
    pub(crate) played: u64,
    /// Records that are not there, as far as they can be counted.
    pub(crate) missing: u64,
    /// Files, places and what is wrong there.
    pub(crate) damage: Vec<(String, u64, &'static str)>,
}

/// What a log has, one after the other.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// A record, and its number.
    Record(u64, &'a [u8]),
    /// Records below this number are missing.
    Missing { below: u64 },
}

/// Plays every record from number `needed.from` on that is as it was written, and tells what is missing in between. Changes nothing.
pub(crate) fn salvage(
    disk: &dyn Disk,
    needed: Needed,
    mut play: impl FnMut(Piece<'_>),
) -> Result<Salvaged, LogError> {
    let Needed { from, seen, .. } = needed;
    let names = disk.list().map_err(failed("list the files of the log"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    firsts.sort_unstable();
    let begin = firsts.iter().rposition(|&first| first <= from).unwrap_or(0);
    let (mut found, mut bytes, mut next) = (Salvaged::default(), Vec::new(), from);
    // Is what is behind the end lost?
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
            let what = "the header is not as it was written: none of its records can be told";
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
            // Torn or lost? As the start of a server decides it.
            let is_right =
                frame.as_ref().is_some_and(|(at, frame)| *at == offset && frame.header.first <= next);
            let was_safe = || known_safe(&bytes, segment.salt, offset).is_some_and(|safe| safe > next);
            if !is_right && end.is_none() && !was_safe() {
                found.damage.push((file.clone(), offset as u64, "the end is incomplete: cut off"));
                break;
            }
            let Some((at, frame)) = frame else {
                found.damage.push((file.clone(), offset as u64, "nothing from here on is as it was written"));
                is_cut |= end.is_none();
                break;
            };
            if at > offset {
                found.damage.push((file.clone(), offset as u64, "a frame is not as it was written"));
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
            found.damage.push((name(newest), 0, "it is not there, and was the newest file of the log"));
            is_cut = true;
        }
        Ok(_) => {}
        Err(_) => {
            // Whether a newer file was there cannot be told any more.
            found.damage.push((newest::FILE.into(), 0, "it differs from its checksum"));
            is_cut = true;
        }
    }
    if next < from.max(seen) || is_cut {
        found.missing += from.max(seen).saturating_sub(next);
        if !is_cut {
            let what = "the log ends before records that a snapshot has seen";
            found.damage.push((firsts.last().map_or_else(|| name(from), |last| name(*last)), 0, what));
        }
        play(Piece::Missing { below: u64::MAX });
    }
    Ok(found)
}

/// Reads a whole segment. Its bytes are in memory: they are no more than a segment's limit and one frame.
fn length(disk: &dyn Disk, first: u64, bytes: &mut Vec<u8>) -> Result<u64, LogError> {
    bytes.clear();
    let mut file = disk.read(&name(first)).map_err(failed("open a file of the log"))?;
    file.read_to_end(bytes).map_err(failed("read a file of the log"))?;
    Ok(bytes.len() as u64)
}

/// What a segment has.
struct Scan<'a> {
    frames: Vec<Frame<'a>>,
    /// The number behind its last record.
    next: u64,
    /// Everything below this number is known to be safe.
    safe: u64,
    clean: bool,
    cut_bytes: u64,
}

/// Finds the frames of segment `first`, up to number `end`, where the next segment begins.
fn scan(bytes: &[u8], first: u64, end: Option<u64>) -> Result<Scan<'_>, LogError> {
    let file = || name(first);
    let damaged = |offset: usize, what| LogError::Damaged { file: file(), offset: offset as u64, what };
    let segment = Segment::decode(bytes).map_err(|error| match error {
        NoSegment::Damaged(what) => damaged(0, what),
        NoSegment::Version(got) => LogError::Version { file: file(), got, newest: VERSION },
    })?;
    if segment.first != first {
        return Err(damaged(0, "the header has another number than the name"));
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
        Some(_) => return Err(damaged(offset, "records that were safe are not there")),
        None => {}
    }
    let safe = known_safe(bytes, segment.salt, offset).map_or(scan.safe, |safe| safe.max(scan.safe));
    if safe > scan.next {
        return Err(damaged(offset, "a frame that was safe is not as it was written"));
    }
    if offset < bytes.len() {
        scan.cut_bytes = (bytes.len() - offset) as u64;
        scan.clean = false;
    }
    Ok(scan)
}

/// The segment in which the log goes on, with all records that are not known to be safe where they are.
fn copied(scan: &Scan<'_>) -> Begin {
    let copied: Vec<_> = scan
        .frames
        .iter()
        .filter(|frame| frame.next() > scan.safe)
        .map(|frame| (frame.header.first, frame.header.count, frame.body.to_vec()))
        .collect();
    Begin { first: copied.first().map_or(scan.next, |(first, ..)| *first), copied }
}
