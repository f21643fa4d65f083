//! Filters that are wrong on purpose. The suites must reject them.
//!
//! Each breaks one guarantee and keeps the others, so that a suite cannot reject it for the wrong reason. Each is made by
//! `for_capacity(capacity, fpr, seed)`. [`suite`](crate::suite) lists which suite rejects which filter.

use crate::honest::{PlainBloom, PlainCounting};
use crate::{Inserted, Subject};
use std::collections::{HashSet, VecDeque};

/// Answers *maybe* to everything: no false negatives, and useless.
#[derive(Clone, Debug)]
pub struct AlwaysMayhap;

impl AlwaysMayhap {
    /// Ignores its arguments.
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

/// Answers `no` to everything: no false positives, and every member is forgotten.
#[derive(Clone, Debug)]
pub struct AlwaysNo;

impl AlwaysNo {
    /// Ignores its arguments.
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

/// Correct until it is decoded: the last eighth of the bits is lost.
#[derive(Clone, Debug)]
pub struct ForgetsOnDecode(PlainBloom);

impl ForgetsOnDecode {
    /// A correct filter until it is decoded.
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

/// Merges all bits except the last eighth.
#[derive(Clone, Debug)]
pub struct ForgetsOnMerge(PlainBloom);

impl ForgetsOnMerge {
    /// A correct filter until it is merged.
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
    /// A filter that keeps 99 of 100 items.
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

/// Its batch insert skips the last item if there are more than four: a faulty loop by fours.
#[derive(Clone, Debug)]
pub struct ForgetsInBatch(PlainBloom);

impl ForgetsInBatch {
    /// A filter that is correct one item at a time.
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

/// Its batch lookup returns the answer for the last but one item also for the last.
#[derive(Clone, Debug)]
pub struct MissesInBatch(PlainBloom);

impl MissesInBatch {
    /// A filter that is correct one item at a time.
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

/// Exact, but with room for half of its capacity: it rejects further items, and loses its oldest item with each rejection.
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

/// Reports members as new, and new items as members.
#[derive(Clone, Debug)]
pub struct LyingInsert(PlainBloom);

impl LyingInsert {
    /// A correct filter with inverted results of inserts.
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

/// A counting filter whose counters have two bits and wrap: the fourth item at a position resets it to zero.
#[derive(Clone, Debug)]
pub struct WrapsCounters(PlainCounting);

impl WrapsCounters {
    /// A counting filter with counters that are too small.
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

/// A counting filter whose counters stop at 3, which is allowed, but are decremented again from there, which is not: removing one item removes others.
#[derive(Clone, Debug)]
pub struct UnsticksCounters(PlainCounting);

impl UnsticksCounters {
    /// A correct filter until an item is removed.
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

/// Reports that it removed an item, and keeps it.
#[derive(Clone, Debug)]
pub struct KeepsRemoved(PlainCounting);

impl KeepsRemoved {
    /// A correct filter until an item is removed.
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

/// The correct algorithm, sized a tenth too small.
#[derive(Clone, Debug)]
pub struct TooFull(PlainBloom);

impl TooFull {
    /// A filter for `capacity` items with the memory for nine tenths of them.
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

/// The correct algorithm, sized a tenth too large: fewer false positives than promised, for more memory.
#[derive(Clone, Debug)]
pub struct Oversized(PlainBloom);

impl Oversized {
    /// A filter for `capacity` items with the memory for eleven tenths of them.
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

/// Hashes only the first sixteen bytes of an item: fine for numbers, not for URLs.
#[derive(Clone, Debug)]
pub struct ReadsOnlyTheHead(PlainBloom);

impl ReadsOnlyTheHead {
    /// A correct filter with a poor hash.
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
