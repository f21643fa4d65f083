//! `MF.DUMP key iterator`: a consistent copy of the filter as the bytes of a `.mayhap` file, in pieces.

use super::holder::Side;
use super::refused::{MayhapRefusal, NotReady};
use super::{holder_mut, options};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::{Reply, room_for};
use crate::run::{Request, Slot};

/// The largest piece.
pub const PIECE_BYTES: usize = 1 << 20;
/// A dump that is not read for this long is dropped when the filter is next dumped or loaded.
const FORGOTTEN_MS: u64 = 60_000;
/// The low bits of an iterator: the offset of the piece. The bits above identify the dump.
const OFFSET_BITS: u32 = 48;

/// A dump that is being read.
#[derive(Debug)]
pub(crate) struct Dump {
    bytes: Vec<u8>,
    /// Distinguishes the iterators of this dump from those of others.
    number: u16,
    read_ms: u64,
}

impl Dump {
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// The piece at `offset`, and the iterator of the next piece, or 0 after the last.
    fn piece(&self, offset: usize) -> Result<(i64, Vec<u8>), Refusal> {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        let next = match rest.len() > PIECE_BYTES {
            true => i64::from(self.number) << OFFSET_BITS | (offset + PIECE_BYTES) as i64,
            false => 0,
        };
        let mut copy = room_for(piece.len() as u64)?;
        copy.extend_from_slice(piece);
        Ok((next, copy))
    }
}

/// Splits an iterator into the dump it belongs to and its offset.
pub(crate) fn iterator(word: &[u8]) -> Result<(u16, u64), Refusal> {
    let number = options::number(word).filter(|&number| i64::try_from(number).is_ok());
    let number = number.ok_or(Refusal::NotAnInteger)?;
    Ok(((number >> OFFSET_BITS) as u16, number & ((1 << OFFSET_BITS) - 1)))
}

/// `MF.DUMP key iterator`.
pub(super) fn dump(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let (number, offset) = iterator(request.words[2])?;
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    holder.ready()?;
    let now_ms = context.environment.now_ms();
    if let Some(side) = &mut holder.side {
        let forgotten = |dump: &Dump| now_ms.saturating_sub(dump.read_ms) > FORGOTTEN_MS;
        if offset == 0 || side.dump.as_ref().is_some_and(forgotten) {
            side.dump = None;
        }
    }
    holder.tidy();
    let (next, piece) = if offset == 0 {
        let bytes = holder.encode(context)?;
        let mut number = [0; 2];
        context.environment.random(&mut number);
        // Without the sign bit, and never the number that `MF.LOAD` of a file uses.
        let number = (u16::from_le_bytes(number) & 0x7fff).max(1);
        let dump = Dump { bytes, number, read_ms: now_ms };
        let first = dump.piece(0)?;
        if first.0 != 0 {
            holder.side.get_or_insert_default().dump = Some(dump);
        }
        first
    } else {
        let dump = holder.side.as_mut().and_then(|side: &mut Box<Side>| side.dump.as_mut());
        let dump = dump.filter(|dump| dump.number == number && offset < dump.bytes.len() as u64);
        let dump = dump.ok_or(MayhapRefusal::StaleIterator)?;
        dump.read_ms = now_ms;
        let piece = dump.piece(offset as usize)?;
        if piece.0 == 0
            && let Some(side) = &mut holder.side
        {
            side.dump = None;
        }
        piece
    };
    holder.tidy();
    Ok(Reply::Array(vec![Reply::Integer(next), Reply::Bulk(piece)]))
}
