//! A reply in either protocol.

use std::io::{self, BufRead};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `+OK`.
    Simple(String),
    /// `-ERR …`.
    Refused(String),
    /// `:1`.
    Integer(i64),
    /// A bulk string; of a verbatim string, the part after its format.
    Bulk(Vec<u8>),
    /// Null, in any of its forms.
    Null,
    /// `#t`.
    Boolean(bool),
    /// A double, as text.
    Double(String),
    /// An array or a set.
    Array(Vec<Wire>),
    /// Pairs.
    Map(Vec<(Wire, Wire)>),
}

impl Wire {
    /// Reads one reply, and appends its bytes to `raw`.
    ///
    /// # Errors
    /// The connection was closed or timed out, or the bytes are not a reply.
    pub fn read(from: &mut impl BufRead, raw: &mut Vec<u8>) -> io::Result<Self> {
        let begin = raw.len();
        from.read_until(b'\n', raw)?;
        let Some(line) = raw[begin..].strip_suffix(b"\r\n").filter(|line| !line.is_empty()) else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
        };
        let rest = String::from_utf8_lossy(&line[1..]).into_owned();
        let odd = || io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {rest:?}"));
        let count = || rest.parse::<i64>().map_err(|_| odd());
        Ok(match line[0] {
            b'+' => Self::Simple(rest),
            b'-' => Self::Refused(rest),
            b':' => Self::Integer(count()?),
            b'_' => Self::Null,
            b'#' => Self::Boolean(rest == "t"),
            b',' | b'(' => Self::Double(rest),
            kind @ (b'$' | b'=') => match usize::try_from(count()?) {
                Err(_) => Self::Null,
                Ok(length) => {
                    let start = raw.len();
                    raw.resize(start + length + 2, 0);
                    from.read_exact(&mut raw[start..])?;
                    // A verbatim string begins with `txt:`.
                    let skipped = if kind == b'=' { 4.min(length) } else { 0 };
                    Self::Bulk(raw[start + skipped..start + length].to_vec())
                }
            },
            b'*' | b'~' | b'>' => match usize::try_from(count()?) {
                Err(_) => Self::Null,
                Ok(length) => {
                    Self::Array((0..length).map(|_| Self::read(from, raw)).collect::<io::Result<_>>()?)
                }
            },
            b'%' => {
                let pairs = usize::try_from(count()?).map_err(|_| odd())?;
                let pair = |_| Ok((Self::read(from, raw)?, Self::read(from, raw)?));
                Self::Map((0..pairs).map(pair).collect::<io::Result<_>>()?)
            }
            _ => return Err(odd()),
        })
    }

    /// Returns the integer.
    ///
    /// # Panics
    /// If it is not an integer.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            other => panic!("not a number: {other:?}"),
        }
    }

    /// Returns the text.
    ///
    /// # Panics
    /// If it is not a text.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("not a text: {other:?}"),
        }
    }

    /// Returns the bytes.
    ///
    /// # Panics
    /// If it is not a string.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            other => panic!("not a string: {other:?}"),
        }
    }

    /// Returns the list.
    ///
    /// # Panics
    /// If it is not a list.
    #[track_caller]
    pub fn list(&self) -> &[Self] {
        match self {
            Self::Array(list) => list,
            other => panic!("not a list: {other:?}"),
        }
    }

    /// Returns whether it is an error.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}
