//! BIP-37: the filter that a Bitcoin light client sends in `filterload`.
//!
//! ```text
//! ┌───────────────┬──────────────────────────────────────────┬────────────┬───────────┬───────┐
//! │ bytes n       │ n bytes                                  │ functions  │ tweak     │ flags │
//! │ 1 or 3        │ bit i: byte i/8, lowest bit first        │ 4, LE      │ 4, LE     │ 1     │
//! └───────────────┴──────────────────────────────────────────┴────────────┴───────────┴───────┘
//! n: one byte up to 252, then fd and two bytes, little-endian      n ≤ 36 000, functions ≤ 50
//! ```
//!
//! The protocol defines items as byte strings: hashes of transactions in wire order, data pushed by scripts, serialized outpoints. So there is
//! no item encoding to name. Explorers print hashes with their bytes reversed.
//!
//! **A filter of no bytes, or of no functions, matches everything**: nodes have treated it so since 2013. Such a filter is easily made by
//! mistake: a client gets it for 1 item at a rate of 0.5, and for more than 144 000 items. A [`WideBloom`] has at least one bit and cannot
//! represent it, so a [`FilterLoad`] has a [`Matcher`].
//!
//! ```
//! use mayhap_formats::bip37::{self, FilterLoad};
//!
//! let mut watched = bip37::create(3, 0.01, 0, bip37::UPDATE_ALL)?;
//! watched.insert(b"\x99\x10\x8a\xd8\xed\x9b\xb6\x27\x4d\x39\x80\xba\xb5\xa8\x5c\x04\x8f\x09\x50\xc8");
//! let mut payload = Vec::new();
//! bip37::write(&watched, &mut payload)?;
//!
//! let FilterLoad { matcher, flags } = bip37::read(&payload)?;
//! assert_eq!(flags, 1);
//! assert!(matcher.may_contain(b"\x99\x10\x8a\xd8\xed\x9b\xb6\x27\x4d\x39\x80\xba\xb5\xa8\x5c\x04\x8f\x09\x50\xc8"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The filter reveals the watched addresses, up to its false-positive rate, to every node that receives it. Therefore block filters
//! ([`block_filter`](crate::block_filter)) have replaced it.

use std::io::{self, Write};

use mayhap::internals::wide::{BIP37_MAX_BYTES, BIP37_MAX_FUNCTIONS};
use mayhap::internals::{self, Lines};
use mayhap::{BuildError, DecodeError, Item, ItemEncoding, WideBloom, WidePlacement};

use crate::compact_size;
use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError, check_rate};
use crate::words::write_words_le;

/// Flag: the node adds no items to the filter.
pub const UPDATE_NONE: u8 = 0;
/// Flag: the node adds the outpoint of every output that matches.
pub const UPDATE_ALL: u8 = 1;
/// Flag: the node does so only for outputs that pay to a public key or to several.
pub const UPDATE_P2PUBKEY_ONLY: u8 = 2;

/// The content of a `filterload` message.
#[derive(Debug)]
pub struct FilterLoad {
    /// The filter.
    pub matcher: Matcher,
    /// What the node may add to the filter; only the lowest two bits are used.
    pub flags: u8,
}

/// The items that a filter matches.
#[derive(Debug)]
pub enum Matcher {
    /// The items in a Bloom filter.
    Items(WideBloom),
    /// Everything, because the filter has no bytes or no functions.
    Everything {
        /// The bytes, if it has any.
        bytes: Vec<u8>,
        /// The functions, if it has any.
        functions: u32,
        /// The tweak, which has no effect here.
        tweak: u32,
    },
}

impl FilterLoad {
    /// Inserts `item`. Returns `false` if nothing changed: the item may have been present already, or the filter matches everything.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        match &mut self.matcher {
            Matcher::Items(filter) => filter.insert(item),
            Matcher::Everything { .. } => false,
        }
    }

    /// Returns `false` if `item` was never inserted, `true` if it may have been.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.matcher.may_contain(item)
    }
}

impl Matcher {
    /// Returns `false` if `item` was never inserted, `true` if it may have been.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        match self {
            Self::Items(filter) => filter.may_contain(item),
            Self::Everything { .. } => true,
        }
    }

    /// Returns whether the filter matches everything, whatever was inserted.
    #[must_use]
    pub const fn matches_everything(&self) -> bool {
        matches!(self, Self::Everything { .. })
    }
}

/// Creates an empty filter as Bitcoin Core does for `elements` items. Sizes are cut down to the limits of the protocol, which changes the rate.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1) and for no items.
pub fn create(elements: u64, rate: f64, tweak: u32, flags: u8) -> Result<FilterLoad, BuildError> {
    let (bytes, functions) = size(elements, rate)?;
    if bytes == 0 || functions == 0 {
        let bytes = vec![0; bytes as usize];
        return Ok(FilterLoad { matcher: Matcher::Everything { bytes, functions, tweak }, flags });
    }
    let shape = internals::bloom::from_parts(bytes * 8, functions, elements, rate)?;
    let filter = internals::wide::placed(shape, WidePlacement::Bip37 { tweak }, ItemEncoding::Bytes)?;
    Ok(FilterLoad { matcher: Matcher::Items(filter), flags })
}

/// Returns the number of bytes and of functions that Bitcoin Core computes; both may be 0.
///
/// # Errors
/// [`BuildError`] for a rate outside (0, 1) and for no items.
pub fn size(elements: u64, rate: f64) -> Result<(u64, u32), BuildError> {
    let rate = check_rate(rate)?;
    let elements = internals::check_capacity(elements)?;
    let ln_2 = std::f64::consts::LN_2;
    // Another order would round differently.
    let bits = (-1.0 / (ln_2 * ln_2) * elements as f64 * rate.ln()) as u64;
    let bytes = bits.min(BIP37_MAX_BYTES * 8) / 8;
    // Bitcoin Core divides whole numbers here.
    let functions = (bytes * 8 / elements) as f64 * ln_2;
    Ok((bytes, (functions as u32).min(BIP37_MAX_FUNCTIONS)))
}

/// Reads the payload of a `filterload` message.
///
/// # Errors
/// [`DecodeError`] for anything but one whole payload within the limits of the protocol.
pub fn read(payload: &[u8]) -> Result<FilterLoad, DecodeError> {
    let mut cursor = Cursor::new(payload);
    let length = compact_size::read(&mut cursor, "length in a longer form than needed")?;
    if length > BIP37_MAX_BYTES {
        return Err(DecodeError::BadField { field: "length", got: length });
    }
    let bytes = cursor.take(length)?;
    let (functions, tweak, flags) = (cursor.u32_le()?, cursor.u32_le()?, cursor.u8()?);
    cursor.finish()?;
    if functions > BIP37_MAX_FUNCTIONS {
        return Err(DecodeError::BadField { field: "functions", got: functions.into() });
    }
    if bytes.is_empty() || functions == 0 {
        let matcher = Matcher::Everything { bytes: bytes.to_vec(), functions, tweak };
        return Ok(FilterLoad { matcher, flags });
    }
    let shape = internals::bloom::of_unknown_capacity(length * 8, functions)?;
    let (placement, items) = (WidePlacement::Bip37 { tweak }, ItemEncoding::Bytes);
    let filter = internals::wide::of_bits(shape, placement, items, Lines::from_le_bytes(bytes)?);
    Ok(FilterLoad { matcher: Matcher::Items(filter), flags })
}

/// Writes the payload of a `filterload` message.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that does not follow BIP-37, [`WriteError::NoRoom`] for bytes or functions above its limits,
/// [`WriteError::Io`] if `out` fails.
pub fn write(load: &FilterLoad, out: &mut dyn Write) -> Result<(), WriteError> {
    match &load.matcher {
        Matcher::Items(filter) => write_items(filter, load.flags, out),
        Matcher::Everything { bytes, functions, tweak } => {
            write_head(bytes.len() as u64, *functions, out)?;
            out.write_all(bytes)?;
            Ok(write_tail(*functions, *tweak, load.flags, out)?)
        }
    }
}

/// Writes the payload for a bare filter.
///
/// # Errors
/// As [`write()`].
pub fn write_items(filter: &WideBloom, flags: u8, out: &mut dyn Write) -> Result<(), WriteError> {
    // Only a forged `.mayhap` file can have another item encoding.
    let (WidePlacement::Bip37 { tweak }, ItemEncoding::Bytes) = (filter.placement(), filter.items()) else {
        let needs = "the murmur3 of BIP-37 of bytes";
        return Err(WriteError::OtherPlacement { needs, got: internals::wide::hashing(filter) });
    };
    let (length, functions) = (filter.shape().bits() / 8, filter.shape().probes());
    write_head(length, functions, out)?;
    write_bytes(filter, length, out)?;
    Ok(write_tail(functions, tweak, flags, out)?)
}

/// Returns the bytes in front of the bits, if these numbers of bytes and functions are within the limits of the protocol.
fn write_head(length: u64, functions: u32, out: &mut dyn Write) -> Result<(), WriteError> {
    if length > BIP37_MAX_BYTES {
        return Err(WriteError::NoRoom { field: "bytes", got: length, limit: BIP37_MAX_BYTES });
    }
    if functions > BIP37_MAX_FUNCTIONS {
        let limit = BIP37_MAX_FUNCTIONS.into();
        return Err(WriteError::NoRoom { field: "functions", got: functions.into(), limit });
    }
    Ok(compact_size::write(length, out)?)
}

fn write_tail(functions: u32, tweak: u32, flags: u8, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&functions.to_le_bytes())?;
    out.write_all(&tweak.to_le_bytes())?;
    out.write_all(&[flags])
}

/// Returns the bits as `length` bytes, which need not be whole words.
fn write_bytes(filter: &WideBloom, length: u64, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut words = Vec::with_capacity(length.next_multiple_of(8) as usize);
    write_words_le(internals::wide::bits(filter), length.div_ceil(8), &mut words)?;
    words.truncate(length as usize);
    Ok(out.write_all(&words)?)
}

/// Returns whether these bytes look like such a payload.
#[must_use]
pub fn resembles(payload: &[u8]) -> Resemblance {
    let mut cursor = Cursor::new(payload);
    let fits = |length: u64, cursor: &Cursor<'_>| {
        (1..=BIP37_MAX_BYTES).contains(&length) && cursor.left() as u64 == length + 9
    };
    let Ok(length) = compact_size::read(&mut cursor, "length in a longer form than needed") else {
        return Resemblance::No;
    };
    if !fits(length, &cursor) || cursor.take(length).is_err() {
        return Resemblance::No;
    }
    let (functions, _, flags) = (cursor.u32_le(), cursor.u32_le(), cursor.u8());
    let functions = functions.is_ok_and(|functions| (1..=BIP37_MAX_FUNCTIONS).contains(&functions));
    Resemblance::could(functions && flags.is_ok_and(|flags| flags <= UPDATE_P2PUBKEY_ONLY))
}
