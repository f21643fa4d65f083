//! pybloom_live's positions: one slice of the bits for every probe, a place in it from chunks of salted digests.
//!
//! ```text
//! digest 0 = H(salt 0, item)          digest 1 = H(salt 1, item)         salt i = H(i as 4 bytes)
//! ┌─────────┬─────────┬─────────┐     ┌─────────┬─────────┬─────────┐
//! │ chunk 0 │ chunk 1 │ chunk 2 │     │ chunk 3 │ chunk 4 │ …       │    2, 4 or 8 bytes each, by the size of a slice
//! └────┬────┴────┬────┴────┬────┘     └────┬────┴─────────┴─────────┘
//!      ▼         ▼         ▼               ▼
//!   slice 0   slice 1   slice 2         slice 3                           position: chunk mod slice
//! ```

#[cfg(feature = "named-hashes")]
use md5::Md5;
#[cfg(feature = "named-hashes")]
use sha1::Sha1;
#[cfg(feature = "named-hashes")]
use sha2::{Digest, Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::Xxh3;

use crate::bloom::BloomShape;

/// The longest digest there is.
const MAX_DIGEST_BYTES: usize = 64;

/// The slices of one shape, and what their positions are drawn from.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    count: u32,
    /// Bits of one.
    bits: u64,
    chunk_bytes: usize,
    function: Function,
    /// One behind the other, each as long as a digest. Kept, for making them takes as long as a lookup.
    salts: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Md5,
    Xxh3,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Slices {
    pub(super) fn of_version_3(shape: &BloomShape) -> Self {
        Self::new(shape, Function::Md5)
    }

    pub(super) fn of_version_4(shape: &BloomShape) -> Self {
        Self::new(shape, Function::Xxh3)
    }

    /// `shortest` is the function for filters that need no more than 128 bits.
    fn new(shape: &BloomShape, shortest: Function) -> Self {
        let count = shape.probes();
        let bits = shape.bits() / u64::from(count);
        let chunk_bytes = match bits {
            0..0x8000 => 2,
            0x8000..0x8000_0000 => 4,
            _ => 8,
        };
        let function = match count as usize * chunk_bytes * 8 {
            0..=128 => shortest,
            129..=160 => Function::Sha1,
            161..=256 => Function::Sha256,
            257..=384 => Function::Sha384,
            _ => Function::Sha512,
        };
        let digests = count.div_ceil((function.digest_bytes() / chunk_bytes) as u32);
        let mut salts = Vec::with_capacity(digests as usize * function.digest_bytes());
        for number in 0..digests {
            let salt = function.digest(&number.to_le_bytes(), &[]);
            salts.extend_from_slice(&salt[..function.digest_bytes()]);
        }
        Self { count, bits, chunk_bytes, function, salts }
    }

    /// As [`WidePositions::all`](super::placement::WidePositions::all).
    pub(super) fn all(&self, item: &[u8], mut see: impl FnMut(u64) -> bool) -> bool {
        let length = self.function.digest_bytes();
        let mut slice = 0;
        for salt in self.salts.chunks_exact(length) {
            let digest = self.function.digest(salt, item);
            for chunk in digest[..length].chunks_exact(self.chunk_bytes) {
                if slice == self.count {
                    return true;
                }
                let chunk = chunk.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
                if !see(u64::from(slice) * self.bits + chunk % self.bits) {
                    return false;
                }
                slice += 1;
            }
        }
        true
    }
}

impl Function {
    const fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 | Self::Xxh3 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The digest of the salt and the item behind it; zeroes behind a shorter one.
    fn digest(self, salt: &[u8], item: &[u8]) -> [u8; MAX_DIGEST_BYTES] {
        match self {
            #[cfg(feature = "named-hashes")]
            Self::Md5 => salted::<Md5>(salt, item),
            #[cfg(feature = "named-hashes")]
            Self::Sha1 => salted::<Sha1>(salt, item),
            #[cfg(feature = "named-hashes")]
            Self::Sha256 => salted::<Sha256>(salt, item),
            #[cfg(feature = "named-hashes")]
            Self::Sha384 => salted::<Sha384>(salt, item),
            #[cfg(feature = "named-hashes")]
            Self::Sha512 => salted::<Sha512>(salt, item),
            #[cfg(not(feature = "named-hashes"))]
            Self::Md5 | Self::Sha1 | Self::Sha256 | Self::Sha384 | Self::Sha512 => {
                crate::hash::not_compiled_in::never()
            }
            Self::Xxh3 => {
                let mut hasher = Xxh3::new();
                hasher.update(salt);
                hasher.update(item);
                padded(&hasher.digest128().to_be_bytes())
            }
        }
    }
}

#[cfg(feature = "named-hashes")]
fn salted<D: Digest>(salt: &[u8], item: &[u8]) -> [u8; MAX_DIGEST_BYTES] {
    padded(&D::new().chain_update(salt).chain_update(item).finalize())
}

fn padded(digest: &[u8]) -> [u8; MAX_DIGEST_BYTES] {
    let mut padded = [0; MAX_DIGEST_BYTES];
    padded.iter_mut().zip(digest).for_each(|(to, from)| *to = *from);
    padded
}

#[cfg(all(test, feature = "named-hashes"))]
mod tests {
    use super::*;

    #[test]
    fn the_function_is_the_shortest_that_fills_all_slices() {
        let function = |slices: u32, bits: u64| {
            let shape = BloomShape::from_parts(bits * u64::from(slices), slices, 1, 0.5).unwrap();
            let [old, new] = [Slices::of_version_3(&shape), Slices::of_version_4(&shape)];
            assert_eq!((old.count, old.bits, old.chunk_bytes), (slices, bits, new.chunk_bytes));
            if old.function == Function::Md5 {
                assert_eq!(new.function, Function::Xxh3);
            } else {
                assert_eq!(old.function, new.function);
            }
            (old.function, old.chunk_bytes, old.salts.len() / old.function.digest_bytes())
        };
        assert_eq!(function(1, 1), (Function::Md5, 2, 1));
        assert_eq!(function(8, 0x7fff), (Function::Md5, 2, 1));
        assert_eq!(function(9, 0x7fff), (Function::Sha1, 2, 1));
        assert_eq!(function(10, 0x7fff), (Function::Sha1, 2, 1));
        assert_eq!(function(11, 0x7fff), (Function::Sha256, 2, 1));
        assert_eq!(function(16, 1438), (Function::Sha256, 2, 1));
        assert_eq!(function(17, 1438), (Function::Sha384, 2, 1));
        assert_eq!(function(24, 1438), (Function::Sha384, 2, 1));
        assert_eq!(function(25, 1438), (Function::Sha512, 2, 1));
        assert_eq!(function(33, 1438), (Function::Sha512, 2, 2));
        assert_eq!(function(4, 0x8000), (Function::Md5, 4, 1));
        assert_eq!(function(5, 0x8000), (Function::Sha1, 4, 1));
        assert_eq!(function(17, 0x7fff_ffff), (Function::Sha512, 4, 2));
        assert_eq!(function(2, 0x8000_0000), (Function::Md5, 8, 1));
        assert_eq!(function(3, 0x8000_0000), (Function::Sha256, 8, 1));
        assert_eq!(function(255, 0x8000_0000), (Function::Sha512, 8, 32));
    }

    #[test]
    fn no_two_probes_share_a_slice() {
        let shape = BloomShape::from_parts(100 * 37, 37, 1, 0.5).unwrap();
        let slices = Slices::of_version_3(&shape);
        let mut seen = Vec::new();
        slices.all(b"item", |position| {
            seen.push(position / 100);
            true
        });
        assert_eq!(seen, (0..37).collect::<Vec<_>>());
    }
}
