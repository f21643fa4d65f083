//! `SETBIT`, `GETBIT`, `BITCOUNT`, `BITPOS`.

use super::refused::BitsRefusal;
use super::text::{MAX_BYTES, text_mut, text_of};
use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// Parses a bit offset.
pub(super) fn offset(word: &[u8]) -> Result<u64, Refusal> {
    let offset = args::integer(word).and_then(|offset| u64::try_from(offset).ok());
    Ok(offset.filter(|offset| offset / 8 < MAX_BYTES).ok_or(BitsRefusal::Offset)?)
}

/// `SETBIT key offset value`.
pub(super) fn set(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let offset = offset(request.words[2])?;
    let on = match request.words[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(BitsRefusal::Bit.into()),
    };
    let text = text_mut(slot, offset / 8 + 1, context)?;
    let was = text.bit(offset);
    if was != on {
        text.bytes_mut()[(offset / 8) as usize] ^= 0x80 >> (offset % 8);
        slot.mark_changed();
    }
    Ok(Reply::Integer(was.into()))
}

/// `GETBIT key offset`.
pub(super) fn get(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let offset = offset(request.words[2])?;
    Ok(Reply::Integer(text_of(value)?.is_some_and(|text| text.bit(offset)).into()))
}

/// A range of a string: the offsets of its first and its last bit.
struct Stretch {
    first: u64,
    last: u64,
}

/// The range between a start and an end, in bytes or bits; negative ones count from the end.
fn stretch(start: i64, end: i64, bytes: u64, by_bits: bool) -> Option<Stretch> {
    let total = (if by_bits { bytes * 8 } else { bytes }) as i64;
    let counted = |at: i64| if at < 0 { total.saturating_add(at) } else { at }.max(0);
    let (start, end) = (counted(start), counted(end).min(total - 1));
    if start > end {
        return None;
    }
    let (start, end) = (start.unsigned_abs(), end.unsigned_abs());
    Some(match by_bits {
        true => Stretch { first: start, last: end },
        false => Stretch { first: start * 8, last: end * 8 + 7 },
    })
}

fn unit(word: &[u8]) -> Result<bool, Refusal> {
    match () {
        () if word.eq_ignore_ascii_case(b"bit") => Ok(true),
        () if word.eq_ignore_ascii_case(b"byte") => Ok(false),
        () => Err(Refusal::Syntax),
    }
}

fn integer(word: &[u8]) -> Result<i64, Refusal> {
    args::integer(word).ok_or(Refusal::NotAnInteger)
}

/// The byte at `at`, with the bits outside the range replaced by `outside`.
fn byte_within(bytes: &[u8], at: u64, stretch: &Stretch, outside: bool) -> u8 {
    let mut inside = 0xff_u8;
    if at == stretch.first / 8 {
        inside &= 0xff >> (stretch.first % 8);
    }
    if at == stretch.last / 8 {
        inside &= 0xff << (7 - stretch.last % 8);
    }
    let byte = bytes[at as usize];
    if outside { byte | !inside } else { byte & inside }
}

/// `BITCOUNT key [start end [BYTE | BIT]]`.
pub(super) fn count(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let Some(text) = text_of(value)? else { return Ok(Reply::Integer(0)) };
    let bytes = text.bytes();
    let length = bytes.len() as u64;
    let stretch = match request.words[2..] {
        [] => stretch(0, -1, length, false),
        [start, end, ref unit_word @ ..] if unit_word.len() <= 1 => {
            let (start, end) = (integer(start)?, integer(end)?);
            if start < 0 && end < 0 && start > end {
                return Ok(Reply::Integer(0));
            }
            let by_bits = unit_word.first().map_or(Ok(false), |word| unit(word))?;
            stretch(start, end, length, by_bits)
        }
        _ => return Err(Refusal::Syntax),
    };
    let Some(stretch) = stretch else { return Ok(Reply::Integer(0)) };
    let (first, last) = (stretch.first / 8, stretch.last / 8);
    let edge = |at| u64::from(byte_within(bytes, at, &stretch, false).count_ones());
    let ones = match last - first {
        0 => edge(first),
        _ => edge(first) + ones(&bytes[first as usize + 1..last as usize]) + edge(last),
    };
    Ok(Reply::count(ones))
}

/// Counts set bits, eight bytes at a time.
fn ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`.
pub(super) fn position(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let bit = match integer(request.words[2])? {
        0 => false,
        1 => true,
        _ => return Err(BitsRefusal::BitArgument.into()),
    };
    let Some(text) = text_of(value)? else { return Ok(Reply::Integer(if bit { -1 } else { 0 })) };
    let bytes = text.bytes();
    let length = bytes.len() as u64;
    let (range, end_given) = match request.words[3..] {
        [] => (stretch(0, -1, length, false), false),
        [start, ref rest @ ..] if rest.len() <= 2 => {
            let start = integer(start)?;
            let by_bits = rest.get(1).map_or(Ok(false), |word| unit(word))?;
            let end = rest.first().map_or(Ok(-1), |word| integer(word))?;
            (stretch(start, end, length, by_bits), !rest.is_empty())
        }
        _ => return Err(Refusal::Syntax),
    };
    let Some(range) = range else { return Ok(Reply::Integer(-1)) };
    let position = find(bytes, &range, bit);
    Ok(Reply::Integer(match position {
        Some(position) => position as i64,
        // Without an end, the string continues with zeros.
        None if !bit && !end_given => length as i64 * 8,
        None => -1,
    }))
}

/// The first bit with this value in the range.
fn find(bytes: &[u8], range: &Stretch, bit: bool) -> Option<u64> {
    let (first, last) = (range.first / 8, range.last / 8);
    let at_edge = |at: u64| {
        let byte = byte_within(bytes, at, range, !bit);
        let sought = if bit { byte } else { !byte };
        (sought != 0).then(|| at * 8 + u64::from(sought.leading_zeros()))
    };
    if let Some(found) = at_edge(first) {
        return Some(found);
    }
    if last == first {
        return None;
    }
    let dull = if bit { 0 } else { 0xff };
    let between = &bytes[first as usize + 1..last as usize];
    let (words, _) = between.as_chunks::<8>();
    let skipped = words.iter().take_while(|word| **word == [dull; 8]).count() * 8;
    let found = between[skipped..].iter().position(|byte| *byte != dull);
    match found {
        Some(at) => at_edge(first + 1 + (skipped + at) as u64),
        None => at_edge(last),
    }
}
