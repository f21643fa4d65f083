//! Redisson's `RBloomFilter`: two values in Redis, a bitmap and a hash with its configuration.
//!
//! ```text
//! NAME            a string, driven with SETBIT: bit i is byte i/8, mask 80 >> i % 8
//!                 ┌──────────┬──────────┬─────  only as long as its highest set bit needs;
//!                 │ 01234567 │ 89…      │       no key at all while the filter is empty
//!                 └──────────┴──────────┴─────
//! {NAME}:config   a hash: size 9585, hashIterations 7, expectedInsertions 1000, falseProbability 0.01
//! ```
//!
//! (The key is `NAME:config` if the name already contains a brace; see [`config_key`].) [`read`] makes a filter of both values. To use a filter
//! that stays in Redis, compute the positions of its bits with [`Config::positions`].
//!
//! Neither value tells how items were encoded. That depends on the codec, which the reader must name:
//!
//! | codec | [`ItemEncoding`] |
//! |---|---|
//! | `Kryo5Codec`, the default since Redisson 3.19; `String`, `Integer` and `Long` | [`Kryo5`](ItemEncoding::Kryo5); numbers that are text here: [`Kryo5Int`](ItemEncoding::Kryo5Int), [`Kryo5Long`](ItemEncoding::Kryo5Long) |
//! | `StringCodec` | [`Utf8`](ItemEncoding::Utf8) |
//! | `LongCodec`, `IntegerCodec` | [`Decimal`](ItemEncoding::Decimal) |
//! | `ByteArrayCodec` | [`Bytes`](ItemEncoding::Bytes) |
//! | `JsonJacksonCodec`, with a `String` | [`Json`](ItemEncoding::Json) |
//!
//! For any other codec or class, pass the bytes it makes of an item.
//!
//! Traps:
//! * To Kryo, the `Integer` 7 and the `Long` 7 are two items, as `7_i32` and `7_i64` are here.
//! * Redisson compares `size` and `hashIterations` with its own on every call, as text. Write a config exactly as [`Config::fields`] returns it.
//! * Filters of Redisson before 2.11 and 3.6 (2018) hash differently and cannot be recognized.
//! * Filters of `RBloomFilterNative` are RedisBloom's; the format of `RClusteredBloomFilter` is unknown.
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::redisson::{self, Config};
//!
//! // The replies to `HGETALL {seen}:config` and `GET seen`.
//! let config = Config::from_fields([
//!     ("size", "958"),
//!     ("hashIterations", "7"),
//!     ("expectedInsertions", "100"),
//!     ("falseProbability", "0.01"),
//! ])?;
//! let mut seen = redisson::read(&[], &config, ItemEncoding::Kryo5)?;
//! assert!(seen.insert("ada"));
//!
//! assert_eq!(redisson::config_key("seen"), "{seen}:config");
//! let bitmap = redisson::bitmap(&seen)?; // for `SET seen`
//! let mut positions = config.positions("ada", ItemEncoding::Kryo5); // or one SETBIT for each
//! assert!(positions.all(|i| bitmap[i as usize / 8] & 0x80 >> (i % 8) != 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;

pub use crate::foreign::Positions;
pub use config::{Config, ConfigError, config_key};

use std::io::Write;
use std::sync::atomic::Ordering;

use mayhap::internals::{self, Lines};
use mayhap::{Bloom, BloomPlacement, BuildError, DecodeError, ForeignHash, HashScheme, ItemEncoding};

use crate::foreign::WriteError;
use crate::words::write_words;

/// Creates an empty filter like `tryInit`.
///
/// # Errors
/// [`BuildError`] as for [`Config::sized`].
pub fn create(
    expected_insertions: u64,
    false_probability: f64,
    items: ItemEncoding,
) -> Result<Bloom, BuildError> {
    let config = Config::sized(expected_insertions, false_probability)?;
    internals::bloom::placed(config.shape()?, scheme(items), BloomPlacement::Redisson)
}

fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::Redisson, items)
}

/// Makes a filter of this bitmap (empty if the key does not exist) and this config. `items` is how the codec encoded the items.
///
/// Allocates the memory that the config demands, however short the bitmap is: at most 512 MiB. [`read_within`] has a limit.
///
/// # Errors
/// [`DecodeError::TrailingBytes`] and [`DecodeError::StrayBit`] for a bitmap that extends past the last bit.
pub fn read(bitmap: &[u8], config: &Config, items: ItemEncoding) -> Result<Bloom, DecodeError> {
    read_within(bitmap, config, u64::MAX, items)
}

/// Like [`read`], but fails if the config demands more memory than this limit.
///
/// # Errors
/// [`DecodeError`] as for [`read`], and one with [`BuildError::TooLarge`].
pub fn read_within(
    bitmap: &[u8],
    config: &Config,
    limit_bytes: u64,
    items: ItemEncoding,
) -> Result<Bloom, DecodeError> {
    let shape = config.shape()?.within(limit_bytes)?;
    if let Some(extra) =
        (bitmap.len() as u64).checked_sub(shape.bits().div_ceil(8)).filter(|&extra| extra > 0)
    {
        return Err(DecodeError::TrailingBytes { extra });
    }
    let mut bits = Lines::zeroed(internals::bloom::lines(&shape))?;
    for (word, bytes) in bits.words_mut().iter_mut().zip(bitmap.chunks(8)) {
        let first_on_top = bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        *word = (first_on_top << (64 - 8 * bytes.len() as u32)).reverse_bits();
    }
    bits.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
    Ok(internals::bloom::of_placed_bits(shape, scheme(items), BloomPlacement::Redisson, bits))
}

/// Returns the config of a Redisson filter.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for any other filter.
pub fn config(filter: &Bloom) -> Result<Config, WriteError> {
    let refusal = || WriteError::other_placement("Redisson's HighwayHash and its rule", filter);
    match filter.scheme() {
        HashScheme::Foreign(scheme)
            if scheme.function() == ForeignHash::Redisson
                && filter.placement() == BloomPlacement::Redisson =>
        {
            // Only a forged `.mayhap` file can have numbers that are not a valid config.
            Config::of(filter.shape()).map_err(|_| refusal())
        }
        _ => Err(refusal()),
    }
}

/// Returns the bitmap as Redis would hold it after one SETBIT for every bit; empty for an empty filter, which has no key in Redis.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Redisson's.
pub fn bitmap(filter: &Bloom) -> Result<Vec<u8>, WriteError> {
    config(filter)?;
    let mut bytes = Vec::with_capacity(bitmap_bytes(filter) as usize);
    write(filter, &mut bytes)?;
    Ok(bytes)
}

/// Writes the [`bitmap`] to `out`.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not Redisson's, [`WriteError::Io`] if `out` fails.
pub fn write(filter: &Bloom, out: &mut dyn Write) -> Result<(), WriteError> {
    config(filter)?;
    let (bytes, words) = (bitmap_bytes(filter), internals::bloom::bits(filter).words());
    let redis_order = |word: u64| word.reverse_bits().to_be_bytes();
    write_words(internals::bloom::bits(filter), bytes / 8, redis_order, out)?;
    if let Some(last) = words.get((bytes / 8) as usize) {
        out.write_all(&redis_order(last.load(Ordering::Relaxed))[..(bytes % 8) as usize])?;
    }
    Ok(())
}

/// The number of bytes that the highest set bit needs.
fn bitmap_bytes(filter: &Bloom) -> u64 {
    let words = internals::bloom::bits(filter).words().iter().map(|word| word.load(Ordering::Relaxed));
    let last = words.enumerate().filter(|&(_, word)| word != 0).last();
    last.map_or(0, |(index, word)| (index as u64 * 64 + u64::from(word.ilog2()) + 1).div_ceil(8))
}

/// Writes the filter as Redis commands for `redis-cli --pipe`. They store bitmap and config under `name` in one transaction and replace the
/// previous values.
///
/// # Errors
/// As for [`write()`].
pub fn write_commands(filter: &Bloom, name: &str, out: &mut dyn Write) -> Result<(), WriteError> {
    let (config, key) = (config(filter)?, config_key(name));
    write_command(&["MULTI"], out)?;
    write_command(&["DEL", name, &key], out)?;
    let bytes = bitmap_bytes(filter);
    if bytes > 0 {
        write!(out, "*3\r\n$3\r\nSET\r\n${}\r\n{name}\r\n${bytes}\r\n", name.len())?;
        write(filter, out)?;
        out.write_all(b"\r\n")?;
    }
    let fields = config.fields();
    let mut set = vec!["HSET", &key];
    fields.iter().for_each(|(field, value)| set.extend([*field, value]));
    write_command(&set, out)?;
    write_command(&["EXEC"], out)
}

fn write_command(words: &[&str], out: &mut dyn Write) -> Result<(), WriteError> {
    write!(out, "*{}\r\n", words.len())?;
    for word in words {
        write!(out, "${}\r\n{word}\r\n", word.len())?;
    }
    Ok(())
}

/// Returns the number of items as Redisson's `count()` computes it; 2^63 - 1 for a full filter.
///
/// That is the only difference from [`estimated_items`](Bloom::estimated_items).
#[must_use]
pub fn count(filter: &Bloom) -> u64 {
    let (size, probes) = (filter.shape().bits() as f64, f64::from(filter.shape().probes()));
    let clear = 1.0 - filter.ones() as f64 / size;
    // A conversion to a signed number saturates, as Java's `Math.round` does.
    ((-size / probes * clear.ln() + 0.5).floor() as i64).unsigned_abs()
}
