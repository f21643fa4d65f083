//! The parameters of a run of random operations, and its report.

/// One kind of step in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Insert an item that the model does not hold.
    Insert,
    /// Insert an item that the model holds already.
    InsertAgain,
    /// Insert several items in one call.
    InsertBatch,
    /// Look up an item that the model holds. The answer must be *maybe*.
    LookupMember,
    /// Look up a member that was never inserted, or was removed.
    LookupAbsent,
    /// Look up an item whose last copy was just removed.
    LookupRemoved,
    /// Look up a non-member.
    LookupNonMember,
    /// Look up several items of all three sorts in one call, and again one by one.
    LookupBatch,
    /// Remove one copy of an item that the model holds.
    Remove,
    /// Encode and decode the filter, and replace it by the result.
    RoundTrip,
    /// Fill another filter and merge it into this one.
    Merge,
    /// Look up every item that the model holds.
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

/// How a run treats a rejected insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// The filter promises room for its capacity: a rejection is a failure.
    Forbidden,
    /// The filter may become full early (cuckoo): rejections are counted, and must lose nothing.
    Counted,
}

/// The parameters of a run of random operations; the seed determines the rest.
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
    /// The number of operations; a batch, a round trip or a merge is one.
    pub operations: u64,
    /// The capacity of the filter. It never holds more different items or, if it can remove, more copies; the last eighth is filled by merges.
    pub capacity: u64,
    /// The largest number of copies of one item in a filter that can remove. A filter that cannot remove gets the same item any number of times.
    pub max_copies: u32,
    /// The number of round trips, spread evenly. Each takes a few passes over the filter and its items.
    pub round_trips: u64,
    /// The number of merges, spread evenly.
    pub merges: u64,
    /// The largest share of items not in the filter that may be answered *maybe*. Generous: another suite checks the rate; this one only requires a filter
    /// that answers `no` at all.
    pub mayhap_limit: f64,
    /// How a rejected insert is treated.
    pub refusals: Refusals,
}

impl Script {
    /// A script of `operations` steps for a filter of `capacity` items, with seed 1, at most two copies of an item, 16 round trips, 8 merges and no
    /// rejections.
    ///
    /// # Panics
    ///
    /// If there are fewer than 1 000 operations or a capacity below 64: too few to prove anything.
    #[must_use]
    pub fn new(operations: u64, capacity: u64) -> Self {
        assert!(operations >= 1_000, "a script needs at least 1000 operations, got {operations}");
        assert!(capacity >= 64, "a script needs a capacity of at least 64, got {capacity}");
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

/// The report of a successful run. A failed run returns a [`Failure`](super::Failure) instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    counts: [u64; Operation::ALL.len()],
    /// Lookups of non-members that were answered *maybe*.
    pub mayhap_to_non_members: u64,
    /// Lookups of members not in the filter that were answered *maybe*.
    pub mayhap_to_absent: u64,
    /// Lookups of items just removed that were answered *maybe*.
    pub mayhap_to_removed: u64,
    /// Inserts reported as certainly new.
    pub new: u64,
    /// Rejected inserts.
    pub refused: u64,
    /// Different items in the filter at the end.
    pub held: u64,
    /// Lookups of members in total, including sweeps and batches: each could have shown a false negative.
    pub members_asked: u64,
}

impl Report {
    /// The number of runs of `operation`.
    #[must_use]
    pub const fn times(&self, operation: Operation) -> u64 {
        self.counts[operation as usize]
    }

    /// The operations that never ran: the filter does not support them, or the script had no room for them.
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
    fn operations_are_listed_in_order() {
        assert!(Operation::ALL.iter().enumerate().all(|(i, &operation)| operation as usize == i));
    }

    #[test]
    #[should_panic(expected = "at least 1000 operations")]
    fn a_script_too_short_to_prove_anything_panics() {
        let _ = Script::new(999, 1_000);
    }
}
