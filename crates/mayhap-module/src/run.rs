//! Runs one request: finds the value of its name, calls `mayhap-command`, stores the result and replies.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock};

use mayhap_command::run::{Expiry, Source};
use mayhap_command::{
    Adds, Asks, Budget, Command, Context, Limits, Parameters, Ran, Refusal, ReplayableEnvironment, Reply,
    Request, Run, Scratch, Slot, Value,
};

use crate::effect::{self, Effect, Redo};
use crate::environment::HostEnvironment;
use crate::host::{self, Ctx, HostString, Key, Level, OK, call, raw};
use crate::tally::{self, BUDGET};
use crate::types::{self, Held, Type};
use crate::{commit, memory_limit, register, reply, settings};

/// The limits for clients.
static LIMITS: LazyLock<Limits> = LazyLock::new(Limits::default);
/// The limits for a master and the AOF: none, because the request was already allowed.
static UNLIMITED: Limits = Limits::NONE;
static UNLIMITED_BUDGET: LazyLock<Budget> = LazyLock::new(Budget::default);

pub(crate) const READ: c_int = raw::REDISMODULE_READ as c_int;
pub(crate) const WRITE: c_int = raw::REDISMODULE_WRITE as c_int;

/// One request, as the host passes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) ctx: Ctx,
    pub(crate) command: &'static Command,
    /// All words, starting with the command's name.
    pub(crate) strings: &'a [HostString],
    /// Set if the request is repeated: with this time, these random bytes and these parameters.
    pub(crate) redo: Option<&'a Redo<'a>>,
}

/// Buffers that requests reuse one after the other.
#[derive(Debug)]
struct RequestBuffers {
    /// Empty between requests.
    words: Vec<&'static [u8]>,
    scratch: Scratch,
    replies: Vec<Reply>,
    parameters: Arc<Parameters>,
    /// The version of `parameters`.
    version: u64,
}

thread_local! {
    /// Taken while a request runs. A request that runs inside another (sent by a module that listens to
    /// keyspace events) makes its own.
    static REQUEST_BUFFERS: Cell<Option<Box<RequestBuffers>>> = const { Cell::new(None) };
}

impl RequestBuffers {
    fn take() -> Box<Self> {
        let mut buffers = REQUEST_BUFFERS.take().unwrap_or_else(|| {
            Box::new(Self {
                words: Vec::new(),
                scratch: Scratch::default(),
                replies: Vec::new(),
                parameters: settings::parameters(),
                version: settings::version(),
            })
        });
        if buffers.version != settings::version() {
            buffers.version = settings::version();
            buffers.parameters = settings::parameters();
        }
        buffers
    }

    fn put_back(mut self: Box<Self>) {
        /// Requests with more words are rare, so their buffers are freed.
        const MOST_WORDS: usize = 16 << 10;
        self.words.clear();
        self.replies.clear();
        if self.words.capacity() > MOST_WORDS {
            self.words = Vec::new();
            self.scratch = Scratch::default();
        }
        REQUEST_BUFFERS.set(Some(self));
    }
}

/// The limits for clients.
pub(crate) fn limits() -> &'static Limits {
    &LIMITS
}

/// Serves a request: answers it, or blocks its client.
///
/// # Safety
/// The host called a command of ours with this context and these strings.
pub(crate) unsafe fn serve(call: Call<'_>) -> c_int {
    if call.command.name == commit::COMMAND && call.strings.len() == commit::WORDS {
        // SAFETY: the strings live until this call returns, and the words are dropped before that.
        let words: [&[u8]; commit::WORDS] =
            std::array::from_fn(|at| unsafe { host::bytes(call.strings[at]) });
        let request = Request { command: call.command, words: &words };
        // SAFETY: guaranteed by the caller.
        if unsafe { commit::begin(&call, &request) } {
            return OK;
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { serve_now(call) }
}

/// Serves a request and answers it.
///
/// # Safety
/// As [`serve`].
pub(crate) unsafe fn serve_now(call: Call<'_>) -> c_int {
    let mut buffers = RequestBuffers::take();
    // SAFETY: the strings live until this call returns, and the words are cleared before that.
    buffers.words.extend(call.strings.iter().map(|string| unsafe { host::bytes::<'static>(*string) }));
    let RequestBuffers { words, scratch, replies, parameters, .. } = &mut *buffers;
    let request = Request { command: call.command, words };
    let mut server = Server { call, request: &request, parameters };
    // SAFETY: guaranteed by the caller.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { server.run(scratch, replies) }));
    // SAFETY: guaranteed by the caller; nothing was answered yet.
    unsafe {
        match done {
            Ok(()) => match replies.first() {
                Some(first) => reply::send(call.ctx, first),
                None => reply::send(call.ctx, &Reply::from(Refusal::Syntax)),
            },
            Err(_) => {
                host::log(
                    call.ctx,
                    Level::Warning,
                    "mayhap: a request failed with a panic, see the line above",
                );
                call!(RedisModule_ReplyWithError(
                    call.ctx,
                    c"ERR internal error, see the server's log".as_ptr()
                ));
            }
        }
    }
    buffers.put_back();
    OK
}

/// Everything that one request needs.
struct Server<'a> {
    call: Call<'a>,
    request: &'a Request<'a>,
    parameters: &'a Parameters,
}

/// The origin of a request: a client, which limits apply to, or a master or the AOF, which must be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Wish,
    Law,
}

impl Server<'_> {
    /// Runs the request and pushes its reply.
    ///
    /// # Safety
    /// The host called a command of ours, which is not answered yet.
    unsafe fn run(&mut self, scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        let run = self.request.command.run;
        // SAFETY: guaranteed by the caller, for the whole block.
        let answered = unsafe {
            match run {
                Run::Ask(asks) => return self.ask(asks, scratch, replies),
                Run::Add(adds) => self.add(adds, scratch, replies),
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
        // SAFETY: guaranteed by the caller.
        let name = unsafe { Open::new(self.call.ctx, self.name(), READ) };
        // SAFETY: nothing else uses the value of the name until this call returns.
        look(self.request, unsafe { name.held.value() }, &context)
    }

    /// Runs lookups of items.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn ask(&self, asks: Asks, scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { Open::new(self.call.ctx, self.name(), READ) };
        let environment = HostEnvironment;
        let moment = match self.call.redo {
            Some(redo) => redo.moment(),
            None => ReplayableEnvironment::lazy(&environment),
        };
        let context = self.context(Word::Wish, &moment, self.parameters);
        let requests = std::slice::from_ref(self.request);
        // SAFETY: nothing else uses the value of the name until this call returns.
        asks.answer(requests, unsafe { name.held.value() }, &context, scratch, replies);
    }

    /// Adds items: with a shared reference if that is enough, so that the value need not be stored again.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn add(
        &self,
        adds: Adds,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> Result<Reply, Refusal> {
        let added = {
            // SAFETY: guaranteed by the caller.
            let name = unsafe { Open::new(self.call.ctx, self.name(), READ | WRITE) };
            let requests = std::slice::from_ref(self.request);
            // SAFETY: nothing else uses the value of the name until this call returns.
            adds.add_together(requests, unsafe { name.held.value() }, None, scratch, replies)
        };
        let changed = added.new_items > 0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            match added.ran {
                Ran::Rest { begun, .. } => {
                    let request = *self.request;
                    self.alone(changed, |slot, context| adds.add_alone(&request, &begun, slot, context))
                }
                Ran::All => {
                    if changed {
                        // Only items were inserted, which gives the same filter everywhere.
                        self.tell(self.name(), Effect::Verbatim);
                    }
                    Ok(replies.pop().unwrap_or(Reply::Null))
                }
            }
        }
    }

    /// Runs `work` with exclusive access to the name. `changed_before`: this request has already changed the
    /// value, and the change has not been propagated yet.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn alone(
        &self,
        changed_before: bool,
        work: impl FnOnce(&mut Slot<'_>, &Context<'_>) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        let mode = if self.request.command.changes() { READ | WRITE } else { READ };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let name = Open::new(self.call.ctx, self.name(), mode);
            self.change(name, changed_before, || {}, work)
        }
    }

    /// Runs `work` with exclusive access to the first name and shared access to the others.
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
        // SAFETY: guaranteed by the caller. The values of the other names do not move: `work` changes the
        // target only.
        unsafe {
            // Opening an expired name removes it, and a listener may then remove others. So open all names
            // once before any value is used.
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

    /// Runs `work` on the value of an open name, stores the result, and propagates the change to replicas and
    /// listeners. Before that it calls `release`, which closes all other open names.
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
        // SAFETY: guaranteed by the caller.
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

        // SAFETY: nothing else uses the value of the name until this call returns, and it is put back below
        // in every case.
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
        // The memory it took is booked by now. Listeners may run requests of their own.
        drop(promises);
        let (reply, changed) = match done {
            Ok(done) => done,
            Err(panic) => resume_unwind(panic),
        };
        if let Some(changed) = changed {
            // SAFETY: the name is open for writing; the rest is guaranteed by the caller.
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
                // The master refused it as well and made the same change: the replica is consistent.
                return Ok(reply.unwrap_or(Reply::Ok));
            }
        }
        reply
    }

    /// The name of the first, or only, filter.
    fn name(&self) -> HostString {
        self.call.strings[self.request.command.names.first.max(1)]
    }

    fn context<'c>(
        &self,
        word: Word,
        moment: &'c ReplayableEnvironment<'_>,
        parameters: &'c Parameters,
    ) -> Context<'c> {
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
        // SAFETY: guaranteed by the caller.
        match unsafe { host::flags(self.call.ctx) } & LAW {
            0 => Word::Wish,
            _ => Word::Law,
        }
    }

    /// Propagates a change of a name's value to replicas, the AOF, `WATCH` and listeners.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn tell(&self, name: HostString, effect: Effect<'_>) {
        tally::changed();
        // SAFETY: guaranteed by the caller; the text of the event is static.
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
    /// A new value was stored.
    made: bool,
    expiry: Expiry,
    left_out: Vec<usize>,
}

/// An open name. Dropping this closes it.
#[derive(Debug)]
pub(crate) struct Open {
    key: Key,
    pub(crate) held: Held,
}

impl Open {
    /// # Safety
    /// The host called a command of ours with this context, which outlives the returned value.
    pub(crate) unsafe fn new(ctx: Ctx, name: HostString, mode: c_int) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let key = call!(RedisModule_OpenKey(ctx, name, mode));
            Self { key, held: Held::of(key) }
        }
    }

    /// Puts back the value that was taken, or its replacement.
    ///
    /// # Safety
    /// [`Held::take`] was called once, and the name is open for writing if anything was `made` or removed.
    unsafe fn put_back(&self, value: Option<Value>, before: u64, made: bool) {
        // SAFETY: guaranteed by the caller. If the host keeps our box, it holds a value that may be freed.
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

    /// Replaces the value of the name, or deletes the name for `None`.
    ///
    /// # Safety
    /// The name is open for writing.
    unsafe fn set(&self, value: Option<Value>) {
        // SAFETY: guaranteed by the caller. The host owns the value from here on and passes it to `free`.
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
        // SAFETY: guaranteed by the caller.
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
            // SAFETY: it is open, and it is closed once.
            unsafe { call!(RedisModule_CloseKey(self.key)) };
        }
    }
}
