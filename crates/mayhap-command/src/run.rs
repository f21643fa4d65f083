//! How a command runs: its input and its result.

use mayhap::{Answers, BatchBits, ItemHash, NewItems};

use crate::command::Command;
use crate::context::Context;
pub use crate::keyspace::Keyspace;
pub use crate::pipeline::refuse_all;
use crate::refusal::Refusal;
use crate::reply::Reply;
pub use crate::server::Server;
use crate::value::Value;

/// One request: a command of the table and all its words, including the command. Their number matches the arity.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The row of the table.
    pub command: &'static Command,
    /// All words.
    pub words: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    /// The first key of the request, for commands that have one.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.words.get(self.command.names.first.max(1)).copied().unwrap_or_default()
    }

    /// All keys of the request, at the positions that the table gives.
    #[must_use]
    pub fn names(&self) -> Vec<&'a [u8]> {
        self.command.names.positions(self.words.len()).map(|at| self.words[at]).collect()
    }
}

/// What a command does, by the input it needs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Reads the value of one key. Many can run at the same time.
    Look(fn(&Request<'_>, Option<&Value>, &Context<'_>) -> Result<Reply, Refusal>),
    /// Changes, creates or deletes the value of one key. No other request sees the key meanwhile.
    Change(fn(&Request<'_>, &mut Slot<'_>, &Context<'_>) -> Result<Reply, Refusal>),
    /// Looks up items. Consecutive requests on the same key run together.
    Ask(Asks),
    /// Adds items. Consecutive requests on the same key run together, as far as the filter allows.
    Add(Adds),
    /// Makes the value of one key from those of others: the first key is the target, the others are the sources.
    Gather(fn(&Request<'_>, &mut Slot<'_>, &[Source<'_>], &Context<'_>) -> Result<Reply, Refusal>),
    /// Works on the keyspace: the engine runs it; in the module, the host does.
    Keyspace(Keyspace),
    /// Works on the connection or the server: the server runs it; in the module, the host does.
    Server(Server),
}

/// A source of [`Run::Gather`].
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The target itself.
    Target,
    /// Another key.
    Other(Option<&'a Value>),
}

/// Lookups that can run together, because they look up items in the same filter type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// `BF.EXISTS`, `BF.MEXISTS`.
    Bloom,
    /// `CF.EXISTS`, `CF.MEXISTS`.
    Cuckoo,
    /// `MF.EXISTS`, `MF.MEXISTS`.
    Mayhap,
}

impl Asks {
    /// Pushes a reply for each of `requests`.
    pub fn answer(
        self,
        requests: &[Request<'_>],
        value: Option<&Value>,
        context: &Context<'_>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> Asked {
        if let Some(lost) = value.and_then(Value::lost) {
            return refuse_all(requests, &Refusal::Lost(lost), replies);
        }
        match self {
            Self::Bloom => crate::bf::ask(requests, value, scratch, replies),
            Self::Cuckoo => crate::cf::ask(requests, value, scratch, replies),
            Self::Mayhap => crate::mf::ask(requests, value, context, scratch, replies),
        }
    }
}

/// The answers of a batch of lookups, for the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Lookups answered *maybe*.
    pub hits: u64,
    /// Lookups answered *no*.
    pub misses: u64,
}

/// Additions of items that can run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// `BF.ADD`, `BF.MADD`.
    Bloom,
    /// `BF.INSERT`.
    BloomInsert,
    /// `MF.ADD`, `MF.MADD`.
    Mayhap,
}

impl Adds {
    /// Returns whether this request can run together with others. If not, only [`add_alone`](Self::add_alone) runs it.
    #[inline]
    #[must_use]
    pub fn joins(self, request: &Request<'_>) -> bool {
        match self {
            Self::Bloom | Self::Mayhap => true,
            Self::BloomInsert => crate::bf::inserted_items(request).is_some(),
        }
    }

    /// Runs requests while shared access to the value is enough, and pushes a reply for each. Adds the hashes of new items to `new`, if a
    /// log needs them.
    pub fn add_together(
        self,
        requests: &[Request<'_>],
        value: Option<&Value>,
        new: Option<&mut Vec<ItemHash>>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> Added {
        if let Some(lost) = value.and_then(Value::lost) {
            refuse_all(requests, &Refusal::Lost(lost), replies);
            return Added::default();
        }
        match self {
            Self::Bloom => crate::bf::add_together(requests, value, new, scratch, replies),
            Self::BloomInsert => crate::bf::insert_together(requests, value, new, scratch, replies),
            Self::Mayhap => crate::mf::add_together(requests, value, new, scratch, replies),
        }
    }

    /// Runs one request with exclusive access: the filter may be created and may grow. `begun` has the results of the request's first
    /// items, if [`add_together`](Self::add_together) has already added them.
    ///
    /// # Errors
    /// The error that the client gets.
    pub fn add_alone(
        self,
        request: &Request<'_>,
        begun: &BatchBits,
        slot: &mut Slot<'_>,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        match self {
            Self::Bloom => crate::bf::add_alone(request, begun, slot, context),
            Self::BloomInsert => crate::bf::insert_alone(request, begun, slot, context),
            Self::Mayhap => crate::mf::add_alone(request, begun, slot, context),
        }
    }
}

/// The result of a batch of additions with shared access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The requests that were answered.
    pub ran: Ran,
    /// The number of new items. If it is 0, nothing changed.
    pub new_items: u64,
}

impl Added {
    /// Returns that no request is answered: the first one needs exclusive access.
    #[must_use]
    pub const fn none() -> Self {
        Self { ran: Ran::only(0), new_items: 0 }
    }
}

/// How many requests of a batch ran with shared access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ran {
    /// All requests are answered.
    #[default]
    All,
    /// The next request needs exclusive access.
    Rest {
        /// The number of requests that are answered.
        done: usize,
        /// The results of the next request's first items, which were added already: whether each was new.
        begun: BatchBits,
    },
}

impl Ran {
    /// Returns that the first `done` requests are answered, and no item of the next one was added.
    #[must_use]
    pub const fn only(done: usize) -> Self {
        Self::Rest { done, begun: BatchBits::new() }
    }
}

/// Exclusive access to one key: its value can be changed, removed or created.
#[derive(Debug)]
pub struct Slot<'a> {
    value: &'a mut Option<Value>,
    changed: bool,
    replaced: bool,
    expiry: Expiry,
    /// Does a log need more than the fact that the value changed?
    logged: bool,
    items: Option<Vec<ItemHash>>,
    left_out: Vec<usize>,
}

/// The expiration time that a command sets. The caller that made the slot applies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Unchanged.
    #[default]
    Keep,
    /// None: the key does not expire.
    Never,
    /// At this time, in milliseconds since 1970.
    At(u64),
}

impl<'a> Slot<'a> {
    /// A slot for the value of a key.
    #[must_use]
    pub const fn new(value: &'a mut Option<Value>) -> Self {
        Self {
            value,
            changed: false,
            replaced: false,
            expiry: Expiry::Keep,
            logged: false,
            items: None,
            left_out: Vec::new(),
        }
    }

    /// A slot that also records what a log needs to replay the request.
    #[must_use]
    pub const fn logged(value: &'a mut Option<Value>) -> Self {
        let mut slot = Self::new(value);
        slot.logged = true;
        slot
    }

    /// Does a log need more than the fact that the value changed?
    #[must_use]
    pub const fn is_logged(&self) -> bool {
        self.logged
    }

    /// Records that the only change was to insert these new items into an existing Bloom filter that did not grow.
    pub fn mark_items(&mut self, items: Vec<ItemHash>) {
        self.changed = true;
        self.items = Some(items);
    }

    /// The items, if they are the only change.
    #[must_use]
    pub fn items(&self) -> Option<&[ItemHash]> {
        self.items.as_deref()
    }

    /// Marks a word (counted from the end of the request, last = 1) that a replay must skip: it was refused for a reason that the
    /// stored value does not reproduce.
    pub fn leave_out(&mut self, from_end: usize) {
        self.left_out.push(from_end);
    }

    /// The words that a replay must skip, counted from the end of the request.
    #[must_use]
    pub fn left_out(&self) -> &[usize] {
        &self.left_out
    }

    /// The value.
    #[must_use]
    pub const fn get(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// The value, mutable. Call [`mark_changed`](Self::mark_changed) after a change.
    #[must_use]
    pub const fn get_mut(&mut self) -> Option<&mut Value> {
        self.value.as_mut()
    }

    /// Stores `value` and replaces the old one.
    pub fn put(&mut self, value: Value) {
        *self.value = Some(value);
        self.changed = true;
        self.replaced = true;
    }

    /// Removes the value.
    pub const fn take(&mut self) -> Option<Value> {
        let taken = self.value.take();
        self.changed |= taken.is_some();
        taken
    }

    /// Records that the value changed. Requests that change nothing are not logged and do not affect `WATCH`.
    pub const fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// Sets the expiration time of the key.
    pub const fn expire(&mut self, expiry: Expiry) {
        self.expiry = expiry;
        self.changed = true;
    }

    /// The expiration time that was set.
    #[must_use]
    pub const fn expiry(&self) -> Expiry {
        self.expiry
    }

    /// Was the value replaced?
    #[must_use]
    pub const fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// Did anything change?
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.changed
    }
}

/// The positions of a request with this many words that are not in `left_out`, which counts from the end.
#[must_use]
pub fn kept_words(words: usize, left_out: &[usize]) -> Vec<usize> {
    let mut is_kept = vec![true; words];
    for from_end in left_out {
        if let Some(at) = words.checked_sub(*from_end).filter(|at| *at < words) {
            is_kept[at] = false;
        }
    }
    (0..words).filter(|at| is_kept[*at]).collect()
}

/// Buffers that batches reuse. Their content between batches is meaningless.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The hashes of all items of a batch.
    pub hashes: Vec<ItemHash>,
    /// The answers of a batch of lookups.
    pub answers: Answers,
    /// The results of a batch of insertions.
    pub inserted: NewItems,
    /// The hashes of new items, for a log.
    pub new: Vec<ItemHash>,
    /// The bytes of a log record.
    pub record: Vec<u8>,
}

impl Scratch {
    /// Adds to `new` the hashes of the items that the last batch newly inserted, if a log needs them.
    #[inline]
    pub(crate) fn collect_new(&self, new: Option<&mut Vec<ItemHash>>) {
        if let Some(new) = new {
            let hashes = self.hashes.iter().zip(self.inserted.iter()).filter(|(_, new)| *new);
            new.extend(hashes.map(|(hash, _)| *hash));
        }
    }
}
