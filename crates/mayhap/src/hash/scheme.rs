//! The numbered, frozen ways to hash an item.

use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::ItemHash;
use super::foreign::{ForeignScheme, redis_bloom_hash};
use crate::error::BuildError;
use crate::item::Item;
use crate::item::ItemValue;

/// How a filter hashes its items: a numbered scheme and its seed or key.
///
/// | scheme | number | function | for |
/// |---|---|---|---|
/// | fast | 1 | XXH3-128, 64-bit seed | trusted items |
/// | keyed | 2 | SipHash-1-3-128, secret 128-bit key | items chosen by clients you do not trust |
///
/// Filters read from other programs' files have a third kind, numbered from 16 on: `Foreign`, the function of that program.
///
/// Both give the same hashes on every platform. *fast* with a secret seed prevents accidents, not attacks: an attacker who
/// reads the code can forge items that collide. *keyed* cannot be forged without the key. Every encoded copy of the filter
/// contains the key.
///
/// *keyed* is slower. For lookups of 8-byte items that are not members, our records of a `Bloom` filter at 1 % have 22 ns
/// more at 10^6 items (36 instead of 15 ns) and 99 ns more at 10^7 (135 instead of 36 ns). In
/// batches it is 13 and 17 ns more.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
// A variant of its own: among the foreign functions, every lookup would take longer to find it.
#[repr(u8)]
pub enum HashScheme {
    /// XXH3-128 with a seed.
    Fast {
        /// Filters that are merged, or that share hashes, must have the same seed.
        seed: u64,
    },
    /// SipHash-1-3-128 with a secret key.
    Keyed {
        /// The secret.
        key: SecretKey,
    },
    /// The function of another program, in filters read from its files. Its quality is that program's.
    Foreign(ForeignScheme),
}

/// The secret key of a keyed filter. Its `Debug` form hides the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretKey([u8; 16]);

impl HashScheme {
    /// The fast scheme with this seed.
    #[must_use]
    pub const fn fast(seed: u64) -> Self {
        Self::Fast { seed }
    }

    /// The keyed scheme with the given key, for filters that must share one.
    #[must_use]
    pub const fn keyed(key: SecretKey) -> Self {
        Self::Keyed { key }
    }

    /// The keyed scheme with a new random key from the operating system.
    ///
    /// # Errors
    /// [`BuildError::NoRandomness`] if the system returns no random bytes.
    pub fn keyed_random() -> Result<Self, BuildError> {
        SecretKey::random().map(Self::keyed)
    }

    /// The number of this scheme in encoded filters.
    #[must_use]
    pub const fn number(&self) -> u16 {
        match self {
            Self::Fast { .. } => 1,
            Self::Keyed { .. } => 2,
            Self::Foreign(foreign) => foreign.number(),
        }
    }

    /// Hashes one item.
    #[inline(always)]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        match self {
            Self::Fast { seed } => item.with_bytes(|bytes| {
                let hash = xxh3_128_with_seed(bytes, *seed);
                ItemHash { low: hash as u64, high: (hash >> 64) as u64 }
            }),
            Self::Keyed { key } => item.with_bytes(|bytes| keyed_hash(key, bytes)),
            Self::Foreign(foreign) => item.with_value(|value| match value {
                // The most frequent case in a server: no encoding, no choice among functions.
                ItemValue::Bytes(bytes) if foreign.is_redis_bloom() => redis_bloom_hash(bytes),
                value => foreign.hash(value),
            }),
        }
    }
}

/// Out of line, so that the fast scheme stays small where it is inlined.
#[cold]
#[inline(never)]
fn keyed_hash(key: &SecretKey, bytes: &[u8]) -> ItemHash {
    let mut hasher = SipHasher13::new_with_key(&key.0);
    hasher.write(bytes);
    let hash = hasher.finish128();
    ItemHash { low: hash.h1, high: hash.h2 }
}

/// A bare number is the seed of the fast scheme: `Bloom::for_capacity(n, p, 42)`.
impl From<u64> for HashScheme {
    fn from(seed: u64) -> Self {
        Self::fast(seed)
    }
}

impl fmt::Debug for HashScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fast { seed } => write!(f, "fast(seed {seed:#x})"),
            Self::Keyed { .. } => f.write_str("keyed(secret)"),
            Self::Foreign(foreign) => write!(f, "{foreign:?}"),
        }
    }
}

impl SecretKey {
    /// A key with the given bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// A new random key from the operating system.
    ///
    /// # Errors
    /// [`BuildError::NoRandomness`] if the system returns no random bytes.
    pub fn random() -> Result<Self, BuildError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| BuildError::NoRandomness)?;
        Ok(Self(bytes))
    }

    /// The secret bytes, to store them in a safe place.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen: other programs and older files depend on these hashes. A change needs a new scheme number.
    #[test]
    fn the_schemes_never_change() {
        let fast = HashScheme::fast(42);
        assert_eq!(fast.hash("").to_u128(), 0x16c2_0acd_33f7_af2f_3c1d_09e9_fe24_9164);
        assert_eq!(fast.hash("mayhap").to_u128(), xxh3_128_with_seed(b"mayhap", 42));
        // The SipHash-1-3-128 of the reference test vectors' key 00..0f and the empty message.
        let keyed = HashScheme::keyed(SecretKey::new(std::array::from_fn(|i| i as u8)));
        assert_eq!(keyed.hash("").to_u128(), keyed_reference(b""));
        assert_eq!(keyed.hash("mayhap").to_u128(), keyed_reference(b"mayhap"));
    }

    /// SipHash-1-3 with 128-bit output, written from its definition, to compare with the crate we use.
    fn keyed_reference(message: &[u8]) -> u128 {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let k0 = u64::from_le_bytes(key[..8].try_into().unwrap());
        let k1 = u64::from_le_bytes(key[8..].try_into().unwrap());
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        let round = |v: &mut [u64; 4]| {
            v[0] = v[0].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(13) ^ v[0];
            v[0] = v[0].rotate_left(32);
            v[2] = v[2].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(16) ^ v[2];
            v[0] = v[0].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(21) ^ v[0];
            v[2] = v[2].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(17) ^ v[2];
            v[2] = v[2].rotate_left(32);
        };
        let mut padded = message.to_vec();
        while padded.len() % 8 != 7 {
            padded.push(0);
        }
        padded.push(message.len() as u8);
        for word in padded.chunks_exact(8) {
            let word = u64::from_le_bytes(word.try_into().unwrap());
            v[3] ^= word;
            round(&mut v);
            v[0] ^= word;
        }
        v[2] ^= 0xee;
        (0..3).for_each(|_| round(&mut v));
        let low = v[0] ^ v[1] ^ v[2] ^ v[3];
        v[1] ^= 0xdd;
        (0..3).for_each(|_| round(&mut v));
        let high = v[0] ^ v[1] ^ v[2] ^ v[3];
        u128::from(high) << 64 | u128::from(low)
    }

    #[test]
    fn seeds_and_keys_change_everything_and_are_not_printed() {
        assert_ne!(HashScheme::fast(1).hash("a"), HashScheme::fast(2).hash("a"));
        let (one, two) = (HashScheme::keyed_random().unwrap(), HashScheme::keyed_random().unwrap());
        assert_ne!(one.hash("a"), two.hash("a"));
        assert_eq!(format!("{one:?}"), "keyed(secret)");
    }
}
