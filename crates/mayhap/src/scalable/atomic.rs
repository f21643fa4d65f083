//! A scalable Bloom filter that many threads share.

use super::shape::layer_fpr_now;
use super::word::low_bits;
use super::{ScalableBloom, WORD};
use crate::answers::{Answers, NewItems};
use crate::bloom::Bloom;
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::shared::Shareable;
use crate::sizing::scalable;
use crate::together::{Layer, Room, insert_one, insert_word};

/// A [`ScalableBloom`] that many threads use through `&self`, without a lock, until it must grow.
///
/// * **no** is certain for every item whose insert had returned before the lookup began.
/// * A batch stops at the item that needs another layer. To continue, take exclusive access:
///   [`get_mut`](Self::get_mut) returns the plain filter, which grows.
/// * No layer counts more items than its capacity, regardless of how many threads insert.
///
/// ```
/// use mayhap::{AtomicScalableBloom, NewItems, ScalableBloom};
///
/// let mut seen = AtomicScalableBloom::from(ScalableBloom::for_capacity(2, 0.01, 0)?);
/// let hashes = ["a", "b", "c"].map(|item| seen.hash(item));
/// let mut new = NewItems::new();
/// assert_eq!(seen.insert_hash_batch(&hashes, &mut new), 2); // the third needs a new layer
/// assert!(seen.get_mut().insert_hash(hashes[2])?);
/// assert_eq!(seen.inserted(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicScalableBloom {
    /// The words of its newest layer are accessed as atomics. That layer's own count does not include
    /// `counted`.
    filter: ScalableBloom,
    /// Items that the newest layer accepted through `&self`, or for which a thread has reserved room.
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
    /// Returns the hash of `item` for the `_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.filter.scheme.hash(item)
    }

    /// Inserts one item. `Some(true)`: the filter changed, so the item was certainly new. `None`: the item
    /// needs another layer.
    #[inline]
    pub fn insert_hash(&self, hash: ItemHash) -> Option<bool> {
        if self.filter.may_contain_hash(hash) {
            return Some(false);
        }
        insert_one(self.filter.newest(), &self.counted, self.filter.room(), hash)
    }

    /// Inserts `hashes` in order until one needs another layer, and returns how many were processed.
    /// `new` has one bit for each of those: set if the item changed the filter, so it was certainly new.
    pub fn insert_hash_batch(&self, hashes: &[ItemHash], new: &mut NewItems) -> usize {
        new.reset(hashes.len());
        for (number, (word, chunk)) in new.words_mut().iter_mut().zip(hashes.chunks(WORD)).enumerate() {
            let done = self.insert_word(chunk, word);
            if done < chunk.len() {
                let done = number * WORD + done;
                new.truncate(done);
                return done;
            }
        }
        hashes.len()
    }

    /// [`insert_hash_batch`](Self::insert_hash_batch) for at most 64 hashes.
    ///
    /// First looks up all of them together: items already there take neither room nor a locked instruction.
    /// The others are inserted one after the other. Each one's own bits decide whether it changed the filter,
    /// so a duplicate within the batch does not count.
    fn insert_word(&self, hashes: &[ItemHash], new: &mut u64) -> usize {
        let non_members = low_bits(hashes.len()) & !self.filter.answer_word(hashes);
        if non_members == 0 {
            return hashes.len();
        }
        insert_word(self.filter.newest(), &self.counted, self.filter.room(), hashes, non_members, new)
    }

    /// Inserts items again that were new to the newest layer before, and counts every one of them without
    /// checking: for replaying a log. Never grows.
    pub fn put_back(&mut self, hashes: &[ItemHash]) {
        let newest = self.get_mut().newest_mut();
        for &hash in hashes {
            newest.set_shared(hash);
        }
        newest.count(hashes.len() as u64);
    }

    /// `false`: never inserted. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.filter.may_contain_hash(hash)
    }

    /// Looks up all `hashes` together, layer by layer.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.filter.may_contain_hash_batch(hashes, answers);
    }

    /// Returns the plain filter for reading shapes and sizes. The newest layer's own count does not include
    /// items inserted through `&self`.
    #[must_use]
    pub const fn uncounted(&self) -> &ScalableBloom {
        &self.filter
    }

    /// Returns the plain filter with all items counted, to grow, encode or clear it.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut ScalableBloom {
        let counted = self.counted.take();
        self.filter.newest_mut().count(counted);
        &mut self.filter
    }

    /// Converts into the plain filter.
    #[must_use]
    pub fn into_inner(mut self) -> ScalableBloom {
        let _ = self.get_mut();
        self.filter
    }

    /// Returns the number of items that changed the filter.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.filter.inserted().saturating_add(self.counted.taken())
    }

    /// Returns the number of items that all present layers have room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.filter.capacity()
    }

    /// Returns the number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.filter.layers.len()
    }

    /// Returns the memory of all layers in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    /// Returns the promised false-positive rate, which holds after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.filter.target_fpr()
    }

    /// Returns the false-positive rate that the model predicts for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let (newest, layers) = (self.filter.newest(), self.layers());
        let counted = newest.inserted().saturating_add(self.counted.taken());
        let rate = |layer: &Bloom| layer_fpr_now(layer.shape(), layer.inserted(), layers);
        let older = self.filter.older().iter().map(rate);
        scalable::chain_fpr(older.chain([layer_fpr_now(newest.shape(), counted, layers)]))
    }

    /// Returns a plain copy. It holds every item whose insert had returned before the call, and maybe some
    /// inserted during it.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn snapshot(&self) -> Result<ScalableBloom, BuildError> {
        let mut copy = self.filter.try_clone()?;
        copy.newest_mut().count(self.counted.taken());
        Ok(copy)
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        self.filter.scheme()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, REDIS_TIGHTENING, ScalableShape};
    use super::*;
    use crate::hash::{ForeignHash, ForeignScheme};
    use crate::item::ItemEncoding;

    /// Every third item comes twice in a row, and every second one again much later.
    fn items() -> impl Iterator<Item = u64> {
        (0..20_000_u64).map(|item| (item - u64::from(item % 3 == 1)) % 15_000)
    }

    fn grows_alike(make: impl Fn() -> Result<ScalableBloom, BuildError>) -> Result<(), BuildError> {
        for batch in [1, 2, 37, 64, 65, 100, 300] {
            let (mut plain, mut shared) = (make()?, AtomicScalableBloom::from(make()?));
            let hashes: Vec<ItemHash> = items().map(|item| plain.hash(&item)).collect();
            let mut answers = NewItems::new();
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
        // A rate high enough for false positives among the items of one batch.
        grows_alike(|| ScalableBloom::for_capacity(64, 0.5, 7))
    }

    #[test]
    fn grows_exactly_like_redis_bloom() -> Result<(), BuildError> {
        let scheme = ForeignScheme::new(ForeignHash::RedisBloom, ItemEncoding::Bytes);
        let create = |capacity, error, by| {
            let shape =
                ScalableShape::of_redis_bloom(Plan::RedisBloom, capacity, error, by, REDIS_TIGHTENING)?;
            ScalableBloom::with_shape(shape, scheme)
        };
        grows_alike(|| create(100, 0.01, 2))?;
        // As `BF.RESERVE` caps the rate.
        grows_alike(|| create(3, 0.25, 4))
    }

    #[test]
    fn threads_never_overfill_a_layer_or_lose_an_item() -> Result<(), BuildError> {
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
                            let done = shared.insert_hash_batch(&hashes, &mut NewItems::new());
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
