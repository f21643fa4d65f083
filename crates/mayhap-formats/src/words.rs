//! Writes the words of filters in the byte order of other programs.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use mayhap::internals::Lines;

/// Writes the first `count` words of `lines`, big-endian.
pub(crate) fn write_words_be(lines: &Lines, count: u64, out: &mut dyn Write) -> io::Result<()> {
    write_words(lines, count, u64::to_be_bytes, out)
}

/// Writes the first `count` words of `lines`, little-endian.
pub(crate) fn write_words_le(lines: &Lines, count: u64, out: &mut dyn Write) -> io::Result<()> {
    write_words(lines, count, u64::to_le_bytes, out)
}

/// Writes the first `count` words of `lines`, each converted by `bytes`.
pub(crate) fn write_words(
    lines: &Lines,
    count: u64,
    bytes: impl Fn(u64) -> [u8; 8],
    out: &mut dyn Write,
) -> io::Result<()> {
    /// The number of words to convert at a time.
    const CHUNK: usize = 1024;
    let words = lines.words();
    let mut buffer = [0; CHUNK * 8];
    for chunk in words[..words.len().min(usize::try_from(count).unwrap_or(usize::MAX))].chunks(CHUNK) {
        for (to, from) in buffer.as_chunks_mut::<8>().0.iter_mut().zip(chunk) {
            *to = bytes(from.load(Ordering::Relaxed));
        }
        out.write_all(&buffer[..chunk.len() * 8])?;
    }
    Ok(())
}

/// Writes the first `count` bytes of `lines`, the lowest byte of each word first.
pub(crate) fn write_bytes(lines: &Lines, count: u64, out: &mut dyn Write) -> io::Result<()> {
    write_words_le(lines, count / 8, out)?;
    let words = lines.words();
    match words.get(usize::try_from(count / 8).unwrap_or(usize::MAX)) {
        Some(word) => out.write_all(&word.load(Ordering::Relaxed).to_le_bytes()[..(count % 8) as usize]),
        None => Ok(()),
    }
}
