//! Hash tables of the standard library whose keys are hashes already.

use std::hash::{BuildHasherDefault, Hasher};

/// For `HashMap` and `HashSet` of hashes.
pub(crate) type HashedAlready = BuildHasherDefault<AsItIs>;

/// A hasher that returns the key itself, which is a hash.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
