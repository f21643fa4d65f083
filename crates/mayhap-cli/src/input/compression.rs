//! Compressed input, known by its first bytes and never by its name.

use std::io::{self, BufReader, Read};
use std::mem;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::error::CliError;

/// Bytes read of a compressed file at once.
const PACKED_BYTES: usize = 1 << 16;
/// Unpacking needs at most about this much memory: two to the power of 27 bytes are what `zstd` itself allows, and twice what
/// the best setting of `xz` asks for.
const WINDOW_LOG: u32 = 27;
const WINDOW_MIB: u64 = 1 << (WINDOW_LOG - 20);

/// How a file was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

/// The first bytes of each, as ranges: none of them is long enough to be met by chance at the start of a text. All but bzip2's
/// hold bytes that no text has, and bzip2's goes on with the digits of pi, or of its root where nothing was packed.
#[rustfmt::skip]
const SIGNATURES: [(Packing, &[(u8, u8)]); 6] = [
    // The method, and flags of which three are never set.
    (Packing::Gzip, &[(0x1f, 0x1f), (0x8b, 0x8b), (8, 8), (0, 0x1f)]),
    (Packing::Zstd, &[(0x28, 0x28), (0xb5, 0xb5), (0x2f, 0x2f), (0xfd, 0xfd)]),
    // A frame to be skipped, with which `pzstd` begins.
    (Packing::Zstd, &[(0x50, 0x5f), (0x2a, 0x2a), (0x4d, 0x4d), (0x18, 0x18)]),
    (Packing::Bzip2, &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
        (0x31, 0x31), (0x41, 0x41), (0x59, 0x59), (0x26, 0x26), (0x53, 0x53), (0x59, 0x59)]),
    (Packing::Bzip2, &[(b'B', b'B'), (b'Z', b'Z'), (b'h', b'h'), (b'1', b'9'),
        (0x17, 0x17), (0x72, 0x72), (0x45, 0x45), (0x38, 0x38), (0x50, 0x50), (0x90, 0x90)]),
    (Packing::Xz, &[(0xfd, 0xfd), (0x37, 0x37), (0x7a, 0x7a), (0x58, 0x58), (0x5a, 0x5a), (0, 0)]),
];
const LONGEST_SIGNATURE: usize = 10;
/// What some editors write before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a source holds, unpacked.
pub(super) struct Unpacked {
    reader: Box<dyn Read + Send>,
    packing: Option<Packing>,
}

impl Unpacked {
    /// `source` as it is.
    pub(super) fn plain(source: Box<dyn Read + Send>) -> Self {
        Self { reader: source, packing: None }
    }

    /// `source` unpacked, if its first bytes are those of a compressed file.
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

    /// Drops the mark at the beginning, which is no part of the first field.
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

    /// Reads once, to the end of `buffer` at most.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_once(&mut *self.reader, buffer)
    }

    /// How it was packed, if it was.
    pub(super) fn packing(&self) -> Option<&'static str> {
        self.packing.map(Packing::name)
    }

    /// What to say of `cause`, which [`read`](Self::read) met.
    pub(super) fn cli_error(&self, name: &str, cause: io::Error) -> CliError {
        let name = name.to_owned();
        // What the system says is about the file; the rest is about what is in it.
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
                "unpacking it needs more than {WINDOW_MIB} MiB of memory; unpack it first: `{how} FILE | mayhap …`"
            )
        } else if cause.kind() == io::ErrorKind::UnexpectedEof {
            format!("the {name} data ends too early: the file was cut off")
        } else {
            format!("the {name} data is damaged: {said}")
        }
    }
}

/// Reads the first bytes of `source`, `most` of them at most, as long as `look` says that they could become something. No
/// more are read: who types a line into a pipe is not asked for another. What was read, and what it became.
///
/// `look` says `None`: it is nothing. `Some(None)`: it could be. `Some(Some(…))`: it is.
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
                // With the checksum that the program `zstd` writes: without one a changed byte may become another text.
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

    /// All that `bytes` unpack to, read a few at a time, or what is said about them.
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
    fn every_packing_is_known_by_its_bytes_however_they_come() {
        for packing in ALL {
            for at_most in [1, 3, 10, 1000] {
                assert_eq!(unpack(packed(packing, TEXT), at_most).unwrap(), TEXT, "{packing:?} {at_most}");
                assert_eq!(unpack(packed(packing, b""), at_most).unwrap(), b"", "{packing:?} {at_most}");
            }
            let twice = [packed(packing, TEXT), packed(packing, b""), packed(packing, TEXT)].concat();
            assert_eq!(unpack(twice, 5).unwrap(), [TEXT, TEXT].concat(), "{packing:?} one behind the other");
        }
    }

    #[test]
    fn a_skippable_frame_may_come_first() {
        let mut bytes = vec![0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        bytes.extend(packed(Packing::Zstd, TEXT));
        assert_eq!(unpack(bytes, 2).unwrap(), TEXT);
    }

    #[test]
    fn text_that_begins_alike_is_text() {
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
    fn no_part_is_taken_for_the_whole() {
        for packing in ALL {
            let whole = packed(packing, TEXT);
            let shortest = SIGNATURES.iter().find(|(found, _)| *found == packing).unwrap().1.len();
            for length in shortest..whole.len() {
                let said = unpack(whole[..length].to_vec(), 8).unwrap_err();
                assert_eq!(
                    said,
                    format!("it: the {} data ends too early: the file was cut off", packing.name()),
                    "{length} of {} bytes",
                    whole.len()
                );
            }
        }
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        for packing in ALL {
            let whole = packed(packing, TEXT);
            // Time, system and the like in gzip's header are nobody's business.
            let first = if packing == Packing::Gzip { 10 } else { 0 };
            for at in first..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 0x10;
                match unpack(changed.clone(), 50) {
                    // Not known as packed any more, or a bit that says nothing.
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
    fn memory_has_a_limit_and_the_limit_is_said() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(28).unwrap();
        encoder.write_all(TEXT).unwrap();
        // Where all is written at once the window is as small as the text.
        encoder.flush().unwrap();
        let zstd = encoder.finish().unwrap();
        assert_eq!(
            unpack(zstd, 100).unwrap_err(),
            "it: unpacking it needs more than 128 MiB of memory; unpack it first: `zstd -dc --long=31 FILE | mayhap …`"
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
            "it: unpacking it needs more than 128 MiB of memory; unpack it first: `xz -dc FILE | mayhap …`"
        );
    }

    #[test]
    fn a_byte_order_mark_goes_and_nothing_else_does() {
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
