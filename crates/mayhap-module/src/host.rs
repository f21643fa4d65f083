//! The host's functions. They are pointers that the host fills in when it loads the module, and those it does not have stay empty.

use std::ffi::{CStr, CString, c_char, c_int};

pub(crate) use redis_module::raw;

/// What the host gives with a call, and takes back with every call of ours.
pub(crate) type Ctx = *mut raw::RedisModuleCtx;
/// A string of the host's.
pub(crate) type HostString = *mut raw::RedisModuleString;
/// A name that is open.
pub(crate) type Key = *mut raw::RedisModuleKey;

/// All went well.
pub(crate) const OK: c_int = raw::REDISMODULE_OK as c_int;
/// It did not.
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

/// Is a function of the host there?
macro_rules! has {
    ($name:ident) => {{
        // SAFETY: the pointers are written once, when the module is loaded, before anything else of it runs.
        let function = unsafe { $crate::host::raw::$name };
        function.is_some()
    }};
}
pub(crate) use has;

/// Every function that is used without asking: a host that lacks one of them is too old, and the module says so when it is loaded.
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

/// Never comes to pass: a host that lacks a function does not get to load the module.
#[cold]
pub(crate) fn missing(name: &str) -> ! {
    panic!("the host has no {name}")
}

/// Text as C has it: up to the first zero.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// How a line in the host's log counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    Notice,
    Warning,
}

/// A line in the host's log.
pub(crate) fn log(ctx: Ctx, level: Level, text: &str) {
    let level = match level {
        Level::Notice => c"notice",
        Level::Warning => c"warning",
    };
    let text = c_text(text);
    // SAFETY: both are strings that end with a zero and live until the call is done; the format takes one of them. No context is allowed.
    unsafe { call!(RedisModule_Log(ctx, level.as_ptr(), c"%s".as_ptr(), text.as_ptr())) }
}

/// The bytes of a string.
///
/// # Safety
/// The string is alive for `'a`, and nobody changes it.
#[inline]
pub(crate) unsafe fn bytes<'a>(string: *const raw::RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller says that the string is alive.
    let start = unsafe { call!(RedisModule_StringPtrLen(string, &raw mut length)) };
    if start.is_null() {
        return &[];
    }
    // SAFETY: the host says where its bytes are and how many there are.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

/// A string of the host's with these bytes, which belongs to nobody but the caller.
pub(crate) fn string(text: &[u8]) -> HostString {
    // SAFETY: the bytes are copied. Without a context the host does not free it by itself.
    unsafe {
        call!(RedisModule_CreateString(std::ptr::null_mut(), text.as_ptr().cast::<c_char>(), text.len()))
    }
}

/// A field of the host's `INFO`; empty if there is none.
///
/// # Safety
/// `ctx` is the context of the call that is being served.
pub(crate) unsafe fn info(ctx: Ctx, section: &CStr, field: &CStr) -> Vec<u8> {
    // SAFETY: the caller's. What the host answers is alive until it is given back, and copied before that.
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

/// Is the host a Valkey?
///
/// # Safety
/// As [`info`].
pub(crate) unsafe fn is_valkey(ctx: Ctx) -> bool {
    // SAFETY: the caller's.
    unsafe { !info(ctx, c"server", c"valkey_version").is_empty() }
}

/// The flags of the moment: replica, loading, protocol and so on. Not cheap.
///
/// # Safety
/// `ctx` is the context of the call that is being served.
pub(crate) unsafe fn flags(ctx: Ctx) -> u32 {
    // SAFETY: the caller's.
    unsafe { call!(RedisModule_GetContextFlags(ctx)) }.cast_unsigned()
}
