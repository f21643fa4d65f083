//! What a name holds.

use mayhap::codec::redis_rdb::{OwnType, ValueType};
use mayhap::codec::{redis_bloom, redis_cuckoo};
use mayhap::{AtomicScalableBloom, Relocate, ScalableCuckoo, relocate_box};

use crate::bits::Text;
use crate::lost::Lost;
use crate::mf::Holder;

/// What a name holds. Small: most of it is behind one pointer, for there may be a hundred million of them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// A filter of the `BF.*` family: RedisBloom's layout, or the same with a secret key. Lookups and inserts need no more than a shared reference.
    Bloom(Box<AtomicScalableBloom>),
    /// A filter of the `BF.*` family that `BF.LOADCHUNK` is filling: some of its bytes did not come yet, so that it answers nothing.
    LoadingBloom(Box<redis_bloom::Loader>),
    /// A filter of the `CF.*` family: RedisBloom's layout, or the same with a secret key.
    Cuckoo(Box<ScalableCuckoo>),
    /// A filter of the `CF.*` family that `CF.LOADCHUNK` is filling.
    LoadingCuckoo(Box<redis_cuckoo::Loader>),
    /// A string of bytes and bits.
    Text(Box<Text>),
    /// A filter of the `MF.*` family, of any kind.
    Filter(Box<Holder>),
    /// Nothing is left of what the name held: it answers *not ready*.
    Lost(Lost),
}

impl Value {
    /// What this is, and whose commands answer it, for a client that asked with others.
    pub(crate) const fn family(&self) -> &'static str {
        match self {
            Self::Bloom(_) | Self::LoadingBloom(_) => "a Bloom filter, which BF.* commands answer",
            Self::Cuckoo(_) | Self::LoadingCuckoo(_) => "a cuckoo filter, which CF.* commands answer",
            Self::Text(_) => "a string, which GET and GETBIT answer",
            Self::Filter(_) => "a filter, which MF.* commands answer",
            Self::Lost(_) => "nothing, for its data is lost",
        }
    }

    /// What `TYPE` says. A filter of the `BF.*` and `CF.*` families that has a secret key is of a type of its own: RedisBloom does not know it.
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

    /// The type of its payload, if that is one of our own and not one of RedisBloom's or Redis's.
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

    /// Has its memory put elsewhere, where that is better: all of a filter of the `BF.*` and `CF.*` families, and of other values what their
    /// name points to.
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

    /// Bytes a name takes that holds this, or nothing.
    #[must_use]
    pub fn booked_bytes(value: Option<&Self>) -> u64 {
        value.map_or(0, Self::memory_bytes)
    }

    /// Bytes it takes, or would take if it had to grow now, where one can choose how far: about.
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

    /// Bytes it takes, all in.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Bloom(filter) => size_of::<AtomicScalableBloom>() as u64 + filter.memory_bytes(),
            Self::LoadingBloom(loader) => {
                let filter = loader.filter().map_or(0, mayhap::ScalableBloom::memory_bytes);
                size_of::<redis_bloom::Loader>() as u64 + filter
            }
            Self::Cuckoo(filter) => size_of::<ScalableCuckoo>() as u64 + filter.memory_bytes(),
            Self::LoadingCuckoo(loader) => {
                let filter = loader.filter().map_or(0, ScalableCuckoo::memory_bytes);
                size_of::<redis_cuckoo::Loader>() as u64 + filter
            }
            Self::Text(text) => text.memory_bytes(),
            Self::Filter(holder) => holder.memory_bytes(),
            Self::Lost(_) => 0,
        }
    }
}
