//! C's packed form: one bit per slot that tells whether it is nonzero, followed by the nonzero slots.

use std::io::Write;

use mayhap::internals::Lines;
use mayhap::internals::statics::{FuseMeasurements, Slots, lines_of, per_word, slot};
use mayhap::{BinaryFuse, DecodeError, Fingerprint};

use super::Parts;
use super::slots::width_of;
use crate::cursor::Cursor;
use crate::foreign::WriteError;

/// Missing slots are zero, so one bit of input can become a whole slot. C packs slots of up to this many bits, and so do we.
const MAX_WIDTH: u32 = 16;

/// The header, and the bits that tell which slots are present.
struct Front<'a> {
    seed: u64,
    size: u64,
    graph: FuseMeasurements,
    bitmap: &'a [u8],
}

fn front<'a>(cursor: &mut Cursor<'a>) -> Result<Front<'a>, DecodeError> {
    let (seed, size) = (cursor.u64_le()?, u64::from(cursor.u32_le()?));
    // The segments follow from the number of items. There must be a bit for every slot before any slot is allocated.
    let graph = FuseMeasurements::for_items(size);
    let bitmap = cursor.take(graph.slots().div_ceil(8))?;
    let used = graph.slots() % 8;
    if let Some(&last) = bitmap.last().filter(|&&last| used != 0 && last >> used != 0) {
        let stray = u64::from((last >> used).trailing_zeros()) + used;
        return Err(DecodeError::StrayBit { bit: (bitmap.len() as u64 - 1) * 8 + stray });
    }
    Ok(Front { seed, size, graph, bitmap })
}

fn ones(bitmap: &[u8]) -> u64 {
    bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

pub(super) fn width(bytes: &[u8]) -> Option<u32> {
    let mut cursor = Cursor::new(bytes);
    let kept = ones(front(&mut cursor).ok()?.bitmap);
    width_of(cursor.left() as u64, kept, false).filter(|&width| width <= MAX_WIDTH)
}

pub(super) fn read<F: Fingerprint>(bytes: &[u8]) -> Result<Parts, DecodeError> {
    let bad = |field, got| DecodeError::BadField { field, got };
    if F::BITS > MAX_WIDTH {
        return Err(bad("fingerprint bits", F::BITS.into()));
    }
    let mut cursor = Cursor::new(bytes);
    let Front { seed, size, graph, bitmap } = front(&mut cursor)?;
    let kept = ones(bitmap);
    if let Some(width) =
        width_of(cursor.left() as u64, kept, false).filter(|&width| width != F::BITS && kept != 0)
    {
        return Err(bad("fingerprint bits", width.into()));
    }
    let mut packed = cursor.take(kept * u64::from(F::BITS / 8))?.chunks_exact(F::BITS as usize / 8);
    cursor.finish()?;
    let mut lines = Lines::zeroed(lines_of::<F>(graph.slots()))?;
    let words = lines.words_mut();
    for slot in (0..graph.slots() as usize).filter(|slot| bitmap[slot / 8] >> (slot % 8) & 1 == 1) {
        let value = packed.next().unwrap_or_default();
        let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        if value == 0 {
            return Err(bad("packed slot", 0));
        }
        words[slot / per_word::<F>()] |= value << (slot % per_word::<F>() * F::BITS as usize);
    }
    Ok(Parts { seed, graph, inserted: Some(size), slots: lines })
}

pub(super) fn write<F: Fingerprint>(
    filter: &BinaryFuse<F>,
    table: &Slots<'_, FuseMeasurements>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    if F::BITS > MAX_WIDTH {
        let (got, limit) = (F::BITS.into(), MAX_WIDTH.into());
        return Err(WriteError::NoRoom { field: "bits of a slot", got, limit });
    }
    let graph = table.measurements;
    // The format stores only the number of items, so the segments must follow from it.
    let counted = Some(filter.inserted()).filter(|&items| FuseMeasurements::for_items(items) == graph);
    let size = counted.or_else(|| graph.fewest_items()).ok_or_else(|| {
        let needs = "segments that follow from the number of items";
        WriteError::other_rule(needs, filter.scheme(), &filter.shape())
    })?;
    out.write_all(&table.seed.to_le_bytes())?;
    out.write_all(&(size as u32).to_le_bytes())?;
    let slots = || (0..graph.slots() as usize).map(|index| slot::<F>(table.lines, index));
    let (mut byte, mut bits) = (0_u8, 0);
    let mut bitmap = Vec::with_capacity(graph.slots().div_ceil(8) as usize);
    for slot in slots() {
        byte |= u8::from(slot != 0) << bits;
        bits = (bits + 1) % 8;
        if bits == 0 {
            bitmap.push(std::mem::take(&mut byte));
        }
    }
    bitmap.extend((bits != 0).then_some(byte));
    out.write_all(&bitmap)?;
    slots()
        .filter(|&slot| slot != 0)
        .try_for_each(|slot| out.write_all(&slot.to_le_bytes()[..F::BITS as usize / 8]))?;
    Ok(())
}
