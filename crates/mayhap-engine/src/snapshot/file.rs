//! The format that all snapshot files of names share: writing and reading.

use std::io::{self, BufReader, BufWriter, Read, Write};

use mayhap_command::stored::Form;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::SnapshotError;
use crate::disk::{Disk, DiskFile};
use crate::entry::Entry;

const MAGIC: &[u8; 8] = b"mayhapSN";
/// The version of a single file with everything, without record numbers.
pub(super) const SINGLE: u32 = 1;
/// A part.
pub(super) const PART: u32 = 2;
const HEADER_BYTES: usize = 40;
const RECORD: u8 = 1;
const END: u8 = 255;
/// The size of a piece of a value in bytes.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// The maximum length of a name, as in Redis.
const MAX_NAME_BYTES: usize = 512 << 20;

const EXPIRES: u8 = 1;
const OWN_FILE: u8 = 2;
const IN_PIECES: u8 = 4;

/// The properties of a name, apart from its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) form: Form,
    pub(super) made_secs: u32,
    pub(super) deadline: Option<u64>,
    pub(super) number: u64,
    /// Whether the value is in a file of its own.
    pub(super) own_file: bool,
    /// Whether the value was written piece by piece and has to be sealed.
    pub(super) in_pieces: bool,
    pub(super) name: Vec<u8>,
}

impl Head {
    /// The caller holds the entry exclusively.
    pub(super) fn of(entry: &Entry, form: Form, deadline: Option<u64>) -> Self {
        let (made_secs, number) = (entry.made_secs(), entry.number());
        let name = entry.name().to_vec();
        Self { form, made_secs, deadline, number, own_file: false, in_pieces: false, name }
    }

    fn bytes(&self, version: u32) -> Vec<u8> {
        let flag = |flag, is| if is { flag } else { 0 };
        let flags = flag(EXPIRES, self.deadline.is_some())
            | flag(OWN_FILE, self.own_file)
            | flag(IN_PIECES, self.in_pieces);
        let mut head = vec![RECORD, self.form as u8, flags, 0];
        head.extend_from_slice(&self.made_secs.to_le_bytes());
        head.extend_from_slice(&self.deadline.unwrap_or(0).to_le_bytes());
        if version != SINGLE {
            head.extend_from_slice(&self.number.to_le_bytes());
        }
        head.extend_from_slice(&(self.name.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.name);
        head
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileHeader {
    pub(super) version: u32,
    /// The number of the part.
    pub(super) part: u32,
    /// The number of the log record from which on to replay, as of when the file was written. In [`SINGLE`]:
    /// the parts that lost names.
    pub(super) position: u64,
}

/// A file of names while it is written.
pub(super) struct Output {
    out: BufWriter<Box<dyn DiskFile>>,
    version: u32,
    pub(super) bytes: u64,
    checksum: Xxh3,
    pub(super) names: u64,
}

impl Output {
    pub(super) fn begin(
        file: Box<dyn DiskFile>,
        version: u32,
        part: u32,
        made_ms: u64,
        log_position: u64,
    ) -> io::Result<Self> {
        let out = BufWriter::with_capacity(64 << 10, file);
        let mut output = Self { out, version, bytes: 0, checksum: Xxh3::new(), names: 0 };
        let mut header = Vec::new();
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&part.to_le_bytes());
        header.extend_from_slice(&made_ms.to_le_bytes());
        header.extend_from_slice(&log_position.to_le_bytes());
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        output.put(&header)?;
        Ok(output)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    /// Writes a name with its value.
    pub(super) fn record(&mut self, head: &Head, value: &[u8]) -> io::Result<()> {
        let (mut checksum, head) = (Xxh3::new(), head.bytes(self.version));
        let mut put = |bytes: &[u8]| {
            checksum.update(bytes);
            self.put(bytes)
        };
        put(&head)?;
        for piece in value.chunks(PIECE_BYTES).chain([&[][..]]) {
            put(&(piece.len() as u32).to_le_bytes())?;
            put(piece)?;
        }
        self.put(&checksum.digest().to_le_bytes())?;
        self.names += 1;
        Ok(())
    }

    /// Writes the end and syncs the file. Returns its size and checksum.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64)> {
        let mut end = vec![END];
        end.extend_from_slice(&self.names.to_le_bytes());
        end.extend_from_slice(&xxh3_64(&end).to_le_bytes());
        self.put(&end)?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync()?;
        Ok((self.bytes, self.checksum.digest()))
    }
}

/// A file while it is read, with the number of bytes read.
pub(super) struct Input {
    input: BufReader<Box<dyn Read + Send>>,
    pub(super) file: String,
    pub(super) offset: u64,
    checksum: Xxh3,
    /// The name in the last record, if that record is damaged. The name itself may be wrong.
    mistaken: Option<Vec<u8>>,
}

impl Input {
    /// Opens a file. `None` if it does not exist.
    pub(super) fn open(disk: &dyn Disk, file: &str) -> Result<Option<Self>, SnapshotError> {
        match disk.read(file) {
            Ok(input) => Ok(Some(Self {
                input: BufReader::with_capacity(256 << 10, input),
                file: file.into(),
                offset: 0,
                checksum: Xxh3::new(),
                mistaken: None,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(SnapshotError::Disk { doing: "open a snapshot file", source }),
        }
    }

    /// Opens a file that must exist.
    pub(super) fn must_open(disk: &dyn Disk, file: &str) -> Result<Self, SnapshotError> {
        Self::open(disk, file)?.ok_or_else(|| SnapshotError::Missing { file: file.into() })
    }

    pub(super) fn damaged<T>(&self, what: &'static str) -> Result<T, SnapshotError> {
        self.damaged_at(self.offset, what)
    }

    pub(super) fn damaged_at<T>(&self, offset: u64, what: &'static str) -> Result<T, SnapshotError> {
        Err(SnapshotError::Damaged { file: self.file.clone(), offset, what })
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                self.checksum.update(bytes);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.damaged("the file ends here"),
            Err(source) => Err(SnapshotError::Disk { doing: "read the snapshot", source }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends `count` bytes, and allocates at most one piece at a time.
    pub(super) fn append(&mut self, mut count: usize, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
        while count > 0 {
            let some = count.min(PIECE_BYTES);
            let at = bytes.len();
            bytes.resize(at + some, 0);
            self.fill(&mut bytes[at..])?;
            count -= some;
        }
        Ok(())
    }

    /// Checks that this is the end of the file, and returns the checksum of all bytes.
    pub(super) fn end(&mut self) -> Result<u64, SnapshotError> {
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(self.checksum.digest()),
            Ok(_) => self.damaged("there are bytes after the end"),
            Err(source) => Err(SnapshotError::Disk { doing: "read the snapshot", source }),
        }
    }

    /// Reads the header.
    pub(super) fn header(&mut self, newest: u32) -> Result<FileHeader, SnapshotError> {
        let header: [u8; HEADER_BYTES] = self.array()?;
        if header[..8] != *MAGIC {
            return Err(SnapshotError::NotASnapshot { file: self.file.clone() });
        }
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let (version, part) = (number(8), number(12));
        if version > newest {
            return Err(SnapshotError::Version { file: self.file.clone(), got: version, newest });
        }
        let (fields, checksum) = header.split_at(HEADER_BYTES - 8);
        if xxh3_64(fields).to_le_bytes() != checksum || version == 0 {
            return self.damaged("the header does not match its checksum");
        }
        let position = u64::from_le_bytes(std::array::from_fn(|i| header[24 + i]));
        Ok(FileHeader { version, part, position })
    }

    /// Reads all records after the header and calls `each` for them. Returns their number.
    pub(super) fn records(
        &mut self,
        version: u32,
        each: impl FnMut(&str, u64, Head, &mut Vec<u8>) -> Result<(), SnapshotError>,
    ) -> Result<u64, SnapshotError> {
        self.records_but(version, each, |_, error| Err(error))
    }

    /// As `records`, but skips damaged records: `damaged` is called for each, with the name in it.
    pub(super) fn records_but(
        &mut self,
        version: u32,
        mut each: impl FnMut(&str, u64, Head, &mut Vec<u8>) -> Result<(), SnapshotError>,
        mut damaged: impl FnMut(Vec<u8>, SnapshotError) -> Result<(), SnapshotError>,
    ) -> Result<u64, SnapshotError> {
        let (mut records, mut value) = (0, Vec::new());
        loop {
            match self.array()? {
                [RECORD] => {
                    let began = self.offset - 1;
                    match (self.record(version, &mut value), self.mistaken.take()) {
                        (Ok(head), _) => each(&self.file, began, head, &mut value)?,
                        (Err(error), Some(name)) => damaged(name, error)?,
                        (Err(error), None) => return Err(error),
                    }
                }
                [END] => break,
                _ => return self.damaged("expected a record or the end"),
            }
            records += 1;
        }
        let counted: [u8; 8] = self.array()?;
        let mut end = vec![END];
        end.extend_from_slice(&counted);
        if self.array()? != xxh3_64(&end).to_le_bytes() {
            return self.damaged("the end does not match its checksum");
        }
        if u64::from_le_bytes(counted) != records {
            return self.damaged("records are missing");
        }
        Ok(records)
    }

    /// Reads a record after its first byte.
    fn record(&mut self, version: u32, value: &mut Vec<u8>) -> Result<Head, SnapshotError> {
        let began = self.offset - 1;
        let mut checksum = Xxh3::new();
        checksum.update(&[RECORD]);
        let [form, flags, zero]: [u8; 3] = self.array()?;
        let made_secs: [u8; 4] = self.array()?;
        let deadline: [u8; 8] = self.array()?;
        checksum.update(&[form, flags, zero]);
        checksum.update(&made_secs);
        checksum.update(&deadline);
        let mut number = [0; 8];
        if version != SINGLE {
            self.fill(&mut number)?;
            checksum.update(&number);
        }
        let name_bytes: [u8; 4] = self.array()?;
        checksum.update(&name_bytes);
        let name_bytes = u32::from_le_bytes(name_bytes) as usize;
        if name_bytes > MAX_NAME_BYTES {
            return self.damaged("a name is too long");
        }
        let mut name = Vec::new();
        self.append(name_bytes, &mut name)?;
        checksum.update(&name);
        value.clear();
        value.shrink_to(16 << 20);
        loop {
            let length: [u8; 4] = self.array()?;
            checksum.update(&length);
            let length = u32::from_le_bytes(length) as usize;
            if length > PIECE_BYTES {
                return self.damaged("a piece is too long");
            }
            if length == 0 {
                break;
            }
            let at = value.len();
            self.append(length, value)?;
            checksum.update(&value[at..]);
        }
        if self.array()? != checksum.digest().to_le_bytes() {
            self.mistaken = Some(name);
            return self.damaged_at(began, "the record that begins here does not match its checksum");
        }
        let Some(form) = Form::from_number(form) else {
            self.mistaken = Some(name);
            return self.damaged_at(began + 1, "a value has an unknown form");
        };
        let deadline = (flags & EXPIRES != 0).then_some(u64::from_le_bytes(deadline));
        Ok(Head {
            form,
            made_secs: u32::from_le_bytes(made_secs),
            deadline,
            number: u64::from_le_bytes(number),
            own_file: flags & OWN_FILE != 0,
            in_pieces: flags & IN_PIECES != 0,
            name,
        })
    }
}
