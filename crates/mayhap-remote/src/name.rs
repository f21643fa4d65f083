//! The names of filters, shards and build locks on the servers.

use std::fmt;
use std::io::Write as _;

/// The maximum length of a name, in bytes.
const MOST_BYTES: usize = 1024;

/// The name of a filter, common to all its shards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterName(Vec<u8>);

/// Why a name is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Without a name, all shards would be in one slot.
    Empty,
    /// A `}` would end the hash tag of the shard keys too early, and all shards would be in one slot.
    Brace {
        /// Its position, in bytes.
        at: usize,
    },
    /// The name is too long. It is part of every shard key, in every request.
    TooLong {
        /// The length of the name, in bytes.
        bytes: usize,
        /// The maximum length, in bytes.
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

    /// The bytes of the name. They are also the key of the descriptor.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of a shard: `{name:0421}:g7:1f0c83aa`, with the number and the mark of its generation.
    ///
    /// The shard number has four digits, or five if there are more than 10 000 shards. The part in braces
    /// decides the slot. The mark separates generations with the same number, which exist if the filter was
    /// removed in between: no key ever belongs to two generations.
    pub(crate) fn shard_key(&self, shard: u32, shards: u32, generation: u64, mark: u32) -> Vec<u8> {
        let width = if shards > 10_000 { 5 } else { 4 };
        let mut key = Vec::with_capacity(self.0.len() + 32);
        key.push(b'{');
        key.extend(&self.0);
        // Writing to memory cannot fail.
        let _ = write!(key, ":{shard:0width$}}}:g{generation}:{mark:08x}");
        key
    }

    /// The key of the build lock: `{name}:build`.
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
                    "a name cannot contain }} (byte {at}): the text before it decides the slot of the shards"
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
    fn shard_keys_are_frozen() {
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
    fn names_that_would_put_all_shards_in_one_slot_are_rejected() {
        assert_eq!(FilterName::new(""), Err(NameError::Empty));
        assert_eq!(FilterName::new("a}b"), Err(NameError::Brace { at: 1 }));
        assert_eq!(FilterName::new([b'a'; 1025]), Err(NameError::TooLong { bytes: 1025, limit: 1024 }));
        assert!(FilterName::new(b"\xff\0 {").is_ok());
    }
}
