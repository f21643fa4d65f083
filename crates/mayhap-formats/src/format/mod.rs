//! The formats by name.

mod build;
mod read;
mod write;

pub use build::RebuildError;
pub use read::{Argument, ReadError, ReadOptions};

use std::fmt;
use std::str::FromStr;

use mayhap::codec::MAGIC;

use crate::foreign::Resemblance;
use crate::{
    bip37, bits_and_blooms, block_filter, cassandra, datasketches, dcso, fast_filter, guava, leveldb,
    parquet, pybloom_live, pyprobables, rbloom, redis_bloom, redis_cuckoo, redis_rdb, rocksdb, sbbf, spark,
};

/// A format of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Our own format, `.mayhap`.
    Mayhap,
    /// Guava's `BloomFilter.writeTo`.
    Guava,
    /// The bitmap of Redisson's `RBloomFilter`. Its configuration is a separate key in Redis.
    Redisson,
    /// RedisBloom's `BF.SCANDUMP`: the header and all chunks, concatenated.
    RedisBloom,
    /// RedisBloom's `CF.SCANDUMP`: the header and all chunks, concatenated.
    RedisCuckoo,
    /// The reply of Redis' `DUMP` for a RedisBloom filter.
    RedisDump,
    /// A single filter from a Parquet file.
    Sbbf,
    /// A Parquet file that contains filters.
    Parquet,
    /// Spark's `BloomFilter.writeTo`.
    Spark,
    /// Apache DataSketches' image.
    DataSketches,
    /// DCSO's `.bloom`, uncompressed.
    Dcso,
    /// DCSO's `.bloom`, compressed.
    DcsoGzip,
    /// bits-and-blooms' `WriteTo`.
    BitsAndBlooms,
    /// bits-and-blooms' `MarshalJSON`.
    BitsAndBloomsJson,
    /// A Golomb-coded set as in BIP 158.
    BlockFilter,
    /// BIP 37's `filterload`.
    Bip37,
    /// A binary fuse filter of C's xor_singleheader.
    FuseC,
    /// A packed binary fuse filter of C's xor_singleheader.
    FuseCPacked,
    /// A binary fuse filter of Go's xorfilter.
    FuseGo,
    /// A binary fuse filter of Rust's xorf.
    FuseXorf,
    /// A binary fuse filter of Rust's xorf, as JSON.
    FuseXorfJson,
    /// An xor filter of C's xor_singleheader or Rust's xorf.
    XorC,
    /// pybloom_live's `tofile`.
    PybloomLive,
    /// pyprobables' `export`.
    Pyprobables,
    /// rbloom's `save`, if the user's hash function is the one in rbloom's readme: SHA-256, truncated to 128 bits.
    Rbloom,
    /// A LevelDB filter.
    LevelDb,
    /// A RocksDB filter.
    RocksDb,
    /// Cassandra's `Filter.db`.
    Cassandra,
}

/// The properties of a format.
struct About {
    name: &'static str,
    about: &'static str,
    /// `false` if the format can only be read.
    writes: bool,
    resembles: fn(&[u8]) -> Resemblance,
}

const fn about(
    name: &'static str,
    about: &'static str,
    writes: bool,
    resembles: fn(&[u8]) -> Resemblance,
) -> About {
    About { name, about, writes, resembles }
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 28] = [
        Self::Mayhap,
        Self::Guava,
        Self::Redisson,
        Self::RedisBloom,
        Self::RedisCuckoo,
        Self::RedisDump,
        Self::Sbbf,
        Self::Parquet,
        Self::Spark,
        Self::DataSketches,
        Self::Dcso,
        Self::DcsoGzip,
        Self::BitsAndBlooms,
        Self::BitsAndBloomsJson,
        Self::BlockFilter,
        Self::Bip37,
        Self::FuseC,
        Self::FuseCPacked,
        Self::FuseGo,
        Self::FuseXorf,
        Self::FuseXorfJson,
        Self::XorC,
        Self::PybloomLive,
        Self::Pyprobables,
        Self::Rbloom,
        Self::RocksDb,
        Self::Cassandra,
        Self::LevelDb,
    ];

    const fn known(self) -> About {
        match self {
            Self::Mayhap => about("mayhap", "our own", true, resembles_mayhap),
            Self::Guava => about("guava", "Guava's BloomFilter.writeTo", true, guava::resembles),
            Self::Redisson => {
                about("redisson", "the bitmap of Redisson's RBloomFilter", true, |_| Resemblance::No)
            }
            Self::RedisBloom => {
                about("redis-bloom", "RedisBloom's BF.SCANDUMP, all chunks", true, redis_bloom::resembles)
            }
            Self::RedisCuckoo => {
                about("redis-cuckoo", "RedisBloom's CF.SCANDUMP, all chunks", true, redis_cuckoo::resembles)
            }
            Self::RedisDump => {
                about("redis-dump", "Redis' DUMP of a RedisBloom filter", true, redis_rdb::resembles)
            }
            Self::Sbbf => about("sbbf", "a split-block filter of a Parquet file", true, sbbf::resembles),
            Self::Parquet => about("parquet", "a Parquet file", false, parquet::resembles),
            Self::Spark => about("spark", "Spark's BloomFilter.writeTo", true, spark::resembles),
            Self::DataSketches => {
                about("datasketches", "Apache DataSketches' Bloom filter", true, datasketches::resembles)
            }
            Self::Dcso => about("dcso", "DCSO's .bloom file", true, |bytes| dcso_in(bytes, false)),
            Self::DcsoGzip => {
                about("dcso-gzip", "DCSO's .bloom file, compressed", true, |bytes| dcso_in(bytes, true))
            }
            Self::BitsAndBlooms => {
                about("bits-and-blooms", "bits-and-blooms' WriteTo", true, bits_and_blooms::resembles)
            }
            Self::BitsAndBloomsJson => about(
                "bits-and-blooms-json",
                "bits-and-blooms' MarshalJSON",
                true,
                bits_and_blooms::resembles_json,
            ),
            Self::BlockFilter => about("bip158", "a Golomb-coded set as in BIP 158", true, |bytes| {
                block_filter::resembles(bytes, block_filter::BASIC)
            }),
            Self::Bip37 => about("bip37", "BIP 37's filterload", true, bip37::resembles),
            Self::FuseC => about("fuse-c", "a binary fuse filter of C", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::FuseLayout::C)
            }),
            Self::FuseCPacked => about("fuse-c-packed", "a packed binary fuse filter of C", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::FuseLayout::CPacked)
            }),
            Self::FuseGo => about("fuse-go", "a binary fuse filter of Go", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::FuseLayout::Go)
            }),
            Self::FuseXorf => about("fuse-xorf", "a binary fuse filter of xorf", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::FuseLayout::Xorf)
            }),
            Self::FuseXorfJson => {
                about("fuse-xorf-json", "a binary fuse filter of xorf, as JSON", true, |bytes| {
                    fast_filter::resembles(bytes, fast_filter::FuseLayout::XorfJson)
                })
            }
            Self::XorC => about("xor-c", "an xor filter of C or xorf", true, |bytes| {
                fast_filter::xor::resembles(bytes, fast_filter::xor::XorLayout::C)
            }),
            Self::PybloomLive => {
                about("pybloom-live", "pybloom_live's tofile", false, pybloom_live::resembles)
            }
            Self::Pyprobables => about("pyprobables", "pyprobables' export", false, pyprobables::resembles),
            Self::Rbloom => {
                about("rbloom", "rbloom's save, of items hashed with SHA-256", false, rbloom::resembles)
            }
            Self::LevelDb => about("leveldb", "a LevelDB filter", true, leveldb::resembles),
            Self::RocksDb => about("rocksdb", "a RocksDB filter", true, rocksdb::resembles),
            Self::Cassandra => about("cassandra", "Cassandra's Filter.db", true, cassandra::resembles),
        }
    }

    /// The name [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.known().name
    }

    /// A short description.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.known().about
    }

    /// Returns whether filters can be written in this format.
    #[must_use]
    pub const fn writes(self) -> bool {
        self.known().writes
    }

    /// Returns the layout of a binary fuse filter, if this is one.
    const fn fuse_layout(self) -> Option<fast_filter::FuseLayout> {
        match self {
            Self::FuseC => Some(fast_filter::FuseLayout::C),
            Self::FuseCPacked => Some(fast_filter::FuseLayout::CPacked),
            Self::FuseGo => Some(fast_filter::FuseLayout::Go),
            Self::FuseXorf => Some(fast_filter::FuseLayout::Xorf),
            Self::FuseXorfJson => Some(fast_filter::FuseLayout::XorfJson),
            _ => None,
        }
    }

    /// Returns whether these bytes look like this format.
    #[must_use]
    pub fn resembles(self, bytes: &[u8]) -> Resemblance {
        (self.known().resembles)(bytes)
    }

    /// Detects the format of the bytes of a whole file. Few formats have a magic number; the others match if their lengths and fields are
    /// consistent. A file that is truncated or has trailing bytes matches no format.
    ///
    /// LevelDB's and rbloom's filters can be recognized by one number only, so many files that are not filters match them. They are
    /// returned only if no other format matches. A Redisson bitmap cannot be recognized: it is never returned, and may be mistaken for one of
    /// these two.
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Sniffed {
        let (mut could_be, mut hardly) = (Vec::new(), Vec::new());
        for format in Self::ALL {
            match format.resembles(bytes) {
                Resemblance::Surely => return Sniffed::Is(format),
                Resemblance::Could if matches!(format, Self::LevelDb | Self::Rbloom) => hardly.push(format),
                Resemblance::Could => could_be.push(format),
                Resemblance::No => {}
            }
        }
        match (could_be.is_empty(), hardly.is_empty()) {
            (false, _) => Sniffed::CouldBe(could_be),
            (true, false) => Sniffed::CouldBe(hardly),
            (true, true) => Sniffed::Unknown,
        }
    }
}

fn resembles_mayhap(bytes: &[u8]) -> Resemblance {
    if bytes.starts_with(&MAGIC) { Resemblance::Surely } else { Resemblance::No }
}

fn dcso_in(bytes: &[u8], gzip: bool) -> Resemblance {
    if bytes.starts_with(&GZIP) == gzip { dcso::resembles(bytes) } else { Resemblance::No }
}

/// The first bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The result of [`Format::sniff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// The bytes have the magic number of this format.
    Is(Format),
    /// The bytes are consistent with these formats, one or more, which have no magic number.
    CouldBe(Vec<Format>),
    /// The bytes match no format.
    Unknown,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { got: name.chars().take(60).collect() })
    }
}

/// An unknown format name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The name, or its beginning.
    pub got: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "format {:?} is not known; known formats are", self.got)?;
        Format::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl std::error::Error for UnknownFormat {}
