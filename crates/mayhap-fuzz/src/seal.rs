//! Correct checksums for invalid data, as an attacker would compute them.

use std::collections::BTreeMap;

use mayhap_engine::snapshot::MANIFEST;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Redis's checksum: CRC-64 with the Jones polynomial, lowest bit first.
#[must_use]
pub fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |crc: u64, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 })
    })
}

/// The RDB version that every server since Redis 7.0 reads.
pub const RDB_VERSION: u16 = 10;

/// Appends the version and the checksum that `RESTORE` requires to `value`.
#[must_use]
pub fn redis_payload(value: &[u8]) -> Vec<u8> {
    let mut payload = value.to_vec();
    payload.extend_from_slice(&RDB_VERSION.to_le_bytes());
    let crc = crc64(&payload);
    payload.extend_from_slice(&crc.to_le_bytes());
    payload
}

/// Bytes of the header of a `.mayhap` file.
pub const MAYHAP_HEADER: usize = 192;
/// Filters nested deeper than this are left unchanged: they are never accepted.
const DEPTH: u32 = 4;

/// Seals a `.mayhap` file: the payload, nested filters, the header.
pub fn mayhap(bytes: &mut [u8]) {
    seal_filter(bytes, DEPTH);
}

fn seal_filter(bytes: &mut [u8], depth: u32) {
    /// The kinds that consist of filters: dual, scalable.
    const NESTED: [u8; 2] = [5, 6];
    // A list of items has no header, so none of its bytes are changed.
    if bytes.len() < MAYHAP_HEADER || depth == 0 || !bytes.starts_with(b"\x89mayhap\n") {
        return;
    }
    let nested = NESTED.contains(&bytes[10]);
    let (header, payload) = bytes.split_at_mut(MAYHAP_HEADER);
    let checksum = if nested {
        let (mut headers, mut rest) = (Vec::new(), payload);
        while rest.len() >= MAYHAP_HEADER {
            let length =
                usize::try_from(u64_at(rest, 16)).unwrap_or(usize::MAX).saturating_add(MAYHAP_HEADER);
            let (part, behind) = rest.split_at_mut(length.min(rest.len()));
            seal_filter(part, depth - 1);
            headers.extend_from_slice(&part[..MAYHAP_HEADER]);
            rest = behind;
        }
        xxh3_64(&headers)
    } else {
        xxh3_64(payload)
    };
    header[24..32].copy_from_slice(&checksum.to_le_bytes());
    let checksum = xxh3_64(&header[..MAYHAP_HEADER - 8]);
    header[MAYHAP_HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Bytes of a snapshot's header.
const SNAPSHOT_HEADER: usize = 40;

/// Bytes of a snapshot record before its name; they end with the length of the name. Records of parts also contain a number.
fn head_bytes(file: &[u8]) -> usize {
    if u32_at(file, 8) == 1 { 20 } else { 28 }
}

/// Seals the file of a snapshot: its header, every record whose length is valid, the `.mayhap` encodings in them, and the end.
pub fn snapshot(bytes: &mut [u8]) {
    part(bytes, &BTreeMap::new());
}

/// Seals a file of names with some values in their own files; also corrects their lengths and checksums.
fn part(bytes: &mut [u8], files: &BTreeMap<String, Vec<u8>>) {
    const OWN_FILE: u8 = 2;
    if bytes.len() < SNAPSHOT_HEADER {
        return;
    }
    let head = head_bytes(bytes);
    let sum = xxh3_64(&bytes[..SNAPSHOT_HEADER - 8]);
    bytes[SNAPSHOT_HEADER - 8..SNAPSHOT_HEADER].copy_from_slice(&sum.to_le_bytes());
    let mut rest = &mut bytes[SNAPSHOT_HEADER..];
    while let Some(1) = rest.first() {
        let Some(length) = record_length(rest, head) else { return };
        let (record, behind) = rest.split_at_mut(length);
        let name = head + u32_at(record, head - 4) as usize;
        // A value in one piece, like most: forms 1 and 2 are filters, 3 has twelve bytes before the filter.
        let front = match record[1] {
            1 | 2 => Some(0),
            3 => Some(12),
            _ => None,
        };
        let piece = u32_at(record, name) as usize;
        if record[2] & OWN_FILE != 0 && piece == 32 {
            let value = &mut record[name + 4..name + 36];
            let file = format!("value-{:016}-{:08}", u64_at(value, 0), u64_at(value, 8));
            if let Some(file) = files.get(&file) {
                value[16..24].copy_from_slice(&(file.len() as u64).to_le_bytes());
                value[24..].copy_from_slice(&xxh3_64(file).to_le_bytes());
            }
        } else if let Some(front) = front
            && let Some(value) = record.get_mut(name + 4 + front..name + 4 + piece)
        {
            mayhap(value);
        }
        let mut sum = Xxh3::new();
        sum.update(&record[..length - 8]);
        record[length - 8..].copy_from_slice(&sum.digest().to_le_bytes());
        rest = behind;
    }
    if rest.first() == Some(&255) && rest.len() >= 17 {
        let sum = xxh3_64(&rest[..9]);
        rest[9..17].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Iterates over the records of a snapshot file, while their lengths are valid.
#[must_use]
pub fn records_of_snapshot(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut records, head) = (Vec::new(), head_bytes(bytes));
    let mut rest = bytes.get(SNAPSHOT_HEADER..).unwrap_or_default();
    while let Some(1) = rest.first() {
        let Some(length) = record_length(rest, head) else { break };
        records.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    records
}

/// Returns the length of the record at the start of `bytes`, with its checksum.
fn record_length(bytes: &[u8], head: usize) -> Option<usize> {
    let mut at = head.checked_add(u32_at(bytes.get(..head)?, head - 4) as usize)?;
    loop {
        let length = u32_at(bytes.get(at..at.checked_add(4)?)?, 0) as usize;
        at = at.checked_add(4)?.checked_add(length)?;
        if at > bytes.len() {
            return None;
        }
        if length == 0 {
            return (at + 8 <= bytes.len()).then_some(at + 8);
        }
    }
}

/// Seals all files of an engine with a log: the parts, their entries in the manifest, the manifest, and the segments of the log.
pub fn folder(files: &mut BTreeMap<String, Vec<u8>>) {
    const FIELDS: usize = 44;
    const PART: usize = 40;
    let values: BTreeMap<String, Vec<u8>> = files
        .iter()
        .filter(|(name, _)| name.starts_with("value-"))
        .map(|(name, file)| (name.clone(), file.clone()))
        .collect();
    for (name, bytes) in &mut *files {
        match name {
            name if name.starts_with("log-") => log_segment(bytes),
            name if name.starts_with("part-") || name.ends_with(".snapshot") => part(bytes, &values),
            _ => {}
        }
    }
    let Some(mut manifest) = files.remove(MANIFEST) else { return };
    let from = FIELDS.saturating_add(u32_at(&manifest, 40) as usize);
    let end = manifest.len().saturating_sub(8);
    if let Some(parts) = manifest.get_mut(from..end) {
        for part in parts.chunks_exact_mut(PART) {
            let (number, sequence) = (u64_at(part, 0), u64_at(part, 8));
            let name = match number {
                64 => format!("part-late-{sequence:016}"),
                number => format!("part-{number:02}-{sequence:016}"),
            };
            let Some(file) = files.get(&name) else { continue };
            let facts = [file.len() as u64, records_of_snapshot(file).len() as u64, xxh3_64(file)];
            for (field, fact) in part[16..].chunks_exact_mut(8).zip(facts) {
                field.copy_from_slice(&fact.to_le_bytes());
            }
        }
        let sum = xxh3_64(&manifest[..end]);
        manifest[end..].copy_from_slice(&sum.to_le_bytes());
    }
    files.insert(MANIFEST.into(), manifest);
}

/// Seals a segment of the log: its header, and every frame whose length is valid.
pub fn log_segment(bytes: &mut [u8]) {
    const SEGMENT: usize = 40;
    const FRAME: usize = 48;
    if bytes.len() < SEGMENT {
        return;
    }
    let sum = xxh3_64(&bytes[..32]);
    bytes[32..SEGMENT].copy_from_slice(&sum.to_le_bytes());
    let salt = u64_at(bytes, 16);
    let mut at = SEGMENT;
    while at + FRAME <= bytes.len() {
        let seed = salt.wrapping_add(at as u64);
        let filled = u64_at(bytes, at + 16).checked_next_multiple_of(8).and_then(|n| usize::try_from(n).ok());
        let end =
            filled.and_then(|filled| (at + FRAME).checked_add(filled)).filter(|&end| end <= bytes.len());
        if let Some(end) = end {
            let sum = xxh3_64_with_seed(&bytes[at + FRAME..end], seed);
            bytes[at + 8..at + 16].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = xxh3_64_with_seed(&bytes[at + 8..at + FRAME], seed);
        bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        let Some(end) = end else { return };
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_engine::{Memory, ask_line, engine};

    #[test]
    fn the_seals_match_the_formats() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let (engine, _) = engine();
        for line in ["bf.add bloom a", "cf.add cuckoo a", "mf.reserve mayhap capacity 100", "set text a"] {
            ask_line(&engine, line);
        }
        let disk = Memory::default();
        mayhap_engine::snapshot::save(&engine, &disk).unwrap();
        for bytes in disk.files().values() {
            let mut sealed = bytes.clone();
            snapshot(&mut sealed);
            assert!(sealed == *bytes);
        }
    }
}
