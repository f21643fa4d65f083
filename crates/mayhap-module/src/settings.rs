//! The parameters in `CONFIG` and in the arguments of `loadmodule`.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use mayhap_command::Parameters;
use mayhap_command::parameters::{self, ALL, Parameter};

use crate::host::{self, Ctx, ERR, HostString, OK, call, has, raw};
use crate::types::guarded;

/// The first version of Redis that accepts settings without the module's name as a prefix. Valkey has its own
/// version numbers and accepts none.
const UNPREFIXED_FROM: c_int = 0x0008_0000;

static PARAMETERS: LazyLock<Mutex<Arc<Parameters>>> = LazyLock::new(Mutex::default);
/// The number of changes.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// The string last returned to the host for each setting: the host requires one per setting and does not free
/// it.
static SAID: [AtomicPtr<raw::RedisModuleString>; PARAMETERS_AT_MOST] =
    [const { AtomicPtr::new(null_mut()) }; PARAMETERS_AT_MOST];
const PARAMETERS_AT_MOST: usize = 32;

/// The parameters of new filters that a request does not set.
pub(crate) fn parameters() -> Arc<Parameters> {
    Arc::clone(&PARAMETERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The version of the parameters.
pub(crate) fn version() -> u64 {
    VERSION.load(Relaxed)
}

fn change(parameter: &Parameter, value: &[u8]) -> Result<(), String> {
    let mut held = PARAMETERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut changed = Parameters::clone(&held);
    (parameter.set)(&mut changed, value).map_err(|fault| fault.to_string())?;
    *held = Arc::new(changed);
    VERSION.fetch_add(1, Relaxed);
    Ok(())
}

/// Applies the arguments of `loadmodule`: pairs of a setting and a value. Three settings also have
/// RedisBloom's old names.
///
/// # Errors
/// If an argument is invalid.
pub(crate) fn take_arguments(words: &[&[u8]]) -> Result<(), String> {
    if let [empty] | [empty, ..] = words
        && empty.is_empty()
        && words.len() == 1
    {
        return Ok(());
    }
    let (pairs, rest) = words.as_chunks::<2>();
    if let [name] = rest {
        let name = String::from_utf8_lossy(name);
        return Err(format!("no value for {name:?}; settings are given as NAME VALUE NAME VALUE"));
    }
    let mut known = Vec::new();
    for [name, value] in pairs {
        let parameter = match name.to_ascii_lowercase().as_slice() {
            b"error_rate" => parameters::find(b"bf-error-rate"),
            b"initial_size" => parameters::find(b"bf-initial-size"),
            b"cf_max_expansions" => parameters::find(b"cf-max-expansions"),
            _ => parameters::find(name),
        };
        let Some(parameter) = parameter else {
            let known: Vec<&str> = ALL.iter().map(|parameter| parameter.name).collect();
            return Err(format!(
                "unknown setting {:?}; the settings are {}",
                String::from_utf8_lossy(name),
                known.join(", ")
            ));
        };
        known.push((parameter, *value));
    }
    // Some settings bound each other: a value that is rejected in this pass may be accepted once the others
    // are set.
    for (parameter, value) in &known {
        let _ = change(parameter, value);
    }
    known.into_iter().try_for_each(|(parameter, value)| change(parameter, value))
}

/// Registers the settings with the host and has it read its configuration.
///
/// # Errors
/// If the host rejects a setting.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn register(ctx: Ctx) -> Result<(), String> {
    let has_version = has!(RedisModule_GetServerVersion);
    // SAFETY: the version may be read at any time; the rest is guaranteed by the caller.
    let is_unprefixed = unsafe {
        has_version && call!(RedisModule_GetServerVersion()) >= UNPREFIXED_FROM && !host::is_valkey(ctx)
    };
    let flags = match is_unprefixed {
        true => raw::REDISMODULE_CONFIG_UNPREFIXED as c_uint,
        false => raw::REDISMODULE_CONFIG_DEFAULT as c_uint,
    };
    for (number, parameter) in ALL.iter().enumerate().take(PARAMETERS_AT_MOST) {
        let name = CString::new(parameter.name).unwrap_or_default();
        // The value from `loadmodule` is the host's default for the setting.
        let now = CString::new((parameter.get)(&parameters())).unwrap_or_default();
        // SAFETY: guaranteed by the caller; the host copies both strings. The number is not a pointer and is
        // never dereferenced.
        let taken = unsafe {
            call!(RedisModule_RegisterStringConfig(
                ctx,
                name.as_ptr(),
                now.as_ptr(),
                flags,
                Some(get),
                Some(set),
                None,
                std::ptr::without_provenance_mut(number),
            ))
        };
        if taken != OK {
            return Err(format!("the host rejected the setting {}", parameter.name));
        }
    }
    // SAFETY: guaranteed by the caller.
    match unsafe { call!(RedisModule_LoadConfigs(ctx)) } {
        OK => Ok(()),
        _ => Err("the host's configuration has an invalid value for a setting".into()),
    }
}

unsafe extern "C" fn get(_: *const c_char, number: *mut c_void) -> HostString {
    let number = number.addr();
    let (Some(parameter), Some(said)) = (ALL.get(number), SAID.get(number)) else { return null_mut() };
    let now = host::string((parameter.get)(&parameters()).as_bytes());
    let before = said.swap(now, Relaxed);
    if !before.is_null() {
        // SAFETY: it was made here, and the host copied it when it received it.
        unsafe { call!(RedisModule_FreeString(null_mut(), before)) };
    }
    now
}

unsafe extern "C" fn set(
    _: *const c_char,
    value: HostString,
    number: *mut c_void,
    fault: *mut HostString,
) -> c_int {
    let Some(parameter) = ALL.get(number.addr()) else { return ERR };
    // SAFETY: the host passes a string that lives until this call returns, and a place for the error text,
    // which it frees.
    unsafe {
        match guarded("changing a setting", || change(parameter, host::bytes(value))) {
            Some(Ok(())) => OK,
            None => ERR,
            Some(Err(why)) => {
                *fault = host::string(why.as_bytes());
                ERR
            }
        }
    }
}

/// The module's name, which hosts before Redis 8 use as the prefix of its settings.
pub(crate) const MODULE: &CStr = c"mayhap";
