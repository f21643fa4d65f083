//! Stores the value of one name: small values in one step, large ones piece by piece into files of their own.

use std::io::{self, BufWriter, Write};

use mayhap_command::Value;
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::Xxh3;

use super::Large;
use super::file::{Head, Output};
use crate::disk::{Disk, DiskFile};
use crate::engine::Engine;
use crate::entry::Entry;

/// The size in bytes from which on a value has a file of its own.
pub(super) const LARGE_BYTES: u64 = 4 << 20;
/// A value buffer larger than this is freed after use.
const KEPT_BYTES: usize = 16 << 20;
/// The number of attempts to copy a large value that changes meanwhile. After that it is locked until it is
/// copied in memory.
const ATTEMPTS: u32 = 4;
/// An upper bound for the bytes that encoding adds to a value.
const BESIDES_BYTES: u64 = 64 << 10;

/// Whether the caller has closed the request gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateState {
    Open,
    /// The caller has closed it.
    Closed,
}

/// Stores values.
pub(super) struct Store<'a> {
    pub(super) engine: &'a Engine,
    pub(super) disk: &'a dyn Disk,
    pub(super) sequence: u64,
    /// Files of large values that were created so far.
    pub(super) files: Vec<Large>,
    pub(super) buffer: Vec<u8>,
    pub(super) gate: GateState,
    /// The size in bytes from which on a value has a file of its own.
    pub(super) large_bytes: u64,
    /// The size of a piece in bytes.
    pub(super) piece_bytes: usize,
}

impl<'a> Store<'a> {
    /// Stores the value of `entry`, in a file of its own if it is large, unless `known` already has it.
    /// Returns `None` if there is no value. Otherwise returns the file if the value is large.
    pub(super) fn store(
        &mut self,
        entry: &Entry,
        known: Option<&Large>,
        out: &mut Output,
    ) -> io::Result<Option<Option<Large>>> {
        let is_large = {
            let open = self.pass();
            let mut held = entry.write();
            let Some(value) = held.as_mut().filter(|_| entry.is_linked()) else { return Ok(None) };
            if value.memory_bytes() < self.large_bytes {
                self.buffer.clear();
                self.buffer.shrink_to(KEPT_BYTES);
                value.store(&mut self.buffer)?;
                let head = Head::of(entry, value.form(), self.engine.expiries.get(entry));
                drop((held, open));
                out.record(&head, &self.buffer)?;
                return Ok(Some(None));
            }
            let kept = known.copied().filter(|known| known.number == entry.number());
            kept.map(|large| (large, Head::of(entry, value.form(), self.engine.expiries.get(entry))))
        };
        let stored = match is_large {
            // The bytes are those of the last snapshot, and were written in the same way.
            Some((large, head)) => Some((large, Head { in_pieces: true, ..head })),
            None => self.store_large(entry)?,
        };
        let Some((large, head)) = stored else { return Ok(None) };
        let numbers = [large.file.0, large.file.1, large.bytes, large.checksum];
        let value: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        out.record(&Head { own_file: true, ..head }, &value)?;
        Ok(Some(Some(large)))
    }

    /// Whether the value gets a file of its own.
    pub(super) fn is_large(&self, entry: &Entry) -> bool {
        let value = entry.read();
        value.as_ref().is_some_and(|value| value.memory_bytes() >= self.large_bytes)
    }

    /// Memory for a copy of the value of `entry`, already touched so that copying is fast. Empty if there is
    /// not enough memory: then the value is locked until it is written.
    fn room(&self, entry: &Entry) -> Vec<u8> {
        let mut room = Vec::new();
        let bytes = entry.read().as_ref().map_or(0, Value::memory_bytes).saturating_add(BESIDES_BYTES);
        if let Ok(bytes) = usize::try_from(bytes)
            && self.engine.budget.room() >= bytes as u64
            && room.try_reserve_exact(bytes).is_ok()
        {
            room.resize(bytes, 0);
            room.clear();
        }
        room
    }

    fn pass(&self) -> Option<RwLockReadGuard<'a, ()>> {
        (self.gate == GateState::Open).then(|| self.engine.gate.pass())
    }

    /// Copies a large value into a file of its own. `None` if it is gone.
    fn store_large(&mut self, entry: &Entry) -> io::Result<Option<(Large, Head)>> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let number = self.files.len() as u64;
            let mut large = Large { file: (self.sequence, number), bytes: 0, checksum: 0, number: 0 };
            // Remembered before it is created, so that a failed snapshot removes it.
            self.files.push(large);
            let mut file = ValueFile::new(self.disk.create(&large.file_name())?);
            let copied = match attempt > ATTEMPTS {
                false => self.copy(entry, &mut file, Hold::EachPiece),
                true => self.copy(entry, &mut file, Hold::All),
            };
            self.engine.copying.end();
            match copied? {
                Copied::Gone => return Ok(None),
                Copied::Spoiled => {}
                Copied::Whole(head) => {
                    large.number = head.number;
                    (large.bytes, large.checksum) = file.finish()?;
                    return Ok(Some((large, head)));
                }
            }
        }
    }

    fn copy(&mut self, entry: &Entry, file: &mut ValueFile, hold: Hold) -> io::Result<Copied> {
        let engine = self.engine;
        let in_pieces = |value: Option<&Value>| value.is_none_or(Value::has_pieces);
        // A value that is being loaded is not shared, and is stored in one step.
        let at_once = hold == Hold::All || !in_pieces(entry.read().as_ref());
        let room = if at_once { self.room(entry) } else { Vec::new() };
        // Requests that have to wait do so on threads where no other client waits.
        let _busy = at_once.then(|| engine.busy.add(&[entry.name()]));
        let in_memory = room.capacity() > 0;
        let mut buffer = if in_memory { room } else { std::mem::take(&mut self.buffer) };
        let (head, mut copying, mut held) = {
            let open = self.pass();
            let mut held = entry.write();
            let Some(value) = held.as_mut().filter(|_| entry.is_linked()) else { return Ok(Copied::Gone) };
            let head = Head::of(entry, value.form(), engine.expiries.get(entry));
            match value.copy_in_pieces() {
                Some(copying) => {
                    engine.copying.begin(entry);
                    (head, copying, (hold == Hold::All).then(|| RwLockWriteGuard::downgrade(held)))
                }
                // The value is being loaded.
                None => {
                    buffer.clear();
                    value.store(&mut buffer)?;
                    drop((held, open));
                    file.put(&buffer)?;
                    return Ok(Copied::Whole(head));
                }
            }
        };
        let mut there_is_more = true;
        buffer.clear();
        while there_is_more {
            let look = held.take().unwrap_or_else(|| entry.read());
            let value: Option<&Value> = look.as_ref().filter(|_| entry.is_linked());
            let Some(value) = value else { return Ok(Copied::Gone) };
            if engine.copying.is_spoiled() {
                return Ok(Copied::Spoiled);
            }
            match value.next_piece(&mut copying, self.piece_bytes, &mut buffer) {
                None => return Ok(Copied::Spoiled),
                Some(more) => there_is_more = more,
            }
            held = (hold == Hold::All && there_is_more).then_some(look);
            #[cfg(test)]
            if held.is_none() && engine.pauses.load(std::sync::atomic::Ordering::Relaxed) {
                // Lets other threads run between pieces, for tests.
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
            if !in_memory || !there_is_more {
                file.put(&buffer)?;
                buffer.clear();
            }
        }
        if !in_memory {
            self.buffer = buffer;
        }
        Ok(Copied::Whole(Head { in_pieces: true, ..head }))
    }
}

/// How long a large value is locked while it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// For each piece separately.
    EachPiece,
    /// Until everything is copied.
    All,
}

/// The result of a copy.
enum Copied {
    Whole(Head),
    /// The value was changed meanwhile.
    Spoiled,
    /// There is no value.
    Gone,
}

/// The file of one value while it is written.
struct ValueFile {
    out: BufWriter<Box<dyn DiskFile>>,
    bytes: u64,
    checksum: Xxh3,
}

impl ValueFile {
    fn new(file: Box<dyn DiskFile>) -> Self {
        Self { out: BufWriter::with_capacity(64 << 10, file), bytes: 0, checksum: Xxh3::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    /// Syncs the file. Returns its size and checksum.
    fn finish(self) -> io::Result<(u64, u64)> {
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync()?;
        Ok((self.bytes, self.checksum.digest()))
    }
}
