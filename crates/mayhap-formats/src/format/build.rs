//! Building a filter in another program's format from its items, for filters whose bits cannot be converted.

use std::fmt;

use mayhap::{BuildError, Filter, InsertError, Item, ItemEncoding, ScalableCuckooShape};

use super::Format;
use crate::foreign::check_rate;
use crate::redis_bloom::Scaling;
use crate::{
    bip37, bits_and_blooms, cassandra, datasketches, dcso, fast_filter, guava, leveldb, redis_bloom,
    redis_cuckoo, redisson, sbbf, spark,
};

/// Why no filter was built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RebuildError {
    /// The format can only be read, or its filters need more than items, a rate and an encoding.
    NotSo {
        /// The format.
        format: Format,
        /// What to do instead.
        instead: &'static str,
    },
    /// The numbers do not describe a valid filter.
    Build(BuildError),
    /// An item was rejected.
    Insert(InsertError),
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSo { format, instead } => {
                write!(f, "cannot build a {format} filter from these arguments: {instead}")
            }
            Self::Build(cause) => cause.fmt(f),
            Self::Insert(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for RebuildError {}

impl From<BuildError> for RebuildError {
    fn from(cause: BuildError) -> Self {
        Self::Build(cause)
    }
}

impl From<InsertError> for RebuildError {
    fn from(cause: InsertError) -> Self {
        Self::Insert(cause)
    }
}

impl Format {
    /// Builds a filter of `items` that this format's program can read. It is sized for `capacity` items at `target_fpr` as that program would
    /// size it by its newest rules and defaults. The format's own module supports other rules, versions and seeds.
    ///
    /// `encoding` is how that program encodes its items. RedisBloom and DCSO hash the bytes of an item unchanged and ignore `encoding`.
    /// RedisBloom's cuckoo filters have a fixed rate, about 1.6 % when full, and ignore `target_fpr`.
    /// Filters of a set that never changes are sized for the actual number of items, not for `capacity`, with the narrowest fingerprint that
    /// keeps `target_fpr`.
    ///
    /// # Errors
    /// [`RebuildError::NotSo`] for formats that can only be read or need other arguments; [`RebuildError::Build`] for numbers that the program
    /// rejects.
    pub fn build<I: Item>(
        self,
        items: impl IntoIterator<Item = I>,
        capacity: u64,
        target_fpr: f64,
        encoding: ItemEncoding,
    ) -> Result<Filter, RebuildError> {
        // Checked where the rate determines a size or a width; the other formats have their program's own limits.
        if self.fuse_layout().is_some() || matches!(self, Self::XorC | Self::LevelDb) {
            check_rate(target_fpr)?;
        }
        let not_so = |instead| Err(RebuildError::NotSo { format: self, instead });
        let empty = match self {
            Self::Guava => {
                let (rounding, strategy) = (guava::Rounding::Since33, guava::Strategy::Mitz64);
                Filter::Bloom(guava::create(capacity, target_fpr, rounding, strategy, encoding)?)
            }
            Self::Redisson => Filter::Bloom(redisson::create(capacity, target_fpr, encoding)?),
            Self::RedisBloom => {
                Filter::ScalableBloom(redis_bloom::create(capacity, target_fpr, Scaling::By(2))?)
            }
            Self::RedisCuckoo => {
                let shape = ScalableCuckooShape::for_capacity(capacity)?;
                Filter::ScalableCuckoo(redis_cuckoo::create(shape)?)
            }
            Self::Spark => {
                let version = spark::SparkVersion::V2 { seed: 0 };
                Filter::Bloom(spark::create(capacity, target_fpr, version, encoding)?)
            }
            Self::DataSketches => {
                let (library, seed) = (datasketches::Library::Java, datasketches::DEFAULT_SEED);
                Filter::Bloom(datasketches::create(capacity, target_fpr, library, seed, encoding)?)
            }
            Self::Dcso | Self::DcsoGzip => Filter::Bloom(dcso::create(capacity, target_fpr)?),
            Self::BitsAndBlooms | Self::BitsAndBloomsJson => {
                Filter::WideBloom(bits_and_blooms::create(capacity, target_fpr, encoding)?)
            }
            Self::Sbbf => {
                Filter::BlockedBloom(sbbf::create(capacity, target_fpr, sbbf::Sizing::Arrow, encoding)?)
            }
            Self::Bip37 => match bip37::create(capacity, target_fpr, 0, bip37::UPDATE_NONE)?.matcher {
                bip37::Matcher::Items(filter) => Filter::WideBloom(filter),
                bip37::Matcher::Everything { .. } => {
                    return not_so("with these numbers it has no bytes and matches every item");
                }
            },
            Self::LevelDb => {
                // As LevelDB's users compute it: 1.44 bits for every halving of the rate, rounded up.
                let bits_per_key = (check_rate(target_fpr)?.recip().log2() * std::f64::consts::LOG2_E).ceil();
                Filter::Bloom(leveldb::create(bits_per_key.clamp(1.0, 1000.0) as u32, capacity, encoding)?)
            }
            Self::Cassandra => Filter::Bloom(cassandra::create(capacity, target_fpr, encoding)?),
            _ if self.fuse_layout().is_some() => return build_fuse(items, target_fpr, encoding),
            Self::XorC if check_rate(target_fpr)? < 1.0 / 65_536.0 => {
                return not_so("the smallest rate of an xor filter of C is 1 in 65536; use fuse-c");
            }
            Self::XorC if target_fpr < 1.0 / 256.0 => {
                return Ok(Filter::Xor16(fast_filter::xor::build(items, encoding)?));
            }
            Self::XorC => return Ok(Filter::Xor8(fast_filter::xor::build(items, encoding)?)),
            Self::Mayhap => return not_so("choose a kind, for example `Bloom::for_capacity`"),
            Self::RedisDump => {
                return not_so("build redis-bloom or redis-cuckoo and write it as redis-dump");
            }
            Self::BlockFilter => {
                return not_so("`mayhap_formats::block_filter::build` takes the parameters and the key");
            }
            Self::RocksDb => return not_so("use `mayhap_formats::rocksdb`, which has its versions"),
            _ => return not_so("the format can only be read"),
        };
        fill(empty, items)
    }
}

/// Items inserted together.
const BLOCK: usize = 4096;

fn fill<I: Item>(mut filter: Filter, items: impl IntoIterator<Item = I>) -> Result<Filter, RebuildError> {
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let block: Vec<I> = items.by_ref().take(BLOCK).collect();
        filter.insert_batch(&block)?;
    }
    Ok(filter)
}

fn build_fuse<I: Item>(
    items: impl IntoIterator<Item = I>,
    target_fpr: f64,
    encoding: ItemEncoding,
) -> Result<Filter, RebuildError> {
    Ok(match check_rate(target_fpr)? {
        rate if rate >= 1.0 / 256.0 => Filter::BinaryFuse8(fast_filter::build(items, encoding)?),
        rate if rate >= 1.0 / 65_536.0 => Filter::BinaryFuse16(fast_filter::build(items, encoding)?),
        _ => Filter::BinaryFuse32(fast_filter::build(items, encoding)?),
    })
}
