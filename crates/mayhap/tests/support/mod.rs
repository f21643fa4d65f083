//! Adapts our kinds to the test suites of the testkit.

use std::fmt;
use std::rc::Rc;

use mayhap::{Answers, Filter, ItemHash, MergeError};
use mayhap_testkit::{Inserted, Subject};

type Watch = dyn Fn(&Filter);

/// A filter of any kind under test. Every call also checks that related methods agree: batches with single calls, hashes
/// with items, counts with answers.
///
/// Kinds with other guarantees (a set of cut fingerprints, a filter with two error rates) have their own adapters.
pub(crate) struct Tested {
    pub(crate) filter: Filter,
    /// Called with the filter, and with every copy of it, after each insertion.
    watch: Option<Rc<Watch>>,
}

#[allow(dead_code, reason = "not every test file uses both")]
impl Tested {
    pub(crate) fn new(filter: impl Into<Filter>) -> Self {
        Self { filter: filter.into(), watch: None }
    }

    pub(crate) fn watched(filter: impl Into<Filter>, watch: impl Fn(&Filter) + 'static) -> Self {
        Self { filter: filter.into(), watch: Some(Rc::new(watch)) }
    }

    fn seen(&self) {
        if let Some(watch) = &self.watch {
            watch(&self.filter);
        }
    }
}

impl fmt::Debug for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl Subject for Tested {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        // A window rejects nothing, and computes its count from all of its generations.
        let before = (!matches!(self.filter, Filter::Window(_))).then(|| self.filter.inserted());
        let known = self.filter.may_contain(item);
        let outcome = self.filter.insert(item);
        match &outcome {
            Ok(new) => assert!(!(*new && known), "a new item answered maybe before"),
            Err(_) => assert_eq!(Some(self.filter.inserted()), before, "a rejected item was counted"),
        }
        self.seen();
        outcome.into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        let answer = self.filter.may_contain(item);
        if let Some(count) = self.filter.count(item) {
            assert_eq!(answer, count > 0, "the answer and the count");
        }
        answer
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        let copies = self.filter.count(item);
        let removed = self.filter.remove(item).ok()?;
        let left = self.filter.count(item).map(|count| count + u64::from(removed));
        match self.filter {
            Filter::Cuckoo(_) => assert_eq!(left, copies, "exactly one copy"),
            // A compaction may raise the count, but loses no other copy.
            Filter::ScalableCuckoo(_) => assert!(left >= copies, "one copy"),
            // Other kinds estimate: two probes of one item may share a counter.
            _ => {}
        }
        Some(removed)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        let decoded = Filter::decode(&self.filter.encode()).map_err(|error| error.to_string());
        Some(decoded.map(|filter| Self { filter, watch: self.watch.clone() }))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        match self.filter.union(&other.filter) {
            Err(MergeError::NeverMerges { .. }) => None,
            result => Some(result.map_err(|error| error.to_string())),
        }
    }

    /// A batch returns only the number of new items. The items are therefore also inserted one by one, and both filters must
    /// have the same bytes.
    fn insert_batch(&mut self, items: &[&[u8]]) -> Vec<Inserted> {
        let mut one_by_one = self.filter.clone();
        let mut outcomes = Vec::new();
        for item in items {
            outcomes.push(one_by_one.insert(*item));
            if outcomes.last().is_some_and(Result::is_err) {
                break;
            }
        }
        let new = outcomes.iter().filter(|outcome| **outcome == Ok(true)).count() as u64;
        match (self.filter.insert_batch(items), outcomes.last()) {
            (Ok(count), None | Some(Ok(_))) => assert_eq!(count, new),
            (Err(error), Some(Err(single))) => assert_eq!(error, *single),
            (result, last) => panic!("{result:?} for the batch, {last:?} one by one"),
        }
        assert!(self.filter == one_by_one, "a batch leaves another filter than its items one by one");
        self.seen();
        // The batch stops at the first rejection. All later items count as rejected.
        let mut outcomes: Vec<Inserted> = outcomes.into_iter().map(Inserted::from).collect();
        outcomes.resize(items.len(), Inserted::Refused);
        outcomes
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.filter.may_contain_batch(items, &mut answers);
        if let Some(scheme) = self.filter.scheme() {
            let hashes: Vec<ItemHash> = items.iter().map(|item| scheme.hash(item)).collect();
            let mut hashed = Answers::new();
            self.filter.may_contain_hash_batch(&hashes, &mut hashed);
            assert_eq!(answers, hashed, "items and hashes");
        }
        answers.iter().collect()
    }
}

/// Returns the number of operations. `MAYHAP_OPERATIONS` sets a longer run.
#[allow(dead_code, reason = "not every test file runs the suites at this length")]
pub(crate) fn operations() -> u64 {
    std::env::var("MAYHAP_OPERATIONS").map_or(200_000, |number| number.parse().expect("a number"))
}
