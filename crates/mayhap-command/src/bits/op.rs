//! `BITOP operation target source [source …]`.

use super::refused::BitsRefusal;
use super::text::{Text, text_of};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot, Source};
use crate::value::Value;

/// `BITOP operation target source [source …]`. Shorter strings are padded with zeros.
pub(super) fn operate(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    sources: &[Source<'_>],
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let operation = request.words[1];
    let is = |name: &str| operation.eq_ignore_ascii_case(name.as_bytes());
    let combine: fn(u8, u8) -> u8 = match () {
        () if is("and") => |one, other| one & other,
        () if is("or") => |one, other| one | other,
        () if is("xor") => |one, other| one ^ other,
        () if is("not") => |one, _| !one,
        () => return Err(Refusal::Syntax),
    };
    if is("not") && sources.len() != 1 {
        return Err(BitsRefusal::NotOfMany.into());
    }
    let mut strings: Vec<&[u8]> = Vec::with_capacity(sources.len());
    for source in sources {
        let value = match source {
            Source::Target => slot.get(),
            Source::Other(value) => *value,
        };
        strings.push(text_of(value)?.map_or(&[][..], Text::bytes));
    }
    let length = strings.iter().map(|string| string.len()).max().unwrap_or(0);
    if length == 0 {
        slot.take();
        return Ok(Reply::Integer(0));
    }
    let mut result = Text::zeroes(length as u64, context)?;
    let (first, rest) = strings.split_first().map_or((&[][..], &[][..]), |(first, rest)| (*first, rest));
    let bytes = result.bytes_mut();
    bytes[..first.len()].copy_from_slice(first);
    if is("not") {
        bytes.iter_mut().for_each(|byte| *byte = combine(*byte, 0));
    }
    for other in rest {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = combine(*byte, other.get(at).copied().unwrap_or(0));
        }
    }
    slot.put(Value::Text(Box::new(result)));
    Ok(Reply::count(length as u64))
}
