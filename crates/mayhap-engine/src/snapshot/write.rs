//! Writing everything.

use std::io::{self, BufWriter, Write};

use mayhap_command::stored::Form;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Done, END, FILE, MAGIC, PIECE_BYTES, RECORD, SnapshotError, UNFINISHED, VERSION};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::entry::Entry;

/// Values up to this size are encoded in memory, so that the name is free again before the disk is asked. A larger one goes to the disk
/// piece by piece, for there may be no memory for a copy of it; changes to it wait meanwhile.
const IN_MEMORY_BYTES: u64 = 1 << 30;
/// More memory than this is given back once a value was written.
const KEPT_BYTES: usize = 16 << 20;
/// Names that are looked up together.
const AT_ONCE: u64 = 100;

/// Writes everything to [`FILE`]. Requests go on meanwhile. If it fails, the file is what it was before.
///
/// # Errors
/// [`SnapshotError::Disk`].
pub fn save(engine: &Engine, disk: &dyn Disk) -> Result<Done, SnapshotError> {
    let done = write_all(engine, disk);
    if done.is_err() {
        // It is of no use to anybody; if it cannot even be removed, the next one takes its place.
        let _ = disk.remove(UNFINISHED);
    }
    done
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Disk { doing, source }
}

fn write_all(engine: &Engine, disk: &dyn Disk) -> Result<Done, SnapshotError> {
    let file = disk.create(UNFINISHED).map_err(failed("make the new snapshot"))?;
    let mut out = BufWriter::with_capacity(256 << 10, file);
    let done = write_records(engine, &mut out).map_err(failed("write the snapshot"))?;
    let mut file = out.into_inner().map_err(|error| failed("write the snapshot")(error.into_error()))?;
    file.sync().map_err(failed("sync the snapshot"))?;
    drop(file);
    disk.rename(UNFINISHED, FILE).map_err(failed("put the snapshot in its place"))?;
    disk.sync_dir().map_err(failed("sync the folder of the snapshot"))?;
    Ok(done)
}

fn write_records(engine: &Engine, out: &mut dyn Write) -> io::Result<Done> {
    let mut out = Counted { out, bytes: 0 };
    let mut header = Vec::new();
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&engine.now().ms.to_le_bytes());
    header.extend_from_slice(&0_u64.to_le_bytes());
    header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
    out.write_all(&header)?;
    let (mut done, mut cursor, mut buffer) = (Done::default(), 0, Vec::new());
    loop {
        let (next, entries) = engine.walk(cursor, AT_ONCE, None, engine.now(), |_| true);
        for entry in &entries {
            match write_entry(engine, entry, &mut buffer, &mut out)? {
                Written::Whole => done.names += 1,
                Written::Skipped => done.skipped += 1,
                Written::Gone => {}
            }
        }
        if next == 0 {
            break;
        }
        cursor = next;
    }
    let mut end = vec![END];
    end.extend_from_slice(&done.names.to_le_bytes());
    end.extend_from_slice(&xxh3_64(&end).to_le_bytes());
    out.write_all(&end)?;
    Ok(Done { bytes: out.bytes, ..done })
}

enum Written {
    Whole,
    /// Half-loaded.
    Skipped,
    /// Not there any more.
    Gone,
}

fn write_entry(
    engine: &Engine,
    entry: &Entry,
    buffer: &mut Vec<u8>,
    out: &mut dyn Write,
) -> io::Result<Written> {
    buffer.clear();
    buffer.shrink_to(KEPT_BYTES);
    let open = engine.gate.pass();
    let mut held = entry.write();
    if !entry.is_linked() || engine.expiries.is_due(entry, engine.now().ms) {
        return Ok(Written::Gone);
    }
    let Some(value) = held.as_mut() else { return Ok(Written::Gone) };
    let Some(form) = value.form() else { return Ok(Written::Skipped) };
    let head = head(entry, form, engine.expiries.get(entry));
    if value.memory_bytes() > IN_MEMORY_BYTES {
        drop(open);
        let mut record = Record::begin(out, &head)?;
        engine.with_unlimited(|context| value.store(&mut record, context))?;
        return record.finish();
    }
    engine.with_unlimited(|context| value.store(buffer, context))?;
    drop((held, open));
    let mut record = Record::begin(out, &head)?;
    record.write_all(buffer)?;
    record.finish()
}

fn head(entry: &Entry, form: Form, deadline: Option<u64>) -> Vec<u8> {
    let name = entry.name();
    let mut head = vec![RECORD, form as u8, u8::from(deadline.is_some()), 0];
    head.extend_from_slice(&entry.made_secs().to_le_bytes());
    head.extend_from_slice(&deadline.unwrap_or(0).to_le_bytes());
    head.extend_from_slice(&(name.len() as u32).to_le_bytes());
    head.extend_from_slice(name);
    head
}

/// A record that is being written: cuts what comes into pieces.
struct Record<'a> {
    out: &'a mut dyn Write,
    checksum: Xxh3,
    piece: Vec<u8>,
}

impl<'a> Record<'a> {
    fn begin(out: &'a mut dyn Write, head: &[u8]) -> io::Result<Self> {
        let mut record = Self { out, checksum: Xxh3::new(), piece: Vec::new() };
        record.put(head)?;
        Ok(record)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    fn put_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.put(&(piece.len() as u32).to_le_bytes())?;
        self.put(piece)
    }

    fn finish(mut self) -> io::Result<Written> {
        let last = std::mem::take(&mut self.piece);
        if !last.is_empty() {
            self.put_piece(&last)?;
        }
        self.put_piece(&[])?;
        self.out.write_all(&self.checksum.digest().to_le_bytes())?;
        Ok(Written::Whole)
    }
}

impl Write for Record<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.is_empty() && bytes.len() >= PIECE_BYTES {
            self.put_piece(&bytes[..PIECE_BYTES])?;
            return Ok(PIECE_BYTES);
        }
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE_BYTES {
            let piece = std::mem::take(&mut self.piece);
            self.put_piece(&piece)?;
            self.piece = piece;
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
