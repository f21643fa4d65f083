//! Reading a filter of any format.

use std::fmt;
use std::io::Cursor;

use mayhap::{DecodeError, Filter, ItemEncoding};

use super::Format;
use crate::parquet::{ColumnFilter, ParquetError, ParquetFilters};
use crate::{
    bip37, bits_and_blooms, block_filter, cassandra, datasketches, dcso, fast_filter, guava, leveldb,
    pybloom_live, pyprobables, rbloom, redis_bloom, redis_cuckoo, redis_rdb, redisson, rocksdb, sbbf, spark,
};

/// Information that some formats do not contain and the reader needs.
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

/// Information that the reader needs and the bytes do not contain.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    items: Option<ItemEncoding>,
    redisson: Option<redisson::Config>,
    golomb: Option<(block_filter::Parameters, [u8; 16])>,
    pybloom_live: Option<pybloom_live::PybloomVersion>,
    cassandra: Option<cassandra::BitOrder>,
    column: Option<(usize, String)>,
    fingerprint_bits: Option<u32>,
    unpacked_limit: u64,
}

/// The default limit for the uncompressed size of a file, and for the memory of an empty filter that consists only of a header.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// The number of filters of a Parquet file that an error names, and the length of each name: a small file may have many long paths.
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
    /// Sets how the other program encoded its items.
    #[must_use]
    pub fn items(self, items: ItemEncoding) -> Self {
        Self { items: Some(items), ..self }
    }

    /// Sets the configuration of a Redisson bitmap.
    #[must_use]
    pub fn redisson(self, config: redisson::Config) -> Self {
        Self { redisson: Some(config), ..self }
    }

    /// Sets the parameters of a Golomb-coded set, and the key of its hash.
    #[must_use]
    pub fn golomb(self, parameters: block_filter::Parameters, key: [u8; 16]) -> Self {
        Self { golomb: Some((parameters, key)), ..self }
    }

    /// Sets the version of pybloom_live that wrote the file.
    #[must_use]
    pub fn pybloom_live(self, version: pybloom_live::PybloomVersion) -> Self {
        Self { pybloom_live: Some(version), ..self }
    }

    /// Sets the version of Cassandra that wrote the file.
    #[must_use]
    pub fn cassandra(self, order: cassandra::BitOrder) -> Self {
        Self { cassandra: Some(order), ..self }
    }

    /// Selects a filter of a Parquet file: the row group, counted from 0, and the path of the column, joined by dots.
    #[must_use]
    pub fn column(self, row_group: usize, path: impl Into<String>) -> Self {
        Self { column: Some((row_group, path.into())), ..self }
    }

    /// Sets the width of the fingerprints of a fuse filter in JSON: 8, 16 or 32 bits.
    #[must_use]
    pub fn fingerprint_bits(self, bits: u32) -> Self {
        Self { fingerprint_bits: Some(bits), ..self }
    }

    /// Limits the uncompressed size of a file, and the memory of an empty filter that consists only of a header. The default is 4 GiB.
    #[must_use]
    pub fn unpacked_limit(self, bytes: u64) -> Self {
        Self { unpacked_limit: bytes, ..self }
    }
}

/// Why a filter was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The bytes lack information that the reader needs.
    Needs {
        /// The format.
        format: Format,
        /// The missing information.
        argument: Argument,
    },
    /// The bytes are not a valid filter of this format.
    Decode {
        /// The assumed format.
        format: Format,
        /// The error.
        cause: DecodeError,
    },
    /// The file is not a Parquet file, or its filter is invalid.
    Parquet(ParquetError),
    /// The Parquet file has no filter for this column and row group.
    NoSuchColumn {
        /// The requested row group.
        row_group: usize,
        /// The requested column.
        path: String,
        /// The filters in the file: the first few, with long paths shortened.
        there: Vec<String>,
    },
    /// The filter matches every item, so there is nothing to query.
    MatchesEverything,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs { format, argument } => {
                let what = match argument {
                    Argument::Items => "the item encoding; set `ReadOptions::items`",
                    Argument::RedissonConfig => "their size and hash iterations; set `ReadOptions::redisson`",
                    Argument::Golomb => "the parameters P and M and the key; set `ReadOptions::golomb`",
                    Argument::PybloomLive => "the version of pybloom_live; set `ReadOptions::pybloom_live`",
                    Argument::Cassandra => "the version of Cassandra; set `ReadOptions::cassandra`",
                    Argument::Column => "which filter to read; set `ReadOptions::column`",
                    Argument::FingerprintBits => {
                        "the width of their fingerprints; set `ReadOptions::fingerprint_bits`"
                    }
                };
                write!(f, "{format} files do not record {what}")
            }
            Self::Decode { format, cause } => write!(f, "not a valid {format} file: {cause}"),
            Self::Parquet(cause) => cause.fmt(f),
            Self::NoSuchColumn { row_group, path, there } => {
                write!(f, "no filter for column {path:?} in row group {row_group}; filters in the file: ")?;
                f.write_str(&if there.is_empty() { "none".to_owned() } else { there.join(", ") })
            }
            Self::MatchesEverything => f.write_str("the filter matches every item"),
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

/// A [`ReadError`], or a [`DecodeError`] whose format is not known yet.
enum Failure {
    Decode(DecodeError),
    Read(ReadError),
}

impl From<DecodeError> for Failure {
    fn from(cause: DecodeError) -> Self {
        Self::Decode(cause)
    }
}

impl From<ReadError> for Failure {
    fn from(cause: ReadError) -> Self {
        Self::Read(cause)
    }
}

impl Format {
    /// Returns the information that is needed to read this format.
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

    /// Reads the filter in the bytes of a whole file.
    ///
    /// Anything else in the file is dropped, such as the data in a DCSO file or the flags of a BIP 37 message. The format's own module
    /// returns it.
    ///
    /// # Errors
    /// [`ReadError::Needs`] for missing information, [`ReadError::Decode`] for bytes that are not a valid filter of this format.
    pub fn read(self, bytes: &[u8], options: &ReadOptions) -> Result<Filter, ReadError> {
        self.read_unnamed(bytes, options).map_err(|trouble| match trouble {
            Failure::Decode(cause) => ReadError::Decode { format: self, cause },
            Failure::Read(cause) => cause,
        })
    }

    fn read_unnamed(self, bytes: &[u8], options: &ReadOptions) -> Result<Filter, Failure> {
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
            Self::FuseC => fast_filter::read_any(bytes, fast_filter::FuseLayout::C, items()?)?,
            Self::FuseCPacked => fast_filter::read_any(bytes, fast_filter::FuseLayout::CPacked, items()?)?,
            Self::FuseGo => fast_filter::read_any(bytes, fast_filter::FuseLayout::Go, items()?)?,
            Self::FuseXorf => fast_filter::read_any(bytes, fast_filter::FuseLayout::Xorf, items()?)?,
            Self::FuseXorfJson => {
                let layout = fast_filter::FuseLayout::XorfJson;
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
            Self::XorC => fast_filter::xor::read_any(bytes, fast_filter::xor::XorLayout::C, items()?)?,
            Self::PybloomLive => {
                let version = options.pybloom_live.ok_or_else(|| needs(Argument::PybloomLive))?;
                Filter::WideBloom(pybloom_live::read(bytes, version, items()?)?)
            }
            Self::Pyprobables => Filter::WideBloom(pyprobables::read(bytes, items()?)?),
            Self::Rbloom => Filter::Bloom(rbloom::read(bytes, rbloom::HashFunction::Sha256, items()?)?),
            Self::LevelDb => Filter::Bloom(leveldb::read(bytes, items()?)?),
            Self::RocksDb => match rocksdb::read(bytes, items()?)? {
                rocksdb::RocksdbFilter::Bloom(filter) => Filter::BlockedBloom(filter),
                rocksdb::RocksdbFilter::Ribbon(_) => {
                    let what = "a RocksDB Ribbon filter; query it with `mayhap_formats::rocksdb`";
                    return Err(DecodeError::Unsupported { what }.into());
                }
                rocksdb::RocksdbFilter::Empty => {
                    let what = "a RocksDB filter of no keys, which has no bits";
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
