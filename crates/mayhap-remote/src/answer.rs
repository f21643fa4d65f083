//! The three answers of a filter on a remote server, and the results of insertions.

use crate::RemoteError;

/// The answer for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// The item was never inserted. This is certain.
    No,
    /// Maybe the item was inserted. For a non-member this is a false positive.
    Maybe,
    /// The filter cannot tell: it, or the shard of this item, is missing, incomplete, something else, or out
    /// of reach. The caller must act as if there were no filter.
    NotReady,
}

/// The answers for a batch of items, in the order of the items.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answers {
    answers: Vec<Answer>,
    error: Option<RemoteError>,
}

impl Answers {
    pub(crate) fn new(answers: Vec<Answer>, error: Option<RemoteError>) -> Self {
        Self { answers, error }
    }

    /// One answer for each item, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Answer] {
        &self.answers
    }

    /// One answer for each item, in order.
    pub fn iter(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.iter().copied()
    }

    /// The reason for the last [`Answer::NotReady`], if there is one.
    #[must_use]
    pub fn error(&self) -> Option<&RemoteError> {
        self.error.as_ref()
    }

    /// The number of items with this answer.
    #[must_use]
    pub fn count(&self, answer: Answer) -> usize {
        self.answers.iter().filter(|&&given| given == answer).count()
    }
}

/// The result of inserting one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Inserted {
    /// Inserted, and certainly new, unless the request had to be sent twice.
    New,
    /// Inserted. Maybe it had been inserted before.
    MaybeBefore,
    /// Unknown: the filter, or the shard of this item, is missing, incomplete, or out of reach. Insert the
    /// item again.
    NotReady,
    /// Not inserted: the shard is at capacity.
    Full,
}

/// The results of inserting a batch of items, in the order of the items.
#[derive(Clone, Debug)]
#[must_use]
pub struct Insertions {
    inserted: Vec<Inserted>,
    error: Option<RemoteError>,
}

impl Insertions {
    pub(crate) fn new(inserted: Vec<Inserted>, error: Option<RemoteError>) -> Self {
        Self { inserted, error }
    }

    /// One result for each item, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Inserted] {
        &self.inserted
    }

    /// One result for each item, in order.
    pub fn iter(&self) -> impl Iterator<Item = Inserted> + '_ {
        self.inserted.iter().copied()
    }

    /// The reason why the last item that failed was not inserted, if there is one.
    #[must_use]
    pub fn error(&self) -> Option<&RemoteError> {
        self.error.as_ref()
    }

    /// Was every item inserted?
    #[must_use]
    pub fn all_inserted(&self) -> bool {
        self.inserted.iter().all(|inserted| matches!(inserted, Inserted::New | Inserted::MaybeBefore))
    }

    /// The number of items with this result.
    #[must_use]
    pub fn count(&self, inserted: Inserted) -> usize {
        self.inserted.iter().filter(|&&given| given == inserted).count()
    }
}
