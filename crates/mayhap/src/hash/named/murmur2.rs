//! MurmurHash2 (Austin Appleby): the predecessor of [`murmur3`](super::murmur3), still used by RedisBloom.

use super::le::{padded_u32, padded_u64};

const M_32: u32 = 0x5bd1_e995;
const M_64: u64 = 0xc6a4_a793_5bd1_e995;

/// The 32-bit function.
#[inline]
pub fn murmur2_32(item: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = item.as_chunks::<4>();
    let mut hash = seed ^ item.len() as u32;
    for block in blocks {
        let word = u32::from_le_bytes(*block).wrapping_mul(M_32);
        hash = hash.wrapping_mul(M_32) ^ (word ^ (word >> 24)).wrapping_mul(M_32);
    }
    if !tail.is_empty() {
        hash = (hash ^ padded_u32(tail)).wrapping_mul(M_32);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M_32);
    hash ^ (hash >> 15)
}

/// `MurmurHash64A`: the 64-bit function for 64-bit machines.
#[inline]
pub fn murmur64a(item: &[u8], seed: u64) -> u64 {
    let (blocks, tail) = item.as_chunks::<8>();
    let mut hash = seed ^ (item.len() as u64).wrapping_mul(M_64);
    for block in blocks {
        hash = (hash ^ mixed(*block)).wrapping_mul(M_64);
    }
    // Unlike in murmur3, a missing tail differs from a zero one, because of the multiplication.
    if !tail.is_empty() {
        hash = (hash ^ padded_u64(tail)).wrapping_mul(M_64);
    }
    finished(hash)
}

/// [`murmur64a`] with `seed`, and again with the result as the seed: RedisBloom's pair. Short items are read and mixed once for
/// both.
#[inline]
pub(crate) fn murmur64a_twice(item: &[u8], seed: u64) -> [u64; 2] {
    let (blocks, tail) = item.as_chunks::<8>();
    let len = item.len();
    match blocks {
        [] => unrolled_twice([], tail, len, seed),
        [a] => unrolled_twice([*a], tail, len, seed),
        [a, b] => unrolled_twice([*a, *b], tail, len, seed),
        [a, b, c] => unrolled_twice([*a, *b, *c], tail, len, seed),
        [a, b, c, d] => unrolled_twice([*a, *b, *c, *d], tail, len, seed),
        _ => {
            let first = murmur64a(item, seed);
            [first, murmur64a(item, first)]
        }
    }
}

#[inline(always)]
fn unrolled_twice<const N: usize>(blocks: [[u8; 8]; N], tail: &[u8], len: usize, seed: u64) -> [u64; 2] {
    let words = blocks.map(mixed);
    let last = padded_u64(tail);
    let once = |seed: u64| {
        let start = seed ^ (len as u64).wrapping_mul(M_64);
        let hash = words.iter().fold(start, |hash, word| (hash ^ word).wrapping_mul(M_64));
        finished(if tail.is_empty() { hash } else { (hash ^ last).wrapping_mul(M_64) })
    };
    let first = once(seed);
    [first, once(first)]
}

/// A block before it is combined with the hash.
#[inline(always)]
const fn mixed(block: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(block).wrapping_mul(M_64);
    (word ^ (word >> 47)).wrapping_mul(M_64)
}

#[inline(always)]
const fn finished(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 47)).wrapping_mul(M_64);
    hash ^ (hash >> 47)
}
