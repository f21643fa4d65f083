//! What a client is answered, before it is written in either protocol.

use std::borrow::Cow;

use mayhap::Answers;

use crate::refusal::Refusal;

/// A reply. The protocol decides how it looks on the wire: what RESP2 lacks (booleans, maps, doubles) becomes what RedisBloom
/// sends there.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+OK`.
    Ok,
    /// A simple string of our own making.
    Simple(Cow<'static, str>),
    /// An error, as an element of an array; a request as a whole is refused by returning the [`Refusal`].
    Refused(Box<Refusal>),
    /// A number.
    Integer(i64),
    /// `:1` and `:0`, in RESP3 `#t` and `#f`.
    Boolean(bool),
    /// An array of booleans.
    Booleans(Answers),
    /// A string of digits, in RESP3 a double.
    Double(f64),
    /// Any bytes.
    Bulk(Vec<u8>),
    /// Text that a person reads, as `INFO` has it: in RESP3 a verbatim string.
    Text(String),
    /// Nothing: `$-1`, in RESP3 `_`.
    Null,
    /// Nothing where a list is expected: `*-1`, in RESP3 `_`.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// Pairs: in RESP2 a flat list.
    Map(Vec<(Reply, Reply)>),
    /// A set: in RESP2 a list.
    Set(Vec<Reply>),
    /// The two protocols say different things.
    Split {
        /// To clients of the old protocol.
        resp2: Box<Reply>,
        /// To clients of the new one.
        resp3: Box<Reply>,
    },
}

impl Reply {
    /// A bulk string.
    pub fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    /// A bulk string of bytes that may be many: if there is no memory for a copy of them, that is said instead.
    ///
    /// # Errors
    /// [`Refusal::InsufficientMemory`].
    pub fn try_bulk(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut copy = room_for(bytes.len() as u64)?;
        copy.extend_from_slice(bytes);
        Ok(Self::Bulk(copy))
    }

    /// A simple string that never changes.
    #[must_use]
    pub const fn simple(text: &'static str) -> Self {
        Self::Simple(Cow::Borrowed(text))
    }

    /// Bytes it takes on the wire, or in memory where that is more; about.
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

    /// A count, which no client can tell from infinity past 2^63.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// Memory for so many bytes of a reply, if the system has it.
///
/// # Errors
/// [`Refusal::InsufficientMemory`].
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
