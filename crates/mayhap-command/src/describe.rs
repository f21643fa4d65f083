//! What there is to say of a value, whatever it is: for statistics, lists and web pages.

use mayhap::Kind;

use crate::value::Value;

/// What a dashboard shows of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// What `TYPE` says.
    pub type_name: &'static str,
    /// Which kind of filter it is.
    pub kind: &'static str,
    /// Items in it by its own count; 0 for a bitmap, whose bits would have to be counted one by one.
    pub items: u64,
    /// Items it was sized for.
    pub capacity: u64,
    /// The rate it promised at that.
    pub target_fpr: f64,
    /// The rate by the model, for what is in it now.
    pub expected_fpr: f64,
    /// Bytes it takes, all in.
    pub memory_bytes: u64,
    /// Filters it is a chain of.
    pub layers: u64,
    /// How many times it was built anew.
    pub generation: u64,
    /// Does it hash with a secret key?
    pub keyed: bool,
    /// Does it answer? Not while it is being loaded, nor when its data is lost.
    pub is_ready: bool,
}

impl Description {
    /// The share of its capacity that is taken; 0 where there is none.
    #[must_use]
    pub fn fill(&self) -> f64 {
        match self.capacity {
            0 => 0.0,
            capacity => self.items as f64 / capacity as f64,
        }
    }
}

impl Value {
    /// Items in it by its own count, which is quick to read; 0 where they would have to be counted one by one.
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

    /// What there is to say of it. Takes time in proportion to its layers, not to its size.
    #[must_use]
    pub fn describe(&self) -> Description {
        let described = Description {
            type_name: self.type_name(),
            kind: Kind::Bitmap.name(),
            items: self.items(),
            capacity: 0,
            target_fpr: 0.0,
            expected_fpr: 0.0,
            memory_bytes: self.memory_bytes(),
            layers: 1,
            generation: 0,
            keyed: self.is_keyed(),
            is_ready: true,
        };
        match self {
            Self::Bloom(filter) => Description {
                kind: Kind::ScalableBloom.name(),
                capacity: filter.capacity(),
                target_fpr: filter.target_fpr(),
                expected_fpr: filter.expected_fpr(),
                layers: filter.layers() as u64,
                ..described
            },
            Self::Cuckoo(filter) => Description {
                kind: Kind::ScalableCuckoo.name(),
                capacity: filter.capacity(),
                target_fpr: filter.target_fpr(),
                expected_fpr: filter.expected_fpr(),
                layers: filter.tables() as u64,
                ..described
            },
            Self::LoadingBloom(_) => {
                Description { kind: Kind::ScalableBloom.name(), is_ready: false, ..described }
            }
            Self::LoadingCuckoo(_) => {
                Description { kind: Kind::ScalableCuckoo.name(), is_ready: false, ..described }
            }
            Self::Text(_) => Description { kind: "string", ..described },
            Self::Lost(_) => Description { kind: "lost", is_ready: false, ..described },
            Self::Filter(holder) => {
                let facts = holder.facts();
                Description {
                    kind: facts.kind.map_or("unknown", Kind::name),
                    capacity: facts.capacity,
                    target_fpr: facts.target_fpr,
                    expected_fpr: facts.expected_fpr,
                    layers: facts.layers,
                    generation: facts.generation.into(),
                    is_ready: holder.is_ready(),
                    ..described
                }
            }
        }
    }
}
