//! The dual Bloom filter.

mod explain;
mod shape;

pub use shape::DualShape;

use crate::answers::Answers;
use crate::batch::Hashed;
use crate::bloom::Bloom;
use crate::codec::{self, Body, DecodeError, Encoding, Header, Parts, Storable};
use crate::error::{BuildError, InsertError, MergeError};
use crate::fill::{Fill, Sampling};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;

/// **Take a [`Cuckoo`](crate::Cuckoo) instead**: as small, faster, and its *no* stays certain after removals.
///
/// A Bloom filter with deletions by a second filter: one [`Bloom`] of inserted items, one of removed items.
///
/// * **no is certain only before the first removal.** Every removal may hide a member, because the filter of
///   removed items has false positives like any other. At most `target_false_no` of the members are hidden
///   while at most `removals` removals were made; [`expected_false_no`](Self::expected_false_no) returns the
///   current share. Inserting a hidden item again makes it visible.
/// * [`lookup`](Self::lookup) has three answers, and [`Never`](DualAnswer::Never) is always certain.
/// * **maybe** ([`Present`](DualAnswer::Present)) can be a false positive: the false-positive rate is at most
///   `target_fpr` while at most `capacity` insertions were made. Past that it rises;
///   [`expected_fpr`](Self::expected_fpr) returns the current rate.
/// * It is a set: one removal removes an item that was inserted twice. Removing an item that was never
///   inserted does no more harm than any other removal.
/// * Every insertion, removal and re-insertion takes space permanently, so this filter suits few removals:
///   9.7 bits per insertion and the same per removal at 1 %. [`CountingBloom`](crate::CountingBloom) takes
///   38.4 bits per item and has no limit on either.
/// * A lookup costs one or two lookups of the plain filter, plus two for every time the item was removed.
///
/// Every item has a chain of generations. In the filters they are as independent as different items. The
/// first insertion adds generation 0. Removing adds the item's present generation to the second filter.
/// Inserting again adds the next generation. A generation is present if it was added and not removed:
///
/// ```text
///             generation 0   1   2   3
/// added                  ●   ●   ●            inserted three times
/// removed                ●   ●                removed twice
///                                └ Present    (none: Never if the chain is empty, Removed if it is not)
/// ```
///
/// ```
/// use mayhap::{DualAnswer, DualBloom};
///
/// let mut users = DualBloom::new(1_000_000, 10_000, 0.001)?;
/// assert_eq!(users.insert("ada"), Ok(true));
/// assert_eq!(users.lookup("ada"), DualAnswer::Present);
/// assert!(users.remove("ada"));
/// assert_eq!(users.lookup("ada"), DualAnswer::Removed);
/// assert_eq!(users.insert("ada"), Ok(true)); // a member again
/// assert!(users.may_contain("ada"));
/// assert_eq!(users.lookup("bob"), DualAnswer::Never);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Debug)]
pub struct DualBloom {
    shape: DualShape,
    added: Bloom,
    removed: Bloom,
    inserted: u64,
}

/// The answer of a [`DualBloom`] about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DualAnswer {
    /// Certainly never inserted.
    Never,
    /// Maybe inserted, and maybe removed again. The item is not a member, or it is a hidden one.
    Removed,
    /// Maybe a member.
    Present,
}

impl DualBloom {
    /// The number of generations of an item. It can be inserted again one time fewer than this.
    pub const MAX_GENERATIONS: u32 = 255;

    /// Creates the smallest filter for `capacity` insertions and `removals` removals. `target_fpr` limits
    /// both the false-positive rate and the share of members that are hidden.
    ///
    /// The hash is the fast one with a random seed. [`with_seed`](Self::with_seed) sets the seed,
    /// [`keyed`](Self::keyed) draws a secret key, and [`for_capacity`](Self::for_capacity) takes any hash scheme.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn new(capacity: u64, removals: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::for_capacity(capacity, removals, target_fpr, HashScheme::random())
    }

    /// [`new`](Self::new) with a hash scheme of your choice. A number is the seed of the fast hash.
    /// [`DualShape::for_rates`] sets the two rates separately.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_capacity(
        capacity: u64,
        removals: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(DualShape::for_capacity(capacity, removals, target_fpr)?, scheme)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: DualShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        let added = Bloom::with_shape(*shape.added(), scheme)?;
        let removed = Bloom::with_shape(*shape.removed(), scheme)?;
        Ok(Self { shape, added, removed, inserted: 0 })
    }

    pub(crate) fn set_scheme(&mut self, scheme: HashScheme) {
        HashScheme::check_replaceable(self.removed.scheme(), self.removed.inserted());
        self.added.set_scheme(scheme);
        self.removed.set_scheme(scheme);
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.added.hash(item)
    }

    /// Inserts `item`. `true`: the filter changed. The item was new, removed before, or hidden, and is
    /// present now. `false`: it may have been present already, and nothing changed.
    ///
    /// # Errors
    /// [`InsertError::TooManyGenerations`] if the item was removed too often. On error, nothing has changed.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash(self.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        let first = match self.walk(hash) {
            Walk::Present(_) => return Ok(false),
            Walk::EndsBefore(generation) => generation,
        };
        // If `removed` has a false positive for the new generation, add further ones until the item is
        // visible.
        let seen = |generation: &u32| !self.removed.may_contain_hash(as_removed(hash, *generation));
        let Some(last) = (first..Self::MAX_GENERATIONS).find(seen) else {
            return Err(InsertError::TooManyGenerations {
                got: Self::MAX_GENERATIONS + 1,
                limit: Self::MAX_GENERATIONS,
            });
        };
        for generation in first..=last {
            self.added.insert_hash(as_added(hash, generation));
        }
        self.inserted = self.inserted.saturating_add(1);
        Ok(true)
    }

    /// Inserts all `items` and returns how many of them changed the filter. If the filter is larger than the
    /// cache, this is much faster than single inserts.
    ///
    /// # Errors
    /// [`InsertError::TooManyGenerations`] if an item was removed too often. All other items are inserted
    /// even then.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        self.insert_all(hashes)
    }

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> Result<u64, InsertError> {
        let scheme = *self.scheme();
        let (mut hashes, mut asked, mut claimed, mut walking) = (vec![], vec![], Answers::new(), vec![]);
        let (mut changed, mut failed) = (0, None);
        for chunk in items.chunks(CHUNK) {
            hashes.clear();
            hashes.extend(chunk.iter().map(|item| item.hashed(&scheme)));
            asked.clear();
            asked.extend(hashes.iter().map(|&hash| as_removed(hash, 0)));
            self.removed.may_contain_hash_batch(&asked, &mut claimed);
            // Items that `removed` does not contain need only generation 0, so the plain filter's batch
            // inserts them.
            let mut claims = claimed.iter();
            hashes.retain(|&hash| {
                let claimed = claims.next() == Some(true);
                if claimed {
                    walking.push(hash);
                }
                !claimed
            });
            let plainly = self.added.insert_hash_batch(&hashes);
            self.inserted = self.inserted.saturating_add(plainly);
            changed += plainly;
            for hash in walking.drain(..) {
                match self.insert_hash(hash) {
                    Ok(new) => changed += u64::from(new),
                    Err(error) => failed = Some(error),
                }
            }
        }
        failed.map_or(Ok(changed), Err)
    }

    /// Before the first removal, `false` means never inserted. Later it means never inserted, removed, or
    /// hidden. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        matches!(self.walk(hash), Walk::Present(_))
    }

    /// Looks up `item`. [`DualAnswer::Never`] is certain.
    #[inline]
    #[must_use]
    pub fn lookup<I: Item + ?Sized>(&self, item: &I) -> DualAnswer {
        self.lookup_hash(self.hash(item))
    }

    /// [`lookup`](Self::lookup) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn lookup_hash(&self, hash: ItemHash) -> DualAnswer {
        match self.walk(hash) {
            Walk::Present(_) => DualAnswer::Present,
            Walk::EndsBefore(0) => DualAnswer::Never,
            Walk::EndsBefore(_) => DualAnswer::Removed,
        }
    }

    /// Looks up all `items` together. Their memory loads overlap: if the filter is larger than the cache,
    /// this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        self.answer_all(items, answers);
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        self.answer_all(hashes, answers);
    }

    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        let (mut hashes, mut running, mut asked, mut claimed) = (vec![], vec![], vec![], Answers::new());
        answers.reset(items.len());
        for (chunk, first) in items.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
            hashes.clear();
            hashes.extend(chunk.iter().map(|item| item.hashed(self.scheme())));
            self.added.may_contain_hash_batch(&hashes, &mut claimed);
            // Only items that may have been added are looked up in the second filter. Only items in both go
            // on.
            running.clear();
            for ((&hash, number), added) in hashes.iter().zip(first..).zip(claimed.iter()) {
                if added {
                    running.push((hash, number));
                }
            }
            asked.clear();
            asked.extend(running.iter().map(|&(hash, _)| as_removed(hash, 0)));
            self.removed.may_contain_hash_batch(&asked, &mut claimed);
            for (&(hash, number), removed) in running.iter().zip(claimed.iter()) {
                if !removed || self.may_contain_hash(hash) {
                    answers.set(number);
                }
            }
        }
    }

    /// Removes `item`. `true`: it is no longer a member; from now on it answers *maybe* only as often as a
    /// non-member. `false`: it was not a member, or was hidden, and nothing changed.
    #[inline]
    pub fn remove<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        self.remove_hash(self.hash(item))
    }

    /// [`remove`](Self::remove) for an item already hashed.
    pub fn remove_hash(&mut self, hash: ItemHash) -> bool {
        match self.walk(hash) {
            Walk::Present(generation) => self.removed.insert_hash(as_removed(hash, generation)),
            Walk::EndsBefore(_) => false,
        }
    }

    /// Adds all items of `other`, as if each had been inserted here.
    ///
    /// This works only while nothing was removed from either filter: one may hold an item that the other
    /// removed, and the bits do not show that. The number of common items is unknown, so
    /// [`inserted`](Self::inserted) becomes an estimate from the fill.
    ///
    /// # Errors
    /// [`MergeError`] after a removal, or unless both have the same shapes and hash scheme. On error, nothing
    /// has changed.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        let (ours, theirs) = (self.removed(), other.removed());
        if ours > 0 || theirs > 0 {
            return Err(MergeError::HasRemovals { ours, theirs });
        }
        self.added.union(&other.added)?;
        self.inserted = self.added.inserted();
        Ok(())
    }

    /// Removes all items and forgets all removals.
    pub fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.inserted = 0;
    }

    /// Returns the shape: both filters, capacity and promised rates.
    #[must_use]
    pub const fn shape(&self) -> &DualShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        self.added.scheme()
    }

    /// Returns the number of insertions that the filter was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the false-positive rate promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the share of hidden members promised after the removals that the filter was sized for.
    #[must_use]
    pub const fn target_false_no(&self) -> f64 {
        self.shape.target_false_no()
    }

    /// Returns the number of insertions that changed the filter, including those of items removed before.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the number of removals that changed the filter.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed.inserted()
    }

    /// Returns the false-positive rate that the model predicts for the insertions and removals counted so
    /// far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        shape::non_member_is_present(self.added.expected_fpr(), self.removed.expected_fpr())
    }

    /// Measures the share of set bits in the filter of inserted items, from all bits or a sample, and the
    /// false-positive rate that follows from both filters.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        let (added, removed) = (self.added.fill_by(sampling), self.removed.fill_by(sampling));
        let expected_fpr = shape::non_member_is_present(added.expected_fpr, removed.expected_fpr);
        Fill { expected_fpr, ..added }
    }

    /// Returns the share of members inserted before the first removal that are hidden now, by the model. It
    /// is less for items inserted later, and 0 before the first removal.
    #[must_use]
    pub fn expected_false_no(&self) -> f64 {
        shape::item_is_hidden(self.added.expected_fpr(), self.removed.expected_fpr())
    }

    /// Returns the memory that both filters take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    /// Bits of memory per insertion at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { added: self.added.try_clone()?, removed: self.removed.try_clone()?, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `DualBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// Walks through the generations of an item, past those that were added and removed again.
    #[inline]
    fn walk(&self, hash: ItemHash) -> Walk {
        for generation in 0..Self::MAX_GENERATIONS {
            if !self.added.may_contain_hash(as_added(hash, generation)) {
                return Walk::EndsBefore(generation);
            }
            if !self.removed.may_contain_hash(as_removed(hash, generation)) {
                return Walk::Present(generation);
            }
        }
        Walk::EndsBefore(Self::MAX_GENERATIONS)
    }
}

/// Returns the hash of an item's generation in the filter of inserted items.
#[inline(always)]
fn as_added(hash: ItemHash, generation: u32) -> ItemHash {
    hash.tweaked(u64::from(generation))
}

/// Returns the hash of the same generation in the filter of removed items. It must be another hash. With the
/// same one, both filters would have the same false positives: a quarter to a half of them once most items
/// are removed. The rates could then not be predicted.
#[inline(always)]
fn as_removed(hash: ItemHash, generation: u32) -> ItemHash {
    hash.tweaked(1 << 32 | u64::from(generation))
}

/// The end of an item's chain of generations.
enum Walk {
    /// This generation was added and not removed.
    Present(u32),
    /// All before this one were added and removed, and this one was never added.
    EndsBefore(u32),
}

/// Items of a batch that are hashed together: enough to keep the plain filter's batches full.
const CHUNK: usize = 2048;

/// Placement scheme 1: generation `g` of an item is its hash tweaked by `g` for insertion and by `2^32 + g`
/// for removal. Both filters place it by their own scheme 1.
const PLACEMENT: u16 = 1;

impl codec::sealed::Sealed for DualBloom {}

impl Storable for DualBloom {
    const KIND: Option<Kind> = Some(Kind::DualBloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::DualBloom, PLACEMENT, Some(self.scheme()));
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Filters(vec![Encoding::of(&self.added), Encoding::of(&self.removed)])
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        header.expect_placement(PLACEMENT)?;
        header.expect_parameters(0)?;
        let scheme = header.scheme()?;
        let filters = body.filters::<Bloom>(2)?;
        let [added, removed] = <[Bloom; 2]>::try_from(filters).map_err(|filters| DecodeError::BadField {
            field: "number of filters",
            got: filters.len() as u64,
        })?;
        for filter in [&added, &removed] {
            if *filter.scheme() != scheme {
                let got = u64::from(filter.scheme().number());
                return Err(DecodeError::BadField { field: "hash scheme of a part", got });
            }
        }
        if added.target_fpr().to_bits() != header.target_fpr.to_bits() {
            return Err(DecodeError::BadField { field: "target rate", got: header.target_fpr.to_bits() });
        }
        let shape = DualShape::from_parts(header.capacity, *added.shape(), *removed.shape())
            .ok_or(DecodeError::BadField { field: "capacity", got: header.capacity })?;
        Ok(Self { shape, added, removed, inserted: header.inserted })
    }
}
