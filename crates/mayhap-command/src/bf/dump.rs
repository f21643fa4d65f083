//! `BF.SCANDUMP`, `BF.LOADCHUNK`.

use mayhap::AtomicScalableBloom;
use mayhap_formats::redis_bloom::{self, BloomLoader, LoadError, MAX_CHUNK_BYTES};

use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::{Reply, room_for};
use crate::run::{Request, Slot};
use crate::value::Value;

/// `BF.SCANDUMP key iterator`. Needs exclusive access, so that the filter's counts match its bits; nothing changes.
pub(super) fn scandump(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    _: &Context<'_>,
) -> Result<Reply, Refusal> {
    let filter = match slot.get_mut() {
        None => return Err(Refusal::NotFound),
        Some(Value::Bloom(filter)) => filter.get_mut(),
        Some(Value::LoadingBloom(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        Some(_) => return Err(Refusal::WrongType),
    };
    let iterator = args::integer(request.words[2]).ok_or(Refusal::ScanNotNumeric)?;
    if redis_bloom::is_keyed(filter) {
        return Err(Refusal::KeyedHasNoChunks);
    }
    // Fails if there is no memory for the chunk.
    drop(room_for(filter.memory_bytes().min(MAX_CHUNK_BYTES))?);
    let (next, chunk) = redis_bloom::chunk(filter, iterator).map_err(|_| Refusal::WrongType)?;
    Ok(Reply::Array(vec![Reply::Integer(next), Reply::Bulk(chunk)]))
}

/// `BF.LOADCHUNK key iterator data`. The filter answers once all its bytes have arrived.
pub(super) fn loadchunk(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let iterator = args::integer(request.words[2]).ok_or(Refusal::LoadNotNumeric)?;
    let chunk = request.words[3];
    match slot.get_mut() {
        None if iterator == 1 => {
            let bytes = BloomLoader::bytes_for(chunk);
            context.admit(bytes, bytes).map_err(|refusal| match refusal {
                Refusal::OutOfMemory => Refusal::OutOfMemory,
                _ => Refusal::BadData,
            })?;
            let mut loader = BloomLoader::new(bytes);
            loader.load(iterator, chunk).map_err(|error| refused(&error))?;
            slot.put(Value::LoadingBloom(Box::new(loader)));
        }
        None => return Err(Refusal::NotFound),
        Some(Value::LoadingBloom(loader)) => {
            let before = loader.progress();
            loader.load(iterator, chunk).map_err(|error| refused(&error))?;
            let changed = loader.progress() != before || !chunk.is_empty();
            if loader.is_complete() {
                finish(slot);
            } else if changed {
                slot.mark_changed();
            }
        }
        Some(Value::Bloom(filter)) if redis_bloom::is_keyed(filter.uncounted()) => {
            return Err(Refusal::KeyedTakesNoChunks);
        }
        Some(Value::Bloom(filter)) => {
            redis_bloom::load_chunk(filter.get_mut(), iterator, chunk).map_err(|error| refused(&error))?;
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
    if let Some(Value::LoadingBloom(loader)) = slot.take()
        && let Ok(filter) = loader.finish()
    {
        slot.put(Value::Bloom(Box::new(AtomicScalableBloom::from(filter))));
    }
}

fn refused(error: &LoadError) -> Refusal {
    match error {
        LoadError::NoLayer { .. } => Refusal::NoLink,
        LoadError::TooBig { .. } => Refusal::ChunkTooBig,
        LoadError::Scattered { .. } => Refusal::ChunkScattered,
        _ => Refusal::BadData,
    }
}
