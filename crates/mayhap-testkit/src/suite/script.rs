//! What a run of random operations consists of, and what it did.

/// One kind of step in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An item the model does not hold goes in.
    Insert,
    /// An item the model holds goes in again.
    InsertAgain,
    /// Several go in at once.
    InsertBatch,
    /// Is an item the model holds in the filter? It must be.
    LookupMember,
    /// Is a member that was never inserted, or removed again, in the filter?
    LookupAbsent,
    /// Is an item in the filter whose last copy just went out?
    LookupRemoved,
    /// Is an item that is no member at all in the filter?
    LookupNonMember,
    /// Several of all three sorts are looked up at once, and again one by one.
    LookupBatch,
    /// One copy of an item the model holds goes out.
    Remove,
    /// The filter is encoded, decoded and replaced by what came back.
    RoundTrip,
    /// Another filter is filled beside this one and merged into it.
    Merge,
    /// Every item the model holds is looked up.
    Sweep,
}

impl Operation {
    /// Every kind of step.
    pub const ALL: [Self; 12] = [
        Self::Insert,
        Self::InsertAgain,
        Self::InsertBatch,
        Self::LookupMember,
        Self::LookupAbsent,
        Self::LookupRemoved,
        Self::LookupNonMember,
        Self::LookupBatch,
        Self::Remove,
        Self::RoundTrip,
        Self::Merge,
        Self::Sweep,
    ];

    /// A short name for tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::InsertAgain => "insert again",
            Self::InsertBatch => "insert batch",
            Self::LookupMember => "lookup member",
            Self::LookupAbsent => "lookup absent",
            Self::LookupRemoved => "lookup removed",
            Self::LookupNonMember => "lookup non-member",
            Self::LookupBatch => "lookup batch",
            Self::Remove => "remove",
            Self::RoundTrip => "round trip",
            Self::Merge => "merge",
            Self::Sweep => "sweep",
        }
    }
}

/// What a refused insert means to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// The filter promises room for its capacity: a refusal is a failure.
    Forbidden,
    /// The filter may run full early (cuckoo): refusals are counted, and nothing may be lost by them.
    Counted,
}

/// The frame of a run of random operations; the seed fills it in.
///
/// ```
/// use mayhap_testkit::suite::Script;
/// let script = Script { seed: 7, max_copies: 1, ..Script::new(1_000_000, 10_000) };
/// assert_eq!(script.capacity, 10_000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Seed of the filter, the items and the operations.
    pub seed: u64,
    /// How many operations; a batch, a round trip or a merge is one.
    pub operations: u64,
    /// What the filter is made for. It never holds more different items, nor, if it can remove, more
    /// copies; the last eighth is filled by merges.
    pub capacity: u64,
    /// A filter that can remove never holds more copies of one item. A filter that cannot is given the same
    /// item any number of times.
    pub max_copies: u32,
    /// How many round trips, spread evenly. Each costs a few passes over the filter and its items.
    pub round_trips: u64,
    /// How many merges, spread evenly.
    pub merges: u64,
    /// The largest share of items not in the filter that may get a `mayhap`. Generous: the rate is another
    /// suite's business, this one only wants a filter that says `no` at all.
    pub mayhap_limit: f64,
    /// What a refused insert means.
    pub refusals: Refusals,
}

impl Script {
    /// `operations` steps over a filter made for `capacity` items, at seed 1 and with two copies of an item
    /// at most, 16 round trips, 8 merges, no refusals.
    ///
    /// # Panics
    ///
    /// If there are fewer than 1 000 operations or a capacity below 64: too little to prove anything.
    #[must_use]
    pub fn new(operations: u64, capacity: u64) -> Self {
        assert!(operations >= 1_000, "a script has at least 1000 operations, got {operations}");
        assert!(capacity >= 64, "a script fills a capacity of at least 64, got {capacity}");
        Self {
            seed: 1,
            operations,
            capacity,
            max_copies: 2,
            round_trips: 16,
            merges: 8,
            mayhap_limit: 0.5,
            refusals: Refusals::Forbidden,
        }
    }
}

/// What a run did. All of it went well, or there would be a [`Failure`](super::Failure) instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    counts: [u64; Operation::ALL.len()],
    /// Lookups of non-members that got a `mayhap`.
    pub mayhap_to_non_members: u64,
    /// Lookups of members not in (any more) that got a `mayhap`.
    pub mayhap_to_absent: u64,
    /// Lookups of items just removed that got a `mayhap`.
    pub mayhap_to_removed: u64,
    /// Inserts answered by "certainly new".
    pub new: u64,
    /// Inserts refused.
    pub refused: u64,
    /// Different items held at the end.
    pub held: u64,
    /// Lookups of members in all, sweeps and batches included: as many chances to be found forgetting.
    pub members_asked: u64,
}

impl Report {
    /// How often `operation` was done.
    #[must_use]
    pub const fn times(&self, operation: Operation) -> u64 {
        self.counts[operation as usize]
    }

    /// The operations that were never done: what the filter cannot do, or the script had no room for.
    ///
    /// ```
    /// use mayhap_testkit::honest::PlainBloom;
    /// use mayhap_testkit::suite::{Operation, Script, never_forgets};
    ///
    /// let make = |seed| PlainBloom::for_capacity(500, 0.01, seed);
    /// let report = never_forgets(make, &Script::new(10_000, 500)).unwrap();
    /// assert_eq!(report.missing(), [Operation::LookupRemoved, Operation::Remove]);
    /// ```
    #[must_use]
    pub fn missing(&self) -> Vec<Operation> {
        Operation::ALL.into_iter().filter(|&operation| self.times(operation) == 0).collect()
    }

    pub(super) const fn did(&mut self, operation: Operation) {
        self.counts[operation as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_order() {
        assert!(Operation::ALL.iter().enumerate().all(|(i, &operation)| operation as usize == i));
    }

    #[test]
    #[should_panic(expected = "at least 1000 operations")]
    fn a_script_too_short_to_prove_anything_is_refused() {
        let _ = Script::new(999, 1_000);
    }
}
