//! The commands a filter is moved by.

use mayhap::Filter;
use mayhap::codec::format::Format;
use mayhap::codec::redis_rdb::OwnType;
use mayhap::codec::{redis_bloom, redis_cuckoo};

/// The commands a filter is moved by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `BF.*`: RedisBloom's Bloom filters.
    Bloom,
    /// `CF.*`: RedisBloom's cuckoo filters.
    Cuckoo,
    /// `MF.*`: every kind, in servers of ours only.
    Mayhap,
}

/// What `TYPE` says of filters with a secret key, which have no chunks.
const KEYED_BLOOM: &str = OwnType::KeyedBloom.name();
const KEYED_CUCKOO: &str = OwnType::KeyedCuckoo.name();

impl Family {
    /// The one a filter goes by: RedisBloom's where it has RedisBloom's layout.
    pub(crate) fn of_filter(filter: &Filter) -> Self {
        match filter {
            Filter::ScalableBloom(filter) if redis_bloom::header(filter).is_ok() => Self::Bloom,
            Filter::ScalableCuckoo(filter) if redis_cuckoo::header(filter).is_ok() => Self::Cuckoo,
            _ => Self::Mayhap,
        }
    }

    /// The one of what `TYPE` says.
    pub(crate) fn of_type(name: &str) -> Option<Self> {
        match name {
            "MBbloom--" | KEYED_BLOOM => Some(Self::Bloom),
            "MBbloomCF" | KEYED_CUCKOO => Some(Self::Cuckoo),
            "mayhap---" => Some(Self::Mayhap),
            _ => None,
        }
    }

    /// The format that its pieces are in.
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Bloom => Format::RedisBloom,
            Self::Cuckoo => Format::RedisCuckoo,
            Self::Mayhap => Format::Mayhap,
        }
    }

    /// Is what `TYPE` says a filter of RedisBloom's commands with a secret key, which `DUMP` gives and chunks do not?
    pub(crate) fn is_keyed_type(name: &str) -> bool {
        matches!(name, KEYED_BLOOM | KEYED_CUCKOO)
    }

    /// The command that takes a piece.
    pub(crate) const fn load_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.LOADCHUNK",
            Self::Cuckoo => "CF.LOADCHUNK",
            Self::Mayhap => "MF.LOAD",
        }
    }

    /// The command that gives one.
    pub(crate) const fn dump_command(self) -> &'static str {
        match self {
            Self::Bloom => "BF.SCANDUMP",
            Self::Cuckoo => "CF.SCANDUMP",
            Self::Mayhap => "MF.DUMP",
        }
    }

    /// The command that asks about items.
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
