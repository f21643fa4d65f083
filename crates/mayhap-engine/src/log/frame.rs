//! The bytes of a segment: its header, and frames that are complete or ignored.
//!
//! `docs/format.md` draws them. Both checksums of a frame depend on the salt of the segment and on the
//! position of the frame. Therefore bytes from a client, a frame of another file or position, and a frame
//! from an earlier use of the file are never mistaken for a frame.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The first bytes of a segment.
pub(super) const MAGIC: &[u8; 8] = b"mayhapLG";
/// The newest version of the segment format.
pub(super) const VERSION: u32 = 1;
/// Size of a segment header in bytes.
pub(super) const SEGMENT_BYTES: usize = 40;
/// Size of a frame header in bytes.
pub(super) const HEADER_BYTES: usize = 48;
/// Frames begin at multiples of this.
pub(super) const ALIGN: usize = 8;

/// The maximum record number. No log reaches it: at a billion records per second it takes a century. A higher
/// number was forged, and would overflow soon.
pub(super) const MAX_NUMBER: u64 = 1 << 62;

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(ALIGN) && HEADER_BYTES.is_multiple_of(ALIGN));

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It carries records.
    Records = 0,
    /// It carries no records. Everything before it is safe.
    Safe = 1,
    /// The same, at the end of a log that was closed.
    Clean = 2,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// A random number that enters every checksum of the segment.
    pub(super) salt: u64,
    /// The number of its first record.
    pub(super) first: u64,
}

/// Why a segment header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSegment {
    /// It is not a segment header, or it is damaged.
    Damaged(&'static str),
    /// A newer version of the program wrote it.
    Version(u32),
}

impl Segment {
    pub(super) fn encode(self) -> [u8; SEGMENT_BYTES] {
        let mut bytes = [0; SEGMENT_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        let sum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NoSegment> {
        let Some(bytes) = bytes.get(..SEGMENT_BYTES) else {
            return Err(NoSegment::Damaged("the header is truncated"));
        };
        if bytes[..8] != *MAGIC {
            return Err(NoSegment::Damaged("the file is not a log segment"));
        }
        if xxh3_64(&bytes[..32]) != number(bytes, 32) {
            return Err(NoSegment::Damaged("the header does not match its checksum"));
        }
        match number(bytes, 8) {
            version if version == u64::from(VERSION) => {}
            version => return Err(NoSegment::Version(version as u32)),
        }
        let segment = Self { salt: number(bytes, 16), first: number(bytes, 24) };
        match segment.first <= MAX_NUMBER {
            true => Ok(segment),
            false => Err(NoSegment::Damaged("the number of the first record is too large")),
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Checksum of the records and the padding.
    body: u64,
    /// Length of the records in bytes.
    pub(super) length: u64,
    /// The number of the first record.
    pub(super) first: u64,
    /// Everything below this number was safe when the frame was written.
    pub(super) synced: u64,
    /// The number of records.
    pub(super) count: u32,
    /// The purpose of the frame.
    pub(super) kind: Kind,
}

/// `length` plus padding.
fn padded(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(ALIGN as u64)
}

/// Completes `frame`: its first [`HEADER_BYTES`] are free for the header, and the records follow them. The
/// frame will be written at `offset`.
pub(super) fn seal(
    frame: &mut Vec<u8>,
    salt: u64,
    offset: u64,
    first: u64,
    count: u32,
    synced: u64,
    kind: Kind,
) {
    let seed = salt.wrapping_add(offset);
    let length = (frame.len() - HEADER_BYTES) as u64;
    frame.resize(frame.len().next_multiple_of(ALIGN), 0);
    let (header, body) = frame.split_at_mut(HEADER_BYTES);
    header[8..16].copy_from_slice(&xxh3_64_with_seed(body, seed).to_le_bytes());
    header[16..24].copy_from_slice(&length.to_le_bytes());
    header[24..32].copy_from_slice(&first.to_le_bytes());
    header[32..40].copy_from_slice(&synced.to_le_bytes());
    header[40..44].copy_from_slice(&count.to_le_bytes());
    header[44..48].copy_from_slice(&(kind as u32).to_le_bytes());
    let sum = xxh3_64_with_seed(&header[8..], seed);
    header[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Appends a record to the body of a frame.
pub(super) fn put_record(frame: &mut Vec<u8>, record: &[u8]) {
    let mut length = record.len();
    while length >= 128 {
        frame.push(length as u8 | 128);
        length >>= 7;
    }
    frame.push(length as u8);
    frame.extend_from_slice(record);
}

/// Splits the first record off `body`.
fn take_record<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (mut length, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = body.split_first()?;
        *body = rest;
        length |= u64::from(byte & 127).checked_shl(shift)?;
        shift += 7;
        if byte < 128 {
            break;
        }
    }
    let (record, rest) = body.split_at_checked(usize::try_from(length).ok()?)?;
    *body = rest;
    Some(record)
}

/// Returns the frame header at `offset` of `segment`, if it is valid.
pub(super) fn header(segment: &[u8], salt: u64, offset: usize) -> Option<FrameHeader> {
    let bytes = segment.get(offset..)?.get(..HEADER_BYTES)?;
    if xxh3_64_with_seed(&bytes[8..], salt.wrapping_add(offset as u64)) != number(bytes, 0) {
        return None;
    }
    let kind = match number(bytes, 40) >> 32 {
        0 => Kind::Records,
        1 => Kind::Safe,
        2 => Kind::Clean,
        _ => return None,
    };
    Some(FrameHeader {
        body: number(bytes, 8),
        length: number(bytes, 16),
        first: number(bytes, 24),
        synced: number(bytes, 32),
        count: number(bytes, 40) as u32,
        kind,
    })
}

/// A complete frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Its header.
    pub(super) header: FrameHeader,
    /// Its records.
    pub(super) body: &'a [u8],
    /// The offset of the next frame.
    pub(super) end: usize,
}

impl<'a> Frame<'a> {
    /// Returns the frame at `offset` of `segment`, if it is complete.
    pub(super) fn at(segment: &'a [u8], salt: u64, offset: usize) -> Option<Self> {
        let header = header(segment, salt, offset)?;
        let filled = usize::try_from(padded(header.length)?).ok()?;
        let body = segment.get(offset + HEADER_BYTES..)?.get(..filled)?;
        if xxh3_64_with_seed(body, salt.wrapping_add(offset as u64)) != header.body {
            return None;
        }
        header.first.checked_add(header.count.into()).filter(|next| *next <= MAX_NUMBER)?;
        let frame =
            Self { header, body: &body[..header.length as usize], end: offset + HEADER_BYTES + filled };
        (frame.records().count() == header.count as usize).then_some(frame)
    }

    /// Its records, up to the first malformed one.
    pub(super) fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || if rest.is_empty() { None } else { take_record(&mut rest) })
    }

    /// The number after its last record.
    pub(super) fn next(&self) -> u64 {
        self.header.first + u64::from(self.header.count)
    }
}

/// Returns the highest `synced` of all valid frame headers at or after `offset`: records below it are known
/// to have been safe. Takes one pass, whatever the bytes are.
pub(super) fn known_safe(segment: &[u8], salt: u64, offset: usize) -> Option<u64> {
    let begin = offset.next_multiple_of(ALIGN);
    (begin..segment.len()).step_by(ALIGN).filter_map(|at| header(segment, salt, at)).map(|h| h.synced).max()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_overflowing_numbers_is_not_a_frame() {
        for (first, count, is_one) in [
            (MAX_NUMBER - 2, 2, true),
            (MAX_NUMBER - 1, 2, false),
            (u64::MAX, 1, false),
            (u64::MAX, 0, false),
        ] {
            let mut bytes = vec![0; HEADER_BYTES];
            (0..count).for_each(|_| put_record(&mut bytes, b"record"));
            seal(&mut bytes, 7, 0, first, count, 0, Kind::Records);
            let frame = Frame::at(&bytes, 7, 0);
            assert_eq!(frame.map(|frame| frame.next()), is_one.then(|| first + u64::from(count)));
        }
        for (first, is_one) in [(MAX_NUMBER, true), (MAX_NUMBER + 1, false), (u64::MAX, false)] {
            assert_eq!(Segment::decode(&Segment { salt: 7, first }.encode()).is_ok(), is_one);
        }
    }
}
