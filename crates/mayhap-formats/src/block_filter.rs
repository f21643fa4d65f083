//! Golomb-coded sets as in BIP 158: the block filters of Bitcoin, and sets of the same coding with other parameters.
//!
//! ```text
//! ┌─────────────┬────────────────────────────────────────────────┐
//! │ N           │ N codes, the first bit in the highest of a byte │     the last byte is filled up with zeroes
//! │ CompactSize │ delta >> P ones, a zero, P low bits of delta    │     N = 0: the single byte 00
//! └─────────────┴────────────────────────────────────────────────┘
//! value = upper 64 bits of SipHash-2-4(key, item) · (N · M); the values are sorted, and the deltas are their differences
//! ```
//!
//! The bytes contain only `N`. The reader must know `P`, `M` and the key: for the basic filter of a block they are [`BASIC`] and the block's
//! own hash ([`key_of_block`]). Items are scripts, as bytes: those of the block's outputs and those that its inputs spend, except empty ones
//! and outputs that begin with `OP_RETURN` (`6a`).
//!
//! * A block's hash is displayed with its bytes reversed. The key is made of the hash itself, not of its displayed form.
//! * Two items may have the same value. Both are kept, as a delta of 0; otherwise the bytes would differ from those of other programs.
//! * `N` must be in its shortest form, the codes must fill the bytes exactly, and no value may exceed `N · M`. Bitcoin Core enforces only the
//!   first two. It checks neither the values nor the padding bits of the last byte. Here both are checked, because a filter with such
//!   values or bits could not be written back unchanged, and no program writes one.
//! * Use [`may_contain_batch`](Gcs::may_contain_batch) to query many items together.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::block_filter::{self, BASIC};
//!
//! let key = block_filter::key_of_block(&[0x43; 32]);
//! let scripts: [&[u8]; 3] = [b"\x00\x14 one script", b"\x00\x14 another", b"\x00\x14 one script"];
//! let filter = block_filter::build(scripts, BASIC, key, ItemEncoding::Bytes)?;
//! let mut bytes = Vec::new();
//! block_filter::write(&filter, &mut bytes)?; // the reply of `getblockfilter`
//!
//! let same = block_filter::read(&bytes, BASIC, key, ItemEncoding::Bytes)?;
//! assert_eq!(same.inserted(), 2);
//! assert!(same.may_contain(b"\x00\x14 another"));
//! assert!(!same.may_contain(b"\x00\x14 a third"));
//! let _header = block_filter::header(&bytes, &[0; 32]); // of the first block
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::hash::named::crypto::sha256;
use mayhap::{
    BuildError, DecodeError, ForeignHash, Gcs, GcsShape, HashScheme, Item, ItemEncoding, internals,
};

use crate::compact_size;
use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError};

/// The coding parameters of a set. The bytes do not contain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// `P`: the number of low bits of a delta that are stored unchanged, at most 56.
    pub low_bits: u32,
    /// `M`: the number of possible values per item. The false-positive rate is 1 in `M`.
    pub values_per_item: u64,
}

/// The basic filter of a block: `P = 19`, `M = 784931`.
pub const BASIC: Parameters = Parameters { low_bits: 19, values_per_item: 784_931 };

/// Returns the key for the filter of a block: the first half of its hash.
///
/// `hash` is the hash itself. It is usually displayed with its bytes reversed: reverse the displayed form first.
#[must_use]
pub fn key_of_block(hash: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| hash[i])
}

/// Returns the header of a filter in the chain of BIP 157: the double SHA-256 of the filter's double SHA-256 and the previous header.
///
/// `filter` is the whole encoded filter; `previous` is all zeroes for the first block. Like a block's hash, headers are displayed reversed.
#[must_use]
pub fn header(filter: &[u8], previous: &[u8; 32]) -> [u8; 32] {
    let twice = |bytes: &[u8]| sha256(&sha256(bytes));
    let mut both = [0; 64];
    both[..32].copy_from_slice(&twice(filter));
    both[32..].copy_from_slice(previous);
    twice(&both)
}

fn scheme(key: [u8; 16], items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::BlockFilter { key }, items)
}

fn shape(items: u64, parameters: Parameters) -> Result<GcsShape, BuildError> {
    internals::gcs::in_one_range(items, parameters.values_per_item, parameters.low_bits)
}

/// Builds the set of these items; duplicates count once. All of their bytes are in memory until the set is built.
///
/// # Errors
/// [`BuildError`] for invalid parameters: an `M` of 0, a `P` above 56, more than `2^62` values, or an `M` so much larger than `2^P` that
/// codes would be thousands of bits long.
pub fn build<I: Item>(
    items: impl IntoIterator<Item = I>,
    parameters: Parameters,
    key: [u8; 16],
    encoding: ItemEncoding,
) -> Result<Gcs, BuildError> {
    let bytes_of = |item: I| item.with_value(|value| internals::encode_with(encoding, value, <[u8]>::to_vec));
    let mut items: Vec<Vec<u8>> = items.into_iter().map(bytes_of).collect();
    // Compared by their bytes: two items that only share a hash both count.
    items.sort_unstable();
    items.dedup();
    let (scheme, shape) = (scheme(key, encoding), shape(items.len() as u64, parameters)?);
    let value = |item: &Vec<u8>| internals::gcs::value_of(&scheme, item, shape.range());
    let mut values: Vec<u64> = items.iter().map(value).collect();
    values.sort_unstable();
    internals::gcs::of_values(values, shape, scheme)
}

/// Reads the set in these bytes. `items` is how its items were encoded.
///
/// # Errors
/// [`DecodeError`] for anything but one whole set. A set whose values crowd into a small part of their range is rejected too: no hash
/// produces it, and the index has no room for it.
pub fn read(
    bytes: &[u8],
    parameters: Parameters,
    key: [u8; 16],
    items: ItemEncoding,
) -> Result<Gcs, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let count = compact_size::read(&mut cursor, "N")?;
    internals::gcs::of_differences(
        bytes,
        cursor.position(),
        count,
        shape(count, parameters)?,
        scheme(key, items),
    )
}

/// Writes the set in the form that is sent and hashed.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a set of another rule, [`WriteError::Io`] if `out` fails.
pub fn write(set: &Gcs, out: &mut dyn Write) -> Result<(), WriteError> {
    if internals::gcs::one_range(set).is_none() {
        let needs = "SipHash-2-4 in one range of N · M values";
        return Err(WriteError::other_rule(needs, set.scheme(), set.shape()));
    }
    compact_size::write(set.inserted(), out)?;
    internals::gcs::write_differences(set, out)?;
    Ok(())
}

/// Returns the parameters of a set, if it follows this rule.
#[must_use]
pub fn parameters(set: &Gcs) -> Option<Parameters> {
    let range = internals::gcs::one_range(set)?;
    let low_bits = set.shape().remainder_bits();
    Some(Parameters { low_bits, values_per_item: range / set.capacity() })
}

/// Returns whether these bytes look like a set of these parameters. There is no magic number; the codes must end exactly with the bytes.
#[must_use]
pub fn resembles(bytes: &[u8], parameters: Parameters) -> Resemblance {
    Resemblance::could(read(bytes, parameters, [0; 16], ItemEncoding::Bytes).is_ok())
}
