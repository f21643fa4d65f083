//! `MF.LOAD name iterator data`: a filter from the pieces of a `.mayhap` file.
//!
//! The pieces arrive in order. Each has the iterator with which `MF.DUMP` was called for it; for a file that
//! is the offset of its first byte. The first piece has the header, which contains the length of the filter:
//! that much memory is admitted before anything is kept. The filter serves only after the last byte has
//! arrived and the whole filter is intact. Until then the previous generation serves, if there is one.

use mayhap::{Filter, codec};

use super::dump::iterator;
use super::holder::{Holder, Next};
use super::refused::MayhapRefusal;
use super::served::Served;
use super::{give_up, holder_mut};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// A filter that is being loaded.
#[derive(Debug)]
pub(crate) struct Load {
    /// The bytes that have arrived.
    bytes: Vec<u8>,
    /// The length of the whole filter.
    total: u64,
}

impl Load {
    /// A load of `total` bytes of which these have arrived; `None` if they are too many. They may be
    /// complete: older versions kept the last piece if there was no memory for the filter.
    pub(crate) fn of(total: u64, bytes: &[u8]) -> Option<Self> {
        (bytes.len() as u64 <= total).then(|| Self { bytes: bytes.to_vec(), total })
    }

    /// The length of the whole filter, and the bytes that have arrived.
    pub(crate) fn parts(&self) -> (u64, &[u8]) {
        (self.total, &self.bytes)
    }

    /// Starts a load with its first piece.
    fn begin(piece: &[u8], context: &Context<'_>) -> Result<Self, Refusal> {
        let total = codec::length_of(piece).map_err(MayhapRefusal::Decode)?;
        // The bytes and the filter decoded from them are in memory at the same time.
        context.admit(total, total.saturating_mul(2))?;
        let mut load = Self { bytes: Vec::new(), total };
        load.push(piece)?;
        Ok(load)
    }

    /// Admits the memory of the filter itself if this is the last piece. What was admitted at the start may
    /// be used by others by now.
    fn admit(&self, piece: &[u8], context: &Context<'_>) -> Result<(), Refusal> {
        if piece.len() as u64 == self.missing() { context.admit(self.total, self.total) } else { Ok(()) }
    }

    /// Appends the next piece. Memory grows with the bytes that have arrived, not with the announced length.
    fn push(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let length = self.bytes.len() as u64 + piece.len() as u64;
        if length > self.total {
            return Err(MayhapRefusal::TooLong { extra: length - self.total }.into());
        }
        let free = self.bytes.capacity() - self.bytes.len();
        if free < piece.len() {
            let left = usize::try_from(self.total - self.bytes.len() as u64).unwrap_or(usize::MAX);
            let more = piece.len().max(self.bytes.len()).min(left);
            self.bytes.try_reserve_exact(more).map_err(|_| Refusal::OutOfMemory)?;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    pub(crate) fn missing(&self) -> u64 {
        self.total - self.bytes.len() as u64
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}

/// `MF.LOAD name iterator data`. Returns the number of missing bytes; 0 if the filter serves now.
pub(super) fn load(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let (_, offset) = iterator(request.words[2])?;
    let piece = request.words[3];
    let now_ms = context.environment.now_ms();
    match holder_mut(slot)? {
        Some(holder) => {
            if let Some(Next::Building(_)) = holder.next() {
                return Err(MayhapRefusal::Busy { with: "build" }.into());
            }
            let load = if offset == 0 {
                Load::begin(piece, context)?
            } else {
                let expected = match holder.next() {
                    Some(Next::Loading(load)) => load.bytes.len() as u64,
                    _ => 0,
                };
                if offset != expected {
                    return Err(MayhapRefusal::OutOfOrder { expected, got: offset }.into());
                }
                let Some(Next::Loading(mut load)) = holder.take_next() else {
                    return Err(MayhapRefusal::OutOfOrder { expected: 0, got: offset }.into());
                };
                if let Err(refusal) = load.admit(piece, context).and_then(|()| load.push(piece)) {
                    // The bytes that arrived before remain valid.
                    *holder.next_mut() = Some(Next::Loading(load));
                    return Err(refusal);
                }
                load
            };
            *holder.next_mut() = Some(Next::Loading(load));
        }
        None if offset == 0 => {
            let load = Load::begin(piece, context)?;
            let holder = Holder::awaiting(Next::Loading(load), now_ms);
            slot.put(Value::Filter(Box::new(holder)));
        }
        None => return Err(MayhapRefusal::OutOfOrder { expected: 0, got: offset }.into()),
    }
    finish(slot, now_ms)
}

/// Serves the filter if all bytes have arrived.
fn finish(slot: &mut Slot<'_>, now_ms: u64) -> Result<Reply, Refusal> {
    let Some(Value::Filter(holder)) = slot.get_mut() else { return Err(Refusal::WrongType) };
    let missing = match holder.next() {
        Some(Next::Loading(load)) => load.missing(),
        _ => 0,
    };
    // Also if the bytes are not a valid filter, because they are dropped then.
    slot.mark_changed();
    if missing > 0 {
        return Ok(Reply::count(missing));
    }
    let Some(Value::Filter(holder)) = slot.get_mut() else { return Err(Refusal::WrongType) };
    let Some(Next::Loading(load)) = holder.take_next() else { return Err(Refusal::WrongType) };
    match Filter::decode(&load.bytes) {
        Ok(filter) => {
            drop(load);
            holder.serve(Served::loaded(filter), now_ms);
            Ok(Reply::Integer(0))
        }
        Err(error) => {
            if !holder.is_ready() && holder.served.recipe.is_none() {
                give_up(slot);
            }
            Err(MayhapRefusal::Decode(error).into())
        }
    }
}
