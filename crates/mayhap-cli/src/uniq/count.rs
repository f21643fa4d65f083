//! `--count`: keeps the lines themselves, in the order of first appearance, and the number of occurrences of each.

use std::collections::HashMap;
use std::io::{self, Write};

use mayhap::{HashScheme, say};

use crate::error::CliError;
use crate::hashed_already::HashedAlready;
use crate::input::Block;

/// Lines are stored in pieces of this size, so that a growing list does not move all of them.
const PIECE_BYTES: usize = 1 << 20;
/// The memory of a map entry when the map has just doubled: a hash of 8 bytes, an index of 4 in 8, one byte, and the same
/// again.
const MAP_ENTRY_BYTES: u64 = 2 * (8 + 8 + 1);

/// All distinct lines and their numbers of occurrences.
#[derive(Debug)]
pub(super) struct Counts {
    limit_bytes: u64,
    pub(super) lines: u64,
    /// The index in `entries` of the line with this hash.
    places: HashMap<u64, u32, HashedAlready>,
    entries: Vec<Entry>,
    /// All lines with their terminators, concatenated. No line spans two pieces.
    pieces: Vec<Vec<u8>>,
    pieces_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    count: u64,
    bytes: u32,
}

impl Counts {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            lines: 0,
            places: HashMap::default(),
            entries: Vec::new(),
            pieces: Vec::new(),
            pieces_bytes: 0,
        }
    }

    pub(super) fn add(&mut self, block: &Block) -> Result<(), CliError> {
        let scheme = HashScheme::fast(0);
        for index in 0..block.len() {
            let fingerprint = scheme.hash(block.item(index)).to_u128() as u64;
            self.lines += 1;
            if let Some(&place) = self.places.get(&fingerprint) {
                self.entries[place as usize].count += 1;
                continue;
            }
            let line = block.record(index);
            self.check_room(line.len() as u64)?;
            if self.pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < line.len()) {
                let mut piece = Vec::new();
                let bytes = PIECE_BYTES.max(line.len());
                piece.try_reserve_exact(bytes).map_err(|_| self.refused(bytes as u64))?;
                self.pieces_bytes += piece.capacity() as u64;
                self.pieces.push(piece);
            }
            if let Some(piece) = self.pieces.last_mut() {
                piece.extend_from_slice(line);
            }
            let entries = self.entries.len() as u64;
            self.places.try_reserve(1).map_err(|_| self.refused(entries * MAP_ENTRY_BYTES))?;
            self.entries.try_reserve(1).map_err(|_| self.refused(2 * entries * size_of::<Entry>() as u64))?;
            self.places.insert(fingerprint, self.entries.len() as u32);
            self.entries.push(Entry { count: 1, bytes: line.len() as u32 });
        }
        Ok(())
    }

    fn check_room(&self, bytes: u64) -> Result<(), CliError> {
        let different = self.entries.len() as u64;
        let entry_bytes = MAP_ENTRY_BYTES + 2 * size_of::<Entry>() as u64;
        let needed = self.pieces_bytes + bytes + (different + 1) * entry_bytes;
        if needed <= self.limit_bytes && different < u64::from(u32::MAX) {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "--count keeps all distinct lines in memory, and {} of them fill --memory {}: raise it, or use `sort | uniq -c`",
            say::count(different),
            say::bytes(self.limit_bytes)
        )))
    }

    /// The error if the system refuses memory that --memory allows.
    fn refused(&self, bytes: u64) -> CliError {
        CliError::NoMemory { bytes, what: format!("{} different lines", say::count(self.different())) }
    }

    /// The number of distinct lines.
    pub(super) fn different(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.pieces_bytes + self.different() * (MAP_ENTRY_BYTES + 2 * size_of::<Entry>() as u64)
    }

    /// Writes each line after its count, as `uniq -c` does; with `repeated`, only lines that occur more than once.
    pub(super) fn write(&self, out: &mut dyn Write, repeated: bool) -> io::Result<()> {
        let (mut pieces, mut piece, mut at) = (self.pieces.iter(), &[][..], 0);
        for entry in &self.entries {
            if at == piece.len() {
                piece = pieces.next().map_or(&[], Vec::as_slice);
                at = 0;
            }
            let line = &piece[at..at + entry.bytes as usize];
            at += line.len();
            if !repeated || entry.count > 1 {
                write!(out, "{:>7} ", entry.count)?;
                out.write_all(line)?;
            }
        }
        out.flush()
    }
}
