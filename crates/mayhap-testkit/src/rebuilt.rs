//! A filter that is built once from all its items, as one that takes them one by one.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::{Inserted, Subject};

/// A static filter under test: what a suite needs to know of it.
pub trait Built: Sized {
    /// A filter of these items, which may hold duplicates.
    ///
    /// # Errors
    /// In words, if it did not come together.
    fn build(items: &[Vec<u8>], seed: u64) -> Result<Self, String>;

    /// `false`: certainly not here. `true`: mayhap.
    fn may_contain(&self, item: &[u8]) -> bool;

    /// All `items` at once.
    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool>;

    /// What comes back after encoding and decoding.
    ///
    /// # Errors
    /// In words, if nothing did.
    fn round_trip(&self) -> Result<Self, String>;
}

/// Collects items and builds the filter anew whenever it is asked after something was inserted, so that a
/// static filter can be a [`Subject`].
pub struct Rebuilt<F> {
    seed: u64,
    /// What was inserted, some of it twice: a filter must not mind, and building must not get slower for ever.
    items: Vec<Vec<u8>>,
    distinct: HashSet<Vec<u8>>,
    filter: OnceCell<F>,
}

impl<F: Built> Rebuilt<F> {
    /// Nothing inserted yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, items: Vec::new(), distinct: HashSet::new(), filter: OnceCell::new() }
    }

    /// The filter of everything inserted so far.
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
