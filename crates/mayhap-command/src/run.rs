//! How a command runs: its input and its result.

use mayhap::{Answers, ItemHash, NewItems};

use crate::command::Command;
use crate::context::Context;
pub use crate::keyspace::Keyspace;
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
    /// Looks up or adds items. Consecutive requests of a batch on the same key run together.
    Items(Batch),
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

/// Requests that can run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// `BF.EXISTS`, `BF.MEXISTS`.
    BloomAsk,
    /// `BF.ADD`, `BF.MADD`.
    BloomAdd,
    /// `CF.EXISTS`, `CF.MEXISTS`.
    CuckooAsk,
    /// `MF.EXISTS`, `MF.MEXISTS`.
    MayhapAsk,
    /// `MF.ADD`, `MF.MADD`.
    MayhapAdd,
}

impl Batch {
    /// Runs those of `requests` that need only shared access to the value, pushes a reply for each and returns how many it ran. The
    /// next request, if there is one, needs exclusive access: [`alone`](Self::alone) runs it.
    pub fn together(
        self,
        requests: &[Request<'_>],
        value: Option<&Value>,
        context: &Context<'_>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> Together {
        if let Some(lost) = value.and_then(Value::lost) {
            return self.refuse(requests, &Refusal::Lost(lost), replies);
        }
        match self {
            Self::BloomAsk => crate::bf::ask(requests, value, scratch, replies),
            Self::BloomAdd => crate::bf::add_together(requests, value, context, scratch, replies),
            Self::CuckooAsk => crate::cf::ask(requests, value, scratch, replies),
            Self::MayhapAsk => crate::mf::ask(requests, value, context, scratch, replies),
            Self::MayhapAdd => crate::mf::add_together(requests, value, scratch, replies),
        }
    }

    /// Refuses all of `requests` with the same error.
    pub fn refuse(self, requests: &[Request<'_>], refusal: &Refusal, replies: &mut Vec<Reply>) -> Together {
        crate::pipeline::refuse_all(requests, refusal, replies)
    }

    /// Runs one request with exclusive access.
    ///
    /// # Errors
    /// The error that the client gets.
    pub fn alone(
        self,
        request: &Request<'_>,
        slot: &mut Slot<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Reply, Refusal> {
        match self {
            // Unreachable: lookups always run together.
            Self::BloomAsk | Self::CuckooAsk | Self::MayhapAsk => Err(Refusal::NotFound),
            Self::BloomAdd => crate::bf::add_alone(request, slot, context, scratch),
            Self::MayhapAdd => crate::mf::add_alone(request, slot, context, scratch),
        }
    }
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The number of requests that were answered.
    pub done: usize,
    /// Did any of them change the filter?
    pub changed: bool,
    /// Lookups answered *maybe*, for the statistics.
    pub hits: u64,
    /// Lookups answered *no*.
    pub misses: u64,
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

/// Buffers that batches reuse.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The hashes of all items of a batch.
    pub hashes: Vec<ItemHash>,
    /// The answers of a batch of lookups.
    pub answers: Answers,
    /// The results of a batch of insertions.
    pub inserted: NewItems,
    /// The number of items of the next request that were inserted already. `inserted` has their results.
    pub begun: usize,
    /// Index in `inserted` of the first result of that request.
    pub begun_at: usize,
    /// New items that batches inserted through shared access. Batches add to it; the engine takes it for the statistics.
    pub added: u64,
    /// Does a log need to know which items were new?
    pub collects: bool,
    /// The new items.
    pub new: Vec<ItemHash>,
    /// The bytes of a log record.
    pub record: Vec<u8>,
    /// All changes by requests that ran with these buffers have a log number below this one.
    pub logged: u64,
}

impl Scratch {
    /// Records which of the items just inserted were new, if a log needs them.
    pub(crate) fn collect(&mut self) {
        if self.collects {
            let new = self.hashes.iter().zip(self.inserted.iter()).filter(|(_, new)| *new);
            self.new.extend(new.map(|(hash, _)| *hash));
        }
    }
}
