//! The command families of filters in a server.

use mayhap::Filter;
use mayhap_formats::redis_rdb::OwnType;
use mayhap_formats::{Format, redis_bloom, redis_cuckoo};

/// The commands for a filter in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `BF.*`: RedisBloom's Bloom filters.
    Bloom,
    /// `CF.*`: RedisBloom's cuckoo filters.
    Cuckoo,
    /// `MF.*`: every kind, only in mayhap's server and module.
    Mayhap,
}

/// The `TYPE` replies for filters with a secret key, which have no chunks.
const KEYED_BLOOM: &str = OwnType::KeyedBloom.name();
const KEYED_CUCKOO: &str = OwnType::KeyedCuckoo.name();

impl Family {
    /// Returns the family for a filter: RedisBloom's if the filter has RedisBloom's layout.
    pub(crate) fn of_filter(filter: &Filter) -> Self {
        match filter {
            Filter::ScalableBloom(filter) if redis_bloom::header(filter).is_ok() => Self::Bloom,
            Filter::ScalableCuckoo(filter) if redis_cuckoo::header(filter).is_ok() => Self::Cuckoo,
            _ => Self::Mayhap,
        }
    }

    /// Returns the family for a `TYPE` reply.
    pub(crate) fn of_type(name: &str) -> Option<Self> {
        match name {
            "MBbloom--" | KEYED_BLOOM => Some(Self::Bloom),
            "MBbloomCF" | KEYED_CUCKOO => Some(Self::Cuckoo),
            "mayhap---" => Some(Self::Mayhap),
            _ => None,
        }
    }

    /// The format of its chunks.
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Bloom => Format::RedisBloom,
            Self::Cuckoo => Format::RedisCuckoo,
            Self::Mayhap => Format::Mayhap,
        }
    }

    /// Whether a `TYPE` reply is that of a BF or CF filter with a secret key, which `DUMP` returns and chunks do not.
    pub(crate) fn is_keyed_type(name: &str) -> bool {
        matches!(name, KEYED_BLOOM | KEYED_CUCKOO)
    }

    /// The command that loads a chunk.
    pub(crate) const fn load_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.LOADCHUNK",
            Self::Cuckoo => "CF.LOADCHUNK",
            Self::Mayhap => "MF.LOAD",
        }
    }

    /// The command that dumps a chunk.
    pub(crate) const fn dump_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.SCANDUMP",
            Self::Cuckoo => "CF.SCANDUMP",
            Self::Mayhap => "MF.DUMP",
        }
    }

    /// The command that looks up items.
    pub(crate) const fn ask_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.MEXISTS",
            Self::Cuckoo => "CF.MEXISTS",
            Self::Mayhap => "MF.MEXISTS",
        }
    }

    /// The command that describes a filter.
    pub(crate) const fn info_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.INFO",
            Self::Cuckoo => "CF.INFO",
            Self::Mayhap => "MF.INFO",
        }
    }
}
