//! The hash functions of other programs, as filters read from their files use them.

use std::fmt;

use super::ItemHash;
#[cfg(feature = "named-hashes")]
use super::named::{crypto::sha256, highwayhash::highway128};
use super::named::{fnv, leveldb, murmur2, murmur3, siphash, xxhash, xxph3};
#[cfg(not(feature = "named-hashes"))]
use super::not_compiled_in::{highway128, sha256};
use crate::item::{ItemEncoding, ItemValue};

/// The function of a program, with its seed, tweak or key. The text after the arrow describes its two halves.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignHash {
    /// Guava: murmur3 x64 128, seed 0 → first word, second word.
    Guava,
    /// Redisson: HighwayHash-128 with a fixed key → first word, second word.
    Redisson,
    /// RedisBloom's Bloom filters: MurmurHash64A with a fixed seed → a; with a as the seed → b.
    RedisBloom,
    /// RedisBloom's cuckoo filters: MurmurHash64A, seed 0 → the hash; 0.
    RedisCuckoo,
    /// Spark: its murmur3 x86 32 with this seed → h1, and with h1 as the seed h2 above it; 0.
    Spark {
        /// Always 0 in the first version of the format.
        seed: i32,
    },
    /// Parquet: XXH64, seed 0 → the hash; 0.
    Parquet,
    /// DCSO's bloom: FNV-1 64, modulo the largest prime of 64 bits → the remainder; 0.
    Dcso,
    /// DataSketches: XXH64 with this seed → h0; with h0 as the seed → h1. If h1 is even, the lowest bit of h0 has no effect and
    /// is cleared. DataSketches neither stores nor finds empty text. It is the pair 1 and 0, which no other item can have.
    DataSketches {
        /// 9001 by default.
        seed: u64,
    },
    /// rbloom as in its readme: the first 16 bytes of SHA-256, big-endian → low half, high half.
    Rbloom,
    /// Bitcoin's block filters: SipHash-2-4 with this key → the hash; 0.
    BlockFilter {
        /// The first 16 bytes of the block's hash, for BIP 158.
        key: [u8; 16],
    },
    /// Fuse and xor filters of numbers: the number itself; 0. For items that do not have 8 bytes, the number is the XXH3-64 of
    /// their bytes.
    Number,
    /// LevelDB's 32-bit hash → the hash; 0.
    LevelDb,
    /// RocksDB's before format version 5: LevelDB's with signed tail bytes → the hash; 0.
    RocksDb,
    /// Cassandra: murmur3 x64 128 with signed tail bytes → first word, second word.
    Cassandra,
    /// RocksDB's since format version 5: XXPH3 → the hash; 0.
    RocksDb64,
}

/// Redisson's key.
const REDISSON_KEY: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c834, 0x1082_276b_f3a2_7251, 0xf86c_6a11_d0c1_8e95];
/// RedisBloom's seed.
const REDIS_BLOOM_SEED: u64 = 0xc6a4_a793_5bd1_e995;
/// The largest prime of 64 bits.
const LARGEST_PRIME: u64 = 18_446_744_073_709_551_557;

/// The hash of empty text, which DataSketches ignores.
const NOWHERE: ItemHash = ItemHash { low: 1, high: 0 };

/// Scheme numbers below this are our own.
const FIRST_NUMBER: u16 = 16;

impl ForeignHash {
    /// The number in encoded filters.
    const fn number(self) -> u16 {
        FIRST_NUMBER
            + match self {
                Self::Guava => 0,
                Self::Redisson => 1,
                Self::RedisBloom => 2,
                Self::RedisCuckoo => 3,
                Self::Spark { .. } => 4,
                Self::Parquet => 5,
                Self::Dcso => 6,
                Self::DataSketches { .. } => 7,
                Self::Rbloom => 8,
                Self::BlockFilter { .. } => 9,
                Self::Number => 10,
                Self::LevelDb => 11,
                Self::RocksDb => 12,
                Self::Cassandra => 13,
                Self::RocksDb64 => 14,
            }
    }

    /// The bytes that the header stores in place of a seed or key of our own schemes.
    fn secret(self) -> [u8; 16] {
        let mut secret = [0; 16];
        match self {
            Self::Spark { seed } => secret[..4].copy_from_slice(&seed.to_le_bytes()),
            Self::DataSketches { seed } => secret[..8].copy_from_slice(&seed.to_le_bytes()),
            Self::BlockFilter { key } => secret = key,
            _ => {}
        }
        secret
    }

    fn from_parts(number: u16, secret: [u8; 16]) -> Option<Self> {
        let low = u64::from_le_bytes(std::array::from_fn(|i| secret[i]));
        let hash = match number.checked_sub(FIRST_NUMBER)? {
            0 => Self::Guava,
            1 => Self::Redisson,
            2 => Self::RedisBloom,
            3 => Self::RedisCuckoo,
            4 => Self::Spark { seed: low as i32 },
            5 => Self::Parquet,
            6 => Self::Dcso,
            7 => Self::DataSketches { seed: low },
            8 => Self::Rbloom,
            9 => Self::BlockFilter { key: secret },
            10 => Self::Number,
            11 => Self::LevelDb,
            12 => Self::RocksDb,
            13 => Self::Cassandra,
            14 => Self::RocksDb64,
            _ => return None,
        };
        (hash.secret() == secret).then_some(hash)
    }

    /// The name of the function, if it is compiled in only with the feature `named-hashes` and that is off. No filter has such a function:
    /// decoding refuses it.
    pub(crate) const fn is_not_compiled_in(self) -> Option<&'static str> {
        match self {
            _ if cfg!(feature = "named-hashes") => None,
            Self::Redisson => Some("Redisson's HighwayHash"),
            Self::Rbloom => Some("rbloom's SHA-256"),
            _ => None,
        }
    }

    fn of(self, bytes: &[u8]) -> ItemHash {
        let half = |low: u64| ItemHash { low, high: 0 };
        let both = |[low, high]: [u64; 2]| ItemHash { low, high };
        match self {
            Self::Guava => both(murmur3::x64_128(bytes, 0)),
            Self::Redisson => both(highway128(bytes, REDISSON_KEY)),
            Self::RedisBloom => redis_bloom_hash(bytes),
            Self::RedisCuckoo => half(murmur2::murmur64a(bytes, 0)),
            Self::Spark { seed } => {
                let first = murmur3::spark_x86_32(bytes, seed.cast_unsigned());
                half(u64::from(murmur3::spark_x86_32(bytes, first)) << 32 | u64::from(first))
            }
            Self::Parquet => half(xxhash::xxh64(bytes, 0)),
            Self::Dcso => half(fnv::fnv1_64(bytes) % LARGEST_PRIME),
            Self::DataSketches { seed } => {
                let low = xxhash::xxh64(bytes, seed);
                let high = xxhash::xxh64(bytes, low);
                ItemHash { low: low & !u64::from(high.is_multiple_of(2)), high }
            }
            Self::Rbloom => {
                let digest = sha256(bytes);
                let half_at = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| digest[at + i]));
                ItemHash { low: half_at(8), high: half_at(0) }
            }
            Self::BlockFilter { key } => {
                let half_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| key[at + i]));
                half(siphash::sip24(bytes, [half_at(0), half_at(8)]))
            }
            Self::Number => half(match <[u8; 8]>::try_from(bytes) {
                Ok(number) => u64::from_le_bytes(number),
                Err(_) => xxhash::xxh3_64(bytes, 0),
            }),
            Self::LevelDb => half(leveldb::leveldb(bytes, leveldb::BLOOM_SEED).into()),
            Self::RocksDb => half(leveldb::rocksdb(bytes, leveldb::BLOOM_SEED).into()),
            Self::Cassandra => both(murmur3::cassandra_x64_128(bytes, 0)),
            Self::RocksDb64 => half(xxph3::xxph3_64(bytes)),
        }
    }
}

/// RedisBloom's pair for an item. Out of line, so that our own schemes stay small where they are inlined. In a loop over items
/// the CPU still begins the next item while it waits for the second half of this one.
#[inline(never)]
pub(super) fn redis_bloom_hash(bytes: &[u8]) -> ItemHash {
    let [low, high] = murmur2::murmur64a_twice(bytes, REDIS_BLOOM_SEED);
    ItemHash { low, high }
}

/// How a filter of another program hashes its items: their encoding as bytes, and the function.
///
/// Only filters of other programs have one; the crate `mayhap-formats` reads them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ForeignScheme {
    hash: ForeignHash,
    items: ItemEncoding,
}

impl ForeignScheme {
    pub(crate) const fn new(hash: ForeignHash, items: ItemEncoding) -> Self {
        Self { hash, items }
    }

    /// The function.
    #[must_use]
    pub const fn function(&self) -> ForeignHash {
        self.hash
    }

    /// How items are encoded as the bytes that are hashed.
    #[must_use]
    pub const fn items(&self) -> ItemEncoding {
        self.items
    }

    pub(crate) const fn number(&self) -> u16 {
        self.hash.number()
    }

    pub(crate) fn secret(&self) -> [u8; 16] {
        self.hash.secret()
    }

    /// The scheme with this number, these bytes as seed or key, and this encoding, if there is one.
    pub(crate) fn from_parts(number: u16, secret: [u8; 16], items: ItemEncoding) -> Option<Self> {
        ForeignHash::from_parts(number, secret).map(|hash| Self { hash, items })
    }

    /// Is it RedisBloom's function for Bloom filters?
    #[inline(always)]
    pub(super) fn is_redis_bloom(&self) -> bool {
        self.hash == ForeignHash::RedisBloom
    }

    /// Out of line, so that our own schemes stay small where they are inlined.
    #[cold]
    #[inline(never)]
    pub(crate) fn hash(&self, value: ItemValue<'_>) -> ItemHash {
        if let (ForeignHash::DataSketches { .. }, ItemValue::Text("")) = (self.hash, value) {
            return NOWHERE;
        }
        self.items.encode_with(value, |bytes| self.hash.of(bytes))
    }
}

impl From<ForeignScheme> for super::HashScheme {
    fn from(foreign: ForeignScheme) -> Self {
        Self::Foreign(foreign)
    }
}

/// The key of a block is public, so nothing is hidden.
impl fmt::Debug for ForeignHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guava => f.write_str("Guava's murmur3"),
            Self::Redisson => f.write_str("Redisson's HighwayHash"),
            Self::RedisBloom => f.write_str("RedisBloom's MurmurHash64A"),
            Self::RedisCuckoo => f.write_str("RedisBloom's MurmurHash64A for cuckoo filters"),
            Self::Spark { seed } => write!(f, "Spark's murmur3(seed {seed})"),
            Self::Parquet => f.write_str("Parquet's XXH64"),
            Self::Dcso => f.write_str("DCSO's FNV-1"),
            Self::DataSketches { seed } => write!(f, "DataSketches' XXH64(seed {seed})"),
            Self::Rbloom => f.write_str("SHA-256 for rbloom"),
            Self::BlockFilter { key } => {
                f.write_str("SipHash-2-4(key ")?;
                key.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(")")
            }
            Self::Number => f.write_str("numbers as they are"),
            Self::LevelDb => f.write_str("LevelDB's hash"),
            Self::RocksDb => f.write_str("RocksDB's hash"),
            Self::Cassandra => f.write_str("Cassandra's murmur3"),
            Self::RocksDb64 => f.write_str("RocksDB's XXPH3"),
        }
    }
}

impl fmt::Debug for ForeignScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} items", self.hash, self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ForeignHash; 15] = [
        ForeignHash::Guava,
        ForeignHash::Redisson,
        ForeignHash::RedisBloom,
        ForeignHash::RedisCuckoo,
        ForeignHash::Spark { seed: -7 },
        ForeignHash::Parquet,
        ForeignHash::Dcso,
        ForeignHash::DataSketches { seed: 9001 },
        ForeignHash::Rbloom,
        ForeignHash::BlockFilter { key: *b"0123456789abcdef" },
        ForeignHash::Number,
        ForeignHash::LevelDb,
        ForeignHash::RocksDb,
        ForeignHash::Cassandra,
        ForeignHash::RocksDb64,
    ];

    #[test]
    fn numbers_and_keys_map_back_to_the_function() {
        for (hash, number) in ALL.into_iter().zip(FIRST_NUMBER..) {
            assert_eq!(hash.number(), number);
            assert_eq!(ForeignHash::from_parts(number, hash.secret()), Some(hash));
            let mut stray = hash.secret();
            stray[15] ^= 1;
            let other = ForeignHash::from_parts(number, stray);
            assert_eq!(other.is_some(), matches!(hash, ForeignHash::BlockFilter { .. }), "{hash:?}");
        }
        assert_eq!(ForeignHash::from_parts(FIRST_NUMBER + ALL.len() as u16, [0; 16]), None);
        assert_eq!(ForeignHash::from_parts(3, [0; 16]), None);
    }

    #[test]
    fn empty_text_has_a_hash_that_no_item_of_datasketches_has() {
        let scheme = ForeignScheme::new(ForeignHash::DataSketches { seed: 9001 }, ItemEncoding::Utf8);
        assert_eq!(scheme.hash(ItemValue::Text("")), NOWHERE);
        assert_ne!(scheme.hash(ItemValue::Bytes(b"")), NOWHERE);
        let hashes = (0..1000_u64).map(|number| ForeignHash::DataSketches { seed: number }.of(b"ada"));
        let cleared =
            hashes.filter(|hash| hash.high.is_multiple_of(2)).inspect(|hash| assert_eq!(hash.low % 2, 0));
        assert!((400..600).contains(&cleared.count()));
        let guava = ForeignScheme::new(ForeignHash::Guava, ItemEncoding::Utf8);
        assert_eq!(guava.hash(ItemValue::Text("")), guava.hash(ItemValue::Bytes(b"")));
    }

    #[test]
    fn the_shortcut_for_bytes_equals_the_function() {
        let redis = ForeignScheme::new(ForeignHash::RedisBloom, ItemEncoding::Bytes);
        let item = [7, 1, 255, 0, 128, 9, 3].repeat(9);
        for len in 0..item.len() {
            let bytes = &item[..len];
            let low = murmur2::murmur64a(bytes, REDIS_BLOOM_SEED);
            let expected = ItemHash { low, high: murmur2::murmur64a(bytes, low) };
            assert_eq!(crate::HashScheme::from(redis).hash(bytes), expected);
            assert_eq!(redis.hash(ItemValue::Bytes(bytes)), expected);
        }
    }

    #[test]
    fn an_item_is_encoded_before_it_is_hashed() {
        let utf16 = ForeignScheme::new(ForeignHash::Guava, ItemEncoding::Utf16Le);
        let bytes = ForeignScheme::new(ForeignHash::Guava, ItemEncoding::Bytes);
        assert_eq!(utf16.hash(ItemValue::Text("ab")), bytes.hash(ItemValue::Bytes(b"a\0b\0")));
        assert_eq!(format!("{utf16:?}"), "Guava's murmur3 of utf16le items");
    }
}
