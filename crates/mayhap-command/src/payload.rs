//! The payloads of `DUMP` and `RESTORE`. Bloom and cuckoo filters have RedisBloom's payloads and strings have Redis's, so they move both
//! ways. All other filters, and filters with a secret key, which RedisBloom would misread, have our own payloads.

use mayhap::BuildError;
use mayhap::codec::DecodeError;
use mayhap::{AtomicScalableBloom, ScalableBloom};
use mayhap_formats::redis_rdb;
use mayhap_formats::redis_rdb::OwnType;

use crate::bits::{Text, check_length};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::room_for;
use crate::stored::{Form, StoredError};
use crate::value::Value;

/// The newest payload version that is read. Redis 7.4 and 8.0 write it.
pub const RDB_VERSION: u16 = 12;
/// The version of Valkey 9. Its module values are the same.
const VALKEY_VERSION: u16 = 80;
/// The version that every server since Redis 7.0 reads.
pub const PORTABLE_RDB_VERSION: u16 = 10;
/// An upper bound of the bytes of a payload that are not bits of the filter.
const HEADERS_BYTES: u64 = 64 << 10;
/// Version and checksum.
const TRAILER_BYTES: usize = 10;

/// Returns the payload of `DUMP`, for servers that read this version. Needs exclusive access to the value, so that its counts match its
/// bits; nothing changes.
///
/// # Errors
/// [`Refusal::HalfLoaded`] for a filter that is still being loaded, [`Refusal::Lost`] if its data is lost, and if memory is refused.
pub fn dump(value: &mut Value, rdb_version: u16) -> Result<Vec<u8>, Refusal> {
    let refused = |_: BuildError| Refusal::InsufficientMemory;
    if let Some(own) = value.own_type() {
        if let Value::Filter(holder) = value {
            holder.ready()?;
        }
        let form = value.form();
        let mut stored = room_for(value.memory_bytes().saturating_add(HEADERS_BYTES))?;
        value.store(&mut stored).map_err(|_| Refusal::InsufficientMemory)?;
        return redis_rdb::write_mayhap_dump(own, form as u64, &stored, rdb_version).map_err(refused);
    }
    let payload = match value {
        Value::Bloom(filter) => {
            let filter: &ScalableBloom = filter.get_mut();
            drop(room_for(filter.memory_bytes().saturating_add(HEADERS_BYTES))?);
            redis_rdb::write_dump(filter, rdb_version)
        }
        Value::Cuckoo(filter) => {
            drop(room_for(filter.memory_bytes().saturating_add(HEADERS_BYTES))?);
            redis_rdb::write_dump(&**filter, rdb_version)
        }
        Value::LoadingBloom(loader) => return Err(Refusal::half_loaded(loader.progress())),
        Value::LoadingCuckoo(loader) => return Err(Refusal::half_loaded(loader.progress())),
        Value::Lost(lost) => return Err(Refusal::Lost(*lost)),
        Value::Text(text) => return redis_rdb::write_string_dump(text.bytes(), rdb_version).map_err(refused),
        Value::Filter(_) => return Err(Refusal::NoPayload),
    };
    payload.map_err(|_| Refusal::NoPayload)
}

/// Loads the value of a payload, if there is memory for it.
///
/// # Errors
/// In Redis's words: [`Refusal::PayloadVersionOrChecksum`] if the checksum is wrong or the payload is from a newer server;
/// [`Refusal::PayloadFormat`] if it is not a value, [`Refusal::PayloadOther`] if it is from another module or a later RedisBloom.
pub fn restore(payload: &[u8], context: &Context<'_>) -> Result<Value, Refusal> {
    let trailer = payload.len().checked_sub(TRAILER_BYTES).map(|at| &payload[at..]);
    let Some(&[low, high, ..]) = trailer else { return Err(Refusal::PayloadVersionOrChecksum) };
    let version = u16::from_le_bytes([low, high]);
    if version > RDB_VERSION && version != VALKEY_VERSION {
        return Err(Refusal::PayloadVersionOrChecksum);
    }
    use redis_rdb::{RdbPayload, Value as Filter};
    match read(payload, context)? {
        Ok(RdbPayload::RedisBloom(Filter::Bloom(filter))) => {
            Ok(Value::Bloom(Box::new(AtomicScalableBloom::from(filter))))
        }
        Ok(RdbPayload::RedisBloom(Filter::Cuckoo(filter))) => {
            match filter.tables() as u64 > context.parameters.max_loaded_tables() {
                true => Err(Refusal::PayloadFormat),
                false => Ok(Value::Cuckoo(Box::new(filter))),
            }
        }
        Ok(RdbPayload::String(bytes)) => {
            check_length(bytes.len() as u64)?;
            Ok(Value::Text(Box::new(Text::new(&bytes, context)?)))
        }
        Ok(RdbPayload::Mayhap { of, form, bytes }) => restore_own(of, form, &bytes, context),
        Ok(_) => Err(Refusal::PayloadFormat),
        Err(error) => Err(refused(&error, context)),
    }
}

/// Loads the value of a payload of one of our own types, if it has that type.
fn restore_own(of: OwnType, form: u64, bytes: &[u8], context: &Context<'_>) -> Result<Value, Refusal> {
    let form = u8::try_from(form).ok().and_then(Form::from_number);
    let form = form.filter(|form| form.is_of(of)).ok_or(Refusal::PayloadFormat)?;
    if matches!(form, Form::Bloom | Form::Cuckoo) {
        // The other forms admit their own memory.
        context.admit(bytes.len() as u64, bytes.len() as u64)?;
    }
    let value = Value::load(form, bytes, context).map_err(|error| match error {
        StoredError::Refused(refusal @ (Refusal::OutOfMemory | Refusal::TooLarge { .. })) => refusal,
        _ => Refusal::PayloadFormat,
    })?;
    let too_many = match &value {
        Value::Cuckoo(filter) => filter.tables() as u64 > context.parameters.max_loaded_tables(),
        _ => false,
    };
    match value.own_type() == Some(of) && !too_many {
        true => Ok(value),
        false => Err(Refusal::PayloadFormat),
    }
}

/// Reads a payload. Its memory is admitted first: as much as the payload has, and more if the payload says that it needs more.
fn read<'p>(
    payload: &'p [u8],
    context: &Context<'_>,
) -> Result<Result<redis_rdb::RdbPayload<'p>, DecodeError>, Refusal> {
    const LEAST_BYTES: u64 = 64 << 10;
    let mut wanted = (payload.len() as u64).saturating_mul(2).saturating_add(LEAST_BYTES);
    loop {
        let most = context.allowance(0);
        let limit = wanted.min(most);
        context.admit(limit, limit)?;
        let read = redis_rdb::read_payload(payload, limit);
        let needed = match &read {
            Err(DecodeError::Unbuildable(BuildError::TooLarge { bytes, .. })) => *bytes,
            Err(DecodeError::UnpacksTooLarge { .. }) => limit.saturating_add(1),
            // The value that is loaded from these bytes is admitted separately.
            Ok(redis_rdb::RdbPayload::String(_) | redis_rdb::RdbPayload::Mayhap { .. }) | Err(_) => {
                context.budget.release(limit);
                return Ok(read);
            }
            Ok(_) => return Ok(read),
        };
        context.budget.release(limit);
        if needed > most || limit == most {
            return Ok(read);
        }
        wanted = needed.max(limit.saturating_mul(2));
    }
}

fn refused(error: &DecodeError, context: &Context<'_>) -> Refusal {
    match error {
        DecodeError::PayloadDamaged => Refusal::PayloadVersionOrChecksum,
        DecodeError::OtherModule { .. } | DecodeError::NewerModule { .. } => {
            Refusal::PayloadOther(error.clone())
        }
        DecodeError::Unbuildable(BuildError::TooLarge { bytes, .. }) => {
            context.admit(*bytes, *bytes).err().unwrap_or(Refusal::PayloadFormat)
        }
        DecodeError::UnpacksTooLarge { limit } => context
            .admit(limit.saturating_add(1), limit.saturating_add(1))
            .err()
            .unwrap_or(Refusal::PayloadFormat),
        _ => Refusal::PayloadFormat,
    }
}
