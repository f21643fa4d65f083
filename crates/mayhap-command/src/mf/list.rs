//! The first items of a small filter: a list of their hashes, until the filter itself takes no more memory
//! than the list.

use mayhap::{BuildError, Filter, HashScheme, InsertError, ItemHash};

use super::recipe::Recipe;

/// Hashes in insertion order, without duplicates. They have 128 bits, so there are no false positives.
#[derive(Clone, Debug, Default)]
pub(crate) struct List(Vec<ItemHash>);

impl List {
    /// The list of these hashes, without duplicates.
    pub(crate) const fn of(hashes: Vec<ItemHash>) -> Self {
        Self(hashes)
    }

    pub(crate) fn hashes(&self) -> &[ItemHash] {
        &self.0
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, hash: ItemHash) -> bool {
        self.0.contains(&hash)
    }

    /// Appends `hash`, which is not in the list. There may be a hundred million lists, so they keep little
    /// spare capacity.
    pub(crate) fn push(&mut self, hash: ItemHash) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact((self.0.len() / 4).max(4));
        }
        self.0.push(hash);
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<ItemHash>()) as u64
    }

    /// Makes the filter and inserts the same items in the same order.
    pub(crate) fn filter(&self, recipe: &Recipe, scheme: HashScheme) -> Result<Filter, BuildError> {
        let mut filter = recipe.make(scheme)?;
        for &hash in &self.0 {
            // It fits: a list holds at most as many items as the filter's first tier.
            if let Err(InsertError::CannotGrow { cause, .. }) = filter.insert_hash(hash) {
                return Err(cause);
            }
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap::ScalableShape;

    #[test]
    fn listed_items_fit_in_the_filter_without_growth() -> Result<(), BuildError> {
        let scheme = HashScheme::fast(1);
        for capacity in [1, 2, 3, 4, 5, 50, 1_000] {
            for target_fpr in [0.01, 1e-6, 1e-14] {
                // Memory for the first tier only.
                let shape = ScalableShape::for_capacity(capacity, target_fpr)?;
                let recipe = Recipe::Scalable(shape.within(shape.layer(0)?.memory_bytes())?);
                let most = recipe.listed_items().unwrap_or(0) as u64;
                assert!(most <= capacity);
                let list = List::of((0..most).map(|item| scheme.hash(&item)).collect());
                let filter = list.filter(&recipe, scheme)?;
                assert!((0..most).all(|item| filter.may_contain(&item)), "{capacity}, {target_fpr}");
            }
        }
        Ok(())
    }
}
