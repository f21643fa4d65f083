//! Storing what one name holds: small values at once, large ones piece by piece into files of their own.

use std::io::{self, BufWriter, Write};

use mayhap_command::Value;
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::Xxh3;

use super::Large;
use super::file::{Head, Output};
use crate::disk::{Disk, DiskFile};
use crate::engine::Engine;
use crate::entry::Entry;

/// From here on a value has a file of its own.
pub(super) const LARGE_BYTES: u64 = 4 << 20;
/// More memory than this is given back once a value was written.
const KEPT_BYTES: usize = 16 << 20;
/// So often a large value that changes while it is copied is begun again. Then it is held until there is a copy in memory.
const ATTEMPTS: u32 = 4;
/// What encoding adds to the bytes of a value, about.
const BESIDES_BYTES: u64 = 64 << 10;

/// How the gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// The caller has closed it.
    Closed,
}

/// What stores values.
pub(super) struct Store<'a> {
    pub(super) engine: &'a Engine,
    pub(super) disk: &'a dyn Disk,
    pub(super) sequence: u64,
    /// Files of large values that were made so far.
    pub(super) files: Vec<Large>,
    pub(super) buffer: Vec<u8>,
    pub(super) gate: Gate,
    /// From here on a value has a file of its own.
    pub(super) large_bytes: u64,
    /// Bytes that are copied at a time.
    pub(super) piece_bytes: usize,
}

impl<'a> Store<'a> {
    /// Stores what `entry` holds, in a file of its own if it is large, unless `known` has it as it is. `None`: it holds nothing.
    /// Otherwise: which file has it, if it is large?
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
            // Its bytes are those of the last time, and were written in the same way.
            Some((large, head)) => Some((large, Head { in_pieces: true, ..head })),
            None => self.store_large(entry)?,
        };
        let Some((large, head)) = stored else { return Ok(None) };
        let numbers = [large.file.0, large.file.1, large.bytes, large.checksum];
        let value: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        out.record(&Head { own_file: true, ..head }, &value)?;
        Ok(Some(Some(large)))
    }

    /// Does it get a file of its own?
    pub(super) fn is_large(&self, entry: &Entry) -> bool {
        let value = entry.read();
        value.as_ref().is_some_and(|value| value.memory_bytes() >= self.large_bytes)
    }

    /// Memory for a copy of what `entry` holds, touched so that copying takes no longer than it must. Nothing if there is not as much: then it is
    /// held until it is written.
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
        (self.gate == Gate::Open).then(|| self.engine.gate.pass())
    }

    /// Copies a large value into a file of its own. `None`: it is gone.
    fn store_large(&mut self, entry: &Entry) -> io::Result<Option<(Large, Head)>> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let number = self.files.len() as u64;
            let mut large = Large { file: (self.sequence, number), bytes: 0, checksum: 0, number: 0 };
            // Remembered before it is made: whoever gives up removes it.
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
        // What is loaded is not shared with anybody, and stored at once.
        let at_once = hold == Hold::All || !in_pieces(entry.read().as_ref());
        let room = if at_once { self.room(entry) } else { Vec::new() };
        // Those who would have to wait do so where nobody waits for them.
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
                // A load that is under way.
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
                // Others get their turn, which makes a test of what they do.
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

/// For how long a large value is held while it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// For every piece anew.
    EachPiece,
    /// Until all of it is copied.
    All,
}

/// What became of a copy.
enum Copied {
    Whole(Head),
    /// It was changed meanwhile.
    Spoiled,
    /// There is nothing to copy.
    Gone,
}

/// A file of one value that is being written.
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

    /// Waits until it is safe. How many bytes are there, and what do they add up to?
    fn finish(self) -> io::Result<(u64, u64)> {
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync()?;
        Ok((self.bytes, self.checksum.digest()))
    }
}
