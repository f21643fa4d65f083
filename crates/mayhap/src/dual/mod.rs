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

/// Deletions by a second filter: one [`Bloom`] of what was put in, one of what was removed.
///
/// * **A *no* is certain only before the first removal.** Every removal may hide an item that is in, because the filter of
///   removed items is wrong now and then like any other. At most `target_false_no` of the items are hidden while no more
///   than `removals` removals were made; [`expected_false_no`](Self::expected_false_no) says how many by now. Inserting
///   a hidden item again brings it back.
/// * [`lookup`](Self::lookup) tells three answers apart, and [`Never`](DualAnswer::Never) is always certain.
/// * **mayhap** ([`Present`](DualAnswer::Present)) is wrong for at most `target_fpr` of the non-members while no more than
///   `capacity` insertions were made.
/// * It is a set: an item inserted twice is gone once removed. Removing an item that was never in harms nobody else.
/// * Every insertion, removal, re-insertion and so on takes room for good, so it is for few removals: 9.7 bits per insertion
///   and as many per removal at 1 %. [`CountingBloom`](crate::CountingBloom) takes 38.4 bits per item and any number of both.
/// * A lookup is one or two of the plain filter's; two more for every time the item was removed.
///
/// What removing and putting in again mean: every item has a chain of generations, as unlike each other as different
/// items. Generation 0 is put in first; removing puts the item's present generation into the second filter; inserting
/// again puts in the next one. Each is present if it was added and not removed:
///
/// ```text
///             generation 0   1   2   3
/// added                  ●   ●   ●            in at last
/// removed                ●   ●                removed twice
///                                └ Present    (none: Never if the chain is empty, Removed if it is not)
/// ```
///
/// ```
/// use mayhap::{DualAnswer, DualBloom};
///
/// let mut users = DualBloom::for_capacity(1_000_000, 10_000, 0.001, 0)?;
/// assert_eq!(users.insert("ada"), Ok(true));
/// assert_eq!(users.lookup("ada"), DualAnswer::Present);
/// assert!(users.remove("ada"));
/// assert_eq!(users.lookup("ada"), DualAnswer::Removed);
/// assert_eq!(users.insert("ada"), Ok(true)); // in again
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

/// What a [`DualBloom`] knows about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DualAnswer {
    /// Never inserted, certainly.
    Never,
    /// Mayhap inserted, and mayhap removed again: the item is not in, or it is one of the hidden ones.
    Removed,
    /// Mayhap in.
    Present,
}

impl DualBloom {
    /// How many generations an item has: it can be put in again this often, less one.
    pub const MAX_GENERATIONS: u32 = 255;

    /// The smallest filter for `capacity` insertions and `removals` removals, where at most `target_fpr` of the non-members are
    /// answered *mayhap* and at most as many of the items that are in are hidden.
    ///
    /// A number as `scheme` is the seed of the fast hash; [`HashScheme::keyed_random`] is for items that non-members choose.
    /// [`DualShape::for_rates`] sets the two rates apart.
    ///
    /// # Errors
    /// [`BuildError`] for parameters that make no sense, and for memory the system refuses.
    pub fn for_capacity(
        capacity: u64,
        removals: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(DualShape::for_capacity(capacity, removals, target_fpr)?, scheme)
    }

    /// A filter of exactly this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn with_shape(shape: DualShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        let added = Bloom::with_shape(*shape.added(), scheme)?;
        let removed = Bloom::with_shape(*shape.removed(), scheme)?;
        Ok(Self { shape, added, removed, inserted: 0 })
    }

    /// The hash of `item` for the `_hash` methods of this filter, and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.added.hash(item)
    }

    /// Puts `item` in. `true`: the filter changed; the item was new, removed before, or hidden, and is present now.
    /// `false`: mayhap it was present already, and nothing changed.
    ///
    /// # Errors
    /// [`InsertError::TooManyGenerations`] if the item was removed too often; nothing has changed then.
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
        // Where `removed` claims the new generation by mistake, the item takes further ones until it can be seen.
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

    /// Puts all `items` in and says how many of them changed the filter. Much faster than one by one once the filter is
    /// larger than the cache.
    ///
    /// # Errors
    /// [`InsertError::TooManyGenerations`] if an item was removed too often; all others are in then.
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
            // What `removed` knows nothing of needs generation 0 and no more, which is for the plain filter to do.
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

    /// Is the item in? `false` before the first removal: never inserted. Later: never inserted, removed, or hidden.
    /// `true`: mayhap.
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

    /// What is known about `item`; [`DualAnswer::Never`] is certain.
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

    /// Asks about all `items` at once. Their memory loads overlap, which past the cache makes it several times faster
    /// than asking one by one.
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
            // Only what was mayhap added is asked of the second filter, and only what both claim walks on.
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

    /// Takes `item` out. `true`: it is in no more, and answers *mayhap* as rarely as a non-member. `false`: it was not in, or
    /// hidden, and nothing changed.
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

    /// Adds everything `other` holds, as if each of its items had been inserted here.
    ///
    /// Only while nothing was removed from either: what one has removed the other may hold, and the bits cannot tell.
    /// How many items both held is not known: [`inserted`](Self::inserted) becomes the estimate from the fill.
    ///
    /// # Errors
    /// [`MergeError`] after a removal, or unless both have the same shapes and hash scheme; nothing has changed then.
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

    /// Forgets everything, removals too.
    pub fn clear(&mut self) {
        self.added.clear();
        self.removed.clear();
        self.inserted = 0;
    }

    /// The measurements: both filters, capacity, promises.
    #[must_use]
    pub const fn shape(&self) -> &DualShape {
        &self.shape
    }

    /// How it hashes its items.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        self.added.scheme()
    }

    /// Insertions it was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// The rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// The share of hidden items it promised after the removals it was sized for.
    #[must_use]
    pub const fn target_false_no(&self) -> f64 {
        self.shape.target_false_no()
    }

    /// Insertions counted so far: those that changed something, of items removed before too.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Removals counted so far: those that changed something.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed.inserted()
    }

    /// The share of non-members answered *mayhap*, by the model, for what was counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        shape::non_member_is_present(self.added.expected_fpr(), self.removed.expected_fpr())
    }

    /// The share of set bits in the filter of what was added, or in a sample of them, and the rate that follows from both filters.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        let (added, removed) = (self.added.fill_by(sampling), self.removed.fill_by(sampling));
        let expected_fpr = shape::non_member_is_present(added.expected_fpr, removed.expected_fpr);
        Fill { expected_fpr, ..added }
    }

    /// The share of the items put in before the first removal that is hidden by now, by the model. Of items put in later it
    /// is less; before the first removal it is 0.
    #[must_use]
    pub fn expected_false_no(&self) -> f64 {
        shape::item_is_hidden(self.added.expected_fpr(), self.removed.expected_fpr())
    }

    /// Memory both filters take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.added.memory_bytes() + self.removed.memory_bytes()
    }

    /// Bits of memory per insertion at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { added: self.added.try_clone()?, removed: self.removed.try_clone()?, ..*self })
    }

    /// The filter as the bytes of a `.mayhap` file; `docs/format.md` draws them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The filter in these bytes, checked to the last one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything but an intact encoded `DualBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    /// Along the generations of an item, past those that were added and removed again.
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

/// What stands for a generation of an item in the filter of what was put in.
#[inline(always)]
fn as_added(hash: ItemHash, generation: u32) -> ItemHash {
    hash.tweaked(u64::from(generation))
}

/// What stands for it in the filter of what was removed. Another hash: with the same one both filters would be wrong about
/// the same non-members, a quarter to a half of them once most items are removed, and the rates could not be told.
#[inline(always)]
fn as_removed(hash: ItemHash, generation: u32) -> ItemHash {
    hash.tweaked(1 << 32 | u64::from(generation))
}

/// Where the chain of an item's generations leads.
enum Walk {
    /// This generation was added and not removed.
    Present(u32),
    /// All before this one were added and removed, and this one was never added.
    EndsBefore(u32),
}

/// Items of a batch that are hashed at once: enough that the plain filter's batches rarely run dry.
const CHUNK: usize = 2048;

/// Placement scheme 1: generation `g` of an item is its hash tweaked by `g` where it is put in and by `2^32 + g` where it is
/// removed; both filters place it by their own scheme 1.
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
