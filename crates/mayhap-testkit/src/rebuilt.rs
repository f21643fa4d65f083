//! Adapts a filter that is built once from all its items, so that it accepts them one by one.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::{Inserted, Subject};

/// A static filter under test: the interface a suite needs.
pub trait Built: Sized {
    /// Builds a filter of these items, which may contain duplicates.
    ///
    /// # Errors
    /// The reason, if it cannot be built.
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String>;

    /// Returns `false` if `item` is certainly not a member, `true` if it may be.
    fn may_contain(&self, item: &[u8]) -> bool;

    /// Queries all `items` in one call.
    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool>;

    /// Encodes and decodes the filter.
    ///
    /// # Errors
    /// The reason, if that fails.
    fn round_trip(&self) -> Result<Self, String>;
}

/// Collects items and rebuilds the filter when it is queried after an insert, so that a static filter can be a [`Subject`].
pub struct Rebuilt<F> {
    seed: u64,
    /// The inserted items, including some duplicates: a filter must accept them, and building must not become slower without bound.
    items: Vec<Vec<u8>>,
    distinct: HashSet<Vec<u8>>,
    filter: OnceCell<F>,
}

impl<F: Built> Rebuilt<F> {
    /// Creates it without items.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, items: Vec::new(), distinct: HashSet::new(), filter: OnceCell::new() }
    }

    /// Returns the filter of all items inserted so far.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn filter(&self) -> &F {
        self.filter.get_or_init(|| F::build(&self.items, self.seed).expect("a filter of these items"))
    }
}

impl<F: Built> Subject for Rebuilt<F> {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        if self.distinct.insert(item.to_vec()) || self.items.len() < 2 * self.distinct.len() {
            self.items.push(item.to_vec());
            self.filter = OnceCell::new();
        }
        Inserted::Mayhap
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.filter().may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        let back = self.filter().round_trip();
        Some(back.map(|filter| Self {
            seed: self.seed,
            items: self.items.clone(),
            distinct: self.distinct.clone(),
            filter: filter.into(),
        }))
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        self.filter().may_contain_batch(items)
    }
}
