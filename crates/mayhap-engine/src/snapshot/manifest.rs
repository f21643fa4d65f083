//! The manifest: the file that names all others.
//!
//! ```text
//! "mayhapMF" │ version u32 │ parts u32 │ sequence u64 │ made ms u64 │ play from u64 │ parameters length u32 │ parameters, as a record
//! │ parts: part u32 │ 0 u32 │ sequence u64 │ bytes u64 │ names u64 │ xxh3 u64 of the file
//! │ xxh3 u64 of all before
//! ```
//!
//! A part without names has no file. Part 64 has the late names. The parts name the files of large values.

use std::io::Write;

use xxhash_rust::xxh3::xxh3_64;

use super::file::Input;
use super::{SnapshotError, failed};
use crate::disk::Disk;
use crate::journal::PARTS;

/// The name of the manifest.
pub const MANIFEST: &str = "MANIFEST";
/// Its name while it is written.
pub(crate) const UNFINISHED: &str = "MANIFEST.new";

const MAGIC: &[u8; 8] = b"mayhapMF";
const VERSION: u32 = 1;
/// The part of the late names.
pub(crate) const LATE: usize = PARTS;
/// More bytes than any manifest has.
const MAX_BYTES: usize = 1 << 20;

/// The contents of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The number of the snapshot.
    pub(crate) sequence: u64,
    pub(crate) made_ms: u64,
    /// The number of the log record from which on to replay.
    pub(crate) play_from: u64,
    /// The defaults for new filters at that time, as a record of the log. Empty before the first snapshot.
    pub(crate) parameters: Vec<u8>,
    pub(crate) parts: Vec<PartFile>,
}

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartFile {
    pub(crate) part: usize,
    /// The number of the snapshot that wrote it.
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
    pub(crate) names: u64,
    /// The xxh3 of all bytes.
    pub(crate) checksum: u64,
}

impl PartFile {
    pub(crate) fn file_name(&self) -> String {
        file_name(self.part, self.sequence)
    }
}

/// The file name of a part.
pub(super) fn file_name(part: usize, sequence: u64) -> String {
    match part {
        LATE => format!("part-late-{sequence:016}"),
        part => format!("part-{part:02}-{sequence:016}"),
    }
}

impl Manifest {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        for number in [self.sequence, self.made_ms, self.play_from] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.parameters.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.parameters);
        for part in &self.parts {
            bytes.extend_from_slice(&(part.part as u64).to_le_bytes());
            for number in [part.sequence, part.bytes, part.names, part.checksum] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Replaces the previous manifest and syncs. The files it names are already safe.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<(), SnapshotError> {
        let mut file = disk.create(UNFINISHED).map_err(failed("create the new manifest"))?;
        file.write_all(&self.to_bytes()).map_err(failed("write the manifest"))?;
        file.sync().map_err(failed("sync the manifest"))?;
        drop(file);
        disk.rename(UNFINISHED, MANIFEST).map_err(failed("rename the new manifest into place"))?;
        disk.sync_dir().map_err(failed("sync the folder of the snapshot"))
    }

    /// Reads the manifest on `disk`. `None` if there is none.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Self>, SnapshotError> {
        const FIELDS: usize = 44;
        const PART: usize = 40;
        let Some(mut input) = Input::open(disk, MANIFEST)? else { return Ok(None) };
        let mut bytes = Vec::new();
        input.append(FIELDS, &mut bytes)?;
        if !bytes.starts_with(MAGIC) {
            return Err(SnapshotError::NotASnapshot { file: MANIFEST.into() });
        }
        let small = |bytes: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let number = |bytes: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let got = small(&bytes, 8);
        if got != VERSION {
            return Err(SnapshotError::Version { file: MANIFEST.into(), got, newest: VERSION });
        }
        let (parts, parameters) = (small(&bytes, 12) as usize, small(&bytes, 40) as usize);
        if parts > PARTS + 1 || parameters > MAX_BYTES {
            return input.damaged_at(12, "the manifest is too long");
        }
        input.append(parameters + parts * PART + 8, &mut bytes)?;
        input.end()?;
        let (fields, checksum) = bytes.split_at(bytes.len() - 8);
        if xxh3_64(fields).to_le_bytes() != checksum {
            return input.damaged_at(0, "the manifest does not match its checksum");
        }
        let part = |bytes: &[u8]| PartFile {
            part: number(bytes, 0) as usize,
            sequence: number(bytes, 8),
            bytes: number(bytes, 16),
            names: number(bytes, 24),
            checksum: number(bytes, 32),
        };
        let parts: Vec<PartFile> = fields[FIELDS + parameters..].chunks(PART).map(part).collect();
        if parts.iter().any(|part| part.part > LATE) {
            return input.damaged_at(FIELDS as u64, "a part has an unknown number");
        }
        Ok(Some(Self {
            sequence: number(fields, 16),
            made_ms: number(fields, 24),
            play_from: number(fields, 32),
            parameters: fields[FIELDS..FIELDS + parameters].to_vec(),
            parts,
        }))
    }
}
