//! Every format a filter may come in, by name: told apart by its bytes, read, written, built anew.
//!
//! ```text
//! bytes ──[ Format::sniff ]──▶ it is parquet │ it could be guava, or one of several │ nothing known
//!   └────[ Format::read ]────▶ Filter ──[ Format::write ]──▶ bytes      (same rule of placing: else a refusal)
//! items ─[ Format::build ]───▶ Filter                                    (another rule: only from the items)
//! ```
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap::codec::format::{Format, ReadOptions, Sniffed};
//!
//! let seen = Format::Guava.build(["ada", "grace"], 1_000, 0.01, ItemEncoding::Utf8)?;
//! let mut stream = Vec::new();
//! Format::Guava.write(&seen, &mut stream)?;
//!
//! // Somebody finds that file and asks what it is.
//! assert_eq!(Format::sniff(&stream), Sniffed::CouldBe(vec![Format::Guava]));
//! let unasked = Format::Guava.read(&stream, &ReadOptions::default()).unwrap_err();
//! assert_eq!(unasked.to_string(), "guava files do not say how items became bytes: name the item encoding");
//! let found = Format::Guava.read(&stream, &ReadOptions::default().items(ItemEncoding::Utf8))?;
//! assert!(found.may_contain("ada"));
//!
//! // Spark hashes otherwise: the bits cannot move there, the items can.
//! assert!(Format::Spark.write(&found, &mut Vec::new()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod read;
mod write;

pub use build::RebuildError;
pub use read::{Argument, ReadError, ReadOptions};

use std::fmt;
use std::str::FromStr;

use super::foreign::Resemblance;
use super::{
    bip37, bits_and_blooms, block_filter, cassandra, datasketches, dcso, fast_filter, guava, header, leveldb,
    parquet, pybloom_live, pyprobables, rbloom, redis_bloom, redis_cuckoo, redis_rdb, rocksdb, sbbf, spark,
};

/// A format that filters come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Our own.
    Mayhap,
    /// Guava's `BloomFilter.writeTo`.
    Guava,
    /// The bitmap of Redisson's `RBloomFilter`; its configuration lies beside it in Redis.
    Redisson,
    /// RedisBloom's `BF.SCANDUMP`: the header and all chunks, one behind the other.
    RedisBloom,
    /// RedisBloom's `CF.SCANDUMP`, likewise.
    RedisCuckoo,
    /// What Redis' `DUMP` says of a filter of RedisBloom.
    RedisDump,
    /// A filter of a Parquet file by itself.
    Sbbf,
    /// A Parquet file, with filters in it.
    Parquet,
    /// Spark's `BloomFilter.writeTo`.
    Spark,
    /// Apache DataSketches' image.
    DataSketches,
    /// DCSO's `.bloom`, plain.
    Dcso,
    /// DCSO's `.bloom`, compressed.
    DcsoGzip,
    /// bits-and-blooms' `WriteTo`.
    BitsAndBlooms,
    /// bits-and-blooms' `MarshalJSON`.
    BitsAndBloomsJson,
    /// A Golomb-coded set as BIP 158 has it.
    BlockFilter,
    /// BIP 37's `filterload`.
    Bip37,
    /// Binary fuse filters of C, xor_singleheader.
    FuseC,
    /// The same, packed.
    FuseCPacked,
    /// Binary fuse filters of Go, xorfilter.
    FuseGo,
    /// Binary fuse filters of Rust, xorf.
    FuseXorf,
    /// The same as JSON.
    FuseXorfJson,
    /// Xor filters of C and of xorf.
    XorC,
    /// pybloom_live's `tofile`.
    PybloomLive,
    /// pyprobables' `export`.
    Pyprobables,
    /// rbloom's `save`, where the user's hash function is the one of rbloom's readme: SHA-256, cut to 128 bits.
    Rbloom,
    /// A filter of LevelDB.
    LevelDb,
    /// A filter of RocksDB.
    RocksDb,
    /// Cassandra's `Filter.db`.
    Cassandra,
}

/// What is known of a format before it is read.
struct About {
    name: &'static str,
    about: &'static str,
    /// Read only, where it is false.
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
    /// All of them.
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
            Self::Mayhap => about("mayhap", "our own", true, header::resembles),
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
                about("redis-dump", "Redis' DUMP of a filter of RedisBloom", true, redis_rdb::resembles)
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
                fast_filter::resembles(bytes, fast_filter::Layout::C)
            }),
            Self::FuseCPacked => about("fuse-c-packed", "a packed binary fuse filter of C", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::Layout::CPacked)
            }),
            Self::FuseGo => about("fuse-go", "a binary fuse filter of Go", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::Layout::Go)
            }),
            Self::FuseXorf => about("fuse-xorf", "a binary fuse filter of xorf", true, |bytes| {
                fast_filter::resembles(bytes, fast_filter::Layout::Xorf)
            }),
            Self::FuseXorfJson => {
                about("fuse-xorf-json", "a binary fuse filter of xorf, as JSON", true, |bytes| {
                    fast_filter::resembles(bytes, fast_filter::Layout::XorfJson)
                })
            }
            Self::XorC => about("xor-c", "an xor filter of C or xorf", true, |bytes| {
                fast_filter::xor::resembles(bytes, fast_filter::xor::Layout::C)
            }),
            Self::PybloomLive => {
                about("pybloom-live", "pybloom_live's tofile", false, pybloom_live::resembles)
            }
            Self::Pyprobables => about("pyprobables", "pyprobables' export", false, pyprobables::resembles),
            Self::Rbloom => {
                about("rbloom", "rbloom's save, of items hashed with SHA-256", false, rbloom::resembles)
            }
            Self::LevelDb => about("leveldb", "a filter of LevelDB", true, leveldb::resembles),
            Self::RocksDb => about("rocksdb", "a filter of RocksDB", true, rocksdb::resembles),
            Self::Cassandra => about("cassandra", "Cassandra's Filter.db", true, cassandra::resembles),
        }
    }

    /// The name [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.known().name
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.known().about
    }

    /// Can filters be written in it, too?
    #[must_use]
    pub const fn writes(self) -> bool {
        self.known().writes
    }

    /// The layout of a binary fuse filter, if it is one.
    const fn fuse_layout(self) -> Option<fast_filter::Layout> {
        match self {
            Self::FuseC => Some(fast_filter::Layout::C),
            Self::FuseCPacked => Some(fast_filter::Layout::CPacked),
            Self::FuseGo => Some(fast_filter::Layout::Go),
            Self::FuseXorf => Some(fast_filter::Layout::Xorf),
            Self::FuseXorfJson => Some(fast_filter::Layout::XorfJson),
            _ => None,
        }
    }

    /// Do these bytes look like this format?
    #[must_use]
    pub fn resembles(self, bytes: &[u8]) -> Resemblance {
        (self.known().resembles)(bytes)
    }

    /// What the bytes of a whole file are. Few formats have a mark of their own; of the others, those come out whose lengths and
    /// fields fit. A file that was cut off or has bytes behind its end fits none.
    ///
    /// LevelDB's filters and rbloom's have but one number to tell them by, and are named only if nothing else fits: many a file that is no
    /// filter passes for one. A Redisson bitmap has nothing, is never among them, and may pass for one of these two.
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

fn dcso_in(bytes: &[u8], gzip: bool) -> Resemblance {
    if bytes.starts_with(&GZIP) == gzip { dcso::resembles(bytes) } else { Resemblance::No }
}

/// How every gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What some bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// They carry the mark of this format.
    Is(Format),
    /// They fit these, one or several, without a mark to tell by.
    CouldBe(Vec<Format>),
    /// They fit none.
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

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The name, or how it begins.
    pub got: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "format {:?} is not known; there are", self.got)?;
        Format::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl std::error::Error for UnknownFormat {}
