//! The counters of one item, for [`explain`](crate::explain).

use std::sync::atomic::Ordering;

use super::CountingBloom;
use super::counters::{COUNTERS_PER_WORD, occupied, word_of};
use crate::explain::{CounterLookup, CounterProbe, Density};
use crate::hash::ItemHash;
use crate::probe::{PositionStream as _, Probes, Range};
use crate::sizing::counting::MAX_COUNT;

impl CountingBloom {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> CounterLookup {
        let (array, mut stream) = (self.array(), Probes::new(hash));
        let probes = (0..array.probes).map(|_| {
            let position = stream.next(Range::of(array.counters));
            let word = array.words[word_of(position)].load(Ordering::Relaxed);
            CounterProbe { position, count: array.count(position), word }
        });
        CounterLookup { counters: array.counters, limit: MAX_COUNT, probes: probes.collect() }
    }

    /// Measures the share of counters above zero in each part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        let words = self.counters.words();
        let word_count = self.shape.counters().div_ceil(COUNTERS_PER_WORD);
        Density::of(name, "counters above zero", word_count, parts, |word| {
            let taken = occupied(words[word as usize].load(Ordering::Relaxed)).count_ones();
            let counters = (self.shape.counters() - word * COUNTERS_PER_WORD).min(COUNTERS_PER_WORD);
            (taken.into(), counters)
        })
    }
}
