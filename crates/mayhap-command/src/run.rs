//! How a command is run: what it is given and what it gives back.

use mayhap::{Answers, ItemHash};

use crate::command::Command;
use crate::context::Context;
pub use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::reply::Reply;
pub use crate::server::Server;
use crate::value::Value;

/// One request: a command of the table and all its words, the command's own first. Their number fits the arity.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The row of the table.
    pub command: &'static Command,
    /// All words.
    pub words: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    /// The name of the filter it is about, for commands that have one: the first of its names.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.words.get(self.command.names.first.max(1)).copied().unwrap_or_default()
    }

    /// All names in it, where the row of the table says that they stand.
    #[must_use]
    pub fn names(&self) -> Vec<&'a [u8]> {
        self.command.names.positions(self.words.len()).map(|at| self.words[at]).collect()
    }
}

/// What a command does, sorted by what it must be given.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Looks at what one name holds; nothing changes. Many at once.
    Look(fn(&Request<'_>, Option<&Value>, &Context<'_>) -> Result<Reply, Refusal>),
    /// Changes what one name holds, fills an empty name or empties it. Nobody else sees the name meanwhile.
    Change(fn(&Request<'_>, &mut Slot<'_>, &Context<'_>) -> Result<Reply, Refusal>),
    /// Asks about items, or adds them. Requests of the same batch about the same name, one behind the other, are run together.
    Items(Batch),
    /// Makes what one name holds out of what others hold: the first name is the target, the others are the sources.
    Gather(fn(&Request<'_>, &mut Slot<'_>, &[Source<'_>], &Context<'_>) -> Result<Reply, Refusal>),
    /// Works on the keyspace: the engine does it, and in a module its host.
    Keyspace(Keyspace),
    /// Works on the connection or the server itself: the server does it, and in a module its host.
    Server(Server),
}

/// What a source of [`Run::Gather`] holds.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// It is the target itself.
    Target,
    /// Another name.
    Other(Option<&'a Value>),
}

/// Requests that are run together.
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
    /// Runs as many of `requests` as need no more than a shared look at what the name holds, pushes a reply for each of them and
    /// says how many it ran. The next one, if there is one, needs the name for itself: [`alone`](Self::alone) runs it.
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

    /// Refuses all of `requests` alike.
    pub fn refuse(self, requests: &[Request<'_>], refusal: &Refusal, replies: &mut Vec<Reply>) -> Together {
        crate::pipeline::refuse_all(requests, refusal, replies)
    }

    /// Runs one request with the name for itself.
    ///
    /// # Errors
    /// The text the client gets.
    pub fn alone(
        self,
        request: &Request<'_>,
        slot: &mut Slot<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Reply, Refusal> {
        match self {
            // Never comes here: questions are always answered together.
            Self::BloomAsk | Self::CuckooAsk | Self::MayhapAsk => Err(Refusal::NotFound),
            Self::BloomAdd => crate::bf::add_alone(request, slot, context, scratch),
            Self::MayhapAdd => crate::mf::add_alone(request, slot, context, scratch),
        }
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// How many requests are answered.
    pub done: usize,
    /// Did any of them change the filter?
    pub changed: bool,
    /// Items asked about that got *mayhap*, for the statistics.
    pub hits: u64,
    /// Items asked about that got *no*.
    pub misses: u64,
}

/// One name for oneself: what it holds may be changed, taken away or put there.
#[derive(Debug)]
pub struct Slot<'a> {
    value: &'a mut Option<Value>,
    changed: bool,
    replaced: bool,
    expiry: Expiry,
    /// Is there a log that wants to know more than that it changed?
    logged: bool,
    items: Option<Vec<ItemHash>>,
    left_out: Vec<usize>,
}

/// When a name is to go away by itself, as far as a command has a say in it. Whoever made the slot sees to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// As it was.
    #[default]
    Keep,
    /// Not by itself.
    Never,
    /// At this time, in milliseconds since 1970.
    At(u64),
}

impl<'a> Slot<'a> {
    /// The slot around what a name holds.
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

    /// The same for a log, which is told what is needed to do it again.
    #[must_use]
    pub const fn logged(value: &'a mut Option<Value>) -> Self {
        let mut slot = Self::new(value);
        slot.logged = true;
        slot
    }

    /// Does a log want to know more than that it changed?
    #[must_use]
    pub const fn is_logged(&self) -> bool {
        self.logged
    }

    /// All that changed is that these items, which were new, are in a Bloom filter that neither came nor grew.
    pub fn mark_items(&mut self, items: Vec<ItemHash>) {
        self.changed = true;
        self.items = Some(items);
    }

    /// The items, if that is all that changed.
    #[must_use]
    pub fn items(&self) -> Option<&[ItemHash]> {
        self.items.as_deref()
    }

    /// Who does this request again must leave out a word, for it was refused for reasons that are not in what the name holds: the last word of the request is 1.
    pub fn leave_out(&mut self, from_end: usize) {
        self.left_out.push(from_end);
    }

    /// The words to leave out, counted from the end of the request.
    #[must_use]
    pub fn left_out(&self) -> &[usize] {
        &self.left_out
    }

    /// What it holds.
    #[must_use]
    pub const fn get(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// What it holds, to be changed. Say [`mark_changed`](Self::mark_changed) if something was.
    #[must_use]
    pub const fn get_mut(&mut self) -> Option<&mut Value> {
        self.value.as_mut()
    }

    /// Puts `value` there, in place of what it held.
    pub fn put(&mut self, value: Value) {
        *self.value = Some(value);
        self.changed = true;
        self.replaced = true;
    }

    /// Empties the name.
    pub const fn take(&mut self) -> Option<Value> {
        let taken = self.value.take();
        self.changed |= taken.is_some();
        taken
    }

    /// Says that what it holds is not what it was. Requests that change nothing are not logged and disturb no `WATCH`.
    pub const fn mark_changed(&mut self) {
        self.changed = true;
    }

    /// From now on the name goes away at another time than it would have.
    pub const fn expire(&mut self, expiry: Expiry) {
        self.expiry = expiry;
        self.changed = true;
    }

    /// When the name is to go away.
    #[must_use]
    pub const fn expiry(&self) -> Expiry {
        self.expiry
    }

    /// Was something put there, in place of what it held?
    #[must_use]
    pub const fn is_replaced(&self) -> bool {
        self.replaced
    }

    /// Was anything changed?
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.changed
    }
}

/// The places of a request of so many words that are not `left_out`, which are counted from its end.
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

/// Memory that batches use again and again.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The hashes of all items of a batch.
    pub hashes: Vec<ItemHash>,
    /// The answers.
    pub answers: Answers,
    /// How many items of the request that is run next, alone, were added already; `answers` has what became of them.
    pub begun: usize,
    /// Where in `answers` the answers of that request begin.
    pub begun_at: usize,
    /// New items that batches put in through a shared look: they add to it, and the engine takes it for the statistics.
    pub added: u64,
    /// Is there a log that wants to know which items were new?
    pub collects: bool,
    /// Those items.
    pub new: Vec<ItemHash>,
    /// The bytes of a record for the log.
    pub record: Vec<u8>,
    /// Everything that requests run with this have changed so far has a number below this one in the log.
    pub logged: u64,
}

impl Scratch {
    /// Remembers which of the items just added were new, if a log wants to know.
    pub(crate) fn collect(&mut self) {
        if self.collects {
            let new = self.hashes.iter().zip(self.answers.iter()).filter(|(_, new)| *new);
            self.new.extend(new.map(|(hash, _)| *hash));
        }
    }
}
