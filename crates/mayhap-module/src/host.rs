//! The host's functions. They are pointers that the host fills in when it loads the module. The ones it does
//! not have stay empty.

use std::ffi::{CStr, CString, c_char, c_int};

pub(crate) use redis_module::raw;

/// The context that the host passes to a callback, and that we pass to its functions.
pub(crate) type Ctx = *mut raw::RedisModuleCtx;
/// A string of the host.
pub(crate) type HostString = *mut raw::RedisModuleString;
/// An open key.
pub(crate) type Key = *mut raw::RedisModuleKey;

/// The status of a call that succeeded.
pub(crate) const OK: c_int = raw::REDISMODULE_OK as c_int;
/// The status of a call that failed.
pub(crate) const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Calls a function of the host.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        match $crate::host::raw::$name {
            Some(function) => function($($argument),*),
            None => $crate::host::missing(stringify!($name)),
        }
    };
}
pub(crate) use call;

/// Returns `true` if the host has this function.
macro_rules! has {
    ($name:ident) => {{
        // SAFETY: the pointers are written once, when the module is loaded, before any other code of it runs.
        let function = unsafe { $crate::host::raw::$name };
        function.is_some()
    }};
}
pub(crate) use has;

/// Every function that we call without a check. A host that lacks one of them is too old, and the module
/// refuses to load.
macro_rules! needed {
    ($($name:ident)*) => {
        pub(crate) fn first_missing() -> Option<&'static str> {
            [$((stringify!($name), has!($name))),*].into_iter().find(|(_, is_there)| !is_there).map(|(name, _)| name)
        }
    };
}

needed! {
    RedisModule_Alloc RedisModule_Calloc RedisModule_Realloc RedisModule_Free
    RedisModule_CreateCommand RedisModule_GetCommand RedisModule_SetCommandInfo RedisModule_CreateDataType
    RedisModule_SetModuleOptions RedisModule_OpenKey RedisModule_CloseKey RedisModule_KeyType RedisModule_DeleteKey
    RedisModule_ModuleTypeGetType RedisModule_ModuleTypeGetValue RedisModule_ModuleTypeSetValue
    RedisModule_GetAbsExpire RedisModule_SetAbsExpire RedisModule_SetExpire
    RedisModule_StringPtrLen RedisModule_CreateString RedisModule_FreeString
    RedisModule_ReplyWithSimpleString RedisModule_ReplyWithError RedisModule_ReplyWithLongLong
    RedisModule_ReplyWithBool RedisModule_ReplyWithDouble RedisModule_ReplyWithStringBuffer
    RedisModule_ReplyWithVerbatimStringType RedisModule_ReplyWithNull RedisModule_ReplyWithNullArray
    RedisModule_ReplyWithArray RedisModule_ReplyWithMap RedisModule_ReplyWithSet
    RedisModule_Replicate RedisModule_ReplicateVerbatim RedisModule_SignalModifiedKey
    RedisModule_NotifyKeyspaceEvent RedisModule_GetContextFlags RedisModule_Milliseconds
    RedisModule_SaveUnsigned RedisModule_SaveDouble RedisModule_SaveStringBuffer
    RedisModule_LoadUnsigned RedisModule_LoadDouble RedisModule_LoadStringBuffer RedisModule_IsIOError
    RedisModule_GetContextFromIO RedisModule_WrongArity RedisModule_EmitAOF RedisModule_DigestAddStringBuffer RedisModule_DigestAddLongLong RedisModule_DigestEndSequence
    RedisModule_RegisterStringConfig RedisModule_LoadConfigs RedisModule_RegisterInfoFunc
    RedisModule_InfoAddSection RedisModule_InfoAddFieldULongLong RedisModule_InfoAddFieldDouble RedisModule_SubscribeToServerEvent
    RedisModule_CreateTimer RedisModule_SelectDb RedisModule_Scan
    RedisModule_ScanCursorCreate RedisModule_ScanCursorRestart RedisModule_ScanCursorDestroy
    RedisModule_GetServerInfo RedisModule_ServerInfoGetFieldC
    RedisModule_BlockClient RedisModule_UnblockClient RedisModule_GetThreadSafeContext RedisModule_FreeThreadSafeContext
    RedisModule_ThreadSafeContextLock RedisModule_ThreadSafeContextUnlock
    RedisModule_FreeServerInfo RedisModule_GetUsedMemoryRatio RedisModule_DefragAlloc RedisModule_Log
}

/// Unreachable: the module does not load into a host that lacks a function.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    panic!("the host has no {name}")
}

/// A C string of the text up to its first zero byte.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// The level of a line in the host's log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    Notice,
    Warning,
}

/// Writes a line to the host's log.
pub(crate) fn log(ctx: Ctx, level: Level, text: &str) {
    let level = match level {
        Level::Notice => c"notice",
        Level::Warning => c"warning",
    };
    let text = c_text(text);
    // SAFETY: both strings end with a zero byte and live until the call returns; the format takes one of
    // them. The context may be null.
    unsafe { call!(RedisModule_Log(ctx, level.as_ptr(), c"%s".as_ptr(), text.as_ptr())) }
}

/// The bytes of a string.
///
/// # Safety
/// The string lives for `'a`, and nothing changes it.
#[inline]
pub(crate) unsafe fn bytes<'a>(string: *const raw::RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller guarantees that the string lives.
    let start = unsafe { call!(RedisModule_StringPtrLen(string, &raw mut length)) };
    if start.is_null() {
        return &[];
    }
    // SAFETY: the host returns the address and the number of its bytes.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

/// A host string with these bytes. The caller owns it.
pub(crate) fn string(text: &[u8]) -> HostString {
    // SAFETY: the bytes are copied. Without a context the host does not free the string by itself.
    unsafe {
        call!(RedisModule_CreateString(std::ptr::null_mut(), text.as_ptr().cast::<c_char>(), text.len()))
    }
}

/// A field of the host's `INFO`; empty if the field does not exist.
///
/// # Safety
/// `ctx` is the context of the call that is being served.
pub(crate) unsafe fn info(ctx: Ctx, section: &CStr, field: &CStr) -> Vec<u8> {
    // SAFETY: guaranteed by the caller. The host's answer lives until it is freed, and it is copied before
    // that.
    unsafe {
        let told = call!(RedisModule_GetServerInfo(ctx, section.as_ptr()));
        if told.is_null() {
            return Vec::new();
        }
        let text = call!(RedisModule_ServerInfoGetFieldC(told, field.as_ptr()));
        let text = if text.is_null() { Vec::new() } else { CStr::from_ptr(text).to_bytes().to_vec() };
        call!(RedisModule_FreeServerInfo(ctx, told));
        text
    }
}

/// Returns `true` if the host is Valkey.
///
/// # Safety
/// As [`info`].
pub(crate) unsafe fn is_valkey(ctx: Ctx) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { !info(ctx, c"server", c"valkey_version").is_empty() }
}

/// The current flags: replica, loading, protocol and so on. This call is not cheap.
///
/// # Safety
/// `ctx` is the context of the call that is being served.
pub(crate) unsafe fn flags(ctx: Ctx) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe { call!(RedisModule_GetContextFlags(ctx)) }.cast_unsigned()
}
