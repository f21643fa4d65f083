//! The host loads the module.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::host::{self, Ctx, ERR, HostString, Level, OK, raw};
use crate::memory_limit::HostMemory;
use crate::settings::MODULE;
use crate::{allocator, info, memory_limit, overfull, register, settings, types};

/// The module's version, as `MODULE LIST` shows it: 10 000 for 1.0.0.
const VERSION: c_int = {
    const fn number(text: &str) -> c_int {
        let (bytes, mut number, mut at) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            number = number * 10 + (bytes[at] - b'0') as c_int;
            at += 1;
        }
        number
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + number(env!("CARGO_PKG_VERSION_PATCH"))
};

/// Valkey moves slots as a whole (`CLUSTER MIGRATESLOTS`) if no module is in the way, and asks them to say so. Redis has no such word, and its
/// header not this one.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Called by the host, first of all.
///
/// # Safety
/// Only a host may call it, and once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    // SAFETY: the host's. Until this is done none of its functions may be called, and nothing is allocated.
    if unsafe {
        raw::Export_RedisModule_Init(ctx, MODULE.as_ptr(), VERSION, raw::REDISMODULE_APIVER_1 as c_int)
    } != OK
    {
        return ERR;
    }
    // SAFETY: the host's.
    match unsafe { load(ctx, argv, argc) } {
        Ok(()) => {
            host::log(
                ctx,
                Level::Notice,
                concat!("mayhap ", env!("CARGO_PKG_VERSION"), ": BF.*, CF.* and MF.* are there"),
            );
            OK
        }
        Err(why) => {
            host::log(ctx, Level::Warning, &format!("mayhap: not loaded: {why}"));
            ERR
        }
    }
}

/// # Safety
/// As [`RedisModule_OnLoad`].
unsafe fn load(ctx: Ctx, argv: *mut HostString, argc: c_int) -> Result<(), String> {
    if let Some(name) = host::first_missing() {
        return Err(format!("this server has no {name}: Redis 7.0 or Valkey 7.2 is the oldest that will do"));
    }
    // SAFETY: the caller's, for all of it.
    unsafe {
        let memory = HostMemory::ask(ctx);
        allocator::learn(memory.is_jemalloc);
        memory.keep();
        mayhap::take_all_from_heap();
        // A panic is an error for the client whose request it was; what it was goes to the host's log.
        std::panic::set_hook(Box::new(|panic| {
            host::log(null_mut(), Level::Warning, &format!("mayhap: {panic}"));
        }));

        let words: Vec<&[u8]> = match usize::try_from(argc) {
            Ok(count @ 1..) => {
                std::slice::from_raw_parts(argv, count).iter().map(|word| host::bytes(*word)).collect()
            }
            _ => Vec::new(),
        };
        settings::take_arguments(&words)?;
        types::register(ctx).map_err(|name| {
            format!(
                "another module has values of type {}: RedisBloom cannot be loaded beside it",
                name.to_string_lossy()
            )
        })?;
        register::register(ctx)?;
        settings::register(ctx)?;
        info::register(ctx);
        memory_limit::follow(ctx);
        overfull::start(ctx);
        // Errors while a value is loaded are answered, not died of; names that did not change disturb no `WATCH`; and nothing of ours
        // stands in the way of a replica that answers while it loads.
        let mut options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
            | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
        if host::is_valkey(ctx) {
            options |= HANDLE_ATOMIC_SLOT_MIGRATION;
        }
        crate::host::call!(RedisModule_SetModuleOptions(ctx, options.cast_signed()));
    }
    Ok(())
}
