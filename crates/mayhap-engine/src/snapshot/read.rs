//! Reading everything.

use std::io::{self, BufReader, Read};

use mayhap_command::Value;
use mayhap_command::stored::Form;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{
    Done, END, FILE, HEADER_BYTES, MAGIC, MAX_NAME_BYTES, PIECE_BYTES, RECORD, RECORD_BYTES, SnapshotError,
    VERSION,
};
use crate::disk::Disk;
use crate::engine::Engine;

/// Reads [`FILE`] into an engine that is empty. `None`: there is no such file.
///
/// # Errors
/// [`SnapshotError`]; the engine is empty then. A file that is damaged anywhere is refused as a whole, and the first damage named.
pub fn load(engine: &Engine, disk: &dyn Disk) -> Result<Option<Done>, SnapshotError> {
    let file = match disk.read(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SnapshotError::Disk { doing: "open the snapshot", source }),
    };
    let mut input = Input { input: BufReader::with_capacity(256 << 10, file), offset: 0 };
    let done = read_all(engine, &mut input);
    if done.is_err() {
        let _closed = engine.gate.close();
        engine.flush();
    }
    done.map(Some)
}

/// A file, and how much of it was read.
struct Input {
    input: BufReader<Box<dyn Read + Send>>,
    offset: u64,
}

impl Input {
    fn damaged<T>(&self, what: &'static str) -> Result<T, SnapshotError> {
        Err(SnapshotError::Damaged { offset: self.offset, what })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.damaged("it ends here"),
            Err(source) => Err(SnapshotError::Disk { doing: "read the snapshot", source }),
        }
    }

    fn number(&mut self) -> Result<u64, SnapshotError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Appends `count` bytes, taking no more memory at a time than a piece.
    fn append(&mut self, mut count: usize, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
        while count > 0 {
            let some = count.min(PIECE_BYTES);
            let at = bytes.len();
            bytes.resize(at + some, 0);
            self.fill(&mut bytes[at..])?;
            count -= some;
        }
        Ok(())
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

fn read_all(engine: &Engine, input: &mut Input) -> Result<Done, SnapshotError> {
    let mut header = [0; HEADER_BYTES];
    input.fill(&mut header)?;
    if header[..8] != *MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    let got = u32::from_le_bytes(number(&header, 8));
    if got > VERSION {
        return Err(SnapshotError::Version { got, newest: VERSION });
    }
    if xxh3_64(&header[..HEADER_BYTES - 8]) != u64::from_le_bytes(number(&header, HEADER_BYTES - 8)) {
        return input.damaged("the header differs from its checksum");
    }
    let (mut done, mut records, mut value) = (Done::default(), 0, Vec::new());
    loop {
        let mut first = [0];
        input.fill(&mut first)?;
        match first[0] {
            RECORD => match read_record(engine, input, &mut value)? {
                true => done.names += 1,
                false => done.skipped += 1,
            },
            END => break,
            _ => return input.damaged("neither a record nor the end"),
        }
        records += 1;
    }
    let counted = input.number()?;
    let mut end = vec![END];
    end.extend_from_slice(&counted.to_le_bytes());
    if input.number()? != xxh3_64(&end) {
        return input.damaged("the end differs from its checksum");
    }
    if counted != records {
        return input.damaged("records are missing");
    }
    match input.input.read(&mut [0]) {
        Ok(0) => Ok(Done { bytes: input.offset, ..done }),
        Ok(_) => input.damaged("bytes behind the end"),
        Err(source) => Err(SnapshotError::Disk { doing: "read the snapshot", source }),
    }
}

/// Reads what is behind the first byte of a record, and puts it in its place unless it has expired. Did it?
fn read_record(engine: &Engine, input: &mut Input, value: &mut Vec<u8>) -> Result<bool, SnapshotError> {
    let began = input.offset - 1;
    let mut checksum = Xxh3::new();
    let mut head = [RECORD; RECORD_BYTES];
    input.fill(&mut head[1..])?;
    checksum.update(&head);
    let name_bytes = u32::from_le_bytes(number(&head, 16)) as usize;
    if name_bytes > MAX_NAME_BYTES {
        return input.damaged("a name longer than any");
    }
    let mut name = Vec::new();
    input.append(name_bytes, &mut name)?;
    checksum.update(&name);
    value.clear();
    value.shrink_to(16 << 20);
    loop {
        let mut length = [0; 4];
        input.fill(&mut length)?;
        checksum.update(&length);
        let length = u32::from_le_bytes(length) as usize;
        if length > PIECE_BYTES {
            return input.damaged("a piece longer than any");
        }
        if length == 0 {
            break;
        }
        let at = value.len();
        input.append(length, value)?;
        checksum.update(&value[at..]);
    }
    if input.number()? != checksum.digest() {
        return Err(SnapshotError::Damaged {
            offset: began,
            what: "the record that begins here differs from its checksum",
        });
    }
    let Some(form) = Form::from_number(head[1]) else {
        return Err(SnapshotError::Damaged { offset: began + 1, what: "a value of an unknown form" });
    };
    let made_secs = u32::from_le_bytes(number(&head, 4));
    let deadline = (head[2] != 0).then(|| u64::from_le_bytes(number(&head, 8)));
    let now = engine.now();
    if deadline.is_some_and(|deadline| deadline <= now.ms) {
        return Ok(false);
    }
    let value = engine
        .with_unlimited(|context| Value::load(form, value, context))
        .map_err(|source| SnapshotError::Value { offset: began, source })?;
    let _open = engine.gate.pass();
    engine.hold(&name, now, |hold| {
        hold.put(value);
        engine.expiries.set(hold.entry(), deadline);
        hold.entry().set_made_secs(made_secs);
    });
    Ok(true)
}
