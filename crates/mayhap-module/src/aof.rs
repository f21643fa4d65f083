//! The requests that recreate a value when the host rewrites its AOF without an RDB preamble.

use std::ffi::{CStr, c_char};

use mayhap_command::Value;
use mayhap_command::payload::PORTABLE_RDB_VERSION;
use mayhap_formats::redis_rdb::OwnType;
use mayhap_formats::{redis_bloom, redis_cuckoo, redis_rdb};

use crate::host::{self, HostString, Level, call, raw};
use crate::types::stored;

/// Emits the requests that recreate the value of `name`. Returns `false` if that failed.
///
/// # Safety
/// The host called a rewrite callback.
pub(crate) unsafe fn emit(io: *mut raw::RedisModuleIO, name: HostString, value: &mut Value) -> bool {
    // SAFETY: guaranteed by the caller.
    let done = unsafe {
        match value {
            value if value.own_type().is_some() => restore(io, name, value),
            Value::Bloom(filter) => match redis_bloom::chunks(filter.get_mut()) {
                Ok(chunks) => {
                    chunks.for_each(|chunk| load_chunk(io, c"BF.LOADCHUNK", name, &chunk));
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            },
            Value::Cuckoo(filter) => match redis_cuckoo::chunks(filter) {
                Ok(chunks) => {
                    chunks.for_each(|chunk| load_chunk(io, c"CF.LOADCHUNK", name, &chunk));
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            },
            value => restore(io, name, value),
        }
    };
    if let Err(why) = &done {
        host::log(
            std::ptr::null_mut(),
            Level::Warning,
            &format!("mayhap: cannot write a value to the AOF: {why}"),
        );
    }
    done.is_ok()
}

/// # Safety
/// As [`emit`].
unsafe fn load_chunk(io: *mut raw::RedisModuleIO, command: &CStr, name: HostString, chunk: &(i64, Vec<u8>)) {
    let (iterator, bytes) = chunk;
    // SAFETY: guaranteed by the caller. The arguments match the format, and they are written before the call
    // returns.
    unsafe {
        call!(RedisModule_EmitAOF(
            io,
            command.as_ptr(),
            c"slb".as_ptr(),
            name,
            *iterator,
            bytes.as_ptr().cast::<c_char>(),
            bytes.len(),
        ));
    }
}

/// # Safety
/// As [`emit`].
unsafe fn restore(io: *mut raw::RedisModuleIO, name: HostString, value: &mut Value) -> Result<(), String> {
    let bytes = stored(value)?;
    // A partly loaded filter is written as our own type is.
    let own = value.own_type().unwrap_or(OwnType::Mayhap);
    let payload = redis_rdb::write_mayhap_dump(own, value.form() as u64, &bytes, PORTABLE_RDB_VERSION)
        .map_err(|error| error.to_string())?;
    drop(bytes);
    // SAFETY: guaranteed by the caller; as above.
    unsafe {
        call!(RedisModule_EmitAOF(
            io,
            c"RESTORE".as_ptr(),
            c"slb".as_ptr(),
            name,
            0_i64,
            payload.as_ptr().cast::<c_char>(),
            payload.len(),
        ));
    }
    Ok(())
}
