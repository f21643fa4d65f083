//! The generations of one item in both filters, for [`explain`](crate::explain).

use super::{DualAnswer, DualBloom, as_added, as_removed};
use crate::explain::{BitLookup, Density, DualLookup, DualStep};
use crate::hash::ItemHash;

impl DualBloom {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads: every step through the generations.
    pub(crate) fn trace(&self, hash: ItemHash) -> DualLookup {
        let mut steps = Vec::new();
        for generation in 0..Self::MAX_GENERATIONS {
            let added = self.added.trace(as_added(hash, generation));
            let removed = added.holds().then(|| self.removed.trace(as_removed(hash, generation)));
            let goes_on = removed.as_ref().is_some_and(BitLookup::holds);
            steps.push(DualStep { generation, added, removed });
            if !goes_on {
                break;
            }
        }
        let answer = match steps.last() {
            Some(DualStep { removed: Some(removed), .. }) if !removed.holds() => DualAnswer::Present,
            Some(DualStep { generation: 0, removed: None, .. }) => DualAnswer::Never,
            _ => DualAnswer::Removed,
        };
        DualLookup { steps, answer }
    }

    /// Measures how full each part of both filters is.
    pub(crate) fn densities(&self, parts: usize) -> Vec<Density> {
        vec![self.added.density("put in".into(), parts), self.removed.density("removed".into(), parts)]
    }
}
