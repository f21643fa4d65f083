//! `BITFIELD`, `BITFIELD_RO`: integers of any width, at any bit offset of a string.

use super::bit;
use super::refused::BitsRefusal;
use super::text::{Text, text_mut, text_of};
use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// An integer in a string: its offset and type.
#[derive(Clone, Copy)]
struct Field {
    offset: u64,
    bits: u32,
    signed: bool,
}

/// How to handle a number that does not fit.
#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum Step {
    Get(Field),
    Set(Field, i64, Overflow),
    Add(Field, i64, Overflow),
}

impl Field {
    fn parse(kind: &[u8], place: &[u8]) -> Result<Self, Refusal> {
        let (sign, digits) = kind.split_first().ok_or(BitsRefusal::FieldType)?;
        let signed = match sign {
            b'i' => true,
            b'u' => false,
            _ => return Err(BitsRefusal::FieldType.into()),
        };
        let most = if signed { 64 } else { 63 };
        let bits = args::integer(digits).filter(|bits| (1..=most).contains(bits));
        let bits = bits.ok_or(BitsRefusal::FieldType)? as u32;
        let offset = match place.strip_prefix(b"#") {
            None => bit::offset(place)?,
            Some(number) => {
                let number = args::integer(number).and_then(|number| number.checked_mul(i64::from(bits)));
                bit::offset(number.ok_or(BitsRefusal::Offset)?.to_string().as_bytes())?
            }
        };
        Ok(Self { offset, bits, signed })
    }

    /// The length in bytes that a string needs for writing it.
    const fn end(self) -> u64 {
        (self.offset + self.bits as u64 - 1) / 8 + 1
    }

    fn read(self, text: Option<&Text>) -> i64 {
        let Some(text) = text else { return 0 };
        let number = (0..u64::from(self.bits))
            .fold(0_u64, |number, bit| number << 1 | u64::from(text.bit(self.offset + bit)));
        let shift = 64 - self.bits;
        if self.signed { (number << shift) as i64 >> shift } else { number as i64 }
    }

    /// Writes the lowest bits of `number`. The string must be long enough.
    fn write(self, text: &mut Text, number: i64) {
        for bit in 0..u64::from(self.bits) {
            let at = self.offset + bit;
            let byte = &mut text.bytes_mut()[(at / 8) as usize];
            let mask = 0x80 >> (at % 8);
            let on = number as u64 >> (u64::from(self.bits) - 1 - bit) & 1 == 1;
            *byte = if on { *byte | mask } else { *byte & !mask };
        }
    }

    /// Fits `number` into the field; `None` if it does not fit and must not be written.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = match self.signed {
            true => (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1),
            false => (0, (1_i128 << self.bits) - 1),
        };
        let fitting = match overflow {
            _ if (least..=most).contains(&number) => number,
            Overflow::Fail => return None,
            Overflow::Saturate => number.clamp(least, most),
            Overflow::Wrap => {
                let low = number.rem_euclid(1_i128 << self.bits);
                if low > most { low - (1_i128 << self.bits) } else { low }
            }
        };
        Some(fitting as i64)
    }
}

fn parse(mut words: &[&[u8]]) -> Result<Vec<Step>, Refusal> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let number = |word: &[u8]| args::integer(word).ok_or(Refusal::NotAnInteger);
    while let [step, rest @ ..] = words {
        let is = |name: &str| step.eq_ignore_ascii_case(name.as_bytes());
        words = match rest {
            [kind, place, rest @ ..] if is("get") => {
                steps.push(Step::Get(Field::parse(kind, place)?));
                rest
            }
            [kind, place, value, rest @ ..] if is("set") => {
                steps.push(Step::Set(Field::parse(kind, place)?, number(value)?, overflow));
                rest
            }
            [kind, place, more, rest @ ..] if is("incrby") => {
                steps.push(Step::Add(Field::parse(kind, place)?, number(more)?, overflow));
                rest
            }
            [how, rest @ ..] if is("overflow") => {
                overflow = match () {
                    () if how.eq_ignore_ascii_case(b"wrap") => Overflow::Wrap,
                    () if how.eq_ignore_ascii_case(b"sat") => Overflow::Saturate,
                    () if how.eq_ignore_ascii_case(b"fail") => Overflow::Fail,
                    () => return Err(BitsRefusal::Overflow.into()),
                };
                rest
            }
            _ => return Err(Refusal::Syntax),
        };
    }
    Ok(steps)
}

/// `BITFIELD key [GET …] [SET …] [INCRBY …] [OVERFLOW …]`.
pub(super) fn change(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let steps = parse(&request.words[2..])?;
    let end = steps.iter().filter_map(|step| match step {
        Step::Get(_) => None,
        Step::Set(field, ..) | Step::Add(field, ..) => Some(field.end()),
    });
    let Some(end) = end.max() else { return look(&steps, slot.get()) };
    let text = text_mut(slot, end, context)?;
    let replies = steps.iter().map(|&step| apply(step, text)).collect();
    slot.mark_changed();
    Ok(Reply::Array(replies))
}

fn apply(step: Step, text: &mut Text) -> Reply {
    let (field, number, reply_old, overflow) = match step {
        Step::Get(field) => return Reply::Integer(field.read(Some(text))),
        // The new value of an unsigned field is read as unsigned.
        Step::Set(field, number, overflow) if !field.signed => {
            (field, i128::from(number as u64), true, overflow)
        }
        Step::Set(field, number, overflow) => (field, i128::from(number), true, overflow),
        Step::Add(field, more, overflow) => {
            (field, i128::from(field.read(Some(text))) + i128::from(more), false, overflow)
        }
    };
    let old = field.read(Some(text));
    match field.fit(number, overflow) {
        Some(new) => {
            field.write(text, new);
            Reply::Integer(if reply_old { old } else { new })
        }
        None => Reply::Null,
    }
}

/// `BITFIELD_RO key GET type offset …`.
pub(super) fn read(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let steps = parse(&request.words[2..])?;
    if steps.iter().any(|step| !matches!(step, Step::Get(_))) {
        return Err(BitsRefusal::FieldReadOnly.into());
    }
    look(&steps, value)
}

fn look(steps: &[Step], value: Option<&Value>) -> Result<Reply, Refusal> {
    let text = text_of(value)?;
    let read = |step: &Step| match step {
        Step::Get(field) | Step::Set(field, ..) | Step::Add(field, ..) => Reply::Integer(field.read(text)),
    };
    Ok(Reply::Array(steps.iter().map(read).collect()))
}
