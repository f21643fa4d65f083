//! `GET`, `SET`, `GETDEL`, `STRLEN`, `GETRANGE`, `SETRANGE`, `APPEND`: the basic commands on strings.

use super::refused::BitsRefusal;
use super::text::{Text, check_length, text_mut, text_of};
use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Expiry, Request, Slot};
use crate::value::Value;

fn bulk(text: Option<&Text>) -> Result<Reply, Refusal> {
    text.map_or(Ok(Reply::Null), |text| Reply::try_bulk(text.bytes()))
}

/// `GET key`.
pub(super) fn get(
    _request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    text_of(value).and_then(bulk)
}

/// `GETDEL key`.
pub(super) fn get_and_delete(
    _request: &Request<'_>,
    slot: &mut Slot<'_>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let reply = bulk(text_of(slot.get())?)?;
    slot.take();
    Ok(reply)
}

/// `STRLEN key`.
pub(super) fn length(
    _request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    Ok(Reply::count(text_of(value)?.map_or(0, |text| text.bytes().len() as u64)))
}

/// The options after `SET key value`.
#[derive(Default)]
struct SetOptions<'a> {
    if_absent: bool,
    if_present: bool,
    get: bool,
    keep: bool,
    /// The unit and zero point of the time, and the time.
    time: Option<(Time, &'a [u8])>,
}

/// The option that gives the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Seconds,
    Milliseconds,
    AtSecond,
    AtMillisecond,
}

impl<'a> SetOptions<'a> {
    fn parse(mut words: &[&'a [u8]]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        while let [option, rest @ ..] = words {
            let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
            let time = match () {
                () if is("ex") => Some(Time::Seconds),
                () if is("px") => Some(Time::Milliseconds),
                () if is("exat") => Some(Time::AtSecond),
                () if is("pxat") => Some(Time::AtMillisecond),
                () => None,
            };
            words = match (time, rest) {
                (None, _) if is("nx") && !options.if_present => {
                    options.if_absent = true;
                    rest
                }
                (None, _) if is("xx") && !options.if_absent => {
                    options.if_present = true;
                    rest
                }
                (None, _) if is("get") => {
                    options.get = true;
                    rest
                }
                (None, _) if is("keepttl") && options.time.is_none() => {
                    options.keep = true;
                    rest
                }
                // The same option may be given again; the last one counts.
                (Some(time), [word, rest @ ..])
                    if !options.keep && options.time.is_none_or(|(before, _)| before == time) =>
                {
                    options.time = Some((time, word));
                    rest
                }
                _ => return Err(Refusal::Syntax),
            };
        }
        Ok(options)
    }

    /// The expiration time of the key.
    fn expiry(&self, now_ms: u64) -> Result<Expiry, Refusal> {
        match self.time {
            None if self.keep => Ok(Expiry::Keep),
            None => Ok(Expiry::Never),
            Some((Time::Seconds, time)) => deadline(time, 1_000, now_ms).map(Expiry::At),
            Some((Time::Milliseconds, time)) => deadline(time, 1, now_ms).map(Expiry::At),
            Some((Time::AtSecond, time)) => deadline(time, 1_000, 0).map(Expiry::At),
            Some((Time::AtMillisecond, time)) => deadline(time, 1, 0).map(Expiry::At),
        }
    }
}

fn deadline(time: &[u8], unit: i64, from: u64) -> Result<u64, Refusal> {
    let invalid = || Refusal::InvalidExpiry { command: "set" };
    let time = args::integer(time).ok_or(Refusal::NotAnInteger)?;
    let ms = time.checked_mul(unit).filter(|&ms| ms > 0).ok_or_else(invalid)?;
    let at = ms.unsigned_abs().checked_add(from).filter(|&at| i64::try_from(at).is_ok());
    at.ok_or_else(invalid)
}

/// `SET key value [NX | XX] [GET] [EX … | PX … | EXAT … | PXAT … | KEEPTTL]`.
pub(super) fn set(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let options = SetOptions::parse(&request.words[3..])?;
    let expiry = options.expiry(context.environment.now_ms())?;
    let old = if options.get { Some(bulk(text_of(slot.get())?)?) } else { None };
    let there = slot.get().is_some();
    if (options.if_absent && there) || (options.if_present && !there) {
        return Ok(old.unwrap_or(Reply::Null));
    }
    let text = Text::new(request.words[2], context)?;
    slot.put(Value::Text(Box::new(text)));
    slot.expire(expiry);
    Ok(old.unwrap_or(Reply::Ok))
}

/// `GETRANGE key start end`.
pub(super) fn range(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let number = |word: &[u8]| args::integer(word).ok_or(Refusal::NotAnInteger);
    let (start, end) = (number(request.words[2])?, number(request.words[3])?);
    let bytes = text_of(value)?.map_or(&[][..], Text::bytes);
    let length = bytes.len() as i64;
    let counted = |at: i64| if at < 0 { length.saturating_add(at) } else { at }.max(0);
    let (from, to) = (counted(start), counted(end).min(length - 1));
    if (start < 0 && end < 0 && start > end) || from > to {
        return Ok(Reply::bulk([]));
    }
    Reply::try_bulk(&bytes[from as usize..=to as usize])
}

/// `SETRANGE key offset value`.
pub(super) fn set_range(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let offset = args::integer(request.words[2]).ok_or(Refusal::NotAnInteger)?;
    let offset = u64::try_from(offset).map_err(|_| BitsRefusal::RangeOffset)?;
    let piece = request.words[3];
    let length = text_of(slot.get())?.map_or(0, |text| text.bytes().len() as u64);
    if piece.is_empty() {
        return Ok(Reply::count(length));
    }
    let end = offset.saturating_add(piece.len() as u64);
    check_length(end)?;
    let text = text_mut(slot, end, context)?;
    text.bytes_mut()[offset as usize..end as usize].copy_from_slice(piece);
    let length = text.bytes().len() as u64;
    slot.mark_changed();
    Ok(Reply::count(length))
}

/// `APPEND key value`.
pub(super) fn append(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let piece = request.words[2];
    let length = text_of(slot.get())?.map_or(0, |text| text.bytes().len());
    let end = length as u64 + piece.len() as u64;
    check_length(end)?;
    let text = text_mut(slot, end, context)?;
    text.bytes_mut()[length..].copy_from_slice(piece);
    slot.mark_changed();
    Ok(Reply::count(end))
}
