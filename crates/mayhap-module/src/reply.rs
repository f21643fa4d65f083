//! Passes a reply of `mayhap-command` to the host, which encodes it for the client's protocol.

use std::ffi::{c_char, c_long};

use mayhap_command::{Reply, number};

use crate::host::{self, Ctx, c_text, call, raw};

/// Replies to the client of this call.
///
/// # Safety
/// `ctx` is the context of the call that is being served, and it was not answered yet.
pub(crate) unsafe fn send(ctx: Ctx, reply: &Reply) {
    // SAFETY: guaranteed by the caller. The arguments live until the call returns, and the host copies them.
    unsafe {
        match reply {
            Reply::Ok => {
                call!(RedisModule_ReplyWithSimpleString(ctx, c"OK".as_ptr()));
            }
            Reply::Simple(text) => {
                call!(RedisModule_ReplyWithSimpleString(ctx, c_text(text).as_ptr()));
            }
            Reply::Refused(refusal) => {
                call!(RedisModule_ReplyWithError(ctx, c_text(&refusal.to_string()).as_ptr()));
            }
            Reply::Integer(number) => {
                call!(RedisModule_ReplyWithLongLong(ctx, *number));
            }
            Reply::Boolean(yes) => {
                call!(RedisModule_ReplyWithBool(ctx, (*yes).into()));
            }
            Reply::Booleans(answers) => {
                begin_array(ctx, answers.len());
                for yes in answers.iter() {
                    call!(RedisModule_ReplyWithBool(ctx, yes.into()));
                }
            }
            Reply::Double(number) if speaks_resp3(ctx) => {
                call!(RedisModule_ReplyWithDouble(ctx, *number));
            }
            // Hosts differ in how many digits they print.
            Reply::Double(number) => bulk(ctx, number::shortest(*number).as_bytes()),
            Reply::Bulk(bytes) => bulk(ctx, bytes),
            Reply::Text(text) => {
                let start = text.as_ptr().cast::<c_char>();
                call!(RedisModule_ReplyWithVerbatimStringType(ctx, start, text.len(), c"txt".as_ptr()));
            }
            Reply::Null => {
                call!(RedisModule_ReplyWithNull(ctx));
            }
            Reply::NullArray => {
                call!(RedisModule_ReplyWithNullArray(ctx));
            }
            Reply::Array(items) => {
                begin_array(ctx, items.len());
                items.iter().for_each(|item| send(ctx, item));
            }
            Reply::Map(pairs) => {
                call!(RedisModule_ReplyWithMap(ctx, pairs.len() as c_long));
                for (name, value) in pairs {
                    send(ctx, name);
                    send(ctx, value);
                }
            }
            Reply::Set(items) => {
                call!(RedisModule_ReplyWithSet(ctx, items.len() as c_long));
                items.iter().for_each(|item| send(ctx, item));
            }
            Reply::Split { resp2, resp3 } => send(ctx, if speaks_resp3(ctx) { resp3 } else { resp2 }),
        }
    }
}

/// # Safety
/// As [`send`].
unsafe fn begin_array(ctx: Ctx, items: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { call!(RedisModule_ReplyWithArray(ctx, items as c_long)) };
}

/// # Safety
/// As [`send`].
unsafe fn bulk(ctx: Ctx, bytes: &[u8]) {
    // SAFETY: guaranteed by the caller; the bytes are copied.
    unsafe { call!(RedisModule_ReplyWithStringBuffer(ctx, bytes.as_ptr().cast::<c_char>(), bytes.len())) };
}

/// # Safety
/// As [`send`].
unsafe fn speaks_resp3(ctx: Ctx) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { host::flags(ctx) & raw::REDISMODULE_CTX_FLAGS_RESP3 != 0 }
}
