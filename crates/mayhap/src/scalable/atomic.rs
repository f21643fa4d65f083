//! The growing chain for many threads at once.

use super::shape::layer_fpr_now;
use super::word::low_bits;
use super::{ScalableBloom, WORD};
use crate::answers::Answers;
use crate::bloom::Bloom;
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::shared::Shareable;
use crate::sizing::scalable;
use crate::together::{Layer, Room, insert_one, insert_word};

/// A [`ScalableBloom`] that many threads insert into and ask through `&self`, without a lock, until it has to grow.
///
/// * **no** is certain for every item whose insert had returned before the question was asked.
/// * A batch stops at the item that needs another layer. To go on, take the filter exclusively: [`get_mut`](Self::get_mut)
///   gives the plain filter, which grows.
/// * No layer ever counts more items than it was made for, however many threads insert at once.
///
/// ```
/// use mayhap::{Answers, AtomicScalableBloom, ScalableBloom};
///
/// let mut seen = AtomicScalableBloom::from(ScalableBloom::for_capacity(2, 0.01, 0)?);
/// let hashes = ["a", "b", "c"].map(|item| seen.hash(item));
/// let mut new = Answers::new();
/// assert_eq!(seen.insert_hash_batch(&hashes, &mut new), 2); // the third needs a new layer
/// assert!(seen.get_mut().insert_hash(hashes[2])?);
/// assert_eq!(seen.inserted(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicScalableBloom {
    /// The words of its newest layer are touched as atomics; that layer's own count misses what `counted` has.
    filter: ScalableBloom,
    /// Items the newest layer took through `&self`, or that a thread has claimed room for.
    counted: Room,
}

impl From<ScalableBloom> for AtomicScalableBloom {
    fn from(filter: ScalableBloom) -> Self {
        Self { filter, counted: Room::new() }
    }
}

impl Layer for Bloom {
    type Hash = ItemHash;

    #[inline(always)]
    fn prefetch(&self, hash: ItemHash) {
        Shareable::prefetch(self, hash);
    }

    #[inline(always)]
    fn holds(&self, hash: ItemHash) -> bool {
        self.may_contain_hash(hash)
    }

    #[inline(always)]
    fn set(&self, hash: ItemHash) -> bool {
        self.set_shared(hash)
    }
}

impl AtomicScalableBloom {
    /// The hash of `item` for the `_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.filter.scheme.hash(item)
    }

    /// Records one item: `true` if it changed the filter, so that it was certainly new. `None`: it needs a layer that is not there.
    #[inline]
    pub fn insert_hash(&self, hash: ItemHash) -> Option<bool> {
        if self.filter.may_contain_hash(hash) {
            return Some(false);
        }
        insert_one(self.filter.newest(), &self.counted, self.filter.room(), hash)
    }

    /// Records `hashes` one after the other until one needs a layer that is not there, and says how many it went through.
    /// `answers` has one answer for each of those: set if the item changed the filter, so that it was certainly new.
    pub fn insert_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) -> usize {
        answers.reset(hashes.len());
        for (number, (word, chunk)) in answers.words_mut().iter_mut().zip(hashes.chunks(WORD)).enumerate() {
            let done = self.insert_word(chunk, word);
            if done < chunk.len() {
                let done = number * WORD + done;
                answers.truncate(done);
                return done;
            }
        }
        hashes.len()
    }

    /// [`insert_hash_batch`](Self::insert_hash_batch) for at most 64 hashes.
    ///
    /// First asks about all of them at once: what is there already stays there, and takes neither room nor a locked instruction. The others
    /// go in one after the other, and whether one changed anything is what its own bits say: the same item a second time does not.
    fn insert_word(&self, hashes: &[ItemHash], new: &mut u64) -> usize {
        let non_members = low_bits(hashes.len()) & !self.filter.answer_word(hashes);
        if non_members == 0 {
            return hashes.len();
        }
        insert_word(self.filter.newest(), &self.counted, self.filter.room(), hashes, non_members, new)
    }

    /// Puts items back in that were new to the newest layer when they came, and counts every one of them, whatever is there by now: to play a
    /// log again. Never grows.
    pub fn put_back(&mut self, hashes: &[ItemHash]) {
        let newest = self.get_mut().newest_mut();
        for &hash in hashes {
            newest.set_shared(hash);
        }
        newest.count(hashes.len() as u64);
    }

    /// `false`: never inserted. `true`: mayhap.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.filter.may_contain_hash(hash)
    }

    /// Asks about all `hashes` at once, layer by layer.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.filter.may_contain_hash_batch(hashes, answers);
    }

    /// The plain filter, but the newest layer's own count misses what was inserted through `&self`: to look at shapes and sizes.
    #[must_use]
    pub const fn uncounted(&self) -> &ScalableBloom {
        &self.filter
    }

    /// The plain filter, with everything counted: to grow, to encode, to clear.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut ScalableBloom {
        let counted = self.counted.take();
        self.filter.newest_mut().count(counted);
        &mut self.filter
    }

    /// The plain filter.
    #[must_use]
    pub fn into_inner(mut self) -> ScalableBloom {
        let _ = self.get_mut();
        self.filter
    }

    /// Items that changed the filter.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.filter.inserted().saturating_add(self.counted.taken())
    }

    /// Items all its layers have room for now.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.filter.capacity()
    }

    /// How many layers it has.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.filter.layers.len()
    }

    /// Bytes of all layers.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    /// The rate it promised, after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.filter.target_fpr()
    }

    /// The rate by the model, for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let (newest, layers) = (self.filter.newest(), self.layers());
        let counted = newest.inserted().saturating_add(self.counted.taken());
        let rate = |layer: &Bloom| layer_fpr_now(layer.shape(), layer.inserted(), layers);
        let older = self.filter.older().iter().map(rate);
        scalable::chain_fpr(older.chain([layer_fpr_now(newest.shape(), counted, layers)]))
    }

    /// A plain copy. It holds every item whose insert had returned before, and mayhap some that came meanwhile.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn snapshot(&self) -> Result<ScalableBloom, BuildError> {
        let mut copy = self.filter.try_clone()?;
        copy.newest_mut().count(self.counted.taken());
        Ok(copy)
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        self.filter.scheme()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third item comes twice in a row, and every other one again much later.
    fn items() -> impl Iterator<Item = u64> {
        (0..20_000_u64).map(|item| (item - u64::from(item % 3 == 1)) % 15_000)
    }

    fn grows_alike(make: impl Fn() -> Result<ScalableBloom, BuildError>) -> Result<(), BuildError> {
        for batch in [1, 2, 37, 64, 65, 100, 300] {
            let (mut plain, mut shared) = (make()?, AtomicScalableBloom::from(make()?));
            let hashes: Vec<ItemHash> = items().map(|item| plain.hash(&item)).collect();
            let mut answers = Answers::new();
            for batch in hashes.chunks(batch) {
                let mut at = 0;
                while at < batch.len() {
                    let done = shared.insert_hash_batch(&batch[at..], &mut answers);
                    assert_eq!(answers.len(), done);
                    for (index, new) in answers.iter().enumerate() {
                        assert_eq!(plain.insert_hash(batch[at + index]).ok(), Some(new));
                    }
                    at += done;
                    if at < batch.len() {
                        assert_eq!(shared.inserted(), shared.capacity(), "stopped with room left");
                        let new = plain.insert_hash(batch[at]);
                        assert_eq!(shared.get_mut().insert_hash(batch[at]), new);
                        at += 1;
                    }
                }
                assert_eq!(shared.inserted(), plain.inserted());
                assert_eq!(shared.expected_fpr(), plain.expected_fpr());
            }
            assert!(plain.layers().len() > 3);
            assert_eq!(shared.snapshot()?.encode(), plain.encode());
            assert_eq!(shared.into_inner().encode(), plain.encode());
        }
        Ok(())
    }

    #[test]
    fn grows_exactly_like_the_plain_filter() -> Result<(), BuildError> {
        grows_alike(|| ScalableBloom::for_capacity(64, 0.01, 7))?;
        // Wrong often enough that an item is mistaken for one of its own batch.
        grows_alike(|| ScalableBloom::for_capacity(64, 0.5, 7))
    }

    #[cfg(feature = "formats")]
    #[test]
    fn grows_exactly_like_redis_bloom() -> Result<(), BuildError> {
        use crate::codec::redis_bloom::{Scaling, create};
        grows_alike(|| create(100, 0.01, Scaling::By(2)))?;
        grows_alike(|| create(3, 0.3, Scaling::By(4)))
    }

    #[test]
    fn threads_together_never_overfill_a_layer_nor_lose_an_item() -> Result<(), BuildError> {
        let shared = AtomicScalableBloom::from(ScalableBloom::for_capacity(10_000, 0.01, 7)?);
        let taken: Vec<Vec<ItemHash>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut taken = Vec::new();
                        for batch in 0..100_u64 {
                            let hashes: Vec<ItemHash> = (0..50)
                                .map(|item| shared.hash(&(thread * 1_000_000 + batch * 50 + item)))
                                .collect();
                            let done = shared.insert_hash_batch(&hashes, &mut Answers::new());
                            taken.extend_from_slice(&hashes[..done]);
                        }
                        taken
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(shared.inserted() <= shared.capacity());
        assert!(taken.iter().flatten().all(|&hash| shared.may_contain_hash(hash)));
        let bytes = shared.into_inner().encode();
        assert!(ScalableBloom::decode(&bytes).is_ok());
        Ok(())
    }
}
