//! Runs one request: finds what its name holds, asks `mayhap-command`, puts back what became of it, replies.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock};

use mayhap_command::run::{Expiry, Source};
use mayhap_command::{
    Batch, Budget, Command, Context, Limits, ReplayableEnvironment, Parameters, Refusal, Reply, Request, Run, Scratch, Slot,
    Value,
};

use crate::effect::{self, Effect, Redo};
use crate::environment::HostEnvironment;
use crate::host::{self, Ctx, HostString, Key, Level, OK, call, raw};
use crate::tally::{self, BUDGET};
use crate::types::{self, Held, Type};
use crate::{commit, memory_limit, register, reply, settings};

/// What clients may do.
static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);
/// What a master, or the AOF, may do: it was allowed once.
static UNLIMITED: Limits = Limits::NONE;
static UNLIMITED_BUDGET: LazyLock<Budget> = LazyLock::new(Budget::default);

pub(crate) const READ: c_int = raw::REDISMODULE_READ as c_int;
pub(crate) const WRITE: c_int = raw::REDISMODULE_WRITE as c_int;

/// One request, as the host gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) ctx: Ctx,
    pub(crate) command: &'static Command,
    /// All words, the command's own first.
    pub(crate) strings: &'a [HostString],
    /// It is done again: at this time, with this randomness and these parameters.
    pub(crate) redo: Option<&'a Redo<'a>>,
}

/// Memory that requests use one after the other.
#[derive(Debug)]
struct Desk {
    /// Empty between requests.
    words: Vec<&'static [u8]>,
    scratch: Scratch,
    replies: Vec<Reply>,
    parameters: Arc<Parameters>,
    /// Which version of the parameters that is.
    version: u64,
}

thread_local! {
    /// Taken by whoever runs a request: one that is run inside of another (by a module that is told of a change) makes its own.
    static DESK: Cell<Option<Box<Desk>>> = const { Cell::new(None) };
}

impl Desk {
    fn take() -> Box<Self> {
        let mut desk = DESK.take().unwrap_or_else(|| {
            Box::new(Self {
                words: Vec::new(),
                scratch: Scratch::default(),
                replies: Vec::new(),
                parameters: settings::parameters(),
                version: settings::version(),
            })
        });
        if desk.version != settings::version() {
            desk.version = settings::version();
            desk.parameters = settings::parameters();
        }
        desk
    }

    fn put_back(mut self: Box<Self>) {
        /// More words than this are rare, and so is the memory for them.
        const MOST_WORDS: usize = 16 << 10;
        self.words.clear();
        self.replies.clear();
        if self.words.capacity() > MOST_WORDS {
            self.words = Vec::new();
            self.scratch = Scratch::default();
        }
        DESK.set(Some(self));
    }
}

/// What clients may do.
pub(crate) fn limits() -> &'static Limits {
    &LIMITS
}

/// Serves a request, and answers it, or has its client wait.
///
/// # Safety
/// The host called a command of ours with this context and these strings.
pub(crate) unsafe fn serve(call: Call<'_>) -> c_int {
    if call.command.name == commit::COMMAND && call.strings.len() == commit::WORDS {
        // SAFETY: the strings live until this call is done, and the words no longer.
        let words: [&[u8]; commit::WORDS] =
            std::array::from_fn(|at| unsafe { host::bytes(call.strings[at]) });
        let request = Request { command: call.command, words: &words };
        // SAFETY: the caller's.
        if unsafe { commit::begin(&call, &request) } {
            return OK;
        }
    }
    // SAFETY: the caller's.
    unsafe { serve_now(call) }
}

/// Serves a request, and answers it.
///
/// # Safety
/// As [`serve`].
pub(crate) unsafe fn serve_now(call: Call<'_>) -> c_int {
    let mut desk = Desk::take();
    // SAFETY: the strings live until this call is done, and the words are gone before that.
    desk.words.extend(call.strings.iter().map(|string| unsafe { host::bytes::<'static>(*string) }));
    let Desk { words, scratch, replies, parameters, .. } = &mut *desk;
    let request = Request { command: call.command, words };
    let mut server = Server { call, request: &request, parameters };
    // SAFETY: as the caller says.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { server.run(scratch, replies) }));
    // SAFETY: as the caller says; nothing was answered yet.
    unsafe {
        match done {
            Ok(()) => match replies.first() {
                Some(first) => reply::send(call.ctx, first),
                None => reply::send(call.ctx, &Reply::from(Refusal::Syntax)),
            },
            Err(_) => {
                host::log(call.ctx, Level::Warning, "mayhap: a request was given up in the middle");
                call!(RedisModule_ReplyWithError(
                    call.ctx,
                    c"ERR internal error, see the server's log".as_ptr()
                ));
            }
        }
    }
    desk.put_back();
    OK
}

/// What one request needs.
struct Server<'a> {
    call: Call<'a>,
    request: &'a Request<'a>,
    parameters: &'a Parameters,
}

/// Is what is run a client's wish, or did a master or the AOF say so?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Wish,
    Law,
}

impl Server<'_> {
    /// Runs it and pushes its reply.
    ///
    /// # Safety
    /// The host called a command of ours, which is not answered yet.
    unsafe fn run(&mut self, scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        let run = self.request.command.run;
        // SAFETY: the caller's, for all of it.
        let answered = unsafe {
            match run {
                Run::Items(batch) => return self.items(batch, scratch, replies),
                Run::Look(look) => self.look(look),
                Run::Change(change) => {
                    let request = *self.request;
                    self.alone(false, |slot, context| change(&request, slot, context))
                }
                Run::Gather(gather) => {
                    let request = *self.request;
                    self.gather(|slot, sources, context| gather(&request, slot, sources, context))
                }
                Run::Keyspace(_) | Run::Server(_) => Err(Refusal::Syntax),
            }
        };
        replies.push(answered.unwrap_or_else(Reply::from));
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn look(
        &self,
        look: fn(&Request<'_>, Option<&Value>, &Context<'_>) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        let environment = HostEnvironment;
        let moment = ReplayableEnvironment::lazy(&environment);
        let context = self.context(Word::Wish, &moment, self.parameters);
        if self.request.command.names.first == 0 {
            return look(self.request, None, &context);
        }
        // SAFETY: the caller's.
        let name = unsafe { Open::new(self.call.ctx, self.name(), READ) };
        // SAFETY: nobody else has what it holds as long as this call is not done.
        look(self.request, unsafe { name.held.value() }, &context)
    }

    /// Questions, and items to be added where no more is needed than a look.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn items(&self, batch: Batch, scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        let changes = self.request.command.changes();
        let together = {
            // SAFETY: the caller's.
            let name =
                unsafe { Open::new(self.call.ctx, self.name(), if changes { READ | WRITE } else { READ }) };
            let environment = HostEnvironment;
            let moment = match self.call.redo {
                Some(redo) => redo.moment(),
                None => ReplayableEnvironment::lazy(&environment),
            };
            let context = self.context(Word::Wish, &moment, self.parameters);
            let requests = std::slice::from_ref(self.request);
            // SAFETY: nobody else has what it holds as long as this call is not done.
            batch.together(requests, unsafe { name.held.value() }, &context, scratch, replies)
        };
        // SAFETY: the caller's.
        unsafe {
            if together.done == 0 {
                let request = *self.request;
                let answered = self
                    .alone(together.changed, |slot, context| batch.alone(&request, slot, context, scratch));
                replies.push(answered.unwrap_or_else(Reply::from));
            } else if together.changed {
                // Nothing but items that anybody would put in just so.
                self.tell(self.name(), Effect::Verbatim);
            }
        }
    }

    /// Does `work` with the name for oneself. What it holds may have been changed by this request already: nobody was told of that yet.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn alone(
        &self,
        changed_before: bool,
        work: impl FnOnce(&mut Slot<'_>, &Context<'_>) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        let mode = if self.request.command.changes() { READ | WRITE } else { READ };
        // SAFETY: the caller's.
        unsafe {
            let name = Open::new(self.call.ctx, self.name(), mode);
            self.change(name, changed_before, || {}, work)
        }
    }

    /// Does `work` with the first name for oneself, and a look at the others.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn gather(
        &self,
        work: impl FnOnce(&mut Slot<'_>, &[Source<'_>], &Context<'_>) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        let positions: Vec<usize> = self.request.command.names.positions(self.request.words.len()).collect();
        let Some((&first, others)) = positions.split_first() else { return Err(Refusal::Syntax) };
        let target = self.request.words[first];
        // SAFETY: the caller's. What the other names hold stays where it is: `work` changes the target only.
        unsafe {
            // Opening a name that is expired removes it, and whoever listens may then remove others: before anything is held.
            for &at in &positions {
                drop(Open::new(self.call.ctx, self.call.strings[at], READ));
            }
            let open: Vec<Option<Open>> = others
                .iter()
                .map(|&at| {
                    (self.request.words[at] != target)
                        .then(|| Open::new(self.call.ctx, self.call.strings[at], READ))
                })
                .collect();
            let sources: Vec<Source<'_>> = open
                .iter()
                .map(|open| match open {
                    None => Source::Target,
                    Some(open) => Source::Other(open.held.value()),
                })
                .collect();
            let name = Open::new(self.call.ctx, self.call.strings[first], READ | WRITE);
            self.change(name, false, move || drop(open), |slot, context| work(slot, &sources, context))
        }
    }

    /// Does `work` with what an open name holds, puts back what became of it, and tells replicas and whoever listens; before that whatever else
    /// is open is `release`d.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn change(
        &self,
        name: Open,
        changed_before: bool,
        release: impl FnOnce(),
        work: impl FnOnce(&mut Slot<'_>, &Context<'_>) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        // SAFETY: the caller's.
        let word = unsafe { self.word() };
        let other = match (word, self.call.redo) {
            (Word::Law, None) => Some(effect::parameters_of_master(self.parameters)),
            (Word::Wish, Some(redo)) => Some(redo.parameters_of_client(self.parameters)),
            _ => None,
        };
        let parameters = match (&other, self.call.redo) {
            (Some(other), _) => other,
            (None, Some(redo)) => redo.parameters(),
            (None, None) => self.parameters,
        };
        let environment = HostEnvironment;
        let moment = match self.call.redo {
            Some(redo) => redo.moment(),
            None => ReplayableEnvironment::lazy(&environment),
        };
        let context = self.context(word, &moment, parameters);
        if word == Word::Wish {
            memory_limit::refresh();
        }
        let promises = context.budget.promises();

        // SAFETY: nobody else has what it holds as long as this call is not done, and it is put back below whatever happens.
        let mut value = unsafe { name.held.take() };
        let before = value.as_ref().map_or(0, tally::bytes);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut slot = Slot::logged(&mut value);
            let reply = work(&mut slot, &context);
            let changed = (changed_before || slot.is_changed()).then(|| Changed {
                made: slot.is_replaced(),
                expiry: slot.expiry(),
                left_out: slot.left_out().to_vec(),
            });
            (reply, changed)
        }));
        // SAFETY: as above.
        unsafe { name.put_back(value, before, matches!(&done, Ok((_, Some(changed))) if changed.made)) };
        // What it took is booked by now. Whoever listens may run requests of their own.
        drop(promises);
        let (reply, changed) = match done {
            Ok(done) => done,
            Err(panic) => resume_unwind(panic),
        };
        if let Some(changed) = changed {
            // SAFETY: the name is open for writing, and the caller's.
            unsafe {
                name.expire(changed.expiry);
                drop(name);
                let asks_for_more = changed.made
                    || !changed.left_out.is_empty()
                    || moment.asked_ms().is_some()
                    || effect::is_special(parameters);
                let drawn = moment.take_drawn();
                let effect = match (word, self.call.redo) {
                    (Word::Wish, None) if asks_for_more || !drawn.is_empty() => Effect::Redo {
                        ms: moment.asked_ms().unwrap_or(0),
                        random: &drawn,
                        parameters,
                        left_out: &changed.left_out,
                    },
                    (Word::Wish, Some(redo)) if !changed.left_out.is_empty() => {
                        redo.without(&changed.left_out)
                    }
                    _ => Effect::Verbatim,
                };
                release();
                self.tell(self.name(), effect);
            }
            if word == Word::Law {
                // It was refused there as well, and changed the same: nothing is wrong with the replica.
                return Ok(reply.unwrap_or(Reply::Ok));
            }
        }
        reply
    }

    /// The name of the first, or only, filter.
    fn name(&self) -> HostString {
        self.call.strings[self.request.command.names.first.max(1)]
    }

    fn context<'c>(&self, word: Word, moment: &'c ReplayableEnvironment<'_>, parameters: &'c Parameters) -> Context<'c> {
        let (limits, budget) = match word {
            Word::Wish => (&*LIMITS, &*BUDGET),
            Word::Law => (&UNLIMITED, &*UNLIMITED_BUDGET),
        };
        Context { limits, budget, parameters, environment: moment }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn word(&self) -> Word {
        const LAW: u32 = raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING;
        // SAFETY: the caller's.
        match unsafe { host::flags(self.call.ctx) } & LAW {
            0 => Word::Wish,
            _ => Word::Law,
        }
    }

    /// Tells whoever wants to know that what a name holds was changed: replicas, the AOF, `WATCH`, listeners.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn tell(&self, name: HostString, effect: Effect<'_>) {
        tally::changed();
        // SAFETY: the caller's; the text of the event lives for ever.
        unsafe {
            effect.send(&self.call, name);
            call!(RedisModule_SignalModifiedKey(self.call.ctx, name));
            let event = register::event_of(self.request.command);
            call!(RedisModule_NotifyKeyspaceEvent(
                self.call.ctx,
                raw::REDISMODULE_NOTIFY_MODULE,
                event.as_ptr(),
                name
            ));
        }
    }
}

/// What a command did to a name.
struct Changed {
    /// Something was put there.
    made: bool,
    expiry: Expiry,
    left_out: Vec<usize>,
}

/// A name that is open, and closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    key: Key,
    pub(crate) held: Held,
}

impl Open {
    /// # Safety
    /// The host called a command of ours with this context, which lives longer than what is returned.
    pub(crate) unsafe fn new(ctx: Ctx, name: HostString, mode: c_int) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let key = call!(RedisModule_OpenKey(ctx, name, mode));
            Self { key, held: Held::of(key) }
        }
    }

    /// Puts back what was taken, or what became of it.
    ///
    /// # Safety
    /// [`Held::take`] was called once, and the name is open for writing if anything was `made` or removed.
    unsafe fn put_back(&self, value: Option<Value>, before: u64, made: bool) {
        // SAFETY: the caller's. Where a place of ours is left, something that may be freed is in it.
        unsafe {
            match (self.held, value) {
                (Held::Ours(place, of), Some(value)) if Type::of(&value) == of => {
                    BUDGET.book(before, tally::bytes(&value));
                    place.as_ptr().write(value);
                }
                (Held::Ours(place, _), value) => {
                    place.as_ptr().write(types::empty());
                    BUDGET.book(before, tally::bytes(place.as_ref()));
                    self.set(value);
                }
                (Held::Foreign, Some(_)) if !made => {}
                (Held::Foreign | Held::Nothing, Some(value)) => self.set(Some(value)),
                (Held::Foreign, None) => self.set(None),
                (Held::Nothing, None) => {}
            }
        }
    }

    /// Puts a value in place of whatever the name holds, or nothing.
    ///
    /// # Safety
    /// The name is open for writing.
    unsafe fn set(&self, value: Option<Value>) {
        // SAFETY: the caller's. The host owns the value from here on, and gives it back to `free`.
        unsafe {
            match value {
                None => {
                    call!(RedisModule_DeleteKey(self.key));
                }
                Some(value) => {
                    let expires = call!(RedisModule_GetAbsExpire(self.key));
                    types::put(self.key, value);
                    if expires > 0 {
                        call!(RedisModule_SetAbsExpire(self.key, expires));
                    }
                }
            }
        }
    }

    /// # Safety
    /// The name is open for writing.
    unsafe fn expire(&self, expiry: Expiry) {
        // SAFETY: the caller's.
        unsafe {
            match expiry {
                Expiry::Keep => {}
                Expiry::Never => {
                    call!(RedisModule_SetExpire(self.key, raw::REDISMODULE_NO_EXPIRE.into()));
                }
                Expiry::At(ms) => {
                    call!(RedisModule_SetAbsExpire(self.key, i64::try_from(ms).unwrap_or(i64::MAX)));
                }
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.key.is_null() {
            // SAFETY: it is open, and not closed twice.
            unsafe { call!(RedisModule_CloseKey(self.key)) };
        }
    }
}
