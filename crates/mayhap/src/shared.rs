//! Filters for concurrent use by many threads.

use crate::answers::{Answers, NewItems};
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::together::StripedCount;
use crate::{BlockedBloom, Bloom};

/// A filter that many threads insert into and look up through `&self`, without a lock: [`AtomicBloom`] and
/// [`AtomicBlockedBloom`].
///
/// * **no** is certain for every item whose `insert` returned before the lookup began. Rates, memory and encoded bytes are
///   those of the plain filter; lookups run the same code.
/// * An insert does an atomic `or` for every word that the item has bits in, and none for an item that is already there.
///   In our records an insert takes 1.6 to 4 times as long as in the plain filter at 10^6 items, and 1.4 to 2.2 times
///   at 10^7 and 10^8.
/// * It cannot be merged into, cleared or encoded while it is shared: use [`into_inner`](Self::into_inner) or
///   [`snapshot`](Self::snapshot) for that.
///
/// ```
/// use mayhap::AtomicBloom;
///
/// let seen = AtomicBloom::new(100_000, 0.01)?;
/// std::thread::scope(|scope| {
///     for thread in 0..4_u64 {
///         let seen = &seen;
///         scope.spawn(move || (0..1_000_u64).for_each(|i| { seen.insert(&(thread * 1_000 + i)); }));
///     }
/// });
/// assert!((0..4_000_u64).all(|item| seen.may_contain(&item)));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Shared<F> {
    /// Its words are only accessed as atomics; its own count is not used.
    filter: F,
    inserted: StripedCount,
}

/// A [`Bloom`] filter for many threads: see [`Shared`].
pub type AtomicBloom = Shared<Bloom>;

/// A [`BlockedBloom`] filter for many threads: see [`Shared`].
pub type AtomicBlockedBloom = Shared<BlockedBloom>;

/// A filter whose bits can be set through `&self`. This trait is sealed.
#[doc(hidden)]
pub trait Shareable: Sized + crate::codec::sealed::Sealed {
    type Shape: Copy;

    fn make(shape: Self::Shape, scheme: HashScheme) -> Result<Self, BuildError>;
    fn shape_for(capacity: u64, target_fpr: f64) -> Result<Self::Shape, BuildError>;
    fn shape(&self) -> &Self::Shape;
    fn scheme(&self) -> &HashScheme;
    fn capacity(&self) -> u64;
    fn target_fpr(&self) -> f64;
    fn memory_bytes(&self) -> u64;
    fn inserted(&self) -> u64;
    fn fill(&self) -> f64;
    fn estimated_items(&self) -> u64;
    fn with_inserted(self, inserted: u64) -> Self;
    fn set_scheme(&mut self, scheme: HashScheme);
    fn try_clone(&self) -> Result<Self, BuildError>;
    /// The false-positive rate by the model after `inserted` items.
    fn expected_fpr_at(&self, inserted: u64) -> f64;
    fn may_contain_hash(&self, hash: ItemHash) -> bool;
    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers);
    /// Starts loading the cache lines of an item.
    fn prefetch(&self, hash: ItemHash);
    /// Sets all bits of an item if some are clear. Returns whether this call changed any.
    fn set_shared(&self, hash: ItemHash) -> bool;
}

impl<F: Shareable> Shared<F> {
    /// The smallest filter for `capacity` items at `target_fpr`.
    ///
    /// The hash is the fast one with a random seed, as in [`Bloom::new`].
    ///
    /// # Errors
    /// [`BuildError`] for invalid parameters, and if the system refuses the memory.
    pub fn new(capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_capacity(capacity, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_capacity(
        capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(F::shape_for(capacity, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: F::Shape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        F::make(shape, scheme.into()).map(Self::from)
    }

    pub(crate) fn set_scheme(&mut self, scheme: HashScheme) {
        self.filter.set_scheme(scheme);
    }

    /// The hash of `item` for the `_hash` methods.
    #[inline(always)]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.filter.scheme().hash(item)
    }

    /// Inserts `item`. `true`: the filter changed, so the item was certainly new. If two threads insert the same new item
    /// at the same time, one of them or both may get `true`.
    #[inline(always)]
    pub fn insert<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.insert_hash(self.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    #[inline(always)]
    pub fn insert_hash(&self, hash: ItemHash) -> bool {
        let changed = self.set(hash);
        if changed {
            self.inserted.add(hash.low, 1);
        }
        changed
    }

    /// Inserts all `items` and returns how many of them changed the filter.
    pub fn insert_batch<I: Item>(&self, items: &[I]) -> u64 {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    pub fn insert_hash_batch(&self, hashes: &[ItemHash]) -> u64 {
        self.insert_all(hashes)
    }

    /// [`insert_hash_batch`](Self::insert_hash_batch) that also reports which items changed the filter: a set answer means
    /// *certainly new*.
    pub fn insert_hash_batch_each(&self, hashes: &[ItemHash], new: &mut NewItems) -> u64 {
        const CHUNK: usize = 16;
        new.reset(hashes.len());
        let mut changed = 0;
        for (number, chunk) in hashes.chunks(CHUNK).enumerate() {
            chunk.iter().for_each(|&hash| self.filter.prefetch(hash));
            for (index, &hash) in chunk.iter().enumerate() {
                if self.set(hash) {
                    changed += 1;
                    new.set(number * CHUNK + index);
                }
            }
        }
        self.inserted.add(hashes.as_ptr() as u64 / 64, changed);
        changed
    }

    fn insert_all<H: Hashed>(&self, items: &[H]) -> u64 {
        const CHUNK: usize = 16;
        let start = |hash| {
            self.filter.prefetch(hash);
            hash
        };
        let mut changed = 0;
        hash_one_chunk_behind::<CHUNK, _, _>(items, self.filter.scheme(), start, |_, hashes| {
            for &hash in hashes {
                changed += u64::from(self.set(hash));
            }
        });
        // Any stripe works; threads with different batches use different ones.
        self.inserted.add(items.as_ptr() as u64 / 64, changed);
        changed
    }

    /// Inserts items of a log again and counts every one of them, even if its bits are already set: each was new when it
    /// was logged.
    pub fn put_back(&self, hashes: &[ItemHash]) {
        for &hash in hashes {
            self.filter.set_shared(hash);
        }
        self.inserted.add(0, hashes.len() as u64);
    }

    /// The lookup first saves the locked instructions for items that are already there. Its branch is easy to predict; a
    /// branch before every single bit is not.
    #[inline(always)]
    fn set(&self, hash: ItemHash) -> bool {
        !self.filter.may_contain_hash(hash) && self.filter.set_shared(hash)
    }

    /// `false`: not inserted before this call began. `true`: maybe.
    #[inline(always)]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline(always)]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.filter.may_contain_hash(hash)
    }

    /// Looks up all `items` together, so that their memory loads overlap.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.filter.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.filter.answer_all(hashes, answers);
    }

    /// The shape of the filter.
    #[must_use]
    pub fn shape(&self) -> &F::Shape {
        self.filter.shape()
    }

    /// How it hashes its items.
    #[must_use]
    pub fn scheme(&self) -> &HashScheme {
        self.filter.scheme()
    }

    /// Items it was sized for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.filter.capacity()
    }

    /// The false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub fn target_fpr(&self) -> f64 {
        self.filter.target_fpr()
    }

    /// The items counted so far: insertions that changed a bit.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted.total()
    }

    /// The false-positive rate by the model, for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.filter.expected_fpr_at(self.inserted())
    }

    /// The memory of the bits.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    /// The share of set bits. Other threads may set more during the count.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.filter.fill()
    }

    /// An estimate of the number of items from the fill, independent of the count.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        self.filter.estimated_items()
    }

    /// The plain filter, read-only. Its bits are current, but its own count is not: use [`inserted`](Self::inserted).
    #[must_use]
    pub const fn plain(&self) -> &F {
        &self.filter
    }

    /// A plain copy. It contains every item whose `insert` returned before the call, and maybe some inserted during it.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn snapshot(&self) -> Result<F, BuildError> {
        Ok(self.filter.try_clone()?.with_inserted(self.inserted()))
    }

    /// The plain filter, no longer shared.
    #[must_use]
    pub fn into_inner(self) -> F {
        let inserted = self.inserted();
        self.filter.with_inserted(inserted)
    }
}

/// Shares a filter; its items are kept.
impl<F: Shareable> From<F> for Shared<F> {
    fn from(filter: F) -> Self {
        Self { inserted: StripedCount::new(filter.inserted()), filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_with_answers_changes_the_same_bits_as_single_inserts() -> Result<(), BuildError> {
        let one_by_one = AtomicBloom::for_capacity(1_000, 0.05, 3)?;
        let batched = AtomicBloom::for_capacity(1_000, 0.05, 3)?;
        let hashes: Vec<ItemHash> = (0..2_000_u64).map(|item| batched.hash(&(item % 1_500))).collect();
        let mut new = NewItems::new();
        for batch in hashes.chunks(71) {
            let changed = batched.insert_hash_batch_each(batch, &mut new);
            assert_eq!(changed, new.new_count() as u64);
            let expected: Vec<bool> = batch.iter().map(|&hash| one_by_one.insert_hash(hash)).collect();
            assert_eq!(new.iter().collect::<Vec<_>>(), expected);
        }
        assert_eq!(batched.inserted(), one_by_one.inserted());
        assert_eq!(batched.plain().fill(), one_by_one.fill());
        assert_eq!(batched.into_inner().encode(), one_by_one.into_inner().encode());
        Ok(())
    }
}
