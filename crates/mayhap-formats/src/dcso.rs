//! The `.bloom` files of DCSO's `bloom` program: everything little-endian, plain or inside gzip.
//!
//! ```text
//! ┌───────┬───┬───────┬───┬───┬───┬──────────────────────────────┬──────────┐     n, p  what it was made for
//! │ flags │ n │ p     │ k │ m │ N │ words of 64 bits, ⌈m/64⌉     │ data     │     k, m  probes and bits
//! │ 8     │ 8 │ 8 f64 │ 8 │ 8 │ 8 │ bit i: word i/64, bit i % 64 │ the rest │     N     insertions that changed a bit
//! └───────┴───┴───────┴───┴───┴───┴──────────────────────────────┴──────────┘     low byte of the flags: 1, the version
//! ```
//!
//! An item is a line without its `\n` or `\r\n`. Here, text is hashed as UTF-8, and byte strings are hashed unchanged. The bytes after the
//! words are the user's own [`data`](Dcso::data).
//!
//! * `bloom set-data` keeps the newline at the end of its input. So does this reader.
//! * `bloom` decompresses gzip only with `--gzip`, because it does not detect it. [`read`] looks at the first two bytes.
//! * `bloom` never rejects an item: a file with `N` far above `n` answers *maybe* to nearly every item. Compare
//!   [`inserted`](Bloom::inserted) with [`capacity`](Bloom::capacity).
//! * Flags above the version are ignored and dropped, as `bloom` does. Bits past the last one are rejected; `bloom` never sets or reads
//!   them.
//!
//! ```
//! use mayhap_formats::dcso::{self, Packing};
//!
//! let mut seen = dcso::create(10_000, 0.001)?;
//! seen.insert("evil.example");
//! let mut file = Vec::new();
//! dcso::write(&seen, b"{\"source\":\"feed 7\"}", Packing::Gzip, &mut file)?;
//!
//! let same = dcso::read(&file, 1 << 20)?; // at most a megabyte uncompressed
//! assert!(same.filter.may_contain("evil.example"));
//! assert_eq!(same.data, b"{\"source\":\"feed 7\"}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use mayhap::internals::{self, Lines, MAX_INSERTED};
use mayhap::sizing::MAX_BITS;
use mayhap::{
    Bloom, BloomPlacement, BloomShape, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding,
};

use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::write_words_le;

/// The content of a `.bloom` file.
#[derive(Debug)]
pub struct Dcso {
    /// The filter. Its capacity, target rate and count are the file's `n`, `p` and `N`.
    pub filter: Bloom,
    /// The data that the user attached; usually empty.
    pub data: Vec<u8>,
    /// How the file was compressed.
    pub packing: Packing,
}

/// How the bytes of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// The whole file inside gzip, like `bloom --gzip`.
    Gzip,
}

impl Packing {
    fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(&GZIP_MAGIC) { Self::Gzip } else { Self::Plain }
    }
}

const HEADER_BYTES: usize = 48;
/// The low byte of the flags.
const VERSION: u64 = 1;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// A gzip stream never decompresses to more than this many times its length: 258 bytes take at least two bits.
const GZIP_MOST_RATIO: u64 = 1032;

/// Creates an empty filter like `bloom create -n … -p …`.
///
/// # Errors
/// [`BuildError`] for numbers that [`size`] rejects, and for more than 255 probes (a rate below 10^-76).
pub fn create(n: u64, p: f64) -> Result<Bloom, BuildError> {
    let (bits, probes) = size(n, p)?;
    let shape = internals::bloom::from_parts(bits, probes, n, p)?;
    internals::bloom::placed(shape, scheme(), BloomPlacement::Dcso)
}

/// Returns the number of bits and probes that `bloom` uses for `n` items at a rate of `p`.
///
/// # Errors
/// [`BuildError`] for no items, a rate outside (0, 1), and numbers that give no bits or too many.
pub fn size(n: u64, p: f64) -> Result<(u64, u32), BuildError> {
    let (items, p) = (internals::check_capacity(n)? as f64, check_rate(p)?);
    let ln_2 = std::f64::consts::LN_2;
    // Another order would round differently. `bloom` rounds down, although rounding up would be correct.
    let bits = (items * p.ln() / (ln_2 * ln_2)).ceil().abs();
    if bits < 1.0 || bits > MAX_BITS as f64 {
        return Err(BuildError::BitsOutOfRange { got: bits as u64, limit: MAX_BITS });
    }
    let probes = (ln_2 * bits / items).ceil();
    Ok((bits as u64, probes as u32))
}

fn scheme() -> HashScheme {
    internals::foreign_scheme(ForeignHash::Dcso, ItemEncoding::Bytes)
}

/// Reads a `.bloom` file, plain or gzip. A compressed file is decompressed to at most `unpacked_limit` bytes, filter and data together.
///
/// # Errors
/// [`DecodeError`] for anything but one whole file; [`DecodeError::UnpacksTooLarge`] for one above the limit.
pub fn read(bytes: &[u8], unpacked_limit: u64) -> Result<Dcso, DecodeError> {
    let packing = Packing::of(bytes);
    let length = bytes.len() as u64;
    let (filter, data) = match packing {
        Packing::Plain => Unpacking { from: bytes, at: 0, most: length, limit: u64::MAX }.read(),
        Packing::Gzip => {
            let most = length.saturating_mul(GZIP_MOST_RATIO);
            Unpacking { from: MultiGzDecoder::new(bytes), at: 0, most, limit: unpacked_limit }.read()
        }
    }?;
    Ok(Dcso { filter, data, packing })
}

/// Uncompressed bytes, read in order. The words are read straight into the filter, so a large file is never in memory twice.
struct Unpacking<R> {
    from: R,
    /// The number of bytes read.
    at: u64,
    /// The largest possible number of bytes, whatever the header contains.
    most: u64,
    /// The largest number of bytes the caller accepts.
    limit: u64,
}

impl<R: Read> Unpacking<R> {
    fn read(mut self) -> Result<(Bloom, Vec<u8>), DecodeError> {
        let mut header = [0; HEADER_BYTES];
        self.expect(header.len() as u64)?;
        self.fill(&mut header)?;
        let (shape, inserted) = fields(&header)?;
        let bits = self.words(&shape)?;
        bits.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
        let data = self.rest()?;
        let filter = internals::bloom::of_placed_bits(shape, scheme(), BloomPlacement::Dcso, bits);
        let filter = internals::bloom::with_count(filter, inserted);
        Ok((filter, data))
    }

    /// `Ok` if `count` more bytes may be read. Called before memory is allocated for them.
    fn expect(&self, count: u64) -> Result<(), DecodeError> {
        let need = self.at.saturating_add(count);
        if need > self.most {
            return Err(DecodeError::TooShort { need, got: self.most });
        }
        if need > self.limit {
            return Err(DecodeError::UnpacksTooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), DecodeError> {
        let need = self.at.saturating_add(buffer.len() as u64);
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => return Err(DecodeError::TooShort { need, got: self.at + filled as u64 }),
                Ok(count) => filled += count,
                Err(_) => return Err(DecodeError::BadCompression),
            }
        }
        self.at = need;
        Ok(())
    }

    fn words(&mut self, shape: &BloomShape) -> Result<Lines, DecodeError> {
        self.expect(internals::bloom::words(shape) * 8)?;
        let mut lines = Lines::zeroed(internals::bloom::lines(shape))?;
        let mut buffer = [0; 8192];
        for words in lines.words_mut()[..internals::bloom::words(shape) as usize].chunks_mut(buffer.len() / 8)
        {
            let bytes = &mut buffer[..words.len() * 8];
            self.fill(bytes)?;
            for (to, &from) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *to = u64::from_le_bytes(from);
            }
        }
        Ok(lines)
    }

    /// Reads all remaining bytes. Their number is not known in advance, so the memory grows with them.
    fn rest(self) -> Result<Vec<u8>, DecodeError> {
        let left = self.limit - self.at;
        let mut rest = Vec::new();
        self.from
            .take(left.saturating_add(1))
            .read_to_end(&mut rest)
            .map_err(|_| DecodeError::BadCompression)?;
        if rest.len() as u64 > left {
            return Err(DecodeError::UnpacksTooLarge { limit: self.limit });
        }
        Ok(rest)
    }
}

/// Reads the header: the shape of the filter and the number of insertions counted.
fn fields(header: &[u8; HEADER_BYTES]) -> Result<(BloomShape, u64), DecodeError> {
    let mut cursor = Cursor::new(header);
    let flags = cursor.u64_le()?;
    if flags & 0xff != VERSION {
        return Err(DecodeError::BadField { field: "version", got: flags & 0xff });
    }
    let (n, p, k, m) = (cursor.u64_le()?, cursor.f64_le()?, cursor.u64_le()?, cursor.u64_le()?);
    let inserted = cursor.u64_le()?;
    if inserted > MAX_INSERTED {
        return Err(DecodeError::BadField { field: "N", got: inserted });
    }
    let probes = u32::try_from(k).map_err(|_| DecodeError::BadField { field: "k", got: k })?;
    Ok((internals::bloom::from_parts(m, probes, n, p)?, inserted))
}

/// Writes the filter, followed by the user's own `data`.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not DCSO's, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, data: &[u8], packing: Packing, out: &mut dyn Write) -> Result<(), WriteError> {
    if filter.placement() != BloomPlacement::Dcso || *filter.scheme() != scheme() {
        return Err(WriteError::other_placement("DCSO's FNV-1 and its own series of positions", filter));
    }
    match packing {
        Packing::Plain => write_plain(filter, data, out),
        Packing::Gzip => {
            let mut packed = GzEncoder::new(out, Compression::default());
            write_plain(filter, data, &mut packed)?;
            packed.finish()?;
            Ok(())
        }
    }
}

fn write_plain(filter: &Bloom, data: &[u8], out: &mut dyn Write) -> Result<(), WriteError> {
    let shape = filter.shape();
    let p = shape.target_fpr().to_bits();
    for field in [VERSION, shape.capacity(), p, shape.probes().into(), shape.bits(), filter.inserted()] {
        out.write_all(&field.to_le_bytes())?;
    }
    write_words_le(internals::bloom::bits(filter), internals::bloom::words(shape), out)?;
    out.write_all(data)?;
    Ok(())
}

/// Returns whether these bytes look like such a file, plain or gzip. Only the header of a compressed file is decompressed.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let mut header = [0; HEADER_BYTES];
    let (there, most) = match Packing::of(bytes) {
        Packing::Plain => (Read::read_exact(&mut &*bytes, &mut header), bytes.len() as u64),
        Packing::Gzip => (
            MultiGzDecoder::new(bytes).read_exact(&mut header),
            (bytes.len() as u64).saturating_mul(GZIP_MOST_RATIO),
        ),
    };
    let fits = |shape: &BloomShape| HEADER_BYTES as u64 + 8 * internals::bloom::words(shape) <= most;
    Resemblance::could(
        there.is_ok()
            && header[1..8] == [0; 7]
            && fields(&header).is_ok_and(|(shape, _)| fits(&shape) && check_rate(shape.target_fpr()).is_ok()),
    )
}
