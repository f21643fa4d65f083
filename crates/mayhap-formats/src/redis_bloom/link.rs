//! The layers of a filter as described by the header of a dump or by an RDB file.

use mayhap::internals::MAX_INSERTED;
use mayhap::internals::scalable::{
    Plan, REDIS_TIGHTENING, redis_bits_agree, redis_bits_for_probes, redis_probes,
};
use mayhap::{Bloom, BloomPlacement, BloomShape, DecodeError, ScalableBloom, ScalableShape, internals};

use super::{HEADER_BYTES, LINK_BYTES, layer_bytes, scheme};
use crate::cursor::Cursor;
use crate::foreign::WriteError;

/// Sizes are not rounded up to powers of two.
const NOT_ROUNDED: u32 = 1;
/// "Entries" is the base-2 logarithm of the number of bits.
const GIVEN_BITS: u32 = 2;
/// The hash has 64 bits.
const HASH_64: u32 = 4;
/// There is one layer; the filter never grows.
const NEVER_GROWS: u32 = 8;

/// Returns the options word of a filter.
///
/// [`WriteError::OtherPlacement`] if it is not a RedisBloom filter.
pub(crate) fn options(filter: &ScalableBloom) -> Result<u32, WriteError> {
    // Keyed filters have the same sizing and another hash.
    match internals::scalable::plan(filter.shape()) {
        Plan::RedisBloom | Plan::RedisBloomTightened if *filter.scheme() == scheme() => {
            Ok(NOT_ROUNDED | HASH_64)
        }
        Plan::RedisBloomFixed if *filter.scheme() == scheme() => Ok(NOT_ROUNDED | HASH_64 | NEVER_GROWS),
        _ => Err(WriteError::OtherPlacement {
            needs: "RedisBloom's MurmurHash64A of bytes, in layers sized by its rule",
            got: format!("{:?}, {}", filter.scheme(), filter.shape()),
        }),
    }
}

/// A layer as a dump describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) bytes: u64,
    pub(crate) bits: u64,
    pub(crate) items: u64,
    pub(crate) error: f64,
    pub(crate) bits_per_entry: f64,
    pub(crate) probes: u32,
    pub(crate) entries: u64,
    pub(crate) n2: u8,
}

impl Link {
    pub(crate) fn of(layer: &Bloom) -> Self {
        let shape = layer.shape();
        let (error, probes) = (shape.target_fpr(), shape.probes());
        Self {
            bytes: layer_bytes(layer),
            bits: shape.bits(),
            items: layer.inserted(),
            error,
            // Every layer was checked to have a capacity.
            bits_per_entry: redis_bits_for_probes(error, probes).unwrap_or_default(),
            probes,
            entries: shape.capacity(),
            n2: 0,
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            bytes: cursor.u64_le()?,
            bits: cursor.u64_le()?,
            items: cursor.u64_le()?,
            error: cursor.f64_le()?,
            bits_per_entry: cursor.f64_le()?,
            probes: cursor.u32_le()?,
            entries: cursor.u64_le()?,
            n2: cursor.u8()?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.bits.to_le_bytes());
        out.extend_from_slice(&self.items.to_le_bytes());
        out.extend_from_slice(&self.error.to_le_bytes());
        out.extend_from_slice(&self.bits_per_entry.to_le_bytes());
        out.extend_from_slice(&self.probes.to_le_bytes());
        out.extend_from_slice(&self.entries.to_le_bytes());
        out.push(self.n2);
    }

    /// Returns the shape of the layer, if RedisBloom would load it and can have made it.
    pub(crate) fn shape(&self) -> Result<BloomShape, DecodeError> {
        let bad = |field, got| Err(DecodeError::BadField { field, got });
        if !(self.error > 0.0 && self.error < 1.0) {
            return bad("error of a layer", self.error.to_bits());
        }
        if self.n2 > 63 {
            return bad("n2 of a layer", self.n2.into());
        }
        if self.n2 > 0 {
            return Err(DecodeError::Unsupported { what: POWERS_OF_TWO });
        }
        if self.bits == 0 || self.bytes.checked_mul(8) != Some(self.bits) {
            return bad("bits of a layer", self.bits);
        }
        if self.probes != redis_probes(self.bits_per_entry) {
            return bad("probes of a layer", self.probes.into());
        }
        if !redis_bits_agree(self.error, self.bits_per_entry) {
            return bad("bits per entry of a layer", self.bits_per_entry.to_bits());
        }
        if self.items > MAX_INSERTED {
            return bad("items of a layer", self.items);
        }
        let placement = BloomPlacement::RedisBloom;
        Ok(internals::bloom::of_placement(placement, self.bits, self.probes, self.entries, self.error)?)
    }
}

const POWERS_OF_TWO: &str = "a RedisBloom filter of before version 2, with sizes rounded to powers of two";

/// A filter as the header of a dump describes it: everything except its bits.
#[derive(Debug)]
pub(super) struct BloomHead {
    items: u64,
    options: u32,
    growth: u32,
    pub(super) links: Vec<Link>,
}

impl BloomHead {
    /// Reads the header at the front and checks every field.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let items = cursor.u64_le()?;
        let layers = cursor.u32_le()?;
        let (options, growth) = (cursor.u32_le()?, cursor.u32_le()?);
        let need = HEADER_BYTES + u64::from(layers) * LINK_BYTES;
        let got = (cursor.position() + cursor.left()) as u64;
        if need > got {
            return Err(DecodeError::TooShort { need, got });
        }
        let links = (0..layers).map(|_| Link::read(cursor)).collect::<Result<_, _>>()?;
        let head = Self { items, options, growth, links };
        plan(head.items, head.options, head.growth, &head.links)?;
        Ok(head)
    }

    /// The memory of all layers in bytes.
    pub(super) fn memory_bytes(&self) -> Result<u64, DecodeError> {
        let bytes = |link: &Link| link.shape().map(|shape| shape.memory_bytes());
        self.links.iter().try_fold(0_u64, |sum, link| Ok(sum.saturating_add(bytes(link)?)))
    }

    /// Creates the filter with no bit set.
    pub(super) fn filter(&self) -> Result<ScalableBloom, DecodeError> {
        assemble(self.items, self.options, self.growth, &self.links)
    }
}

/// Creates the filter of these layers with no bit set.
pub(crate) fn assemble(
    items: u64,
    options: u32,
    growth: u32,
    links: &[Link],
) -> Result<ScalableBloom, DecodeError> {
    let shape = plan(items, options, growth, links)?;
    let layer = |link: &Link| {
        let layer = internals::bloom::placed(link.shape()?, scheme(), BloomPlacement::RedisBloom)?;
        Ok::<_, DecodeError>(internals::bloom::with_count(layer, link.items))
    };
    let layers = links.iter().map(layer).collect::<Result<_, _>>()?;
    Ok(internals::scalable::of_layers(shape, scheme(), layers))
}

/// Checks the layers and returns how the filter grows.
fn plan(items: u64, options: u32, growth: u32, links: &[Link]) -> Result<ScalableShape, DecodeError> {
    let bad = |field, got| Err(DecodeError::BadField { field, got });
    if options & !(NOT_ROUNDED | GIVEN_BITS | HASH_64 | NEVER_GROWS) != 0 {
        return bad("options", options.into());
    }
    if options & HASH_64 == 0 {
        return Err(DecodeError::Unsupported {
            what: "a RedisBloom filter of before version 2, with a hash of 32 bits",
        });
    }
    if options & NOT_ROUNDED == 0 || options & GIVEN_BITS != 0 {
        return Err(DecodeError::Unsupported { what: POWERS_OF_TWO });
    }
    let plan = if options & NEVER_GROWS == 0 { Plan::RedisBloom } else { Plan::RedisBloomFixed };
    let Some(first) = links.first().filter(|_| links.len() <= plan.max_layers()) else {
        return bad("number of layers", links.len() as u64);
    };
    for link in links {
        link.shape()?;
    }
    let counted = links.iter().map(|link| u128::from(link.items)).sum::<u128>();
    if counted != u128::from(items) || items > MAX_INSERTED {
        return bad("items", items);
    }
    let target_fpr = match plan {
        Plan::RedisBloomFixed => first.error,
        _ => (first.error * 2.0).min(1.0),
    };
    Ok(internals::scalable::of_redis_bloom(plan, first.entries, target_fpr, growth, REDIS_TIGHTENING)?)
}
