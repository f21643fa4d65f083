//! The exact model that a filter is compared with.

use crate::rng::Rng;

/// A multiset of item numbers `0..pool`: which are held, and in how many copies.
///
/// It stores items by number, not by bytes, and picks a random held one in constant time, so that tens of millions of operations take seconds.
///
/// ```
/// use mayhap_testkit::model::Model;
/// let mut model = Model::new(10);
/// model.add(4);
/// model.add(4);
/// model.take(4);
/// assert!(model.holds(4));
/// model.take(4);
/// assert!(!model.holds(4));
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    copies: Vec<u32>,
    held: Vec<u64>,
    /// The index in `held` of a held number.
    places: Vec<usize>,
    total_copies: u64,
}

impl Model {
    /// Creates an empty model with room for the numbers `0..pool`.
    #[must_use]
    pub fn new(pool: u64) -> Self {
        let pool = pool as usize;
        Self { copies: vec![0; pool], held: Vec::new(), places: vec![0; pool], total_copies: 0 }
    }

    /// Adds one copy of `number`.
    ///
    /// # Panics
    ///
    /// If `number` is outside the pool.
    pub fn add(&mut self, number: u64) {
        let copies = &mut self.copies[number as usize];
        if *copies == 0 {
            self.places[number as usize] = self.held.len();
            self.held.push(number);
        }
        *copies += 1;
        self.total_copies += 1;
    }

    /// Removes one copy of `number`.
    ///
    /// # Panics
    ///
    /// If it holds no copy: a script only removes what the model holds.
    pub fn take(&mut self, number: u64) {
        let copies = &mut self.copies[number as usize];
        assert!(*copies > 0, "removed number {number}, which is not held");
        *copies -= 1;
        self.total_copies -= 1;
        if *copies == 0 {
            let place = self.places[number as usize];
            self.held.swap_remove(place);
            if let Some(&moved) = self.held.get(place) {
                self.places[moved as usize] = place;
            }
        }
    }

    /// Removes everything, in time proportional to the held numbers.
    pub fn clear(&mut self) {
        for number in self.held.drain(..) {
            self.copies[number as usize] = 0;
        }
        self.total_copies = 0;
    }

    /// Returns whether it holds at least one copy of `number`.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        self.copies[number as usize] > 0
    }

    /// The number of copies of `number`.
    #[must_use]
    pub fn copies(&self, number: u64) -> u32 {
        self.copies[number as usize]
    }

    /// Every held number, once each, in any order.
    #[must_use]
    pub fn held(&self) -> &[u64] {
        &self.held
    }

    /// The number of copies of all numbers.
    #[must_use]
    pub const fn total_copies(&self) -> u64 {
        self.total_copies
    }

    /// Returns a random held number, or `None` if it is empty.
    pub fn pick(&self, rng: &mut Rng) -> Option<u64> {
        match self.held.len() as u64 {
            0 => None,
            held => Some(self.held[rng.below(held) as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_model_agrees_with_a_map() {
        let (mut model, mut map) = (Model::new(50), HashMap::<u64, u32>::new());
        let mut rng = Rng::new(3);
        for _ in 0..20_000 {
            let number = rng.below(50);
            if rng.below(2) == 0 {
                model.add(number);
                *map.entry(number).or_default() += 1;
            } else if let Some(held) = model.pick(&mut rng) {
                model.take(held);
                let copies = map.get_mut(&held).expect("picked numbers are held");
                *copies -= 1;
                if *copies == 0 {
                    map.remove(&held);
                }
            }
            let mut held = model.held().to_vec();
            held.sort_unstable();
            let mut expected: Vec<u64> = map.keys().copied().collect();
            expected.sort_unstable();
            assert_eq!(held, expected);
            assert!(held.iter().all(|number| model.copies(*number) == map[number] && model.holds(*number)));
            assert_eq!(model.total_copies(), map.values().map(|&copies| u64::from(copies)).sum::<u64>());
        }
    }

    #[test]
    fn the_model_is_empty_once_cleared() {
        let mut model = Model::new(5);
        [1, 1, 3].into_iter().for_each(|number| model.add(number));
        model.clear();
        assert!((0..5).all(|number| !model.holds(number)));
        assert_eq!((model.held().len(), model.total_copies(), model.pick(&mut Rng::new(1))), (0, 0, None));
        model.add(3);
        assert_eq!((model.held(), model.copies(3)), ([3].as_slice(), 1));
    }

    #[test]
    #[should_panic(expected = "not held")]
    fn taking_an_item_that_is_not_held_panics() {
        Model::new(3).take(1);
    }
}
