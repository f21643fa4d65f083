//! `CF.SCANDUMP`, `CF.LOADCHUNK`.

use mayhap_formats::redis_cuckoo::{self, CuckooLoader, LoadError, MAX_CHUNK_BYTES};

use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::{Reply, room_for};
use crate::run::{Request, Slot};
use crate::value::Value;

/// The length of a header. Another length is `Invalid header`; a header with impossible numbers is `Couldn't create filter!`.
const HEADER_BYTES: usize = 38;

/// `CF.SCANDUMP key iterator`. An empty filter has no dump.
pub(super) fn scandump(
    request: &Request<'_>,
    value: Option<&Value>,
    _: &Context<'_>,
) -> Result<Reply, Refusal> {
    let filter = match value {
        None => return Err(Refusal::NotFound),
        Some(Value::Cuckoo(filter)) => filter,
        Some(Value::LoadingCuckoo(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        Some(_) => return Err(Refusal::WrongType),
    };
    if redis_cuckoo::is_keyed(filter) {
        return Err(Refusal::KeyedHasNoChunks);
    }
    let iterator = args::integer(request.words[2]).filter(|&iterator| iterator >= 0);
    let iterator = iterator.ok_or(Refusal::InvalidPosition)?;
    // Fails if there is no memory for the chunk.
    drop(room_for(filter.memory_bytes().min(MAX_CHUNK_BYTES))?);
    let (next, chunk) = redis_cuckoo::chunk(filter, iterator).map_err(|_| Refusal::WrongType)?;
    let chunk = if next == 0 { Reply::Null } else { Reply::Bulk(chunk) };
    Ok(Reply::Array(vec![Reply::Integer(next), chunk]))
}

/// `CF.LOADCHUNK key iterator data`. The filter answers once all its bytes have arrived.
pub(super) fn loadchunk(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let iterator = args::integer(request.words[2]).filter(|&iterator| iterator > 0);
    let iterator = iterator.ok_or(Refusal::InvalidPosition)?;
    let chunk = request.words[3];
    match slot.get_mut() {
        None if iterator == 1 => {
            let bytes = CuckooLoader::bytes_for(chunk);
            context.admit(bytes, bytes).map_err(|refusal| match refusal {
                Refusal::OutOfMemory => Refusal::OutOfMemory,
                _ => Refusal::ChunkNotCreated,
            })?;
            let mut loader = CuckooLoader::new(bytes);
            loader.load(iterator, chunk).map_err(|error| match error {
                LoadError::BadHeader(_) if chunk.len() != HEADER_BYTES => Refusal::InvalidHeader,
                error => refused(&error),
            })?;
            let widest = loader.filter().map_or(0, |filter| filter.shape().bucket_size());
            let tables = loader.filter().map_or(0, |filter| filter.tables() as u64);
            if context.limits.bound_by_settings
                && (u64::from(widest) > context.parameters.max_bucket_size()
                    || tables > context.parameters.max_loaded_tables())
            {
                return Err(Refusal::ChunkNotCreated);
            }
            slot.put(Value::LoadingCuckoo(Box::new(loader)));
        }
        None => return Err(Refusal::NotFound),
        Some(Value::LoadingCuckoo(_) | Value::Cuckoo(_)) if iterator == 1 => return Err(Refusal::Exists),
        Some(Value::LoadingCuckoo(loader)) => {
            loader.load(iterator, chunk).map_err(|error| refused(&error))?;
            if loader.is_complete() {
                finish(slot);
            } else if !chunk.is_empty() {
                slot.mark_changed();
            }
        }
        Some(Value::Cuckoo(filter)) if redis_cuckoo::is_keyed(filter) => {
            return Err(Refusal::KeyedTakesNoChunks);
        }
        Some(Value::Cuckoo(filter)) => {
            redis_cuckoo::load_chunk(filter, iterator, chunk).map_err(|error| refused(&error))?;
            if !chunk.is_empty() {
                slot.mark_changed();
            }
        }
        Some(_) => return Err(Refusal::WrongType),
    }
    Ok(Reply::Ok)
}

/// Makes a loader whose last byte has arrived an ordinary filter.
fn finish(slot: &mut Slot<'_>) {
    if let Some(Value::LoadingCuckoo(loader)) = slot.take()
        && let Ok(filter) = loader.finish()
    {
        slot.put(Value::Cuckoo(Box::new(filter)));
    }
}

fn refused(error: &LoadError) -> Refusal {
    match error {
        LoadError::BadHeader(_) => Refusal::ChunkNotCreated,
        LoadError::Scattered { .. } => Refusal::ChunkScattered,
        _ => Refusal::ChunkNotLoaded,
    }
}
