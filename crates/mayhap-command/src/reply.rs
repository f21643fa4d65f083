//! Replies, before they are encoded in RESP2 or RESP3.

use std::borrow::Cow;

use mayhap::BatchBits;

use crate::refusal::Refusal;

/// A reply. The protocol decides its encoding: booleans, maps and doubles, which RESP2 lacks, are encoded there as RedisBloom
/// does.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+OK`.
    Ok,
    /// A simple string that the server wrote itself.
    Simple(Cow<'static, str>),
    /// An error as an element of an array. A request as a whole is refused by returning the [`Refusal`].
    Refused(Box<Refusal>),
    /// A number.
    Integer(i64),
    /// `:1` and `:0`, in RESP3 `#t` and `#f`.
    Boolean(bool),
    /// An array of booleans.
    Booleans(BatchBits),
    /// A string of digits, in RESP3 a double.
    Double(f64),
    /// Any bytes.
    Bulk(Vec<u8>),
    /// Text for people, such as the reply of `INFO`: in RESP3 a verbatim string.
    Text(String),
    /// Null: `$-1`, in RESP3 `_`.
    Null,
    /// A null array: `*-1`, in RESP3 `_`.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// Pairs: in RESP2 a flat list.
    Map(Vec<(Reply, Reply)>),
    /// A set: in RESP2 a list.
    Set(Vec<Reply>),
    /// A reply that differs between the two protocols.
    Split {
        /// The reply in RESP2.
        resp2: Box<Reply>,
        /// The reply in RESP3.
        resp3: Box<Reply>,
    },
}

impl Reply {
    /// A bulk string.
    pub fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    /// Copies bytes, possibly many, into a bulk string.
    ///
    /// # Errors
    /// [`Refusal::InsufficientMemory`] if there is no memory for the copy.
    pub fn try_bulk(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut copy = room_for(bytes.len() as u64)?;
        copy.extend_from_slice(bytes);
        Ok(Self::Bulk(copy))
    }

    /// A simple string that is a constant.
    #[must_use]
    pub const fn simple(text: &'static str) -> Self {
        Self::Simple(Cow::Borrowed(text))
    }

    /// The approximate number of bytes it takes on the wire or in memory, whichever is more.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let inside = match self {
            Self::Bulk(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
            Self::Simple(text) => text.len(),
            Self::Booleans(answers) => 4 * answers.len(),
            Self::Array(items) | Self::Set(items) => items.iter().map(Self::bytes).sum(),
            Self::Map(pairs) => pairs.iter().map(|(name, value)| name.bytes() + value.bytes()).sum(),
            Self::Split { resp2, resp3 } => resp2.bytes() + resp3.bytes(),
            _ => 0,
        };
        size_of::<Self>().saturating_add(inside)
    }

    /// A count. Counts above `i64::MAX` become `i64::MAX`.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// Allocates a buffer of this many bytes for a reply.
///
/// # Errors
/// [`Refusal::InsufficientMemory`] if the system has no memory for it.
pub(crate) fn room_for(bytes: u64) -> Result<Vec<u8>, Refusal> {
    let mut room = Vec::new();
    let bytes = usize::try_from(bytes).map_err(|_| Refusal::InsufficientMemory)?;
    room.try_reserve_exact(bytes).map_err(|_| Refusal::InsufficientMemory)?;
    Ok(room)
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}
