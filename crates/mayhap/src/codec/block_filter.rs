//! Golomb-coded sets as BIP 158 has them: the block filters of Bitcoin, and sets of the same coding with other parameters.
//!
//! ```text
//! ┌─────────────┬────────────────────────────────────────────────┐
//! │ N           │ N codes, the first bit in the highest of a byte │     the last byte is filled up with zeroes
//! │ CompactSize │ delta >> P ones, a zero, P low bits of delta    │     N = 0: the single byte 00
//! └─────────────┴────────────────────────────────────────────────┘
//! value = upper 64 bits of SipHash-2-4(key, item) · (N · M); the values are sorted, and the deltas are what lies between them
//! ```
//!
//! The bytes say `N` and nothing else. `P`, `M` and the key must be known: for the basic filter of a block they are [`BASIC`] and the
//! block's own hash ([`key_of_block`]). Items are scripts, as bytes: all that the block's outputs have and all that its inputs spend, but
//! for empty ones and outputs that begin with `OP_RETURN` (`6a`).
//!
//! * A block's hash is shown with its bytes reversed. The key is made of the hash as it is, not as it is shown.
//! * Two items may have the same value. Both are kept, as a delta of 0, or the bytes would not be those everybody else has.
//! * `N` must be in its shortest form, the codes must fill the bytes to the last one, and no value may be past `N · M`. Bitcoin Core
//!   refuses the first two as well. It does not look at the values nor at the bits that fill up the last byte; here both are refused,
//!   since a filter that has them cannot be written again as it was, and no program writes them.
//! * Asking about many items at once is what [`may_contain_batch`](Gcs::may_contain_batch) is for.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap::codec::block_filter::{self, BASIC};
//!
//! let key = block_filter::key_of_block(&[0x43; 32]);
//! let scripts: [&[u8]; 3] = [b"\x00\x14 one script", b"\x00\x14 another", b"\x00\x14 one script"];
//! let filter = block_filter::build(scripts, BASIC, key, ItemEncoding::Bytes)?;
//! let mut bytes = Vec::new();
//! block_filter::write(&filter, &mut bytes)?; // what `getblockfilter` answers
//!
//! let same = block_filter::read(&bytes, BASIC, key, ItemEncoding::Bytes)?;
//! assert_eq!(same.inserted(), 2);
//! assert!(same.may_contain(b"\x00\x14 another"));
//! assert!(!same.may_contain(b"\x00\x14 a third"));
//! let _header = block_filter::header(&bytes, &[0; 32]); // of the first block
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use super::DecodeError;
use super::compact_size;
use super::cursor::Cursor;
use super::foreign::{Resemblance, WriteError};
use crate::error::BuildError;
use crate::gcs::{self, Gcs, GcsPlacement, GcsShape};
use crate::hash::named::crypto::sha256;
use crate::hash::{ForeignHash, ForeignScheme, HashScheme, reduce};
use crate::item::{Item, ItemEncoding};
use crate::statics;

/// How a set is coded. The bytes do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// `P`: low bits of a delta that are stored as they are, at most 56.
    pub low_bits: u32,
    /// `M`: values there are for each item. A non-member is taken for a member once in so many.
    pub values_per_item: u64,
}

/// The basic filter of a block: `P = 19`, `M = 784931`.
pub const BASIC: Parameters = Parameters { low_bits: 19, values_per_item: 784_931 };

/// The key for the filter of a block: the first half of its hash.
///
/// `hash` is the hash itself, which is shown with its bytes reversed: whoever has the shown form reverses it first.
#[must_use]
pub fn key_of_block(hash: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| hash[i])
}

/// The header of a filter in the chain of BIP 157: the double SHA-256 of the filter's double SHA-256 and the header before it.
///
/// `filter` is the whole encoded filter; `previous` is all zeroes for the first block. Like a block's hash, headers are shown reversed.
#[must_use]
pub fn header(filter: &[u8], previous: &[u8; 32]) -> [u8; 32] {
    let twice = |bytes: &[u8]| sha256(&sha256(bytes));
    let mut both = [0; 64];
    both[..32].copy_from_slice(&twice(filter));
    both[32..].copy_from_slice(previous);
    twice(&both)
}

fn scheme(key: [u8; 16], items: ItemEncoding) -> HashScheme {
    ForeignScheme::new(ForeignHash::BlockFilter { key }, items).into()
}

fn shape(items: u64, parameters: Parameters) -> Result<GcsShape, BuildError> {
    GcsShape::in_one_range(items, parameters.values_per_item, parameters.low_bits)
}

/// The set of these items, each taken once. All of their bytes are in memory until it is built.
///
/// # Errors
/// [`BuildError`] for parameters that make no set: an `M` of 0, a `P` past 56, more than `2^62` values; and for an `M` so much larger
/// than `2^P` that codes would be thousands of bits long.
pub fn build<I: Item>(
    items: impl IntoIterator<Item = I>,
    parameters: Parameters,
    key: [u8; 16],
    encoding: ItemEncoding,
) -> Result<Gcs, BuildError> {
    let bytes_of = |item: I| item.with_value(|value| encoding.encode_with(value, <[u8]>::to_vec));
    let mut items: Vec<Vec<u8>> = items.into_iter().map(bytes_of).collect();
    // By their bytes: two items that only share a hash both count.
    items.sort_unstable();
    items.dedup();
    let (scheme, shape) = (scheme(key, encoding), shape(items.len() as u64, parameters)?);
    let hash = |item: &Vec<u8>| statics::key(scheme.hash(item));
    let mut values: Vec<u64> = items.iter().map(|item| reduce(hash(item), shape.range())).collect();
    values.sort_unstable();
    Gcs::of_values(values.into_iter().map(Ok::<_, BuildError>), shape, scheme)
}

/// The set in these bytes, whose items became bytes in this way.
///
/// # Errors
/// [`DecodeError`] for anything but one whole set. A set whose values crowd into a small part of their range, as no hash makes them, is
/// refused too: the index has no room for it.
pub fn read(
    bytes: &[u8],
    parameters: Parameters,
    key: [u8; 16],
    items: ItemEncoding,
) -> Result<Gcs, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let count = compact_size::read(&mut cursor, "N")?;
    Gcs::of_differences(cursor, count, shape(count, parameters)?, scheme(key, items))
}

/// Writes the set as it is sent and hashed.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a set that is not placed so, [`WriteError::Io`] if `out` refuses.
pub fn write(set: &Gcs, out: &mut dyn Write) -> Result<(), WriteError> {
    if !gcs::suits(set.scheme()) || set.shape().placement() == GcsPlacement::InBuckets {
        let needs = "SipHash-2-4 in one range of N · M values";
        return Err(WriteError::other_rule(needs, set.scheme(), set.shape()));
    }
    compact_size::write(set.inserted(), out)?;
    set.write_differences(out)?;
    Ok(())
}

/// The parameters a set is coded with, if it is one of these.
#[must_use]
pub fn parameters(set: &Gcs) -> Option<Parameters> {
    let GcsPlacement::InOneRange(range) = set.shape().placement() else { return None };
    let low_bits = set.shape().remainder_bits();
    Some(Parameters { low_bits, values_per_item: range / set.capacity() })
}

/// Could these bytes be a set of these parameters? There is no mark; the codes must come out even.
#[must_use]
pub fn resembles(bytes: &[u8], parameters: Parameters) -> Resemblance {
    Resemblance::could(read(bytes, parameters, [0; 16], ItemEncoding::Bytes).is_ok())
}
