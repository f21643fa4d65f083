//! Compressed input, recognized by its first bytes, never by its name.

use std::io::{self, BufReader, Read};
use std::mem;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::error::CliError;

/// Bytes read from a compressed file at a time.
const PACKED_BYTES: usize = 1 << 16;
/// The limit for the memory that unpacking takes: 2^27 bytes. `zstd` itself has this limit, and it is twice what the
/// best setting of `xz` needs.
const WINDOW_LOG: u32 = 27;
const WINDOW_MIB: u64 = 1 << (WINDOW_LOG - 20);

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

/// The first bytes of each format, as ranges. Each signature is long enough not to occur by chance at the start of a
/// text: all except bzip2's contain bytes that no text has, and bzip2's continues with the digits of pi, or of its
/// square root if the content is empty.
#[rustfmt::skip]
const SIGNATURES: [(Packing, &[(u8, u8)]); 6] = [
    // The method, and flags; three of the flag bits are never set.
    (Packing::Gzip, &[(0x1f, 0x1f), (0x8b, 0x8b), (8, 8), (0, 0x1f)]),
    (Packing::Zstd, &[(0x28, 0x28), (0xb5, 0xb5), (0x2f, 0x2f), (0xfd, 0xfd)]),
    // A skippable frame; files of `pzstd` begin with one.
    (Packing::Zstd, &[(0x50, 0x5f), (0x2a, 0x2a), (0x4d, 0x4d), (0x18, 0x18)]),
    (Packing::Bzip2, &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
        (0x31, 0x31), (0x41, 0x41), (0x59, 0x59), (0x26, 0x26), (0x53, 0x53), (0x59, 0x59)]),
    (Packing::Bzip2, &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
        (0x17, 0x17), (0x72, 0x72), (0x45, 0x45), (0x38, 0x38), (0x50, 0x50), (0x90, 0x90)]),
    (Packing::Xz, &[(0xfd, 0xfd), (0x37, 0x37), (0x7a, 0x7a), (0x58, 0x58), (0x5a, 0x5a), (0, 0)]),
];
const LONGEST_SIGNATURE: usize = 10;
/// The byte order mark that some editors write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The unpacked content of a source.
pub(super) struct Unpacked {
    reader: Box<dyn Read + Send>,
    packing: Option<Packing>,
}

impl Unpacked {
    /// `source` as it is.
    pub(super) fn plain(source: Box<dyn Read + Send>) -> Self {
        Self { reader: source, packing: None }
    }

    /// `source`, unpacked if its first bytes are those of a compressed file.
    pub(super) fn new(mut source: Box<dyn Read + Send>) -> io::Result<Self> {
        let (first, packing) = peek(&mut *source, LONGEST_SIGNATURE, |first| {
            SIGNATURES
                .iter()
                .filter(|(_, signature)| {
                    first.iter().zip(*signature).all(|(&byte, &(low, high))| (low..=high).contains(&byte))
                })
                .map(|&(packing, signature)| (first.len() >= signature.len()).then_some(packing))
                .next()
        })?;
        let source = io::Cursor::new(first).chain(source);
        let Some(packing) = packing else { return Ok(Self::plain(Box::new(source))) };
        let packed = BufReader::with_capacity(PACKED_BYTES, source);
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(packed)?;
                decoder.window_log_max(WINDOW_LOG)?;
                Box::new(decoder)
            }
            Packing::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
            Packing::Xz => {
                let stream = Stream::new_stream_decoder(WINDOW_MIB << 20, CONCATENATED)?;
                Box::new(XzDecoder::new_stream(packed, stream))
            }
        };
        Ok(Self { reader, packing: Some(packing) })
    }

    /// Drops a byte order mark at the start, because it is not part of the first field.
    pub(super) fn drop_mark(&mut self) -> io::Result<()> {
        let (first, mark) = peek(&mut *self.reader, BYTE_ORDER_MARK.len(), |first| {
            BYTE_ORDER_MARK.starts_with(first).then(|| (first == BYTE_ORDER_MARK).then_some(()))
        })?;
        if mark.is_none() {
            let rest = mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(io::Cursor::new(first).chain(rest));
        }
        Ok(())
    }

    /// Reads once, at most to the end of `buffer`.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_once(&mut *self.reader, buffer)
    }

    /// The name of its compression, if any.
    pub(super) fn packing(&self) -> Option<&'static str> {
        self.packing.map(Packing::name)
    }

    /// The error to report for `cause`, which [`read`](Self::read) returned.
    pub(super) fn cli_error(&self, name: &str, cause: io::Error) -> CliError {
        let name = name.to_owned();
        // Errors of the operating system concern the file. The others concern its content.
        match self.packing.filter(|_| cause.raw_os_error().is_none()) {
            Some(packing) => CliError::Input { name, what: packing.complaint(&cause) },
            None => CliError::Read { name, cause },
        }
    }
}

impl Packing {
    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    fn complaint(self, cause: &io::Error) -> String {
        let name = self.name();
        let said = cause.to_string();
        let too_much = match self {
            Self::Zstd => said.contains("too much memory"),
            Self::Xz => said.contains("limit"),
            Self::Gzip | Self::Bzip2 => false,
        };
        if too_much {
            let how = if self == Self::Zstd { "zstd -dc --long=31" } else { "xz -dc" };
            format!(
                "unpacking needs more than {WINDOW_MIB} MiB of memory; unpack it first: `{how} FILE | mayhap …`"
            )
        } else if cause.kind() == io::ErrorKind::UnexpectedEof {
            format!("the {name} data ends too early: the file is truncated")
        } else {
            format!("the {name} data is damaged: {said}")
        }
    }
}

/// Reads bytes from the start of `source`, at most `most`, while `look` returns "undecided". It never reads more than
/// needed, so that a line typed into a pipe is processed without waiting for the next. Returns the bytes read and the
/// result of `look`.
///
/// `look` returns `None` for no match, `Some(None)` for undecided, and `Some(Some(…))` for a match.
fn peek<T>(
    source: &mut dyn Read,
    most: usize,
    look: impl Fn(&[u8]) -> Option<Option<T>>,
) -> io::Result<(Vec<u8>, Option<T>)> {
    let mut first = vec![0; most];
    let mut length = 0;
    while length < most {
        let read = read_once(source, &mut first[length..])?;
        length += read;
        match look(&first[..length]) {
            Some(None) if read > 0 => {}
            found => {
                first.truncate(length);
                return Ok((first, found.flatten()));
            }
        }
    }
    Ok((first, None))
}

fn read_once(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::input::drip::Drip;

    const TEXT: &[u8] = b"https://example.org/1\nhttps://example.org/2\nno end of line";

    fn packed(packing: Packing, text: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Zstd => {
                // With the checksum that the `zstd` program writes; without it, a changed byte may go unnoticed.
                let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    const ALL: [Packing; 4] = [Packing::Gzip, Packing::Zstd, Packing::Bzip2, Packing::Xz];

    /// The unpacked content of `bytes`, read in small pieces, or the error text.
    fn unpack(bytes: Vec<u8>, at_most: usize) -> Result<Vec<u8>, String> {
        let said = |error: CliError| error.to_string();
        let mut unpacked = Unpacked::new(Box::new(Drip::new(bytes, 7, at_most)))
            .map_err(|cause| said(CliError::Read { name: "it".into(), cause }))?;
        let mut all = Vec::new();
        let mut buffer = [0; 100];
        loop {
            match unpacked.read(&mut buffer) {
                Ok(0) => return Ok(all),
                Ok(read) => all.extend_from_slice(&buffer[..read]),
                Err(cause) => return Err(said(unpacked.cli_error("it", cause))),
            }
        }
    }

    #[test]
    fn every_packing_is_recognized_for_any_read_size() {
        for packing in ALL {
            for at_most in [1, 3, 10, 1000] {
                assert_eq!(unpack(packed(packing, TEXT), at_most).unwrap(), TEXT, "{packing:?} {at_most}");
                assert_eq!(unpack(packed(packing, b""), at_most).unwrap(), b"", "{packing:?} {at_most}");
            }
            let twice = [packed(packing, TEXT), packed(packing, b""), packed(packing, TEXT)].concat();
            assert_eq!(unpack(twice, 5).unwrap(), [TEXT, TEXT].concat(), "{packing:?} concatenated");
        }
    }

    #[test]
    fn a_skippable_frame_may_come_first() {
        let mut bytes = vec![0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        bytes.extend(packed(Packing::Zstd, TEXT));
        assert_eq!(unpack(bytes, 2).unwrap(), TEXT);
    }

    #[test]
    fn text_with_a_similar_start_is_text() {
        for text in [
            &b""[..],
            b"\n",
            b"B",
            b"BZh",
            b"BZh9 is how bzip2 files begin\n",
            b"BZh91AY&S\n",
            b"P*M",
            b"P*M\nP*N\n",
            b"\x1f\x8b",
            b"\x1f\x8b\n",
            b"\x1f\x8b\x08\xff",
            b"\xfd7zXZ\n",
            b"(\xb5/",
        ] {
            for at_most in [1, 2, 100] {
                assert_eq!(unpack(text.to_vec(), at_most).unwrap(), text);
            }
        }
    }

    #[test]
    fn truncated_files_are_rejected() {
        for packing in ALL {
            let whole = packed(packing, TEXT);
            let shortest = SIGNATURES.iter().find(|(found, _)| *found == packing).unwrap().1.len();
            for length in shortest..whole.len() {
                let said = unpack(whole[..length].to_vec(), 8).unwrap_err();
                assert_eq!(
                    said,
                    format!("it: the {} data ends too early: the file is truncated", packing.name()),
                    "{length} of {} bytes",
                    whole.len()
                );
            }
        }
    }

    #[test]
    fn changed_bytes_are_detected() {
        for packing in ALL {
            let whole = packed(packing, TEXT);
            // Time and system in gzip's header do not affect the content.
            let first = if packing == Packing::Gzip { 10 } else { 0 };
            for at in first..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 0x10;
                match unpack(changed.clone(), 50) {
                    // No longer recognized as compressed, or an unused bit.
                    Ok(text) => assert!(text == changed || text == TEXT, "{packing:?} byte {at}"),
                    Err(said) => assert!(said.starts_with("it: "), "{said}"),
                }
            }
            let mut more = whole.clone();
            more.extend_from_slice(b"something else");
            let said = unpack(more, 50).unwrap_err();
            assert!(said.starts_with(&format!("it: the {} data ", packing.name())), "{said}");
        }
    }

    #[test]
    fn the_memory_limit_is_enforced_and_reported() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(TEXT).unwrap();
        // If everything is written in one call, the window is only as large as the text.
        encoder.flush().unwrap();
        let zstd = encoder.finish().unwrap();
        assert_eq!(
            unpack(zstd, 100).unwrap_err(),
            "it: unpacking needs more than 128 MiB of memory; unpack it first: `zstd -dc --long=31 FILE | mayhap …`"
        );
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        options.dict_size(256 << 20);
        let mut filters = liblzma::stream::Filters::new();
        filters.lzma2(&options);
        let stream = Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc64).unwrap();
        let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        encoder.write_all(TEXT).unwrap();
        assert_eq!(
            unpack(encoder.finish().unwrap(), 100).unwrap_err(),
            "it: unpacking needs more than 128 MiB of memory; unpack it first: `xz -dc FILE | mayhap …`"
        );
    }

    #[test]
    fn only_a_byte_order_mark_is_dropped() {
        for (text, left) in [
            (&b"\xef\xbb\xbfid\n"[..], &b"id\n"[..]),
            (b"\xef\xbb\xbf", b""),
            (b"\xef\xbb", b"\xef\xbb"),
            (b"\xef\xbbid", b"\xef\xbbid"),
            (b"", b""),
            (b"id", b"id"),
        ] {
            let mut all = Vec::new();
            let mut unpacked = Unpacked::new(Box::new(Drip::new(text.to_vec(), 1, 2))).unwrap();
            unpacked.drop_mark().unwrap();
            unpacked.reader.read_to_end(&mut all).unwrap();
            assert_eq!(all, left);
        }
    }
}
