//! `MF.BUILD name COMMIT` of a large static set, without stopping the host.
//!
//! ```text
//! client ─▶ COMMIT ─▶ blocked ──────────────────────────────────▶ COMMIT as usual: the set is made, it is swapped in, reply
//!                        └─▶ thread: build ─▶ host's lock: keep the set ─┘
//!                                      ▲          └ new items were added: build again, at most three times
//! ```
//!
//! Only the client of `COMMIT` waits. If a client must not be blocked (a transaction, a script, a replica,
//! the AOF), and for small sets, `COMMIT` builds the set itself.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use mayhap_command::mf::{Aside, Holder, is_commit};
use mayhap_command::{Context, Parameters, ReplayableEnvironment, Request, Value, names, table};

use crate::environment::HostEnvironment;
use crate::host::{self, Ctx, HostString, call, raw};
use crate::run::{self, Call, Open, READ, WRITE};
use crate::tally::{self, BUDGET};
use crate::types::Held;
use crate::{memory_limit, settings};

/// The command whose client may have to wait.
pub(crate) const COMMAND: &str = names::MF_BUILD;
/// The number of words of the request `MF.BUILD name COMMIT`.
pub(crate) const WORDS: usize = 3;

/// How many times the set is built while the host runs. Items that are added without a pause require another
/// build each time.
const ATTEMPTS: usize = 3;

/// The contexts in which a client must not be blocked.
const NEVER: u32 = raw::REDISMODULE_CTX_FLAGS_MULTI
    | raw::REDISMODULE_CTX_FLAGS_LUA
    | raw::REDISMODULE_CTX_FLAGS_REPLICATED
    | raw::REDISMODULE_CTX_FLAGS_LOADING
    | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;

/// Blocks the client and starts a thread that builds the set. Returns `false` if the request must be run now.
///
/// # Safety
/// The host called a command of ours with this context and these strings, and it is not answered yet.
pub(crate) unsafe fn begin(call: &Call<'_>, request: &Request<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if call.redo.is_some() || !is_commit(request) || host::flags(call.ctx) & NEVER != 0 {
            return false;
        }
        let begun = with_holder(call.ctx, call.strings[1], Holder::begin_aside);
        let Some(aside) = begun.flatten() else { return false };
        memory_limit::refresh();
        let client = call!(RedisModule_BlockClient(call.ctx, Some(finish), None, None, 0));
        if client.is_null() {
            return false;
        }
        let blocked = Blocked(client);
        let job = Job { name: request.words[1].to_vec(), parameters: settings::parameters() };
        let started = thread::Builder::new().name("mayhap-commit".to_owned()).spawn(move || {
            // The client is unblocked whatever happens: COMMIT then builds what is missing.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run(aside, &blocked)));
            drop(blocked);
        });
        // If the thread cannot be started, the closure is dropped, and the client continues immediately in
        // `finish`.
        drop(started);
        true
    }
}

/// Runs the request of a client that was unblocked like any other.
///
/// # Safety
/// The host calls it for a client that was blocked by [`begin`].
unsafe extern "C" fn finish(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    // The host may have renamed the command.
    let Some(command) = table::find(COMMAND.as_bytes()) else { return host::ERR };
    // SAFETY: the host passes `argc` strings, and they live until this call returns.
    unsafe {
        let strings = std::slice::from_raw_parts(argv, usize::try_from(argc).unwrap_or(0));
        run::serve_now(Call { ctx, command, strings, redo: None })
    }
}

/// Runs `work` on the value of an `MF` name. `work` changes nothing that is saved.
///
/// # Safety
/// The host called us with this context, or its lock is held.
unsafe fn with_holder<T>(ctx: Ctx, name: HostString, work: impl FnOnce(&mut Holder) -> T) -> Option<T> {
    // SAFETY: guaranteed by the caller. Nothing else uses the value of the name until this returns.
    unsafe {
        let open = Open::new(ctx, name, READ | WRITE);
        let Held::Ours(mut place, _) = open.held else { return None };
        let value = place.as_mut();
        let before = tally::bytes(value);
        let done = match value {
            Value::Filter(holder) => Some(work(holder)),
            _ => None,
        };
        BUDGET.book(before, tally::bytes(value));
        done
    }
}

/// A blocked client. Dropping this unblocks it.
struct Blocked(*mut raw::RedisModuleBlockedClient);

// SAFETY: the host's functions for blocked clients may be called from any thread.
unsafe impl Send for Blocked {}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the client was blocked once, and this is the only time it is unblocked.
        unsafe { call!(RedisModule_UnblockClient(self.0, std::ptr::null_mut())) };
    }
}

impl Blocked {
    /// Runs `work` while the host is locked.
    fn locked<T>(&self, work: impl FnOnce(Ctx) -> T) -> T {
        struct Unlock(Ctx);
        impl Drop for Unlock {
            fn drop(&mut self) {
                // SAFETY: it is locked, and it is unlocked and freed once.
                unsafe {
                    call!(RedisModule_ThreadSafeContextUnlock(self.0));
                    call!(RedisModule_FreeThreadSafeContext(self.0));
                }
            }
        }
        // SAFETY: the client is blocked until this is dropped. The context has the database of the client.
        let ctx = unsafe {
            let ctx = call!(RedisModule_GetThreadSafeContext(self.0));
            call!(RedisModule_ThreadSafeContextLock(ctx));
            ctx
        };
        let _unlock = Unlock(ctx);
        work(ctx)
    }
}

/// The input of the thread.
struct Job {
    name: Vec<u8>,
    parameters: Arc<Parameters>,
}

impl Job {
    fn run(&self, mut aside: Aside, blocked: &Blocked) {
        for attempt in 1..=ATTEMPTS {
            let promises = BUDGET.promises();
            let environment = HostEnvironment;
            let moment = ReplayableEnvironment::lazy(&environment);
            let parameters = &*self.parameters;
            let context =
                Context { limits: run::limits(), budget: &BUDGET, parameters, environment: &moment };
            // COMMIT reports any refusal.
            let Ok(built) = aside.build(&context) else { return };
            let next = blocked.locked(|ctx| {
                let name = host::string(&self.name);
                // SAFETY: the host's lock is held, and the string is freed once.
                unsafe {
                    let taken = with_holder(ctx, name, |holder| holder.end_aside(&aside, built));
                    drop(aside);
                    // Items were added during the build.
                    let again = taken == Some(false) && attempt < ATTEMPTS;
                    let next =
                        if again { with_holder(ctx, name, Holder::begin_aside).flatten() } else { None };
                    call!(RedisModule_FreeString(std::ptr::null_mut(), name));
                    next
                }
            });
            drop(promises);
            match next {
                Some(next) => aside = next,
                None => return,
            }
        }
    }
}
