//! Records the newest file of the log, so that it is noticed if that file is missing.
//!
//! ```text
//! "mayhapLN" │ version u32 │ 0 u32 │ number of the first record of the newest file u64 │ xxh3 u64 of all before
//! ```
//!
//! It is written and synced after the log file has its name. So the file that it names, or a newer one,
//! existed.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::xxh3_64;

use super::error::LogError;
use super::failed;
use crate::disk::Disk;

/// The file that names the newest file of the log.
pub const FILE: &str = "mayhap.newest";
/// Its name while it is written.
const UNFINISHED: &str = "mayhap.newest.new";
/// No file has this number.
pub(super) const NONE: u64 = u64::MAX;

const MAGIC: &[u8; 8] = b"mayhapLN";
const VERSION: u32 = 1;
const BYTES: usize = 32;

/// Records the file that begins with record `first` as the newest.
pub(super) fn write(disk: &dyn Disk, first: u64) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&first.to_le_bytes());
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    let mut file = disk.create(UNFINISHED)?;
    file.write_all(&bytes)?;
    file.sync()?;
    drop(file);
    disk.rename(UNFINISHED, FILE)
}

/// Returns the number of the newest file. `None` if it was not recorded; older versions did not.
pub(super) fn read(disk: &dyn Disk) -> Result<Option<u64>, LogError> {
    let damaged = |what| LogError::Damaged { file: FILE.into(), offset: 0, what };
    let mut file = match disk.read(FILE) {
        Ok(file) => file.take(BYTES as u64 + 1),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open the number of the newest file of the log")(error)),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed("read the number of the newest file of the log"))?;
    let Ok(bytes) = <[u8; BYTES]>::try_from(bytes) else {
        return Err(damaged("the file has the wrong length"));
    };
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    if !bytes.starts_with(MAGIC) || number(24) != xxh3_64(&bytes[..24]) {
        return Err(damaged("the file does not match its checksum"));
    }
    match number(8) {
        version if version == u64::from(VERSION) => Ok(Some(number(16))),
        version => Err(LogError::Version { file: FILE.into(), got: version as u32, newest: VERSION }),
    }
}
