//! The description of a value of any type, for statistics, lists and web pages.

use mayhap::{Kind, Sampling, figures};

use crate::health::Health;
use crate::value::Value;

/// What a dashboard shows of a filter or a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// The reply of `TYPE`.
    pub type_name: &'static str,
    /// The kind of filter.
    pub kind: &'static str,
    /// Items in it, by its own count; 0 for a bitmap, whose bits would have to be counted one by one.
    pub items: u64,
    /// Items it was sized for.
    pub capacity: u64,
    /// Its target false-positive rate at that capacity.
    pub target_fpr: f64,
    /// The false-positive rate now: by the model for the inserted items, or by the bits that are set if that is higher.
    pub expected_fpr: f64,
    /// The share of bits or slots in use, counted or from a sample; 0 for a string.
    pub fill: f64,
    /// Whether the rate is above the target, and how far.
    pub health: Health,
    /// Bytes it takes in total.
    pub memory_bytes: u64,
    /// The number of its layers or sub-filters.
    pub layers: u64,
    /// How many times it was rebuilt.
    pub generation: u64,
    /// Does it hash with a secret key?
    pub keyed: bool,
    /// Can it answer? It cannot while it is being loaded, or if its data is lost.
    pub is_ready: bool,
}

impl Description {
    /// The share of its capacity that is in use; 0 if it has no capacity.
    #[must_use]
    pub fn load(&self) -> f64 {
        figures::load(self.items, self.capacity)
    }
}

impl Value {
    /// Items in it, by its own count, which is quick to read; 0 if they would have to be counted one by one.
    #[must_use]
    pub fn items(&self) -> u64 {
        match self {
            Self::Bloom(filter) => filter.inserted(),
            Self::Cuckoo(filter) => filter.inserted(),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) => 0,
            Self::Text(_) | Self::Lost(_) => 0,
            Self::Filter(holder) => holder.items(),
        }
    }

    /// Can it answer? It cannot while it is being loaded, or if its data is lost.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self {
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) | Self::Lost(_) => false,
            Self::Filter(holder) => holder.is_ready(),
            Self::Bloom(_) | Self::Cuckoo(_) | Self::Text(_) => true,
        }
    }

    /// Describes it. Reads as much of its bits as `sampling` allows.
    #[must_use]
    pub fn describe(&self, sampling: Sampling) -> Description {
        let described = Description {
            type_name: self.type_name(),
            kind: Kind::Bitmap.name(),
            items: self.items(),
            capacity: 0,
            target_fpr: 0.0,
            expected_fpr: 0.0,
            fill: 0.0,
            health: Health::Ok,
            memory_bytes: self.memory_bytes(),
            layers: 1,
            generation: 0,
            keyed: self.is_keyed(),
            is_ready: self.is_ready(),
        };
        match self {
            Self::Bloom(filter) => {
                let (target_fpr, counted) = (filter.target_fpr(), filter.expected_fpr());
                let fill = filter.uncounted().fill_by(sampling);
                Description {
                    kind: Kind::ScalableBloom.name(),
                    capacity: filter.capacity(),
                    target_fpr,
                    expected_fpr: counted.max(fill.expected_fpr),
                    fill: fill.share,
                    health: Health::of(target_fpr, counted.max(fill.certain_fpr())),
                    layers: filter.layers() as u64,
                    ..described
                }
            }
            Self::Cuckoo(filter) => {
                let (target_fpr, expected_fpr) = (filter.target_fpr(), filter.expected_fpr());
                Description {
                    kind: Kind::ScalableCuckoo.name(),
                    capacity: filter.capacity(),
                    target_fpr,
                    expected_fpr,
                    fill: filter.fill(),
                    health: Health::of(target_fpr, expected_fpr),
                    layers: filter.tables() as u64,
                    ..described
                }
            }
            Self::LoadingBloom(_) => Description { kind: Kind::ScalableBloom.name(), ..described },
            Self::LoadingCuckoo(_) => Description { kind: Kind::ScalableCuckoo.name(), ..described },
            Self::Text(_) => Description { kind: "string", ..described },
            Self::Lost(_) => Description { kind: "lost", ..described },
            Self::Filter(holder) => {
                let facts = holder.facts(sampling);
                Description {
                    kind: facts.kind.map_or("unknown", Kind::name),
                    capacity: facts.capacity,
                    target_fpr: facts.target_fpr,
                    expected_fpr: facts.expected_fpr,
                    fill: facts.fill,
                    health: facts.health,
                    layers: facts.layers,
                    generation: facts.generation.into(),
                    ..described
                }
            }
        }
    }
}
