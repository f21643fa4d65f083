//! The parameters of `CONFIG`, and what may stand behind `loadmodule`.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use mayhap_command::Parameters;
use mayhap_command::parameters::{self, ALL, Parameter};

use crate::host::{self, Ctx, ERR, HostString, OK, call, has, raw};
use crate::types::guarded;

/// The first version of Redis that takes settings without the module's name in front of theirs. Valkey counts on its own, and takes none.
const UNPREFIXED_FROM: c_int = 0x0008_0000;

static PARAMETERS: LazyLock<Mutex<Arc<Parameters>>> = LazyLock::new(Mutex::default);
/// Counts the changes.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// What each setting was said to be when the host last asked: it wants a string of its own, and does not free it.
static SAID: [AtomicPtr<raw::RedisModuleString>; PARAMETERS_AT_MOST] =
    [const { AtomicPtr::new(null_mut()) }; PARAMETERS_AT_MOST];
const PARAMETERS_AT_MOST: usize = 32;

/// What new filters are like unless a request says otherwise.
pub(crate) fn parameters() -> Arc<Parameters> {
    Arc::clone(&PARAMETERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Which version of them that is.
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

/// Takes what stands behind `loadmodule`: names of settings, or RedisBloom's old names for three of them, and values.
///
/// # Errors
/// What is wrong with them.
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
        return Err(format!("no value for {name:?}: settings are given as NAME VALUE NAME VALUE"));
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
                "no setting {:?}; there are {}",
                String::from_utf8_lossy(name),
                known.join(", ")
            ));
        };
        known.push((parameter, *value));
    }
    // Some bound each other: what is refused first may be taken once the others are there.
    for (parameter, value) in &known {
        let _ = change(parameter, value);
    }
    known.into_iter().try_for_each(|(parameter, value)| change(parameter, value))
}

/// Tells the host of the settings, and has it read its configuration.
///
/// # Errors
/// What the host does not take.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn register(ctx: Ctx) -> Result<(), String> {
    let has_version = has!(RedisModule_GetServerVersion);
    // SAFETY: the version may be asked for at any time; the rest is the caller's.
    let is_unprefixed = unsafe {
        has_version && call!(RedisModule_GetServerVersion()) >= UNPREFIXED_FROM && !host::is_valkey(ctx)
    };
    let flags = match is_unprefixed {
        true => raw::REDISMODULE_CONFIG_UNPREFIXED as c_uint,
        false => raw::REDISMODULE_CONFIG_DEFAULT as c_uint,
    };
    for (number, parameter) in ALL.iter().enumerate().take(PARAMETERS_AT_MOST) {
        let name = CString::new(parameter.name).unwrap_or_default();
        // What stood behind `loadmodule` is what the host sets it back to.
        let now = CString::new((parameter.get)(&parameters())).unwrap_or_default();
        // SAFETY: the caller's; the host copies both strings. The number is no pointer, and is not used as one.
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
            return Err(format!("the host does not take the setting {}", parameter.name));
        }
    }
    // SAFETY: the caller's.
    match unsafe { call!(RedisModule_LoadConfigs(ctx)) } {
        OK => Ok(()),
        _ => Err("the host's configuration has a value for a setting that it cannot have".into()),
    }
}

unsafe extern "C" fn get(_: *const c_char, number: *mut c_void) -> HostString {
    let number = number.addr();
    let (Some(parameter), Some(said)) = (ALL.get(number), SAID.get(number)) else { return null_mut() };
    let now = host::string((parameter.get)(&parameters()).as_bytes());
    let before = said.swap(now, Relaxed);
    if !before.is_null() {
        // SAFETY: it was made here, and the host copied it when it had it.
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
    // SAFETY: the host gives a string, which lives until this is done, and a place for what is wrong with it, which it frees.
    unsafe {
        match guarded("a setting", || change(parameter, host::bytes(value))) {
            Some(Ok(())) => OK,
            None => ERR,
            Some(Err(why)) => {
                *fault = host::string(why.as_bytes());
                ERR
            }
        }
    }
}

/// The module's name, which hosts before Redis 8 put in front of its settings.
pub(crate) const MODULE: &CStr = c"mayhap";
