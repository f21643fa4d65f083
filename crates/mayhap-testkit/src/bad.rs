//! Filters made wrong on purpose. A suite that lets one through has no teeth.
//!
//! Each breaks one promise and keeps the others, so that a suite cannot catch it for the wrong reason; each
//! is made by `for_capacity(capacity, fpr, seed)`. Which suite catches which stands in
//! [`suite`](crate::suite).

use crate::honest::{PlainBloom, PlainCounting};
use crate::{Inserted, Subject};
use std::collections::{HashSet, VecDeque};

/// Says `mayhap` to everything: never a false negative, and of no use.
#[derive(Clone, Debug)]
pub struct AlwaysMayhap;

impl AlwaysMayhap {
    /// Takes the usual numbers and ignores them.
    #[must_use]
    pub const fn for_capacity(_capacity: u64, _fpr: f64, _seed: u64) -> Self {
        Self
    }
}

impl Subject for AlwaysMayhap {
    fn insert(&mut self, _item: &[u8]) -> Inserted {
        Inserted::Mayhap
    }

    fn may_contain(&self, _item: &[u8]) -> bool {
        true
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Ok(Self))
    }

    fn merge(&mut self, _other: &Self) -> Option<Result<(), String>> {
        Some(Ok(()))
    }
}

/// Says `no` to everything: never a false positive, and every member is forgotten.
#[derive(Clone, Debug)]
pub struct AlwaysNo;

impl AlwaysNo {
    /// Takes the usual numbers and ignores them.
    #[must_use]
    pub const fn for_capacity(_capacity: u64, _fpr: f64, _seed: u64) -> Self {
        Self
    }
}

impl Subject for AlwaysNo {
    fn insert(&mut self, _item: &[u8]) -> Inserted {
        Inserted::New
    }

    fn may_contain(&self, _item: &[u8]) -> bool {
        false
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Ok(Self))
    }

    fn merge(&mut self, _other: &Self) -> Option<Result<(), String>> {
        Some(Ok(()))
    }
}

/// Right until it is decoded: the last eighth of the bits does not come back.
#[derive(Clone, Debug)]
pub struct ForgetsOnDecode(PlainBloom);

impl ForgetsOnDecode {
    /// A right filter, for now.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for ForgetsOnDecode {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        let mut decoded = self.clone();
        let bits = decoded.0.bits.len();
        decoded.0.bits[bits - bits / 8..].fill(false);
        Some(Ok(decoded))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        self.0.merge(&other.0)
    }
}

/// Merges all but the last eighth of the bits.
#[derive(Clone, Debug)]
pub struct ForgetsOnMerge(PlainBloom);

impl ForgetsOnMerge {
    /// A right filter, as long as nobody merges.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for ForgetsOnMerge {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Ok(self.clone()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        let mut part = other.0.clone();
        let bits = part.bits.len();
        part.bits[bits - bits / 8..].fill(false);
        self.0.merge(&part)
    }
}

/// Drops one insert in a hundred.
#[derive(Clone, Debug)]
pub struct ForgetsSometimes {
    inner: PlainBloom,
    inserts: u64,
}

impl ForgetsSometimes {
    /// A filter that keeps 99 items of a hundred.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self { inner: PlainBloom::for_capacity(capacity, fpr, seed), inserts: 0 }
    }
}

impl Subject for ForgetsSometimes {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.inserts += 1;
        if self.inserts.is_multiple_of(100) {
            return (!self.inner.may_contain(item)).into();
        }
        self.inner.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.inner.may_contain(item)
    }
}

/// Its batch insert leaves the last item out when there are more than four: a loop by fours gone wrong.
#[derive(Clone, Debug)]
pub struct ForgetsInBatch(PlainBloom);

impl ForgetsInBatch {
    /// A right filter, one item at a time.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for ForgetsInBatch {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn insert_batch(&mut self, items: &[&[u8]]) -> Vec<Inserted> {
        let kept = if items.len() > 4 { items.len() - 1 } else { items.len() };
        let mut outcomes = self.0.insert_batch(&items[..kept]);
        outcomes.resize(items.len(), Inserted::Mayhap);
        outcomes
    }
}

/// Its batch lookup answers about the last item by the one before.
#[derive(Clone, Debug)]
pub struct MissesInBatch(PlainBloom);

impl MissesInBatch {
    /// A right filter, one item at a time.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for MissesInBatch {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = self.0.may_contain_batch(items);
        if let [.., before, last] = answers.as_mut_slice() {
            *last = *before;
        }
        answers
    }
}

/// Exact, but with room for half of its capacity: refuses what is too much, and loses its oldest item doing so.
#[derive(Clone, Debug)]
pub struct LosesOnRefusal {
    items: HashSet<Vec<u8>>,
    oldest_first: VecDeque<Vec<u8>>,
    room: usize,
}

impl LosesOnRefusal {
    /// Room for `capacity / 2` items.
    #[must_use]
    pub fn for_capacity(capacity: u64, _fpr: f64, _seed: u64) -> Self {
        Self { items: HashSet::new(), oldest_first: VecDeque::new(), room: capacity as usize / 2 }
    }
}

impl Subject for LosesOnRefusal {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        if self.items.contains(item) {
            return Inserted::Mayhap;
        }
        if self.items.len() == self.room {
            if let Some(oldest) = self.oldest_first.pop_front() {
                self.items.remove(&oldest);
            }
            return Inserted::Refused;
        }
        self.oldest_first.push_back(item.to_vec());
        self.items.insert(item.to_vec()).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.items.contains(item)
    }
}

/// Calls what it holds new, and what is new held.
#[derive(Clone, Debug)]
pub struct LyingInsert(PlainBloom);

impl LyingInsert {
    /// A right filter with its answers to inserts the wrong way round.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for LyingInsert {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        (self.0.insert(item) != Inserted::New).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }
}

/// A counting filter whose counters have two bits and wrap: the fourth item in a place makes it empty.
#[derive(Clone, Debug)]
pub struct WrapsCounters(PlainCounting);

impl WrapsCounters {
    /// A counting filter with counters far too small.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainCounting::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for WrapsCounters {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let new = !self.may_contain(item);
        self.0.places(item).for_each(|place| self.0.counters[place] = (self.0.counters[place] + 1) % 4);
        new.into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        self.0.places(item).for_each(|place| self.0.counters[place] = (self.0.counters[place] + 3) % 4);
        Some(true)
    }
}

/// A counting filter whose counters stop at 3, as they may, but count down again from there, as they must
/// not: removing one item takes others along.
#[derive(Clone, Debug)]
pub struct UnsticksCounters(PlainCounting);

impl UnsticksCounters {
    /// A right filter as long as nothing is removed.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainCounting::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for UnsticksCounters {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let new = !self.may_contain(item);
        self.0.places(item).for_each(|place| self.0.counters[place] = (self.0.counters[place] + 1).min(3));
        new.into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        self.0.remove(item)
    }
}

/// Says it removed an item and keeps it.
#[derive(Clone, Debug)]
pub struct KeepsRemoved(PlainCounting);

impl KeepsRemoved {
    /// A right filter as long as nothing is removed.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainCounting::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for KeepsRemoved {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, _item: &[u8]) -> Option<bool> {
        Some(true)
    }
}

/// The right mechanism, sized a tenth too small.
#[derive(Clone, Debug)]
pub struct TooFull(PlainBloom);

impl TooFull {
    /// A filter for `capacity` items with the memory of nine tenths of them.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity * 9 / 10, fpr, seed))
    }
}

impl Subject for TooFull {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }
}

/// The right mechanism, sized a tenth too large: fewer wrong answers than promised, for more memory.
#[derive(Clone, Debug)]
pub struct Oversized(PlainBloom);

impl Oversized {
    /// A filter for `capacity` items with the memory of eleven tenths of them.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity * 11 / 10, fpr, seed))
    }
}

impl Subject for Oversized {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }
}

/// Hashes the first sixteen bytes of an item only: fine for numbers, not for URLs.
#[derive(Clone, Debug)]
pub struct ReadsOnlyTheHead(PlainBloom);

impl ReadsOnlyTheHead {
    /// A right filter with a poor hash.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        Self(PlainBloom::for_capacity(capacity, fpr, seed))
    }
}

impl Subject for ReadsOnlyTheHead {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(&item[..item.len().min(16)])
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(&item[..item.len().min(16)])
    }
}
