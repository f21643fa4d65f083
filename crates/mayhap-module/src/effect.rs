//! What replicas and the AOF are told of a change: something that gives the same filter there.
//!
//! Most requests do by themselves: the same items into the same filter. What depends on the time, on randomness, on parameters or on limits
//! goes as
//!
//! ```text
//! MF.REDO name milliseconds randomness parameters COMMAND word …
//! ```
//!
//! which runs the command at that time, with that randomness and those parameters (those that are not said are the defaults), without the
//! words that were refused, and, from a master or the AOF, without limits: it was allowed once.

use std::ffi::c_int;

use mayhap_command::parameters::{BloomGrowth, Eviction, Hash};
use mayhap_command::run::kept_words;
use mayhap_command::{ReplayableEnvironment, Parameters, table};

use crate::host::{self, Ctx, HostString, call};
use crate::register::is_ours;
use crate::run::{self, Call};

/// What is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect<'a> {
    /// The request as it came.
    Verbatim,
    /// `MF.REDO` with it.
    Redo {
        /// When; 0: nobody asked.
        ms: u64,
        /// What was drawn.
        random: &'a [u8],
        parameters: &'a Parameters,
        /// Words that were refused, counted from the end.
        left_out: &'a [usize],
    },
}

impl Effect<'_> {
    /// Tells it.
    ///
    /// # Safety
    /// The host called a command of ours with this context and these strings.
    pub(crate) unsafe fn send(self, call: &Call<'_>, name: HostString) {
        // SAFETY: the caller's. What the format announces is what follows it, and it is copied.
        unsafe {
            match self {
                Self::Verbatim => {
                    call!(RedisModule_ReplicateVerbatim(call.ctx));
                }
                Self::Redo { ms, random, parameters, left_out } => {
                    let kept = kept_words(call.strings.len(), left_out);
                    let kept: Vec<HostString> = kept.into_iter().map(|at| call.strings[at]).collect();
                    let special = parameters.differences();
                    call!(RedisModule_Replicate(
                        call.ctx,
                        c"MF.REDO".as_ptr(),
                        c"slbbv".as_ptr(),
                        name,
                        i64::try_from(ms).unwrap_or(i64::MAX),
                        random.as_ptr(),
                        random.len(),
                        special.as_ptr(),
                        special.len(),
                        kept.as_ptr(),
                        kept.len(),
                    ));
                }
            }
        }
    }
}

/// Do these parameters do something to filters that are there, which RedisBloom knows nothing of?
pub(crate) fn is_special(parameters: &Parameters) -> bool {
    parameters.bf_growth != BloomGrowth::RedisBloom || parameters.cf_eviction != Eviction::RedisBloom
}

/// The parameters under which a request of a master is run that it sent as it came: what is not in RedisBloom is as there, and no limit is looked at again.
pub(crate) fn parameters_of_master(ours: &Parameters) -> Parameters {
    Parameters {
        bf_growth: BloomGrowth::RedisBloom,
        bf_hash: Hash::RedisBloom,
        cf_eviction: Eviction::RedisBloom,
        cf_hash: Hash::RedisBloom,
        cf_max_expansions: u64::MAX,
        ..ours.clone()
    }
}

/// How a request is done again.
#[derive(Debug)]
pub(crate) struct Redo<'a> {
    ms: u64,
    random: &'a [u8],
    parameters: Parameters,
}

impl<'a> Redo<'a> {
    /// What is told of it where some words were refused this time.
    pub(crate) const fn without(&'a self, left_out: &'a [usize]) -> Effect<'a> {
        Effect::Redo { ms: self.ms, random: self.random, parameters: &self.parameters, left_out }
    }

    /// The moment of then.
    pub(crate) const fn moment(&self) -> ReplayableEnvironment<'a> {
        ReplayableEnvironment::again(self.ms, self.random)
    }

    /// The parameters of then where a client says what they were: its filters have no more tables than those of others.
    pub(crate) fn parameters_of_client(&self, ours: &Parameters) -> Parameters {
        let cf_max_expansions = self.parameters.cf_max_expansions.min(ours.cf_max_expansions);
        Parameters { cf_max_expansions, ..self.parameters.clone() }
    }

    /// The parameters of then.
    pub(crate) const fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// Words in front of the command that is done again.
pub(crate) const AHEAD: usize = 5;

/// `MF.REDO name milliseconds randomness parameters COMMAND word …`.
///
/// # Safety
/// The host called it with this context and these strings.
pub(crate) unsafe extern "C" fn redo(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: the host gives as many strings as it says, and they live until this is done.
    let strings = unsafe { std::slice::from_raw_parts(argv, count) };
    let refuse = |text: &std::ffi::CStr| {
        // SAFETY: the caller's; nothing was answered yet.
        unsafe { call!(RedisModule_ReplyWithError(ctx, text.as_ptr())) }
    };
    if count < AHEAD + 2 {
        return refuse(c"ERR wrong number of arguments for 'mf.redo' command");
    }
    // SAFETY: as above.
    let words: Vec<&[u8]> = strings.iter().map(|string| unsafe { host::bytes(*string) }).collect();
    let ms = std::str::from_utf8(words[2]).ok().and_then(|text| text.parse().ok());
    let Some(ms) = ms else { return refuse(c"ERR MF.REDO: the time is no number of milliseconds") };
    let Some(parameters) = Parameters::from_differences(words[4]) else {
        return refuse(c"ERR MF.REDO: no such parameters");
    };
    let again = &words[AHEAD..];
    let command = table::find(again[0]).filter(|command| is_ours(command) && command.changes());
    let Some(command) = command.filter(|command| command.arity.admits(again.len())) else {
        return refuse(c"ERR MF.REDO: no such command, or not with so many words");
    };
    if again.get(command.names.first) != Some(&words[1]) {
        return refuse(c"ERR MF.REDO: the command is about another name");
    }
    let redo = Redo { ms, random: words[3], parameters };
    // SAFETY: the strings are some of those the host gave.
    unsafe { run::serve(Call { ctx, command, strings: &strings[AHEAD..], redo: Some(&redo) }) }
}
