//! The named hash functions as one type, for a choice at run time.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::digest::Digest;
use super::{
    city, crypto, farm, fnv, highwayhash, jenkins, leveldb, murmur2, murmur3, siphash, spooky, xxhash, xxph3,
};

/// A hash function with its seed or key, chosen at run time.
///
/// ```
/// use mayhap::hash::named::NamedHash;
///
/// let guava = NamedHash::Murmur3X64_128 { seed: 0 };
/// assert_eq!(guava.digest(b"abc").to_string(), "b4963f3f3fad78673ba2744126ca2d52");
///
/// let parsed: NamedHash = "fnv1a_32".parse()?;
/// assert_eq!(parsed.digest(b"abc").to_u32(), Some(0x1a47_e90b));
/// # Ok::<(), mayhap::hash::named::ParseNamedHashError>(())
/// ```
///
/// Names carry no parameters: a parsed function has zero for its seed or key, except LevelDB's and RocksDB's,
/// which have [`leveldb::BLOOM_SEED`], the one seed those programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedHash {
    /// [`murmur3::x86_32`], 32 bits.
    Murmur3X86_32 {
        /// The initial state.
        seed: u32,
    },
    /// [`murmur3::x86_128`], 128 bits.
    Murmur3X86_128 {
        /// The initial value of each quarter of the state.
        seed: u32,
    },
    /// [`murmur3::x64_128`], 128 bits.
    Murmur3X64_128 {
        /// The initial value of both halves of the state.
        seed: u64,
    },
    /// [`murmur3::spark_x86_32`], 32 bits.
    SparkMurmur3X86_32 {
        /// The initial state.
        seed: u32,
    },
    /// [`murmur3::cassandra_x64_128`], 128 bits.
    CassandraMurmur3X64_128 {
        /// The initial value of both halves of the state.
        seed: u64,
    },
    /// [`murmur2::murmur2_32`], 32 bits.
    Murmur2_32 {
        /// Mixed with the length at the start.
        seed: u32,
    },
    /// [`murmur2::murmur64a`], 64 bits.
    Murmur64A {
        /// Mixed with the length at the start.
        seed: u64,
    },
    /// [`xxhash::xxh64`], 64 bits.
    Xxh64 {
        /// The published function's seed.
        seed: u64,
    },
    /// [`xxhash::xxh3_64`], 64 bits.
    Xxh3_64 {
        /// The published function's seed.
        seed: u64,
    },
    /// [`xxhash::xxh3_128`], 128 bits.
    Xxh3_128 {
        /// The published function's seed.
        seed: u64,
    },
    /// [`farm::fingerprint32`], 32 bits.
    FarmFingerprint32,
    /// [`farm::fingerprint64`], 64 bits.
    FarmFingerprint64,
    /// [`city::city64`], 64 bits.
    City64,
    /// [`city::city64_with_seed`], 64 bits; seed 0 is not [`NamedHash::City64`].
    City64WithSeed {
        /// Joined with the unseeded value at the end.
        seed: u64,
    },
    /// [`fnv::fnv1_32`], 32 bits.
    Fnv1_32,
    /// [`fnv::fnv1a_32`], 32 bits.
    Fnv1a32,
    /// [`fnv::fnv1_64`], 64 bits.
    Fnv1_64,
    /// [`fnv::fnv1a_64`], 64 bits.
    Fnv1a64,
    /// [`jenkins::one_at_a_time`], 32 bits.
    JenkinsOneAtATime,
    /// [`jenkins::hashlittle`], 32 bits.
    Lookup3Hashlittle {
        /// Jenkins' `initval`.
        seed: u32,
    },
    /// [`jenkins::hashlittle2`], 64 bits.
    Lookup3Hashlittle2 {
        /// Jenkins' `pc` and `pb`.
        seeds: [u32; 2],
    },
    /// [`spooky::hash32`], 32 bits.
    Spooky2_32 {
        /// Widened, then used twice.
        seed: u32,
    },
    /// [`spooky::hash64`], 64 bits.
    Spooky2_64 {
        /// Used twice.
        seed: u64,
    },
    /// [`spooky::hash128`], 128 bits.
    Spooky2_128 {
        /// Jenkins' `hash1` and `hash2`.
        seeds: [u64; 2],
    },
    /// [`siphash::sip13`], 64 bits.
    SipHash13 {
        /// The key's two little-endian words.
        key: [u64; 2],
    },
    /// [`siphash::sip24`], 64 bits.
    SipHash24 {
        /// The key's two little-endian words.
        key: [u64; 2],
    },
    /// [`siphash::sip13_128`], 128 bits.
    SipHash13_128 {
        /// The key's two little-endian words.
        key: [u64; 2],
    },
    /// [`siphash::sip24_128`], 128 bits.
    SipHash24_128 {
        /// The key's two little-endian words.
        key: [u64; 2],
    },
    /// [`highwayhash::highway64`], 64 bits.
    HighwayHash64 {
        /// The key's four little-endian words.
        key: [u64; 4],
    },
    /// [`highwayhash::highway128`], 128 bits.
    HighwayHash128 {
        /// The key's four little-endian words.
        key: [u64; 4],
    },
    /// [`highwayhash::highway256`], 256 bits.
    HighwayHash256 {
        /// The key's four little-endian words.
        key: [u64; 4],
    },
    /// [`leveldb::leveldb`], 32 bits.
    LevelDb {
        /// Mixed with the length at the start.
        seed: u32,
    },
    /// [`leveldb::rocksdb`], 32 bits.
    RocksDb {
        /// Mixed with the length at the start.
        seed: u32,
    },
    /// [`xxph3::xxph3_64`], 64 bits.
    Xxph3_64,
    /// [`crypto::md5`], 128 bits.
    Md5,
    /// [`crypto::sha1`], 160 bits.
    Sha1,
    /// [`crypto::sha256`], 256 bits.
    Sha256,
    /// [`crypto::sha384`], 384 bits.
    Sha384,
    /// [`crypto::sha512`], 512 bits.
    Sha512,
    /// [`crypto::ripemd160`], 160 bits.
    Ripemd160,
}

/// Every function once, with the parameters that its bare name stands for.
const ALL: [NamedHash; 40] = [
    NamedHash::Murmur3X86_32 { seed: 0 },
    NamedHash::Murmur3X86_128 { seed: 0 },
    NamedHash::Murmur3X64_128 { seed: 0 },
    NamedHash::SparkMurmur3X86_32 { seed: 0 },
    NamedHash::CassandraMurmur3X64_128 { seed: 0 },
    NamedHash::Murmur2_32 { seed: 0 },
    NamedHash::Murmur64A { seed: 0 },
    NamedHash::Xxh64 { seed: 0 },
    NamedHash::Xxh3_64 { seed: 0 },
    NamedHash::Xxh3_128 { seed: 0 },
    NamedHash::FarmFingerprint32,
    NamedHash::FarmFingerprint64,
    NamedHash::City64,
    NamedHash::City64WithSeed { seed: 0 },
    NamedHash::Fnv1_32,
    NamedHash::Fnv1a32,
    NamedHash::Fnv1_64,
    NamedHash::Fnv1a64,
    NamedHash::JenkinsOneAtATime,
    NamedHash::Lookup3Hashlittle { seed: 0 },
    NamedHash::Lookup3Hashlittle2 { seeds: [0; 2] },
    NamedHash::Spooky2_32 { seed: 0 },
    NamedHash::Spooky2_64 { seed: 0 },
    NamedHash::Spooky2_128 { seeds: [0; 2] },
    NamedHash::SipHash13 { key: [0; 2] },
    NamedHash::SipHash24 { key: [0; 2] },
    NamedHash::SipHash13_128 { key: [0; 2] },
    NamedHash::SipHash24_128 { key: [0; 2] },
    NamedHash::HighwayHash64 { key: [0; 4] },
    NamedHash::HighwayHash128 { key: [0; 4] },
    NamedHash::HighwayHash256 { key: [0; 4] },
    NamedHash::LevelDb { seed: leveldb::BLOOM_SEED },
    NamedHash::RocksDb { seed: leveldb::BLOOM_SEED },
    NamedHash::Xxph3_64,
    NamedHash::Md5,
    NamedHash::Sha1,
    NamedHash::Sha256,
    NamedHash::Sha384,
    NamedHash::Sha512,
    NamedHash::Ripemd160,
];

impl NamedHash {
    /// Every function once, with the parameters that its bare name stands for.
    pub fn all() -> &'static [NamedHash] {
        &ALL
    }

    /// The function's value for `item`.
    #[inline]
    pub fn digest(&self, item: &[u8]) -> Digest {
        match *self {
            NamedHash::Murmur3X86_32 { seed } => Digest::from_u32s([murmur3::x86_32(item, seed)]),
            NamedHash::Murmur3X86_128 { seed } => Digest::from_u32s(murmur3::x86_128(item, seed)),
            NamedHash::Murmur3X64_128 { seed } => Digest::from_u64s(murmur3::x64_128(item, seed)),
            NamedHash::SparkMurmur3X86_32 { seed } => Digest::from_u32s([murmur3::spark_x86_32(item, seed)]),
            NamedHash::CassandraMurmur3X64_128 { seed } => {
                Digest::from_u64s(murmur3::cassandra_x64_128(item, seed))
            }
            NamedHash::Murmur2_32 { seed } => Digest::from_u32s([murmur2::murmur2_32(item, seed)]),
            NamedHash::Murmur64A { seed } => Digest::from_u64s([murmur2::murmur64a(item, seed)]),
            NamedHash::Xxh64 { seed } => Digest::from_u64s([xxhash::xxh64(item, seed)]),
            NamedHash::Xxh3_64 { seed } => Digest::from_u64s([xxhash::xxh3_64(item, seed)]),
            NamedHash::Xxh3_128 { seed } => Digest::from_bytes(&xxhash::xxh3_128(item, seed).to_be_bytes()),
            NamedHash::FarmFingerprint32 => Digest::from_u32s([farm::fingerprint32(item)]),
            NamedHash::FarmFingerprint64 => Digest::from_u64s([farm::fingerprint64(item)]),
            NamedHash::City64 => Digest::from_u64s([city::city64(item)]),
            NamedHash::City64WithSeed { seed } => Digest::from_u64s([city::city64_with_seed(item, seed)]),
            NamedHash::Fnv1_32 => Digest::from_u32s([fnv::fnv1_32(item)]),
            NamedHash::Fnv1a32 => Digest::from_u32s([fnv::fnv1a_32(item)]),
            NamedHash::Fnv1_64 => Digest::from_u64s([fnv::fnv1_64(item)]),
            NamedHash::Fnv1a64 => Digest::from_u64s([fnv::fnv1a_64(item)]),
            NamedHash::JenkinsOneAtATime => Digest::from_u32s([jenkins::one_at_a_time(item)]),
            NamedHash::Lookup3Hashlittle { seed } => Digest::from_u32s([jenkins::hashlittle(item, seed)]),
            NamedHash::Lookup3Hashlittle2 { seeds } => Digest::from_u32s(jenkins::hashlittle2(item, seeds)),
            NamedHash::Spooky2_32 { seed } => Digest::from_u32s([spooky::hash32(item, seed)]),
            NamedHash::Spooky2_64 { seed } => Digest::from_u64s([spooky::hash64(item, seed)]),
            NamedHash::Spooky2_128 { seeds } => Digest::from_u64s(spooky::hash128(item, seeds)),
            NamedHash::SipHash13 { key } => Digest::from_u64s([siphash::sip13(item, key)]),
            NamedHash::SipHash24 { key } => Digest::from_u64s([siphash::sip24(item, key)]),
            NamedHash::SipHash13_128 { key } => Digest::from_u64s(siphash::sip13_128(item, key)),
            NamedHash::SipHash24_128 { key } => Digest::from_u64s(siphash::sip24_128(item, key)),
            NamedHash::HighwayHash64 { key } => Digest::from_u64s([highwayhash::highway64(item, key)]),
            NamedHash::HighwayHash128 { key } => Digest::from_u64s(highwayhash::highway128(item, key)),
            NamedHash::HighwayHash256 { key } => Digest::from_u64s(highwayhash::highway256(item, key)),
            NamedHash::LevelDb { seed } => Digest::from_u32s([leveldb::leveldb(item, seed)]),
            NamedHash::RocksDb { seed } => Digest::from_u32s([leveldb::rocksdb(item, seed)]),
            NamedHash::Xxph3_64 => Digest::from_u64s([xxph3::xxph3_64(item)]),
            NamedHash::Md5 => Digest::from_bytes(&crypto::md5(item)),
            NamedHash::Sha1 => Digest::from_bytes(&crypto::sha1(item)),
            NamedHash::Sha256 => Digest::from_bytes(&crypto::sha256(item)),
            NamedHash::Sha384 => Digest::from_bytes(&crypto::sha384(item)),
            NamedHash::Sha512 => Digest::from_bytes(&crypto::sha512(item)),
            NamedHash::Ripemd160 => Digest::from_bytes(&crypto::ripemd160(item)),
        }
    }

    /// The width of the function's values in bits.
    pub fn bits(&self) -> u32 {
        self.name_and_bits().1
    }

    /// The name that [`FromStr`] reads, without seed or key.
    pub fn name(&self) -> &'static str {
        self.name_and_bits().0
    }

    fn name_and_bits(&self) -> (&'static str, u32) {
        match self {
            NamedHash::Murmur3X86_32 { .. } => ("murmur3_x86_32", 32),
            NamedHash::Murmur3X86_128 { .. } => ("murmur3_x86_128", 128),
            NamedHash::Murmur3X64_128 { .. } => ("murmur3_x64_128", 128),
            NamedHash::SparkMurmur3X86_32 { .. } => ("spark_murmur3_x86_32", 32),
            NamedHash::CassandraMurmur3X64_128 { .. } => ("cassandra_murmur3_x64_128", 128),
            NamedHash::Murmur2_32 { .. } => ("murmur2_32", 32),
            NamedHash::Murmur64A { .. } => ("murmur64a", 64),
            NamedHash::Xxh64 { .. } => ("xxh64", 64),
            NamedHash::Xxh3_64 { .. } => ("xxh3_64", 64),
            NamedHash::Xxh3_128 { .. } => ("xxh3_128", 128),
            NamedHash::FarmFingerprint32 => ("farmhash_fingerprint32", 32),
            NamedHash::FarmFingerprint64 => ("farmhash_fingerprint64", 64),
            NamedHash::City64 => ("cityhash64", 64),
            NamedHash::City64WithSeed { .. } => ("cityhash64_with_seed", 64),
            NamedHash::Fnv1_32 => ("fnv1_32", 32),
            NamedHash::Fnv1a32 => ("fnv1a_32", 32),
            NamedHash::Fnv1_64 => ("fnv1_64", 64),
            NamedHash::Fnv1a64 => ("fnv1a_64", 64),
            NamedHash::JenkinsOneAtATime => ("jenkins_oaat", 32),
            NamedHash::Lookup3Hashlittle { .. } => ("lookup3_hashlittle", 32),
            NamedHash::Lookup3Hashlittle2 { .. } => ("lookup3_hashlittle2", 64),
            NamedHash::Spooky2_32 { .. } => ("spooky2_32", 32),
            NamedHash::Spooky2_64 { .. } => ("spooky2_64", 64),
            NamedHash::Spooky2_128 { .. } => ("spooky2_128", 128),
            NamedHash::SipHash13 { .. } => ("siphash13", 64),
            NamedHash::SipHash24 { .. } => ("siphash24", 64),
            NamedHash::SipHash13_128 { .. } => ("siphash13_128", 128),
            NamedHash::SipHash24_128 { .. } => ("siphash24_128", 128),
            NamedHash::HighwayHash64 { .. } => ("highwayhash64", 64),
            NamedHash::HighwayHash128 { .. } => ("highwayhash128", 128),
            NamedHash::HighwayHash256 { .. } => ("highwayhash256", 256),
            NamedHash::LevelDb { .. } => ("leveldb", 32),
            NamedHash::RocksDb { .. } => ("rocksdb_legacy", 32),
            NamedHash::Xxph3_64 => ("rocksdb_xxph3_64", 64),
            NamedHash::Md5 => ("md5", 128),
            NamedHash::Sha1 => ("sha1", 160),
            NamedHash::Sha256 => ("sha256", 256),
            NamedHash::Sha384 => ("sha384", 384),
            NamedHash::Sha512 => ("sha512", 512),
            NamedHash::Ripemd160 => ("ripemd160", 160),
        }
    }
}

impl FromStr for NamedHash {
    type Err = ParseNamedHashError;

    fn from_str(name: &str) -> Result<NamedHash, ParseNamedHashError> {
        ALL.into_iter()
            .find(|hash| hash.name() == name)
            .ok_or_else(|| ParseNamedHashError::UnknownName { name: name.to_owned() })
    }
}

/// Why a text is not the name of a hash function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseNamedHashError {
    /// No function in [`NamedHash::all`] has this name.
    UnknownName {
        /// The text that was given.
        name: String,
    },
}

impl fmt::Display for ParseNamedHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseNamedHashError::UnknownName { name } => write!(f, "no hash function is named {name:?}"),
        }
    }
}

impl Error for ParseNamedHashError {}
