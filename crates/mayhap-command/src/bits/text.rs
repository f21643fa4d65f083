//! A string of bytes, also used as a bitmap: bit 0 is the highest bit of byte 0, as in Redis.

use crate::bits::refused::BitsRefusal;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::run::Slot;
use crate::value::Value;

/// The maximum length of a string: Redis's default.
pub const MAX_BYTES: u64 = 512 << 20;
/// A string that grows gets spare memory of its own size, but at most this.
const MOST_SPARE: u64 = 1 << 20;

/// The value of `SETBIT`, `SET` and similar commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(Vec<u8>);

impl Text {
    /// A string of these bytes, if there is memory for it.
    pub(crate) fn new(bytes: &[u8], context: &Context<'_>) -> Result<Self, Refusal> {
        let mut text = Self::zeroes(bytes.len() as u64, context)?;
        text.0.copy_from_slice(bytes);
        Ok(text)
    }

    /// A string of this many zero bytes, if there is memory for it.
    pub(crate) fn zeroes(bytes: u64, context: &Context<'_>) -> Result<Self, Refusal> {
        let mut text = Self::default();
        text.grow_exactly(bytes, context)?;
        Ok(text)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.0.capacity()) as u64
    }

    /// The bit at this offset; 0 after the end.
    pub(crate) fn bit(&self, offset: u64) -> bool {
        let byte = usize::try_from(offset / 8).ok().and_then(|at| self.0.get(at));
        byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
    }

    /// Extends the string with zeros to at least `bytes`, with spare memory if it grows step by step.
    pub(crate) fn grow(&mut self, bytes: u64, context: &Context<'_>) -> Result<(), Refusal> {
        if bytes > self.0.capacity() as u64 && !self.0.is_empty() {
            let roomy = bytes + bytes.min(MOST_SPARE);
            if self.take_room(roomy, context).is_err() {
                self.take_room(bytes, context)?;
            }
        }
        self.grow_exactly(bytes, context)
    }

    fn grow_exactly(&mut self, bytes: u64, context: &Context<'_>) -> Result<(), Refusal> {
        let length = usize::try_from(bytes).map_err(|_| BitsRefusal::TooLong)?;
        if length > self.0.len() {
            self.take_room(bytes, context)?;
            self.0.resize(length, 0);
        }
        Ok(())
    }

    fn take_room(&mut self, bytes: u64, context: &Context<'_>) -> Result<(), Refusal> {
        let capacity = self.0.capacity() as u64;
        if bytes <= capacity {
            return Ok(());
        }
        context.admit(bytes, bytes - capacity)?;
        let more = usize::try_from(bytes).unwrap_or(usize::MAX) - self.0.len();
        self.0.try_reserve_exact(more).map_err(|_| Refusal::OutOfMemory)
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// Returns the string in `value`, or `None` if the key does not exist.
pub(super) fn text_of(value: Option<&Value>) -> Result<Option<&Text>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::WrongType),
    }
}

/// Returns the string in `slot`, at least `bytes` long; creates it if it does not exist.
pub(super) fn text_mut<'s>(
    slot: &'s mut Slot<'_>,
    bytes: u64,
    context: &Context<'_>,
) -> Result<&'s mut Text, Refusal> {
    match text_of(slot.get())? {
        Some(text) if text.bytes().len() as u64 >= bytes => {}
        Some(_) => {
            if let Some(Value::Text(text)) = slot.get_mut() {
                text.grow(bytes, context)?;
            }
            slot.mark_changed();
        }
        None => {
            slot.put(Value::Text(Box::new(Text::zeroes(bytes, context)?)));
        }
    }
    match slot.get_mut() {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(Refusal::WrongType),
    }
}

/// Refuses a length above the maximum.
pub(crate) fn check_length(bytes: u64) -> Result<(), Refusal> {
    if bytes > MAX_BYTES { Err(BitsRefusal::TooLong.into()) } else { Ok(()) }
}
