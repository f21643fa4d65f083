//! Explains an answer: what a lookup reads for one item, step by step.
//!
//! ```
//! use mayhap::{Bloom, Filter, explain::Lookup};
//!
//! let mut seen = Bloom::for_capacity(1_000, 0.01, 0)?;
//! seen.insert("ada");
//! let seen = Filter::Bloom(seen);
//!
//! let explanation = seen.explain("grace");
//! assert!(!explanation.answer);
//! assert_eq!(explanation.reason(), "no: bit 1 of 6, position 7,767, is clear");
//! let Lookup::Bits(lookup) = &explanation.lookup else { unreachable!() };
//! assert_eq!(lookup.probes.len(), 6);
//! assert!(seen.explain("ada").answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Positions, fingerprints and rows come from the functions that lookups themselves call, so an explanation always agrees
//! with the answer. It takes time in proportion to what a lookup reads, plus the time of
//! [`expected_fpr`](Filter::expected_fpr).
//!
//! An explanation never contains the secret key of a filter. But it contains positions and fingerprints, and a client that
//! collects many of them learns which items collide. Show explanations of a keyed filter only to users who may read the
//! filter.

mod density;
mod lookup;
mod reason;

pub use density::Density;
pub use lookup::{
    BitLookup, BitProbe, BlockLookup, BlockProbe, BucketLookup, BucketProbe, BucketSlot, ColumnProbe,
    CounterLookup, CounterProbe, DualLookup, DualStep, GenerationLookup, GenerationProbe, LayerLookup,
    LayerProbe, Lookup, NumberLookup, RowLayer, RowLookup, RunEntry, RunLookup, SlotLookup, StoredSlot,
    ValueLookup,
};

use crate::dual::DualAnswer;
use crate::filter::{Filter, number};
use crate::hash::{HashScheme, ItemHash};
use crate::item::{Item, ItemEncoding, ItemValue};
use crate::kind::Kind;

/// What a filter does with one item, and the reason for its answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The kind of filter.
    pub kind: Kind,
    /// `false`: no. `true`: maybe.
    pub answer: bool,
    /// Is the answer certain? Every *no* is, except in a [`DualBloom`](crate::DualBloom) after a removal. No *maybe* is,
    /// except in a [`Bitmap`](crate::Bitmap).
    pub certain: bool,
    /// The bytes that were hashed; `None` if the hash was given.
    pub item: Option<Vec<u8>>,
    /// How the item was encoded as those bytes, in a filter of another program.
    pub encoding: Option<ItemEncoding>,
    /// Can the item be encoded? If not, no other program can have inserted it.
    pub has_form: bool,
    /// The name of the hash function; `None` for a bitmap, which does not hash. Never contains the secret key.
    pub function: Option<String>,
    /// The hash; `None` for a bitmap, and for a `WideBloom`, whose items have no hash of 128 bits.
    pub hash: Option<ItemHash>,
    /// The data that was read.
    pub lookup: Lookup,
    /// The current false-positive rate by the model.
    pub expected_fpr: f64,
    /// The share of members that get a *no*: 0, except in a [`DualBloom`](crate::DualBloom) after a removal.
    pub expected_false_no: f64,
}

impl Filter {
    /// Explains the answer of [`may_contain`](Self::may_contain) for this item.
    #[must_use]
    pub fn explain<I: Item + ?Sized>(&self, item: &I) -> Explanation {
        let encoding = self.items();
        let (bytes, has_form) = item.with_value(|value| hashed_bytes(value, encoding));
        let bytes = if encoding.is_some() { bytes } else { item.with_bytes(<[u8]>::to_vec) };
        let (function, hash) = match self {
            Self::Bitmap(_) => (None, None),
            Self::WideBloom(filter) => (Some(filter.placement().function()), None),
            filter => {
                (filter.scheme().map(HashScheme::function), filter.scheme().map(|scheme| scheme.hash(item)))
            }
        };
        let lookup = self.trace(item);
        Explanation { item: Some(bytes), encoding, has_form, function, hash, ..self.concluding(lookup) }
    }

    /// Returns what [`may_contain`](Self::may_contain) reads for this item, and nothing else. Use it for many items: the rate
    /// of an [`explain`](Self::explain)ation may take milliseconds to compute.
    #[must_use]
    pub fn trace<I: Item + ?Sized>(&self, item: &I) -> Lookup {
        match self {
            Self::Bitmap(bitmap) => Lookup::Number(bitmap.trace(number(item))),
            Self::WideBloom(filter) => {
                let (bytes, _) = item.with_value(|value| hashed_bytes(value, Some(filter.items())));
                Lookup::Bits(filter.trace(&bytes))
            }
            filter => filter.trace_hash(filter.scheme().map(|scheme| scheme.hash(item)).unwrap_or_default()),
        }
    }

    /// [`explain`](Self::explain) for an item already hashed with this filter's [`scheme`](Self::scheme). `None` for a bitmap,
    /// which hashes nothing, and for a `WideBloom`, whose items have no hash of 128 bits.
    #[must_use]
    pub fn explain_hash(&self, hash: ItemHash) -> Option<Explanation> {
        let function = self.scheme()?.function();
        let concluded = self.concluding(self.trace_hash(hash));
        Some(Explanation { function: Some(function), hash: Some(hash), ..concluded })
    }

    fn concluding(&self, lookup: Lookup) -> Explanation {
        let answer = lookup.holds();
        let certain = match &lookup {
            Lookup::Number(_) => true,
            Lookup::Dual(lookup) => lookup.answer == DualAnswer::Never,
            _ => !answer,
        };
        Explanation {
            kind: self.kind(),
            answer,
            certain,
            item: None,
            encoding: self.items(),
            has_form: true,
            function: None,
            hash: None,
            lookup,
            expected_fpr: self.expected_fpr(),
            expected_false_no: match self {
                Self::DualBloom(filter) => filter.expected_false_no(),
                _ => 0.0,
            },
        }
    }

    /// What a filter reads for a hash. The two kinds that do not use such hashes return what holds for any item.
    fn trace_hash(&self, hash: ItemHash) -> Lookup {
        match self {
            Self::Bitmap(bitmap) => Lookup::Number(bitmap.trace(None)),
            Self::Bloom(filter) => Lookup::Bits(filter.trace(hash)),
            Self::BlockedBloom(filter) => Lookup::Blocks(filter.trace(hash)),
            Self::CountingBloom(filter) => Lookup::Counters(filter.trace(hash)),
            Self::DualBloom(filter) => Lookup::Dual(filter.trace(hash)),
            Self::ScalableBloom(filter) => Lookup::Layers(filter.trace(hash)),
            Self::DLeft(filter) => Lookup::Buckets(filter.trace(hash)),
            Self::Cuckoo(filter) => Lookup::Buckets(filter.trace(hash)),
            Self::GrowableCuckoo(filter) => Lookup::Buckets(filter.trace(hash)),
            Self::ScalableCuckoo(filter) => Lookup::Buckets(filter.trace(hash)),
            Self::Fingerprints(filter) => Lookup::Buckets(filter.trace(hash)),
            Self::Quotient(filter) => Lookup::Run(filter.trace(hash)),
            Self::Growing(filter) => Lookup::Run(filter.trace(hash)),
            Self::Xor8(filter) => Lookup::Slots(filter.trace(hash)),
            Self::Xor16(filter) => Lookup::Slots(filter.trace(hash)),
            Self::Xor32(filter) => Lookup::Slots(filter.trace(hash)),
            Self::BinaryFuse8(filter) => Lookup::Slots(filter.trace(hash)),
            Self::BinaryFuse16(filter) => Lookup::Slots(filter.trace(hash)),
            Self::BinaryFuse32(filter) => Lookup::Slots(filter.trace(hash)),
            Self::Ribbon(filter) => Lookup::Rows(filter.trace(hash)),
            Self::Gcs(filter) => Lookup::Values(filter.trace(hash)),
            Self::Window(filter) => Lookup::Generations(filter.trace(hash)),
            Self::WideBloom(filter) => Lookup::Bits(filter.trace(&[])),
        }
    }

    /// The fill of its arrays, each divided into at most `parts` equal parts. There is one array, or one for each layer,
    /// table or generation; the newest layer or generation comes first. Empty for kinds whose slots are always all in use.
    ///
    /// Large arrays are sampled in every part, so that this takes milliseconds, whatever the size.
    #[must_use]
    pub fn densities(&self, parts: usize) -> Vec<Density> {
        let alone = String::new();
        match self {
            Self::Bitmap(filter) => vec![filter.density(alone, parts)],
            Self::Bloom(filter) => vec![filter.density(alone, parts)],
            Self::BlockedBloom(filter) => vec![filter.density(alone, parts)],
            Self::CountingBloom(filter) => vec![filter.density(alone, parts)],
            Self::DualBloom(filter) => filter.densities(parts),
            Self::ScalableBloom(filter) => filter.densities(parts),
            Self::DLeft(filter) => vec![filter.density(alone, parts)],
            Self::Cuckoo(filter) => vec![filter.density(alone, parts)],
            Self::GrowableCuckoo(filter) => vec![filter.density(alone, parts)],
            Self::ScalableCuckoo(filter) => filter.densities(parts),
            Self::Fingerprints(filter) => vec![filter.density(alone, parts)],
            Self::Quotient(filter) => vec![filter.density(alone, parts)],
            Self::Growing(filter) => vec![filter.density(alone, parts)],
            Self::Window(filter) => filter.densities(parts),
            Self::WideBloom(filter) => vec![filter.density(alone, parts)],
            Self::Xor8(_)
            | Self::Xor16(_)
            | Self::Xor32(_)
            | Self::BinaryFuse8(_)
            | Self::BinaryFuse16(_)
            | Self::BinaryFuse32(_)
            | Self::Ribbon(_)
            | Self::Gcs(_) => Vec::new(),
        }
    }
}

/// The bytes that a filter with this encoding hashes, and whether the item can be encoded.
fn hashed_bytes(value: ItemValue<'_>, encoding: Option<ItemEncoding>) -> (Vec<u8>, bool) {
    let Some(encoding) = encoding else { return (Vec::new(), true) };
    (encoding.encode_with(value, <[u8]>::to_vec), encoding.encode(value).is_ok())
}

impl HashScheme {
    /// The name of the function and its seed, never a secret.
    fn function(&self) -> String {
        match self {
            Self::Fast { seed } => format!("XXH3-128, seed {seed}"),
            Self::Keyed { .. } => "SipHash-1-3-128, secret key".into(),
            Self::Foreign(foreign) => format!("{:?}", foreign.function()),
        }
    }
}
