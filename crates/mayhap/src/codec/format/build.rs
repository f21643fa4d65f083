//! Building a filter anew in another program's format: what is left when its bits cannot move there.

use std::fmt;

use super::Format;
use crate::codec::foreign::check_rate;
use crate::codec::redis_bloom::Scaling;
use crate::codec::{
    bip37, bits_and_blooms, cassandra, datasketches, dcso, fast_filter, guava, leveldb, redis_bloom,
    redis_cuckoo, redisson, sbbf, spark,
};
use crate::error::{BuildError, InsertError};
use crate::filter::Filter;
use crate::item::{Item, ItemEncoding};
use crate::scalable_cuckoo::ScalableCuckooShape;

/// Why no filter was built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RebuildError {
    /// The format is only read, or its filters need more than items, a rate and an encoding.
    NotSo {
        /// The format.
        format: Format,
        /// What to do instead.
        instead: &'static str,
    },
    /// The numbers make no filter.
    Build(BuildError),
    /// An item was refused.
    Insert(InsertError),
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSo { format, instead } => write!(f, "{format} filters are not built so: {instead}"),
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
    /// A filter of `items` that this format's program reads, sized for `capacity` of them at `target_fpr` as that program would by its
    /// newest rules and defaults. Where there are other rules, versions and seeds, the format's own module has the choice.
    ///
    /// `encoding` is how that program makes bytes of its items; RedisBloom and DCSO have one way only, bytes, and take no notice of it.
    /// RedisBloom's cuckoo filters have one rate only, some 1.6 % when full, and take no notice of `target_fpr`.
    /// Filters of a set that never changes take its real size, not `capacity`, and the widest rate that keeps `target_fpr`.
    ///
    /// # Errors
    /// [`RebuildError::NotSo`] for formats that are only read or need more than this; [`RebuildError::Build`] for numbers its program
    /// refuses.
    pub fn build<I: Item>(
        self,
        items: impl IntoIterator<Item = I>,
        capacity: u64,
        target_fpr: f64,
        encoding: ItemEncoding,
    ) -> Result<Filter, RebuildError> {
        // Where the rate chooses a size or a width; the others have their program's own limits.
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
                let version = spark::Version::V2 { seed: 0 };
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
                    return not_so("with these numbers it has no bytes and matches everything");
                }
            },
            Self::LevelDb => {
                // What LevelDB's users do: 1.44 bits for every halving of the rate, rounded up.
                let bits_per_key = (check_rate(target_fpr)?.recip().log2() * std::f64::consts::LOG2_E).ceil();
                Filter::Bloom(leveldb::create(bits_per_key.clamp(1.0, 1000.0) as u32, capacity, encoding)?)
            }
            Self::Cassandra => Filter::Bloom(cassandra::create(capacity, target_fpr, encoding)?),
            _ if self.fuse_layout().is_some() => return build_fuse(items, target_fpr, encoding),
            Self::XorC if check_rate(target_fpr)? < 1.0 / 65_536.0 => {
                return not_so("C has no xor filters of less than 1 in 65536; fuse-c has");
            }
            Self::XorC if target_fpr < 1.0 / 256.0 => {
                return Ok(Filter::Xor16(fast_filter::xor::build(items, encoding)?));
            }
            Self::XorC => return Ok(Filter::Xor8(fast_filter::xor::build(items, encoding)?)),
            Self::Mayhap => return not_so("choose a kind, for example `Bloom::for_capacity`"),
            Self::RedisDump => {
                return not_so("build redis-bloom or redis-cuckoo and write that as redis-dump");
            }
            Self::BlockFilter => {
                return not_so("`codec::block_filter::build` takes the parameters and the key");
            }
            Self::RocksDb => return not_so("`codec::rocksdb` has its versions"),
            _ => return not_so("they are only read"),
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
