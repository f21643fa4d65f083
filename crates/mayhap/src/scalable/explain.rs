//! The layers looked up for one item, for [`explain`](crate::explain).

use super::ScalableBloom;
use crate::explain::{Density, LayerLookup, LayerProbe};
use crate::hash::ItemHash;

impl ScalableBloom {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads, and the layers it can skip.
    pub(crate) fn trace(&self, hash: ItemHash) -> LayerLookup {
        let layers = self.layers.iter().enumerate().rev().map(|(index, layer)| LayerProbe {
            number: index + 1,
            capacity: layer.capacity(),
            inserted: layer.inserted(),
            bits: layer.trace(hash),
        });
        LayerLookup { layers: layers.collect() }
    }

    /// Measures how full each part of every layer is, the newest layer first.
    pub(crate) fn densities(&self, parts: usize) -> Vec<Density> {
        let layers = self.layers.iter().enumerate().rev();
        layers.map(|(index, layer)| layer.density(format!("layer {}", index + 1), parts)).collect()
    }
}
