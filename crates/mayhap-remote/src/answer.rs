//! What a filter on a remote server answers: three things, not two.

use crate::RemoteError;

/// The answer for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// Never added: certain.
    Absent,
    /// Mayhap it was added.
    Mayhap,
    /// Nobody can say: what would know is missing, not complete, something else, or not to be reached.
    /// Who asks must do as without a filter.
    NotReady,
}

/// The answers for a batch of items, in their order.
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

    /// One for each item, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Answer] {
        &self.answers
    }

    /// One for each item, in order.
    pub fn iter(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.iter().copied()
    }

    /// The reason of the last [`Answer::NotReady`], if there is one.
    #[must_use]
    pub fn error(&self) -> Option<&RemoteError> {
        self.error.as_ref()
    }

    /// How many items have this answer.
    #[must_use]
    pub fn count(&self, answer: Answer) -> usize {
        self.answers.iter().filter(|&&given| given == answer).count()
    }
}

/// What became of an item that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Added {
    /// It is in, and it certainly was not before, unless the request had to be sent twice.
    New,
    /// It is in, and mayhap it was before.
    Mayhap,
    /// Mayhap it is in, mayhap not: what would take it is missing, not complete, or not to be reached.
    NotReady,
    /// It was not added: its shard has as many items as it was made for, and takes no more.
    Full,
}

/// What became of a batch of items, in their order.
#[derive(Clone, Debug)]
#[must_use]
pub struct Additions {
    added: Vec<Added>,
    error: Option<RemoteError>,
}

impl Additions {
    pub(crate) fn new(added: Vec<Added>, error: Option<RemoteError>) -> Self {
        Self { added, error }
    }

    /// One for each item, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Added] {
        &self.added
    }

    /// One for each item, in order.
    pub fn iter(&self) -> impl Iterator<Item = Added> + '_ {
        self.added.iter().copied()
    }

    /// Why the last item that is not in is not.
    #[must_use]
    pub fn error(&self) -> Option<&RemoteError> {
        self.error.as_ref()
    }

    /// Is every item in?
    #[must_use]
    pub fn all_in(&self) -> bool {
        self.added.iter().all(|added| matches!(added, Added::New | Added::Mayhap))
    }

    /// How many items this became of.
    #[must_use]
    pub fn count(&self, added: Added) -> usize {
        self.added.iter().filter(|&&given| given == added).count()
    }
}
