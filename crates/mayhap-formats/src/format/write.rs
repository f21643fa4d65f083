//! Writing a filter in any format that places items by the same rule.

use std::io::Write;

use mayhap::codec::encode_into;
use mayhap::{Filter, internals};

use super::Format;
use crate::fast_filter::xor;
use crate::foreign::WriteError;
use crate::{
    bip37, bits_and_blooms, block_filter, cassandra, datasketches, dcso, fast_filter, guava, leveldb,
    redis_bloom, redis_cuckoo, redis_rdb, redisson, rocksdb, sbbf, spark,
};

/// The RDB version of Redis 7.0, which every later server can read.
const RDB_VERSION: u16 = 10;

impl Format {
    /// Writes `filter` in this format, if its items are hashed and placed by the format's rule.
    ///
    /// DCSO files are written without data, even if the file that the filter came from had data attached. For Redisson only the bitmap is
    /// written, without the configuration. BIP 37 messages get the flag for no update. Cassandra's files are those of 4.0 and later. The
    /// format's own module offers other choices.
    ///
    /// # Errors
    /// [`WriteError::OtherPlacement`] for a filter of another rule, which must be [built](Self::build) from its items;
    /// [`WriteError::OtherKind`] if the format has no filters of this kind, [`WriteError::ReadOnly`] for formats that can only be read.
    pub fn write(self, filter: &Filter, out: &mut dyn Write) -> Result<(), WriteError> {
        if let Some(layout) = self.fuse_layout() {
            match filter {
                Filter::BinaryFuse8(filter) => return fast_filter::write(filter, layout, out),
                Filter::BinaryFuse16(filter) => return fast_filter::write(filter, layout, out),
                Filter::BinaryFuse32(filter) => return fast_filter::write(filter, layout, out),
                _ => {}
            }
        }
        match (self, filter) {
            (Self::Mayhap, filter) => Ok(encode_into(filter, out)?),
            (Self::Guava, Filter::Bloom(filter)) => guava::write(filter, out),
            (Self::Redisson, Filter::Bloom(filter)) => redisson::write(filter, out),
            (Self::RedisBloom, Filter::ScalableBloom(filter)) => redis_bloom::write(filter, out),
            (Self::RedisCuckoo, Filter::ScalableCuckoo(filter)) => redis_cuckoo::write(filter, out),
            (Self::RedisDump, Filter::ScalableBloom(filter)) => {
                Ok(out.write_all(&redis_rdb::write_dump(filter, RDB_VERSION)?)?)
            }
            (Self::RedisDump, Filter::ScalableCuckoo(filter)) => {
                Ok(out.write_all(&redis_rdb::write_dump(filter, RDB_VERSION)?)?)
            }
            (Self::Sbbf, Filter::BlockedBloom(filter)) => sbbf::write(filter, out),
            (Self::Spark, Filter::Bloom(filter)) => spark::write(filter, out),
            (Self::DataSketches, Filter::Bloom(filter)) => datasketches::write(filter, out),
            (Self::Dcso, Filter::Bloom(filter)) => dcso::write(filter, &[], dcso::Packing::Plain, out),
            (Self::DcsoGzip, Filter::Bloom(filter)) => dcso::write(filter, &[], dcso::Packing::Gzip, out),
            (Self::BitsAndBlooms, Filter::WideBloom(filter)) => bits_and_blooms::write(filter, out),
            (Self::BitsAndBloomsJson, Filter::WideBloom(filter)) => bits_and_blooms::write_json(filter, out),
            (Self::BlockFilter, Filter::Gcs(filter)) => block_filter::write(filter, out),
            (Self::Bip37, Filter::WideBloom(filter)) => bip37::write_items(filter, bip37::UPDATE_NONE, out),
            (Self::XorC, Filter::Xor8(filter)) => xor::write(filter, xor::XorLayout::C, out),
            (Self::XorC, Filter::Xor16(filter)) => xor::write(filter, xor::XorLayout::C, out),
            (Self::XorC, Filter::Xor32(filter)) => xor::write(filter, xor::XorLayout::C, out),
            (Self::LevelDb, Filter::Bloom(filter)) => leveldb::write(filter, out),
            (Self::RocksDb, Filter::BlockedBloom(filter)) => rocksdb::write(filter, out),
            (Self::Cassandra, Filter::Bloom(filter)) => {
                cassandra::write(filter, cassandra::BitOrder::Since40, out)
            }
            _ if !self.writes() => Err(WriteError::ReadOnly { format: self }),
            // Both hold Bloom filters that are placed by 128 or more bits of an item.
            (_, Filter::Bloom(bloom)) if self.is_wide() => Err(WriteError::other_placement(
                "its own program's rule, which uses more than 128 bits of an item",
                bloom,
            )),
            (_, Filter::WideBloom(wide)) if self.is_narrow() => Err(WriteError::OtherPlacement {
                needs: "its own program's rule",
                got: internals::wide::hashing(wide),
            }),
            _ => Err(self.holds_another_kind(filter)),
        }
    }

    /// Returns whether the filters of this format are read as a `WideBloom`.
    const fn is_wide(self) -> bool {
        matches!(self, Self::BitsAndBlooms | Self::BitsAndBloomsJson | Self::Bip37)
    }

    /// Returns whether the filters of this format are read as a `Bloom`.
    const fn is_narrow(self) -> bool {
        matches!(
            self,
            Self::Guava
                | Self::Redisson
                | Self::Spark
                | Self::DataSketches
                | Self::Dcso
                | Self::DcsoGzip
                | Self::LevelDb
                | Self::Cassandra
        )
    }

    fn holds_another_kind(self, filter: &Filter) -> WriteError {
        let holds = match self {
            Self::RedisBloom => "scalable-bloom filters",
            Self::RedisCuckoo => "scalable-cuckoo filters",
            Self::RedisDump => "scalable-bloom and scalable-cuckoo filters",
            Self::Sbbf | Self::RocksDb => "blocked-bloom filters",
            Self::BlockFilter => "gcs filters",
            _ if self.fuse_layout().is_some() => "binary-fuse filters",
            Self::XorC => "xor filters",
            _ => "bloom filters",
        };
        WriteError::OtherKind { holds, got: filter.kind() }
    }
}
