//! The fields of a value that the host reads or writes: in an RDB file, a `DUMP` payload or a digest.

use std::borrow::Cow;
use std::ffi::c_char;

use mayhap::codec::DecodeError;
use mayhap_formats::redis_rdb::{LoadFields, SaveFields};

use crate::host::{call, raw};

/// Fields that the host reads.
#[derive(Debug)]
pub(crate) struct HostLoads(*mut raw::RedisModuleIO);

impl HostLoads {
    /// # Safety
    /// The host called a load callback with it, and the callback does not return while this lives.
    pub(crate) const unsafe fn new(io: *mut raw::RedisModuleIO) -> Self {
        Self(io)
    }

    /// Returns an error if the host could not read a field: the file is truncated or damaged, or the field
    /// has another type.
    fn check<T>(&self, read: T) -> Result<T, DecodeError> {
        // SAFETY: the callback has not returned.
        match unsafe { call!(RedisModule_IsIOError(self.0)) } {
            0 => Ok(read),
            _ => Err(DecodeError::TooShort { need: 1, got: 0 }),
        }
    }
}

impl LoadFields<'static> for HostLoads {
    fn unsigned(&mut self) -> Result<u64, DecodeError> {
        // SAFETY: the callback has not returned.
        self.check(unsafe { call!(RedisModule_LoadUnsigned(self.0)) })
    }

    fn double(&mut self) -> Result<f64, DecodeError> {
        // SAFETY: as above.
        self.check(unsafe { call!(RedisModule_LoadDouble(self.0)) })
    }

    fn string(&mut self) -> Result<Cow<'static, [u8]>, DecodeError> {
        let mut length = 0;
        // SAFETY: as above; the length is written if there is a string.
        let start = unsafe { call!(RedisModule_LoadStringBuffer(self.0, &raw mut length)) };
        if start.is_null() {
            return Err(DecodeError::TooShort { need: 1, got: 0 });
        }
        if length == 0 {
            // SAFETY: we own the string, and nothing else uses it.
            unsafe { call!(RedisModule_Free(start.cast())) };
            return self.check(Cow::Borrowed(&[]));
        }
        // SAFETY: we own the string: `length` bytes from the host's allocator, which this vector uses too. It
        // frees them the way they were allocated, because bytes have an alignment of 1.
        let bytes = unsafe { Vec::from_raw_parts(start.cast::<u8>(), length, length) };
        self.check(Cow::Owned(bytes))
    }
}

/// Fields that the host writes.
#[derive(Debug)]
pub(crate) struct HostSaves(*mut raw::RedisModuleIO);

impl HostSaves {
    /// # Safety
    /// The host called a save callback with it, and the callback does not return while this lives.
    pub(crate) const unsafe fn new(io: *mut raw::RedisModuleIO) -> Self {
        Self(io)
    }
}

impl SaveFields for HostSaves {
    fn unsigned(&mut self, number: u64) {
        // SAFETY: the callback has not returned. The host records its own write errors.
        unsafe { call!(RedisModule_SaveUnsigned(self.0, number)) }
    }

    fn double(&mut self, number: f64) {
        // SAFETY: as above.
        unsafe { call!(RedisModule_SaveDouble(self.0, number)) }
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the bytes live until the call returns.
        unsafe { call!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len())) }
    }
}

/// Fields that `DEBUG DIGEST` hashes.
#[derive(Debug)]
pub(crate) struct HostDigest(*mut raw::RedisModuleDigest);

impl HostDigest {
    /// # Safety
    /// The host called a digest callback with it, and the callback does not return while this lives.
    pub(crate) const unsafe fn new(digest: *mut raw::RedisModuleDigest) -> Self {
        Self(digest)
    }

    /// Ends the sequence after the last field.
    pub(crate) fn end(self) {
        // SAFETY: the callback has not returned.
        unsafe { call!(RedisModule_DigestEndSequence(self.0)) }
    }
}

impl SaveFields for HostDigest {
    fn unsigned(&mut self, number: u64) {
        // SAFETY: the callback has not returned.
        unsafe { call!(RedisModule_DigestAddLongLong(self.0, number.cast_signed())) }
    }

    fn double(&mut self, number: f64) {
        self.unsigned(number.to_bits());
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the bytes live until the call returns.
        unsafe {
            call!(RedisModule_DigestAddStringBuffer(self.0, bytes.as_ptr().cast::<c_char>(), bytes.len()));
        }
    }
}
