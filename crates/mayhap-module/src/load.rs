//! The entry point that the host calls to load the module.

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

/// Valkey migrates whole slots (`CLUSTER MIGRATESLOTS`) only if every module declares that it supports this.
/// Redis has no such option, and its header lacks the constant.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// The first function that the host calls.
///
/// # Safety
/// Only a host may call it, and only once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(ctx: Ctx, argv: *mut HostString, argc: c_int) -> c_int {
    // SAFETY: guaranteed by the host. Until this returns, no host function may be called, and nothing is
    // allocated.
    if unsafe {
        raw::Export_RedisModule_Init(ctx, MODULE.as_ptr(), VERSION, raw::REDISMODULE_APIVER_1 as c_int)
    } != OK
    {
        return ERR;
    }
    // SAFETY: guaranteed by the host.
    match unsafe { load(ctx, argv, argc) } {
        Ok(()) => {
            host::log(
                ctx,
                Level::Notice,
                concat!("mayhap ", env!("CARGO_PKG_VERSION"), ": BF.*, CF.* and MF.* commands registered"),
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
        return Err(format!("this server lacks {name}; Redis 7.0 or Valkey 7.2 or newer is required"));
    }
    // SAFETY: guaranteed by the caller, for the whole block.
    unsafe {
        let memory = HostMemory::ask(ctx);
        allocator::learn(memory.is_jemalloc);
        memory.keep();
        mayhap::take_all_from_heap();
        // A panic is an error for the client that sent the request; its message goes to the host's log.
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
                "another module already defines the type {}; RedisBloom and mayhap cannot be loaded together",
                name.to_string_lossy()
            )
        })?;
        register::register(ctx)?;
        settings::register(ctx)?;
        info::register(ctx);
        memory_limit::follow(ctx);
        overfull::start(ctx);
        // We handle read errors while a value is loaded, so the host does not abort. A name that did not
        // change does not affect `WATCH`. The module supports a replica that answers while it loads.
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
