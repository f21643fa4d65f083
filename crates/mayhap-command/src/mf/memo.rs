//! A per-thread cache of computed results.

use std::cell::RefCell;

/// The maximum number of cached results.
const SLOTS: usize = 256;

/// A direct-mapped cache: the hash of a question names its only place, and a later result replaces an earlier one.
pub(crate) struct Memo<Q, A>(RefCell<Vec<Slot<Q, A>>>);

type Slot<Q, A> = Option<Box<(Q, A)>>;

impl<Q, A: Copy> Memo<Q, A> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Returns the cached result for this hash if `is` confirms that the question is the same.
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&Q) -> bool) -> Option<A> {
        let slots = self.0.borrow();
        let (question, answer) = &**slots.get(place(hash))?.as_ref()?;
        is(question).then_some(*answer)
    }

    pub(crate) fn put(&self, hash: u64, question: Q, answer: A) {
        let mut slots = self.0.borrow_mut();
        if slots.is_empty() {
            slots.resize_with(SLOTS, || None);
        }
        slots[place(hash)] = Some(Box::new((question, answer)));
    }
}

const fn place(hash: u64) -> usize {
    (hash >> (64 - SLOTS.trailing_zeros())) as usize
}

/// A fast hash of some numbers. A collision costs only time.
pub(crate) fn hash<const N: usize>(numbers: [u64; N]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    numbers
        .into_iter()
        .fold(FACTOR, |hash, number| (hash ^ number).wrapping_mul(FACTOR).rotate_left(29))
        .wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_needs_hit_the_cache() {
        let memo: Memo<u64, u64> = Memo::new();
        for question in 0..10_000 {
            let hash = hash([question]);
            assert_eq!(memo.get(hash, |asked| *asked == question), None);
            memo.put(hash, question, question + 1);
            assert_eq!(memo.get(hash, |asked| *asked == question), Some(question + 1));
        }
        let kept = (0..10_000).filter(|&question| {
            let known = memo.get(hash([question]), |asked| *asked == question);
            known.inspect(|&answer| assert_eq!(answer, question + 1)).is_some()
        });
        assert!((SLOTS / 2..=SLOTS).contains(&kept.count()), "slots are used evenly");
    }
}
