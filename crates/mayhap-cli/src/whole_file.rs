//! Whole files in memory: filters of other programs, read within limits; images, pages and reports, written completely or
//! not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use mayhap::file::{self, Readers};

use crate::error::CliError;
use crate::interrupt;

/// The most bytes read from a pipe, whose length is not known beforehand.
const PIPE_BYTES: u64 = 1 << 30;
/// The step in which memory is allocated if the length is not known.
const PIECE_BYTES: usize = 1 << 20;

/// Reads all bytes of a file, or of a pipe given on purpose (`<(…)`). Devices are rejected, because they have no end.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    read_limited(path, PIPE_BYTES, true)
}

/// Reads all text of a file of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, CliError> {
    let bytes = read_limited(path, limit, false)?;
    String::from_utf8(bytes)
        .map_err(|_| CliError::Input { name: path.display().to_string(), what: "not UTF-8 text".into() })
}

/// `limit` applies to inputs of unknown length, and to files unless they may be `larger`.
fn read_limited(path: &Path, limit: u64, larger: bool) -> Result<Vec<u8>, CliError> {
    let unreadable = |cause| CliError::Read { name: path.display().to_string(), cause };
    let about = fs::metadata(path).map_err(unreadable)?;
    let kind = about.file_type();
    if kind.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() && !kind.is_fifo() && !kind.is_socket() {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::InvalidInput,
            "neither a regular file nor a pipe",
        )));
    }
    let known = if kind.is_file() { about.len() } else { 0 };
    let limit = if larger { limit.max(known) } else { limit };
    let mut file = File::open(path).map_err(unreadable)?.take(limit.saturating_add(1));
    let mut bytes = Vec::new();
    reserve(&mut bytes, known.min(limit)).map_err(unreadable)?;
    loop {
        if bytes.len() == bytes.capacity() {
            let more = PIECE_BYTES.max(bytes.len() / 2) as u64;
            reserve(&mut bytes, more).map_err(unreadable)?;
        }
        let (end, room) = (bytes.len(), bytes.capacity().min(bytes.len() + PIECE_BYTES));
        // Within the capacity, so this allocates nothing.
        bytes.resize(room, 0);
        match file.read(&mut bytes[end..]) {
            Ok(0) => {
                bytes.truncate(end);
                break;
            }
            Ok(read) => bytes.truncate(end + read),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => bytes.truncate(end),
            Err(cause) => return Err(unreadable(cause)),
        }
    }
    if bytes.len() as u64 > limit {
        let what = format!("more than the limit of {} bytes", mayhap::say::count(limit));
        return Err(CliError::Input { name: path.display().to_string(), what });
    }
    Ok(bytes)
}

/// Reserves `more` bytes. A refused allocation is an error.
fn reserve(bytes: &mut Vec<u8>, more: u64) -> io::Result<()> {
    let refused = || {
        let what = format!("cannot allocate {} bytes of memory", mayhap::say::count(more));
        io::Error::new(io::ErrorKind::OutOfMemory, what)
    };
    bytes.try_reserve_exact(usize::try_from(more).map_err(|_| refused())?).map_err(|_| refused())
}

/// A writer to memory. A refused allocation is an error of the writer and does not end the program.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.capacity() - self.0.len() < bytes.len() {
            // Grows by half, so that many small writes do not copy everything each time.
            let more = bytes.len().max(self.0.len() / 2).max(PIECE_BYTES) as u64;
            reserve(&mut self.0, more).or_else(|_| reserve(&mut self.0, bytes.len() as u64))?;
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns `true` if both names lead to the same file. Files that do not exist are the same if their names are.
pub(crate) fn is_same(path: &Path, other: &Path) -> bool {
    match (fs::metadata(path), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => path == other,
    }
}

/// Writes `bytes` to `path`. A file is replaced in one step; a pipe or a device is written directly.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let takes_bytes = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if takes_bytes {
        let written = OpenOptions::new().write(true).open(path).and_then(|mut out| out.write_all(bytes));
        return written.map_err(|cause| CliError::CannotWrite { path: path.to_owned(), cause });
    }
    let _polite = interrupt::polite();
    let written = file::replace(path, Readers::AsUsual, |_| Ok(()), |out| out.write_all(bytes));
    interrupt::check()?;
    Ok(written?)
}
