//! The blocks of one item in every generation, for [`explain`](crate::explain).

use std::sync::atomic::Ordering;

use super::{Window, ring};
use crate::explain::{Density, GenerationLookup, GenerationProbe};
use crate::hash::ItemHash;

impl Window {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> GenerationLookup {
        let generations = self.shape.generations() as usize;
        let probe = |age: usize| {
            let index = (self.newest + generations - age) % generations;
            GenerationProbe {
                age: age as u32,
                inserted: self.account(index)[0],
                capacity: self.shape.generation_items(),
                blocks: ring::trace(self.blocks(), &self.shape, index, hash),
            }
        };
        // An expired generation is kept in case the time returns, but lookups ignore it.
        let is_alive = |age: &usize| self.is_alive((self.newest + generations - age) % generations);
        GenerationLookup { generations: (0..generations).filter(is_alive).map(probe).collect() }
    }

    /// Measures how full each part of every generation is, the newest first.
    pub(crate) fn densities(&self, parts: usize) -> Vec<Density> {
        let (generations, words) = (self.shape.generations() as usize, self.shape.block_words());
        let shape = self.shape.generation();
        let blocks = shape.blocks() * u64::from(shape.lines_per_item());
        let density = |age: usize| {
            let index = (self.newest + generations - age) % generations;
            Density::of(format!("generation {age}"), "bits set", blocks, parts, |block| {
                let first = (block as usize * generations + index) * words;
                let ones = self.blocks()[first..][..words].iter().map(|word| word.load(Ordering::Relaxed));
                (ones.map(|word| u64::from(word.count_ones())).sum(), words as u64 * 64)
            })
        };
        (0..generations).map(density).collect()
    }
}
