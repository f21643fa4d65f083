//! The value of a key.

use mayhap::{AtomicScalableBloom, Relocate, ScalableCuckoo, relocate_box};
use mayhap_formats::redis_rdb::{OwnType, ValueType};
use mayhap_formats::{redis_bloom, redis_cuckoo};

use crate::bits::Text;
use crate::lost::Lost;
use crate::mf::Holder;

/// The value of a key. It is small because there may be a hundred million of them: most of its data is in one heap allocation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// A `BF.*` filter: RedisBloom's layout, or the same with a secret key. Lookups and inserts need only a shared reference.
    Bloom(Box<AtomicScalableBloom>),
    /// A `BF.*` filter that `BF.LOADCHUNK` is loading. Some of its bytes are missing, so it cannot answer.
    LoadingBloom(Box<redis_bloom::BloomLoader>),
    /// A `CF.*` filter: RedisBloom's layout, or the same with a secret key.
    Cuckoo(Box<ScalableCuckoo>),
    /// A `CF.*` filter that `CF.LOADCHUNK` is loading.
    LoadingCuckoo(Box<redis_cuckoo::CuckooLoader>),
    /// A string, also used as a bitmap.
    Text(Box<Text>),
    /// An `MF.*` filter, of any kind.
    Filter(Box<Holder>),
    /// The data of the key is lost: it answers *not ready*.
    Lost(Lost),
}

impl Value {
    /// A description of the value and its commands, for an error when a client used other commands.
    pub(crate) const fn family(&self) -> &'static str {
        match self {
            Self::Bloom(_) | Self::LoadingBloom(_) => "a Bloom filter (use BF.* commands)",
            Self::Cuckoo(_) | Self::LoadingCuckoo(_) => "a cuckoo filter (use CF.* commands)",
            Self::Text(_) => "a string (use GET or GETBIT)",
            Self::Filter(_) => "a filter (use MF.* commands)",
            Self::Lost(_) => "nothing, because its data is lost",
        }
    }

    /// The reply of `TYPE`. `BF.*` and `CF.*` filters with a secret key have a type of their own, which RedisBloom does not have.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match (self, self.own_type()) {
            (_, Some(own)) => own.name(),
            (Self::Bloom(_) | Self::LoadingBloom(_), _) => ValueType::Bloom.name(),
            (Self::Cuckoo(_) | Self::LoadingCuckoo(_), _) => ValueType::Cuckoo.name(),
            (Self::Lost(_), _) => "lost",
            (Self::Text(_) | Self::Filter(_), _) => "string",
        }
    }

    /// The type of its payload, if it is one of ours and not RedisBloom's or Redis's.
    #[must_use]
    pub fn own_type(&self) -> Option<OwnType> {
        match self {
            Self::Bloom(_) if self.is_keyed() => Some(OwnType::KeyedBloom),
            Self::Cuckoo(_) if self.is_keyed() => Some(OwnType::KeyedCuckoo),
            Self::Filter(_) => Some(OwnType::Mayhap),
            _ => None,
        }
    }

    /// Does it hash with a secret key?
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        match self {
            Self::Bloom(filter) => redis_bloom::is_keyed(filter.uncounted()),
            Self::Cuckoo(filter) => redis_cuckoo::is_keyed(filter),
            Self::Filter(holder) => holder.is_keyed(),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) | Self::Text(_) | Self::Lost(_) => false,
        }
    }

    /// Moves its memory if `by` finds a better place: all of a `BF.*` or `CF.*` filter, and of other values only the allocation that the
    /// key points to.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        match self {
            Self::Bloom(filter) => {
                relocate_box(filter, by);
                filter.get_mut().relocate(by);
            }
            Self::Cuckoo(filter) => {
                relocate_box(filter, by);
                filter.relocate(by);
            }
            Self::LoadingBloom(loader) => relocate_box(loader, by),
            Self::LoadingCuckoo(loader) => relocate_box(loader, by),
            Self::Text(text) => relocate_box(text, by),
            Self::Filter(holder) => relocate_box(holder, by),
            Self::Lost(_) => {}
        }
    }

    /// Bytes that the value of a key takes, or 0 if the key does not exist.
    #[must_use]
    pub fn booked_bytes(value: Option<&Self>) -> u64 {
        value.map_or(0, Self::memory_bytes)
    }

    /// The approximate number of bytes it takes, or would take after growing if its growth factor can be chosen.
    #[must_use]
    pub fn reach_bytes(&self) -> u64 {
        let bytes = self.memory_bytes();
        match self {
            Self::Bloom(filter) => {
                let shape = filter.uncounted().shape();
                let factor = if shape.grows() { shape.growth_factor().max(1.0) } else { 1.0 };
                (bytes as f64 * factor) as u64
            }
            _ => bytes,
        }
    }

    /// Bytes it takes in total.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Bloom(filter) => size_of::<AtomicScalableBloom>() as u64 + filter.memory_bytes(),
            Self::LoadingBloom(loader) => {
                let filter = loader.filter().map_or(0, mayhap::ScalableBloom::memory_bytes);
                size_of::<redis_bloom::BloomLoader>() as u64 + filter
            }
            Self::Cuckoo(filter) => size_of::<ScalableCuckoo>() as u64 + filter.memory_bytes(),
            Self::LoadingCuckoo(loader) => {
                let filter = loader.filter().map_or(0, ScalableCuckoo::memory_bytes);
                size_of::<redis_cuckoo::CuckooLoader>() as u64 + filter
            }
            Self::Text(text) => text.memory_bytes(),
            Self::Filter(holder) => holder.memory_bytes(),
            Self::Lost(_) => 0,
        }
    }
}
