//! A filter's file as a source of bytes: its words are copied or mapped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::Xxh3;

use super::backing::Stamp;
use crate::codec::{Bytes, DecodeError, HEADER_BYTES, Header, Source};
use crate::kind::Kind;
use crate::store::{LINE_BYTES, Lines};

/// A file of up to this many bytes is copied and checked when it is opened. That takes a few milliseconds, and later changes
/// of the file have no effect. The measurements are in `docs/decisions/0015-mapped-files.md`.
pub(super) const COPIED_BYTES: u64 = 16 << 20;

/// Bytes per read when words are copied.
const PIECE_BYTES: usize = 256 << 10;

/// An open file.
pub(super) struct FileSource<'a> {
    pub(super) file: Arc<File>,
    pub(super) stamp: Stamp,
    /// Set when a map has lost the bytes of the file.
    pub(super) lost: Arc<AtomicBool>,
    pub(super) words: Words<'a>,
}

/// How words are loaded and checked.
#[derive(Clone, Copy)]
pub(super) enum Words<'a> {
    /// Mapped, not checked.
    Mapped,
    /// Mapped, and read to compare their checksum. The watcher is called with the number of bytes read.
    Checked(&'a dyn Fn(u64) -> Result<(), DecodeError>),
    /// Copied, and compared with their checksum.
    Copied,
}

impl<'a> FileSource<'a> {
    pub(super) fn open(path: &Path, words: Words<'a>) -> io::Result<Self> {
        let file = open_regular(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        Ok(Self { file: Arc::new(file), stamp, lost: Arc::default(), words })
    }

    /// Decides between a copy and a map. Small files are copied. So are filters whose lookups follow stored offsets: their
    /// tables are checked when they are opened, and must not change afterwards.
    pub(super) fn open_for_lookups(path: &Path) -> io::Result<Self> {
        let mut source = Self::open(path, Words::Mapped)?;
        let follows = |header: Header| matches!(header.kind, Kind::Quotient | Kind::Growing);
        if source.stamp.bytes <= COPIED_BYTES
            || cfg!(target_endian = "big")
            || source.header_at(0).is_ok_and(follows)
        {
            source.words = Words::Copied;
        }
        Ok(source)
    }

    pub(super) const fn maps(&self) -> bool {
        !matches!(self.words, Words::Copied)
    }

    /// Copies words into memory.
    fn copied(&self, at: u64, lines: usize, checksum: u64) -> Result<Lines, DecodeError> {
        let mut lines = Lines::zeroed(lines)?;
        let (mut sum, mut file, mut from) = (Xxh3::new(), &*self.file, at);
        let mut piece = vec![0; PIECE_BYTES.min(lines.memory_bytes() as usize)];
        let unreadable = |at| move |_| DecodeError::Unreadable { at };
        file.seek(SeekFrom::Start(at)).map_err(unreadable(at))?;
        for words in lines.words_mut().chunks_mut(PIECE_BYTES / size_of::<u64>()) {
            let piece = &mut piece[..size_of_val(words)];
            file.read_exact(piece).map_err(unreadable(from))?;
            from += piece.len() as u64;
            sum.update(piece);
            for (to, from) in words.iter_mut().zip(piece.as_chunks::<8>().0) {
                *to = u64::from_le_bytes(*from);
            }
        }
        if sum.digest() == checksum { Ok(lines) } else { Err(DecodeError::PayloadDamaged) }
    }
}

/// Opens a regular file. Anything else is rejected without waiting, for example a pipe without a writer.
fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let file = File::open(path)?;
    // Another file may have the name by now.
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

impl Source for FileSource<'_> {
    fn len(&self) -> u64 {
        self.stamp.bytes
    }

    fn header_at(&self, at: u64) -> Result<Header, DecodeError> {
        // Read as much of a header as there is: even a truncated header shows whether the file begins like one.
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        let mut file = &*self.file;
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.take(HEADER_BYTES as u64).read_to_end(&mut bytes));
        match read {
            Ok(HEADER_BYTES) => Bytes(&bytes).header_at(0),
            Ok(_) if at == 0 && self.len() >= 8 => Bytes(&bytes).header_at(0),
            Ok(_) => {
                Err(DecodeError::TooShort { need: at.saturating_add(HEADER_BYTES as u64), got: self.len() })
            }
            Err(_) => Err(DecodeError::Unreadable { at }),
        }
    }

    fn lines_at(&self, at: u64, bytes: u64, checksum: u64) -> Result<Lines, DecodeError> {
        let lines = usize::try_from(bytes).unwrap_or(usize::MAX) / LINE_BYTES;
        if lines == 0 {
            return Ok(Lines::zeroed(0)?);
        }
        if let Words::Copied = self.words {
            return self.copied(at, lines, checksum);
        }
        let mapped = Lines::mapped(&self.file, at, lines, &self.lost);
        let lines = mapped.ok_or(DecodeError::Unmappable { at, bytes })?;
        if let Words::Checked(watch) = self.words {
            let found = lines.checksum_watched(watch)?;
            if found != checksum {
                return Err(DecodeError::PayloadDamaged);
            }
        }
        Ok(lines)
    }
}
