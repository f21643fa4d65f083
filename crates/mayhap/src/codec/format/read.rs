//! Reading a filter of any format.

use std::fmt;
use std::io::Cursor;

use super::Format;
use crate::codec::parquet::{ColumnFilter, ParquetError, ParquetFilters};
use crate::codec::{
    DecodeError, bip37, bits_and_blooms, block_filter, cassandra, datasketches, dcso, fast_filter, guava,
    leveldb, pybloom_live, pyprobables, rbloom, redis_bloom, redis_cuckoo, redis_rdb, redisson, rocksdb,
    sbbf, spark,
};
use crate::filter::Filter;
use crate::item::ItemEncoding;

/// What the bytes of some formats do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Argument {
    /// [`ReadOptions::items`].
    Items,
    /// [`ReadOptions::redisson`].
    RedissonConfig,
    /// [`ReadOptions::golomb`].
    Golomb,
    /// [`ReadOptions::pybloom_live`].
    PybloomLive,
    /// [`ReadOptions::cassandra`].
    Cassandra,
    /// [`ReadOptions::column`].
    Column,
    /// [`ReadOptions::fingerprint_bits`].
    FingerprintBits,
}

/// What a reader is told that the bytes do not say.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    items: Option<ItemEncoding>,
    redisson: Option<redisson::Config>,
    golomb: Option<(block_filter::Parameters, [u8; 16])>,
    pybloom_live: Option<pybloom_live::Version>,
    cassandra: Option<cassandra::BitOrder>,
    column: Option<(usize, String)>,
    fingerprint_bits: Option<u32>,
    unpacked_limit: u64,
}

/// What a compressed file may unpack to, and an empty filter that is all header may take, unless told otherwise.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// How many filters of a Parquet file an error names, and how much of each: a small file may have many of one long path.
const NAMED_FILTERS: usize = 20;
const NAMED_CHARACTERS: usize = 60;

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            items: None,
            redisson: None,
            golomb: None,
            pybloom_live: None,
            cassandra: None,
            column: None,
            fingerprint_bits: None,
            unpacked_limit: UNPACKED_LIMIT,
        }
    }
}

impl ReadOptions {
    /// How the other program made bytes of its items.
    #[must_use]
    pub fn items(self, items: ItemEncoding) -> Self {
        Self { items: Some(items), ..self }
    }

    /// The configuration beside a Redisson bitmap.
    #[must_use]
    pub fn redisson(self, config: redisson::Config) -> Self {
        Self { redisson: Some(config), ..self }
    }

    /// How a Golomb-coded set was coded, and the key of its hash.
    #[must_use]
    pub fn golomb(self, parameters: block_filter::Parameters, key: [u8; 16]) -> Self {
        Self { golomb: Some((parameters, key)), ..self }
    }

    /// Which pybloom_live wrote it.
    #[must_use]
    pub fn pybloom_live(self, version: pybloom_live::Version) -> Self {
        Self { pybloom_live: Some(version), ..self }
    }

    /// Which Cassandra wrote it.
    #[must_use]
    pub fn cassandra(self, order: cassandra::BitOrder) -> Self {
        Self { cassandra: Some(order), ..self }
    }

    /// Which filter of a Parquet file: the row group, counted from 0, and the path of the column with dots in it.
    #[must_use]
    pub fn column(self, row_group: usize, path: impl Into<String>) -> Self {
        Self { column: Some((row_group, path.into())), ..self }
    }

    /// How wide the fingerprints of a fuse filter in JSON are: 8, 16 or 32.
    #[must_use]
    pub fn fingerprint_bits(self, bits: u32) -> Self {
        Self { fingerprint_bits: Some(bits), ..self }
    }

    /// What a compressed file may unpack to, and an empty filter that is all header may take; 4 GiB unless told otherwise.
    #[must_use]
    pub fn unpacked_limit(self, bytes: u64) -> Self {
        Self { unpacked_limit: bytes, ..self }
    }
}

/// Why a filter was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes do not say something that the reader must know.
    Needs {
        /// The format.
        format: Format,
        /// What it must be told.
        argument: Argument,
    },
    /// The bytes are not such a filter.
    Decode {
        /// The format they were taken for.
        format: Format,
        /// What is wrong with them.
        cause: DecodeError,
    },
    /// The Parquet file is none, or has no such filter.
    Parquet(ParquetError),
    /// The Parquet file has no filter there.
    NoSuchColumn {
        /// The row group asked for.
        row_group: usize,
        /// The column asked for.
        path: String,
        /// Filters there are: the first few, or how their paths begin.
        there: Vec<String>,
    },
    /// It matches everything, which is no filter.
    MatchesEverything,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs { format, argument } => {
                let what = match argument {
                    Argument::Items => "how items became bytes: name the item encoding",
                    Argument::RedissonConfig => {
                        "their size and hash iterations: give the configuration beside them"
                    }
                    Argument::Golomb => "how they were coded: give the parameters P and M and the key",
                    Argument::PybloomLive => "which pybloom_live wrote them: name the version, 3 or 4",
                    Argument::Cassandra => "which Cassandra wrote them: say before 4.0 or since",
                    Argument::Column => "which filter is meant: name the row group and the column",
                    Argument::FingerprintBits => "how wide their fingerprints are: say 8, 16 or 32",
                };
                write!(f, "{format} files do not say {what}")
            }
            Self::Decode { format, cause } => write!(f, "not a whole {format} file: {cause}"),
            Self::Parquet(cause) => cause.fmt(f),
            Self::NoSuchColumn { row_group, path, there } => {
                write!(f, "no filter for column {path:?} in row group {row_group}; there are ")?;
                f.write_str(&if there.is_empty() { "none".to_owned() } else { there.join(", ") })
            }
            Self::MatchesEverything => f.write_str("it matches everything, and so holds no filter"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Decode { cause, .. } => Some(cause),
            Self::Parquet(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<ParquetError> for ReadError {
    fn from(cause: ParquetError) -> Self {
        Self::Parquet(cause)
    }
}

/// A [`ReadError`], or one that does not know its format yet.
enum Trouble {
    Decode(DecodeError),
    Read(ReadError),
}

impl From<DecodeError> for Trouble {
    fn from(cause: DecodeError) -> Self {
        Self::Decode(cause)
    }
}

impl From<ReadError> for Trouble {
    fn from(cause: ReadError) -> Self {
        Self::Read(cause)
    }
}

impl Format {
    /// What must be told to read it.
    #[must_use]
    pub const fn needs(self) -> &'static [Argument] {
        match self {
            Self::Mayhap
            | Self::RedisBloom
            | Self::RedisCuckoo
            | Self::RedisDump
            | Self::Dcso
            | Self::DcsoGzip
            | Self::Bip37 => &[],
            Self::Redisson => &[Argument::RedissonConfig, Argument::Items],
            Self::Parquet => &[Argument::Column],
            Self::BlockFilter => &[Argument::Golomb, Argument::Items],
            Self::PybloomLive => &[Argument::PybloomLive, Argument::Items],
            Self::Cassandra => &[Argument::Cassandra, Argument::Items],
            Self::FuseXorfJson => &[Argument::FingerprintBits, Argument::Items],
            _ => &[Argument::Items],
        }
    }

    /// The filter in the bytes of a whole file.
    ///
    /// What a format has beside the filter stays behind: the data in a DCSO file, the flags of a BIP 37 message. The format's own
    /// module hands it out.
    ///
    /// # Errors
    /// [`ReadError::Needs`] for what must be told, [`ReadError::Decode`] for bytes that are no such filter.
    pub fn read(self, bytes: &[u8], options: &ReadOptions) -> Result<Filter, ReadError> {
        self.read_unnamed(bytes, options).map_err(|trouble| match trouble {
            Trouble::Decode(cause) => ReadError::Decode { format: self, cause },
            Trouble::Read(cause) => cause,
        })
    }

    fn read_unnamed(self, bytes: &[u8], options: &ReadOptions) -> Result<Filter, Trouble> {
        let needs = |argument| ReadError::Needs { format: self, argument };
        let items = || options.items.ok_or_else(|| needs(Argument::Items));
        Ok(match self {
            Self::Mayhap => Filter::decode(bytes)?,
            Self::Guava => Filter::Bloom(guava::read(bytes, items()?)?),
            Self::Redisson => {
                let config = options.redisson.as_ref().ok_or_else(|| needs(Argument::RedissonConfig))?;
                Filter::Bloom(redisson::read_within(bytes, config, options.unpacked_limit, items()?)?)
            }
            Self::RedisBloom => Filter::ScalableBloom(redis_bloom::read(bytes)?),
            Self::RedisCuckoo => Filter::ScalableCuckoo(redis_cuckoo::read(bytes)?),
            Self::RedisDump => match redis_rdb::read_dump(bytes, options.unpacked_limit)? {
                redis_rdb::Value::Bloom(filter) => Filter::ScalableBloom(filter),
                redis_rdb::Value::Cuckoo(filter) => Filter::ScalableCuckoo(filter),
            },
            Self::Sbbf => Filter::BlockedBloom(sbbf::read(bytes, items()?)?),
            Self::Parquet => self.read_column(bytes, options)?,
            Self::Spark => Filter::Bloom(spark::read(bytes, items()?)?),
            Self::DataSketches => {
                Filter::Bloom(datasketches::read_within(bytes, options.unpacked_limit, items()?)?)
            }
            Self::Dcso | Self::DcsoGzip => Filter::Bloom(dcso::read(bytes, options.unpacked_limit)?.filter),
            Self::BitsAndBlooms => Filter::WideBloom(bits_and_blooms::read(bytes, items()?)?),
            Self::BitsAndBloomsJson => Filter::WideBloom(bits_and_blooms::read_json(bytes, items()?)?),
            Self::BlockFilter => {
                let (parameters, key) = options.golomb.ok_or_else(|| needs(Argument::Golomb))?;
                Filter::Gcs(block_filter::read(bytes, parameters, key, items()?)?)
            }
            Self::Bip37 => match bip37::read(bytes)?.matcher {
                bip37::Matcher::Items(filter) => Filter::WideBloom(filter),
                bip37::Matcher::Everything { .. } => return Err(ReadError::MatchesEverything.into()),
            },
            Self::FuseC => fast_filter::read_any(bytes, fast_filter::Layout::C, items()?)?,
            Self::FuseCPacked => fast_filter::read_any(bytes, fast_filter::Layout::CPacked, items()?)?,
            Self::FuseGo => fast_filter::read_any(bytes, fast_filter::Layout::Go, items()?)?,
            Self::FuseXorf => fast_filter::read_any(bytes, fast_filter::Layout::Xorf, items()?)?,
            Self::FuseXorfJson => {
                let layout = fast_filter::Layout::XorfJson;
                match options.fingerprint_bits.ok_or_else(|| needs(Argument::FingerprintBits))? {
                    8 => Filter::BinaryFuse8(fast_filter::read(bytes, layout, items()?)?),
                    16 => Filter::BinaryFuse16(fast_filter::read(bytes, layout, items()?)?),
                    32 => Filter::BinaryFuse32(fast_filter::read(bytes, layout, items()?)?),
                    got => {
                        return Err(
                            DecodeError::BadField { field: "fingerprint bits", got: got.into() }.into()
                        );
                    }
                }
            }
            Self::XorC => fast_filter::xor::read_any(bytes, fast_filter::xor::Layout::C, items()?)?,
            Self::PybloomLive => {
                let version = options.pybloom_live.ok_or_else(|| needs(Argument::PybloomLive))?;
                Filter::WideBloom(pybloom_live::read(bytes, version, items()?)?)
            }
            Self::Pyprobables => Filter::WideBloom(pyprobables::read(bytes, items()?)?),
            Self::Rbloom => Filter::Bloom(rbloom::read(bytes, rbloom::HashFunction::Sha256, items()?)?),
            Self::LevelDb => Filter::Bloom(leveldb::read(bytes, items()?)?),
            Self::RocksDb => match rocksdb::read(bytes, items()?)? {
                rocksdb::Filter::Bloom(filter) => Filter::BlockedBloom(filter),
                rocksdb::Filter::Ribbon(_) => {
                    let what = "a Ribbon filter of RocksDB, which only `codec::rocksdb` can ask,";
                    return Err(DecodeError::Unsupported { what }.into());
                }
                rocksdb::Filter::Empty => {
                    let what = "a RocksDB filter of no keys, which has no bits,";
                    return Err(DecodeError::Unsupported { what }.into());
                }
            },
            Self::Cassandra => {
                let order = options.cassandra.ok_or_else(|| needs(Argument::Cassandra))?;
                Filter::Bloom(cassandra::read(bytes, order, items()?)?)
            }
        })
    }

    fn read_column(self, bytes: &[u8], options: &ReadOptions) -> Result<Filter, ReadError> {
        let mut file = ParquetFilters::open(Cursor::new(bytes))?;
        let (row_group, path) =
            options.column.as_ref().ok_or(ReadError::Needs { format: self, argument: Argument::Column })?;
        let here = |filter: &&ColumnFilter| filter.row_group == *row_group && *filter.column == **path;
        let Some(filter) = file.filters().iter().find(here).cloned() else {
            let there = file.filters().iter().take(NAMED_FILTERS);
            let begin =
                |filter: &ColumnFilter| filter.column.chars().take(NAMED_CHARACTERS).collect::<String>();
            let there = there.map(|filter| format!("{} in {}", begin(filter), filter.row_group)).collect();
            return Err(ReadError::NoSuchColumn { row_group: *row_group, path: path.clone(), there });
        };
        let read = match options.items {
            Some(items) => file.read_as(&filter, items),
            None => file.read(&filter),
        };
        Ok(Filter::BlockedBloom(read?))
    }
}
