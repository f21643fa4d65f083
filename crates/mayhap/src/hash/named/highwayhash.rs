//! HighwayHash (Google): keyed like SipHash, wider and quicker. Redisson's filters use 128 bits of it.

use highway::{HighwayHash, HighwayHasher, Key};

/// HighwayHash, 64 bits.
#[inline]
pub fn highway64(item: &[u8], key: [u64; 4]) -> u64 {
    HighwayHasher::new(Key(key)).hash64(item)
}

/// HighwayHash, 128 bits.
#[inline]
pub fn highway128(item: &[u8], key: [u64; 4]) -> [u64; 2] {
    HighwayHasher::new(Key(key)).hash128(item)
}

/// HighwayHash, 256 bits.
#[inline]
pub fn highway256(item: &[u8], key: [u64; 4]) -> [u64; 4] {
    HighwayHasher::new(Key(key)).hash256(item)
}
