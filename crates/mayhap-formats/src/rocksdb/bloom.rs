//! Both Bloom filters: lines of 64 bytes. Each item uses one line.

use std::io::Write;

use mayhap::internals::LINE_BYTES;
use mayhap::internals::{self, Lines};
use mayhap::{
    BlockedBloom, BlockedPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding,
};

use super::{NEW_BLOOM, RocksdbFilter, TRAILER_BYTES};
use crate::foreign::WriteError;
use crate::words::write_bytes;

/// The two Bloom filters of RocksDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BloomStyle {
    /// Before format version 5: a hash of 32 bits, so the false-positive rate grows with the number of keys.
    Legacy,
    /// `FastLocalBloom`, since format version 5.
    FastLocal,
}

/// Larger numbers of probes are never written, and are invalid in a `FastLocalBloom`.
const MAX_K: u32 = 30;
/// A legacy filter stores its number of lines in four bytes. No filter has more lines than fit there.
const MAX_LINES: u64 = u32::MAX as u64 / LINE_BYTES as u64;

impl BloomStyle {
    const fn placement(self) -> BlockedPlacement {
        match self {
            Self::Legacy => BlockedPlacement::RocksDbLegacy,
            Self::FastLocal => BlockedPlacement::RocksDbFastLocal,
        }
    }

    const fn hash(self) -> ForeignHash {
        match self {
            Self::Legacy => ForeignHash::RocksDb,
            Self::FastLocal => ForeignHash::RocksDb64,
        }
    }

    fn scheme(self, items: ItemEncoding) -> HashScheme {
        internals::foreign_scheme(self.hash(), items)
    }

    fn trailer(self, probes: u8, lines: u32) -> [u8; TRAILER_BYTES] {
        match self {
            Self::Legacy => {
                let [a, b, c, d] = lines.to_le_bytes();
                [probes, a, b, c, d]
            }
            Self::FastLocal => [NEW_BLOOM, 0, probes, 0, 0],
        }
    }
}

/// Creates an empty filter as RocksDB does for `keys` keys, at least one. For no keys RocksDB writes [`empty`].
///
/// # Errors
/// As [`size`], and [`BuildError`] for no keys.
pub fn create(
    style: BloomStyle,
    bits_per_key: f64,
    keys: u64,
    items: ItemEncoding,
) -> Result<BlockedBloom, BuildError> {
    let (lines, probes) = size(style, bits_per_key, keys)?;
    let shape = internals::blocked::rocksdb_lines(lines, probes, keys, 1.0)?;
    internals::blocked::placed(
        internals::blocked::promising_what_it_keeps(shape),
        style.scheme(items),
        style.placement(),
    )
}

/// Returns the bytes that RocksDB writes for no keys: only the trailer.
///
/// # Errors
/// As [`size`].
pub fn empty(style: BloomStyle, bits_per_key: f64) -> Result<[u8; TRAILER_BYTES], BuildError> {
    Ok(style.trailer(size(style, bits_per_key, 0)?.1 as u8, 0))
}

/// Returns the number of lines of 64 bytes and the number of probes that RocksDB uses for `keys` keys.
///
/// The bits per key are those of `NewBloomFilterPolicy`: rounded to thousandths, at least 1 and at most 100. The legacy filter rounds them to a
/// whole number, and has an odd number of lines.
///
/// # Errors
/// [`BuildError::BitsOutOfRange`] for less than half a bit per key, for which RocksDB makes no filter, and for more than 4 GiB.
pub fn size(style: BloomStyle, bits_per_key: f64, keys: u64) -> Result<(u64, u32), BuildError> {
    let limit = MAX_LINES * LINE_BYTES as u64 * 8;
    if bits_per_key.is_nan() || bits_per_key < 0.5 {
        return Err(BuildError::BitsOutOfRange { got: 0, limit });
    }
    let millibits = (bits_per_key.clamp(1.0, 100.0) * 1000.0 + 0.500_001) as u64;
    let (line_bits, (bits, probes)) = (
        LINE_BYTES as u128 * 8,
        match style {
            BloomStyle::Legacy => {
                let whole = (millibits + 500) / 1000;
                (u128::from(keys) * u128::from(whole), ((whole as f64 * 0.69) as u32).clamp(1, MAX_K))
            }
            BloomStyle::FastLocal => {
                ((u128::from(keys) * u128::from(millibits)).div_ceil(1000), best_probes(millibits))
            }
        },
    );
    let lines = bits.div_ceil(line_bits);
    // An even number would waste a bit of the hash: its lowest bits also choose positions inside the line.
    let lines = if style == BloomStyle::Legacy && lines > 0 { lines | 1 } else { lines };
    if lines > u128::from(MAX_LINES) {
        return Err(BuildError::BitsOutOfRange { got: u64::try_from(bits).unwrap_or(u64::MAX), limit });
    }
    Ok((lines as u64, probes))
}

/// Returns the number of probes of a `FastLocalBloom`: the table contains the largest millibits per key for 1, 2, … probes.
fn best_probes(millibits: u64) -> u32 {
    const MOST: [u64; 12] =
        [2080, 3580, 5100, 6640, 8300, 10_070, 11_720, 14_001, 16_050, 18_300, 22_001, 25_501];
    match MOST.iter().position(|&most| millibits <= most) {
        Some(fewer) => fewer as u32 + 1,
        None if millibits > 50_000 => 24,
        None => ((millibits - 1) / 2000 - 1) as u32,
    }
}

/// A parsed trailer.
pub(super) struct Trailer {
    style: BloomStyle,
    probes: u32,
    lines: u64,
}

impl Trailer {
    pub(super) fn new(body: &[u8], trailer: [u8; TRAILER_BYTES]) -> Result<Self, DecodeError> {
        let bytes = body.len() as u64;
        match trailer {
            [NEW_BLOOM, 0, line_and_probes, 0, 0] => {
                // The upper three bits are the base-2 logarithm of the line length in bytes, minus 6.
                if line_and_probes >> 5 != 0 {
                    return Err(DecodeError::Unsupported {
                        what: "a FastLocalBloom with lines of more than 64 bytes",
                    });
                }
                let probes = u32::from(line_and_probes);
                if !(1..=MAX_K).contains(&probes) {
                    return Err(DecodeError::BadField { field: "number of probes", got: probes.into() });
                }
                if !bytes.is_multiple_of(LINE_BYTES as u64) {
                    return Err(DecodeError::BadField { field: "bytes of all lines", got: bytes });
                }
                Ok(Self { style: BloomStyle::FastLocal, probes, lines: bytes / LINE_BYTES as u64 })
            }
            [NEW_BLOOM, ..] => {
                Err(DecodeError::Unsupported { what: "a RocksDB Bloom filter of an unknown type" })
            }
            [0x80..=0xfe, ..] => {
                Err(DecodeError::Unsupported { what: "a RocksDB filter of an unknown type" })
            }
            [0, ..] => Err(DecodeError::BadField { field: "number of probes", got: 0 }),
            [probes, lines @ ..] => {
                let lines = u64::from(u32::from_le_bytes(lines));
                match bytes.checked_div(lines) {
                    None if bytes == 0 => {}
                    Some(64) if bytes.is_multiple_of(lines) => {}
                    Some(32 | 128 | 256) if bytes.is_multiple_of(lines) => {
                        return Err(DecodeError::Unsupported {
                            what: "a legacy RocksDB filter with lines of other than 64 bytes",
                        });
                    }
                    _ => return Err(DecodeError::BadField { field: "number of lines", got: lines }),
                }
                Ok(Self { style: BloomStyle::Legacy, probes: probes.into(), lines })
            }
        }
    }
}

pub(super) fn read(
    body: &[u8],
    trailer: [u8; TRAILER_BYTES],
    items: ItemEncoding,
) -> Result<RocksdbFilter, DecodeError> {
    let Trailer { style, probes, lines } = Trailer::new(body, trailer)?;
    if lines == 0 {
        return Ok(RocksdbFilter::Empty);
    }
    let shape = internals::blocked::rocksdb_lines_of_unknown_capacity(lines, probes)?;
    Ok(RocksdbFilter::Bloom(internals::blocked::of_placed_blocks(
        shape,
        style.scheme(items),
        style.placement(),
        Lines::from_le_bytes(body)?,
    )))
}

/// Writes the filter as RocksDB does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RocksDB's, [`WriteError::NoRoom`] for one that RocksDB could not read,
/// [`WriteError::Io`] if `out` fails.
pub fn write(filter: &BlockedBloom, out: &mut dyn Write) -> Result<(), WriteError> {
    let hashes_by = match filter.scheme() {
        HashScheme::Foreign(scheme) => Some(scheme.function()),
        _ => None,
    };
    let styles = [BloomStyle::Legacy, BloomStyle::FastLocal];
    let Some(style) = styles
        .into_iter()
        .find(|style| style.placement() == filter.placement() && Some(style.hash()) == hashes_by)
    else {
        return Err(WriteError::OtherPlacement {
            needs: "RocksDB's hash and the rule of one of its two Bloom filters",
            got: format!("{:?}, {:?}", filter.scheme(), filter.placement()),
        });
    };
    let (lines, probes) = (filter.shape().blocks(), filter.shape().probes());
    let limit = match style {
        BloomStyle::Legacy => 0x7f,
        BloomStyle::FastLocal => MAX_K,
    };
    if probes > limit {
        return Err(WriteError::NoRoom {
            field: "number of probes",
            got: probes.into(),
            limit: limit.into(),
        });
    }
    let Some(said) = u32::try_from(lines).ok().filter(|&said| u64::from(said) <= MAX_LINES) else {
        return Err(WriteError::NoRoom { field: "number of lines", got: lines, limit: MAX_LINES });
    };
    write_bytes(internals::blocked::words(filter), lines * LINE_BYTES as u64, out)?;
    out.write_all(&style.trailer(probes as u8, said))?;
    Ok(())
}
