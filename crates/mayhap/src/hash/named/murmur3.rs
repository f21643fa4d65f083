//! MurmurHash3 (Austin Appleby), and the two variants that existing filters depend on.
//!
//! ```text
//! item ─▶ whole blocks ─▶ scramble each word, mix it in ─▶ tail, zero-padded ─▶ length, final mix
//! ```
//!
//! | function | used by | differs in |
//! |---|---|---|
//! | [`x86_32`] | Bitcoin's BIP-37 | |
//! | [`x86_128`] | 32-bit programs | |
//! | [`x64_128`] | Guava, Go's bits-and-blooms | |
//! | [`spark_x86_32`] | Spark's `BloomFilter` | each tail byte is sign-extended and mixed as a separate block |
//! | [`cassandra_x64_128`] | Cassandra | tail bytes are sign-extended before they are joined |

use super::le::{padded_u32, padded_u64, u32_at, u64_at};

const C1_32: u32 = 0xcc9e_2d51;
const C2_32: u32 = 0x1b87_3593;
const C1_64: u64 = 0x87c3_7b91_1142_53d5;
const C2_64: u64 = 0x4cf5_ad43_2745_937f;

/// The 32-bit function.
#[inline]
pub fn x86_32(item: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = item.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash = stir_32(hash, u32::from_le_bytes(*block));
    }
    // An empty tail reads as zero, and zero scrambles to zero.
    hash ^= scramble_32(padded_u32(tail));
    finish_32(hash ^ item.len() as u32)
}

/// Spark's 32-bit function: the same as [`x86_32`] for items of whole four-byte blocks, different for others.
#[inline]
pub fn spark_x86_32(item: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = item.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash = stir_32(hash, u32::from_le_bytes(*block));
    }
    for &byte in tail {
        hash = stir_32(hash, i32::from(byte as i8) as u32);
    }
    finish_32(hash ^ item.len() as u32)
}

/// The 128-bit function for 32-bit machines; its values have nothing in common with [`x64_128`].
#[inline]
pub fn x86_128(item: &[u8], seed: u32) -> [u32; 4] {
    let (blocks, tail) = item.as_chunks::<16>();
    let mut state = [seed; 4];
    for block in blocks {
        for lane in 0..4 {
            let next = state[(lane + 1) % 4];
            let mixed = state[lane] ^ scramble_lane(lane, u32_at(block, 4 * lane));
            state[lane] = mixed
                .rotate_left(LANES[lane].stir)
                .wrapping_add(next)
                .wrapping_mul(5)
                .wrapping_add(LANES[lane].offset);
        }
    }
    for (lane, word) in state.iter_mut().enumerate() {
        *word ^= scramble_lane(lane, padded_u32(tail.get(4 * lane..).unwrap_or_default()));
    }
    state = sum_lanes(state.map(|word| word ^ item.len() as u32));
    sum_lanes(state.map(finish_32))
}

/// The 128-bit function for 64-bit machines, as `[h1, h2]`.
///
/// The published code has a 32-bit seed; Java programs start both halves from a 64-bit one. The two agree if the seed fits in
/// 32 bits.
#[inline]
pub fn x64_128(item: &[u8], seed: u64) -> [u64; 2] {
    let (blocks, tail) = item.as_chunks::<16>();
    let [mut h1, mut h2] = blocks.iter().fold([seed; 2], stir_128);
    // Zero scrambles to zero, so these branches change no value; they save time for items of whole blocks.
    if !tail.is_empty() {
        h1 ^= scramble_first(padded_u64(tail));
    }
    if let Some(high @ [_, ..]) = tail.get(8..) {
        h2 ^= scramble_second(padded_u64(high));
    }
    finish_128([h1, h2], item.len() as u64)
}

/// [`x64_128`] with seed 0 of the item, and of the item followed by a byte 1: the 256 bits from which Go's bits-and-blooms
/// computes positions. Whole blocks are mixed once for both.
#[inline]
pub(crate) fn x64_256(item: &[u8]) -> [u64; 4] {
    let (blocks, tail) = item.as_chunks::<16>();
    let body = blocks.iter().fold([0; 2], stir_128);
    let len = item.len() as u64;
    let mut block = [0; 16];
    block[..tail.len()].copy_from_slice(tail);
    let [a, b] = finish_128(stir_tail(body, &block), len);
    block[tail.len()] = 1;
    let longer = if tail.len() == 15 { stir_128(body, &block) } else { stir_tail(body, &block) };
    let [c, d] = finish_128(longer, len.wrapping_add(1));
    [a, b, c, d]
}

/// Mixes in an incomplete last block, padded with zeroes.
#[inline]
fn stir_tail([h1, h2]: [u64; 2], block: &[u8; 16]) -> [u64; 2] {
    [h1 ^ scramble_first(u64_at(block, 0)), h2 ^ scramble_second(u64_at(block, 8))]
}

/// Cassandra's 128-bit function: the same as [`x64_128`] unless one of the last `len % 16` bytes is 0x80 or more.
#[inline]
pub fn cassandra_x64_128(item: &[u8], seed: u64) -> [u64; 2] {
    let (blocks, tail) = item.as_chunks::<16>();
    let [h1, h2] = blocks.iter().fold([seed; 2], stir_128);
    let (low, high) = tail.split_at_checked(8).unwrap_or((tail, &[]));
    let h1 = h1 ^ scramble_first(signed_word(low));
    let h2 = h2 ^ scramble_second(signed_word(high));
    finish_128([h1, h2], item.len() as u64)
}

#[inline]
fn scramble_32(word: u32) -> u32 {
    word.wrapping_mul(C1_32).rotate_left(15).wrapping_mul(C2_32)
}

#[inline]
fn stir_32(hash: u32, word: u32) -> u32 {
    (hash ^ scramble_32(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline]
fn finish_32(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// How one 32-bit lane of [`x86_128`] scrambles its word and mixes it in.
struct Lane {
    before: u32,
    scramble: u32,
    after: u32,
    stir: u32,
    offset: u32,
}

const LANES: [Lane; 4] = [
    Lane { before: 0x239b_961b, scramble: 15, after: 0xab0e_9789, stir: 19, offset: 0x561c_cd1b },
    Lane { before: 0xab0e_9789, scramble: 16, after: 0x38b3_4ae5, stir: 17, offset: 0x0bca_a747 },
    Lane { before: 0x38b3_4ae5, scramble: 17, after: 0xa1e3_8b93, stir: 15, offset: 0x96cd_1c35 },
    Lane { before: 0xa1e3_8b93, scramble: 18, after: 0x239b_961b, stir: 13, offset: 0x32ac_3b17 },
];

#[inline]
fn scramble_lane(lane: usize, word: u32) -> u32 {
    let Lane { before, scramble, after, .. } = LANES[lane];
    word.wrapping_mul(before).rotate_left(scramble).wrapping_mul(after)
}

/// The first lane gets the sum of all four; that sum is added to the others.
#[inline]
fn sum_lanes([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    let sum = a.wrapping_add(b).wrapping_add(c).wrapping_add(d);
    [sum, b.wrapping_add(sum), c.wrapping_add(sum), d.wrapping_add(sum)]
}

#[inline]
fn stir_128([mut h1, mut h2]: [u64; 2], block: &[u8; 16]) -> [u64; 2] {
    h1 ^= scramble_first(u64_at(block, 0));
    h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
    h2 ^= scramble_second(u64_at(block, 8));
    h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    [h1, h2]
}

#[inline]
fn finish_128([h1, h2]: [u64; 2], len: u64) -> [u64; 2] {
    let h2 = h2 ^ len;
    let h1 = (h1 ^ len).wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    let (h1, h2) = (finish_64(h1), finish_64(h2));
    let h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

#[inline]
fn scramble_first(word: u64) -> u64 {
    word.wrapping_mul(C1_64).rotate_left(31).wrapping_mul(C2_64)
}

#[inline]
fn scramble_second(word: u64) -> u64 {
    word.wrapping_mul(C2_64).rotate_left(33).wrapping_mul(C1_64)
}

#[inline]
fn finish_64(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Up to eight bytes joined as in Java without masking: a byte of 0x80 or more flips all bits above.
#[inline]
fn signed_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) ^ i64::from(byte as i8) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_256_bits_are_those_of_the_plain_function() {
        let item: Vec<u8> = (0..100u32).map(|i| (i * 37 + 128) as u8).collect();
        for len in 0..item.len() {
            let longer: Vec<u8> = item[..len].iter().copied().chain([1]).collect();
            let ([a, b], [c, d]) = (x64_128(&item[..len], 0), x64_128(&longer, 0));
            assert_eq!(x64_256(&item[..len]), [a, b, c, d], "{len} bytes");
        }
    }

    #[test]
    fn the_variants_differ_only_in_the_tail() {
        let item: Vec<u8> = (0..64u32).map(|i| (i * 37 + 128) as u8).collect();
        for seed in [0, 1, 0x9747_b28c, u32::MAX] {
            for len in 0..item.len() {
                let item = &item[..len];
                assert_eq!(x86_32(item, seed) == spark_x86_32(item, seed), len % 4 == 0, "{len} bytes");
                let signed = item.iter().rev().take(len % 16).any(|&byte| byte >= 0x80);
                let wide = u64::from(seed) << 7;
                assert_eq!(x64_128(item, wide) != cassandra_x64_128(item, wide), signed, "{len} bytes");
            }
        }
    }
}
