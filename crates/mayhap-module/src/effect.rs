//! What is sent to replicas and to the AOF for a change: a request that gives the same filter there.
//!
//! Most requests can be sent as they are: the same items into the same filter. A request that depends on the
//! time, on randomness, on parameters or on limits is sent as
//!
//! ```text
//! MF.REDO name milliseconds randomness parameters COMMAND word …
//! ```
//!
//! This runs the command at that time, with those random bytes and parameters (parameters that are not listed
//! have their defaults), and without the words that were refused. If it comes from a master or from the AOF,
//! no limits apply, because the request was already allowed.

use std::ffi::c_int;

use mayhap_command::parameters::{BloomGrowth, Eviction, Hash};
use mayhap_command::run::kept_words;
use mayhap_command::{Parameters, ReplayableEnvironment, table};

use crate::host::{self, Ctx, HostString, call};
use crate::register::is_ours;
use crate::run::{self, Call};

/// What is sent to replicas and to the AOF.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect<'a> {
    /// The request as it came.
    Verbatim,
    /// The request inside `MF.REDO`.
    Redo {
        /// The time that the command read, in milliseconds; 0 if it read none.
        ms: u64,
        /// The random bytes that were drawn.
        random: &'a [u8],
        parameters: &'a Parameters,
        /// Words that were refused, counted from the end.
        left_out: &'a [usize],
    },
}

impl Effect<'_> {
    /// Sends it.
    ///
    /// # Safety
    /// The host called a command of ours with this context and these strings.
    pub(crate) unsafe fn send(self, call: &Call<'_>, name: HostString) {
        // SAFETY: guaranteed by the caller. The arguments match the format, and the host copies them.
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

/// Returns `true` if these parameters affect existing filters in a way that RedisBloom does not have.
pub(crate) fn is_special(parameters: &Parameters) -> bool {
    parameters.bf_growth != BloomGrowth::RedisBloom || parameters.cf_eviction != Eviction::RedisBloom
}

/// The parameters for a request that a master sent as it came: settings that RedisBloom lacks behave as in
/// RedisBloom, and no limit is checked again.
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

/// How a request is repeated.
#[derive(Debug)]
pub(crate) struct Redo<'a> {
    ms: u64,
    random: &'a [u8],
    parameters: Parameters,
}

impl<'a> Redo<'a> {
    /// What is sent if some words were refused this time.
    pub(crate) const fn without(&'a self, left_out: &'a [usize]) -> Effect<'a> {
        Effect::Redo { ms: self.ms, random: self.random, parameters: &self.parameters, left_out }
    }

    /// The time and the randomness of the first run.
    pub(crate) const fn moment(&self) -> ReplayableEnvironment<'a> {
        ReplayableEnvironment::again(self.ms, self.random)
    }

    /// The parameters of the first run as a client gave them: its filters get no more tables than the setting
    /// allows.
    pub(crate) fn parameters_of_client(&self, ours: &Parameters) -> Parameters {
        let cf_max_expansions = self.parameters.cf_max_expansions.min(ours.cf_max_expansions);
        Parameters { cf_max_expansions, ..self.parameters.clone() }
    }

    /// The parameters of the first run.
    pub(crate) const fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// The number of words in front of the repeated command.
pub(crate) const AHEAD: usize = 5;

/// `MF.REDO name milliseconds randomness parameters COMMAND word …`.
///
/// # Safety
/// The host called it with this context and these strings.
pub(crate) unsafe extern "C" fn redo(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: the host passes `argc` strings, and they live until this call returns.
    let strings = unsafe { std::slice::from_raw_parts(argv, count) };
    let refuse = |text: &std::ffi::CStr| {
        // SAFETY: guaranteed by the caller; nothing was answered yet.
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
    // SAFETY: the strings are a part of those that the host passed.
    unsafe { run::serve(Call { ctx, command, strings: &strings[AHEAD..], redo: Some(&redo) }) }
}
