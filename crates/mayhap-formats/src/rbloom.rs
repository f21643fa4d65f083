//! rbloom's `save` and `save_bytes`, the Python library: read only.
//!
//! ```text
//! ┌──────────┬───────────────────────────────────┐
//! │ probes k │ bits, all bytes there are         │
//! │ u64, LE  │ bit i: byte i/8, lowest bit first │
//! └──────────┴───────────────────────────────────┘
//! ```
//!
//! rbloom saves only filters with a user-defined hash function, which maps Python's items to 128 bits. The file does not contain it, so the
//! reader must name it:
//!
//! ```python
//! def hash_func(item):                                              # HashFunction::Sha256, ItemEncoding::Utf8
//!     return int.from_bytes(sha256(item.encode()).digest()[:16], "big", signed=True)
//! ```
//!
//! The recipe in rbloom's readme hashes `pickle.dumps(item)` instead of `item.encode()`. Pickles differ between versions of Python: such a
//! filter can be queried only with the pickles themselves, as byte strings.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::rbloom::{self, HashFunction};
//!
//! let file = [&6_u64.to_le_bytes()[..], &[0; 24]].concat(); // Bloom(20, 0.01, hash_func), empty
//! let mut seen = rbloom::read(&file, HashFunction::Sha256, ItemEncoding::Utf8)?;
//! assert!(seen.insert("ada") && seen.may_contain("ada"));
//! # Ok::<(), mayhap::DecodeError>(())
//! ```

use mayhap::internals::{self, Lines};
use mayhap::{Bloom, BloomPlacement, DecodeError, ForeignHash, ItemEncoding};

use crate::cursor::Cursor;
use crate::foreign::Resemblance;

/// The function that was passed to rbloom's `Bloom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashFunction {
    /// The first 16 bytes of SHA-256, big-endian.
    Sha256,
}

impl HashFunction {
    const fn function(self) -> ForeignHash {
        match self {
            Self::Sha256 => ForeignHash::Rbloom,
        }
    }
}

/// Reads a filter written by `save` or `save_bytes`.
///
/// # Errors
/// [`DecodeError`] for no bits, and for no probes or more than 255.
pub fn read(bytes: &[u8], hash: HashFunction, items: ItemEncoding) -> Result<Bloom, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let probes = cursor.u64_le()?;
    let probes = u32::try_from(probes).map_err(|_| DecodeError::BadField { field: "k", got: probes })?;
    let bits = cursor.rest();
    let shape = internals::bloom::of_unknown_capacity(bits.len() as u64 * 8, probes)?;
    let scheme = internals::foreign_scheme(hash.function(), items);
    Ok(internals::bloom::of_placed_bits(shape, scheme, BloomPlacement::Rbloom, Lines::from_le_bytes(bits)?))
}

/// Returns whether these bytes look like such a file. There is little to recognize it by: a small number, followed by other bytes.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let probes = bytes.split_first_chunk::<8>().filter(|(_, bits)| !bits.is_empty());
    Resemblance::could(probes.is_some_and(|(probes, _)| (1..=255).contains(&u64::from_le_bytes(*probes))))
}
