//! What filters, their shards and the builder's lock are called on the servers.

use std::fmt;
use std::io::Write as _;

/// Longer names are refused.
const MOST_BYTES: usize = 1024;

/// The name of a logical filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterName(Vec<u8>);

/// Why a filter cannot be called so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Without a name the shards would all be in one place.
    Empty,
    /// A `}` would end the tag of the shards too early, and all of them would be in one place.
    Brace {
        /// Where it is.
        at: usize,
    },
    /// Every shard has the name in its own, in every request.
    TooLong {
        /// Bytes it has.
        bytes: usize,
        /// Bytes it may have.
        limit: usize,
    },
}

impl FilterName {
    /// Checks a name.
    ///
    /// # Errors
    /// It is empty, too long, or has a `}`.
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > MOST_BYTES {
            return Err(NameError::TooLong { bytes: name.len(), limit: MOST_BYTES });
        }
        match name.iter().position(|&byte| byte == b'}') {
            Some(at) => Err(NameError::Brace { at }),
            None => Ok(Self(name.to_vec())),
        }
    }

    /// As it was given; the key of the descriptor.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of a shard: `{name:0421}:g7:1f0c83aa`, with the number of its generation and the mark of it.
    ///
    /// Four digits, and five if there are more than 10 000 shards. What is in braces decides the slot. The mark tells generations apart
    /// that have the same number, since the filter was removed between them: no key ever belongs to two.
    pub(crate) fn shard_key(&self, shard: u32, shards: u32, generation: u64, mark: u32) -> Vec<u8> {
        let width = if shards > 10_000 { 5 } else { 4 };
        let mut key = Vec::with_capacity(self.0.len() + 32);
        key.push(b'{');
        key.extend(&self.0);
        // Writing to memory cannot fail.
        let _ = write!(key, ":{shard:0width$}}}:g{generation}:{mark:08x}");
        key
    }

    /// The key that says who is building: `{name}:build`.
    pub(crate) fn lock_key(&self) -> Vec<u8> {
        [b"{", self.0.as_slice(), b"}:build"].concat()
    }
}

impl fmt::Display for FilterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a filter needs a name"),
            Self::Brace { at } => {
                write!(
                    f,
                    "a name cannot have a }} (byte {at}): what stands before it decides where shards go"
                )
            }
            Self::TooLong { bytes, limit } => write!(f, "the name has {bytes} bytes, limit is {limit}"),
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::slot_of;

    #[test]
    fn shards_are_called_so_for_ever() {
        let name = FilterName::new("seen").unwrap();
        let key = |shard, shards, generation| {
            String::from_utf8(name.shard_key(shard, shards, generation, 0x1f_0c83)).unwrap()
        };
        assert_eq!(key(421, 4096, 1), "{seen:0421}:g1:001f0c83");
        assert_eq!(key(421, 4096, 7), "{seen:0421}:g7:001f0c83");
        assert_eq!(key(421, 10_000, 1), "{seen:0421}:g1:001f0c83");
        assert_eq!(key(421, 16_384, 1), "{seen:00421}:g1:001f0c83");
        assert_eq!(name.lock_key(), b"{seen}:build");
        assert_eq!(slot_of(key(421, 4096, 1).as_bytes()), slot_of(key(421, 4096, 9).as_bytes()));
    }

    #[test]
    fn shards_are_spread_over_the_slots() {
        for name in ["seen", "se{en", "{", "a:b"] {
            let name = FilterName::new(name).unwrap();
            let slots: std::collections::HashSet<u16> =
                (0..4096).map(|shard| slot_of(&name.shard_key(shard, 4096, 2, 7))).collect();
            // 4096 balls in 16 384 boxes hit some 3 624 of them.
            assert!(slots.len() > 3400, "{name}: {}", slots.len());
        }
    }

    #[test]
    fn names_that_would_gather_all_shards_are_refused() {
        assert_eq!(FilterName::new(""), Err(NameError::Empty));
        assert_eq!(FilterName::new("a}b"), Err(NameError::Brace { at: 1 }));
        assert_eq!(FilterName::new([b'a'; 1025]), Err(NameError::TooLong { bytes: 1025, limit: 1024 }));
        assert!(FilterName::new(b"\xff\0 {").is_ok());
    }
}
