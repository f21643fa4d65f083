//! XXPH3, the hash of RocksDB's filters since format version 5: XXH3 as it was before its release, frozen there.
//!
//! ```text
//! bytes      1–3        4–8         9–16        17–128            129–240           241 and more
//!            one word   one word    two words   pairs of 16, from 16 at a time,    eight lanes over stripes of 64,
//!            times      times       folded      both ends inward  in two rounds    scrambled after every 1024
//! ```
//!
//! It has the structure and the secret of the published [`xxh3_64`](super::xxhash::xxh3_64), but another last mixing step,
//! other short inputs, and lanes that do not cross: no input has the same value. Unlike the preview it comes from, it does not
//! map the empty item to zero.

use super::le::{u32_at, u64_at};

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;

/// xxHash's default secret.
#[rustfmt::skip]
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// Bytes that the eight lanes read in one step.
const STRIPE: usize = 64;
/// Stripes between two scramblings. Each begins 8 bytes further in the secret, which has room for this many.
const STRIPES_PER_BLOCK: usize = (SECRET.len() - STRIPE) / 8;

/// XXPH3, 64 bits, without a seed.
#[inline]
pub fn xxph3_64(item: &[u8]) -> u64 {
    match item.len() {
        0 => folded(secret(0), PRIME64_2),
        1..=3 => up_to_3(item),
        4..=8 => up_to_8(item),
        9..=16 => up_to_16(item),
        17..=128 => up_to_128(item),
        129..=240 => up_to_240(item),
        _ => long(item),
    }
}

#[inline]
fn secret(at: usize) -> u64 {
    u64_at(&SECRET, at)
}

/// The xor of both halves of the product.
#[inline]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 37).wrapping_mul(PRIME64_3);
    hash ^ hash >> 32
}

/// 16 bytes of the item mixed with 16 of the secret.
#[inline]
fn mixed(item: &[u8], at: usize, secret_at: usize) -> u64 {
    folded(u64_at(item, at) ^ secret(secret_at), u64_at(item, at + 8) ^ secret(secret_at + 8))
}

fn up_to_3(item: &[u8]) -> u64 {
    let len = item.len();
    // For one byte, the middle byte is that byte; for two, the second.
    let word = u32::from_le_bytes([item[0], item[len / 2], item[len - 1], len as u8]);
    avalanche(u64::from(word ^ u32_at(&SECRET, 0)).wrapping_mul(PRIME64_1))
}

fn up_to_8(item: &[u8]) -> u64 {
    let len = item.len();
    let word = u64::from(u32_at(item, 0)) | u64::from(u32_at(item, len - 4)) << 32;
    let keyed = word ^ secret(0);
    let mixed = (keyed ^ keyed >> 51).wrapping_mul(PRIME32_1).wrapping_add(len as u64);
    avalanche((mixed ^ mixed >> 47).wrapping_mul(PRIME64_2))
}

fn up_to_16(item: &[u8]) -> u64 {
    let (first, last) = (u64_at(item, 0) ^ secret(0), u64_at(item, item.len() - 8) ^ secret(8));
    let sum = (item.len() as u64).wrapping_add(first).wrapping_add(last);
    avalanche(sum.wrapping_add(folded(first, last)))
}

fn start(item: &[u8]) -> u64 {
    (item.len() as u64).wrapping_mul(PRIME64_1)
}

/// One to four pairs, each 16 bytes from the front and 16 from the end; in the middle they overlap.
fn up_to_128(item: &[u8]) -> u64 {
    let pairs = (item.len() - 1) / 32 + 1;
    avalanche((0..pairs).fold(start(item), |sum, pair| {
        let (front, back) = (16 * pair, item.len() - 16 * (pair + 1));
        sum.wrapping_add(mixed(item, front, 32 * pair)).wrapping_add(mixed(item, back, 32 * pair + 16))
    }))
}

fn up_to_240(item: &[u8]) -> u64 {
    let first = (0..8).fold(start(item), |sum, i| sum.wrapping_add(mixed(item, 16 * i, 16 * i)));
    let second = (8..item.len() / 16)
        .fold(avalanche(first), |sum, i| sum.wrapping_add(mixed(item, 16 * i, 16 * (i - 8) + 3)));
    avalanche(second.wrapping_add(mixed(item, item.len() - 16, 136 - 17)))
}

fn long(item: &[u8]) -> u64 {
    let mut lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
    let (stripes, rest) = item.as_chunks::<STRIPE>();
    for block in stripes.chunks(STRIPES_PER_BLOCK) {
        for (i, stripe) in block.iter().enumerate() {
            take(&mut lanes, stripe, 8 * i);
        }
        if block.len() == STRIPES_PER_BLOCK {
            scramble(&mut lanes);
        }
    }
    // The last bytes are read as a whole stripe, which may overlap with the stripes before it.
    if !rest.is_empty() {
        take(&mut lanes, &item[item.len() - STRIPE..], SECRET.len() - STRIPE - 7);
    }
    let (pairs, _) = lanes.as_chunks::<2>();
    avalanche(
        pairs.iter().zip((11..).step_by(16)).fold(start(item), |sum, (&[a, b], at)| {
            sum.wrapping_add(folded(a ^ secret(at), b ^ secret(at + 8)))
        }),
    )
}

#[inline]
fn take(lanes: &mut [u64; 8], stripe: &[u8], secret_at: usize) {
    for (i, lane) in lanes.iter_mut().enumerate() {
        let word = u64_at(stripe, 8 * i);
        let keyed = word ^ secret(secret_at + 8 * i);
        *lane = lane.wrapping_add(word).wrapping_add((keyed & u64::from(u32::MAX)) * (keyed >> 32));
    }
}

#[inline]
fn scramble(lanes: &mut [u64; 8]) {
    for (i, lane) in lanes.iter_mut().enumerate() {
        let keyed = *lane ^ *lane >> 47 ^ secret(SECRET.len() - STRIPE + 8 * i);
        *lane = keyed.wrapping_mul(PRIME32_1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by RocksDB 7.8.3, for lengths around its blocks of 1024 bytes. Shorter items have separate vectors.
    #[test]
    fn long_items_agree() {
        for (len, want) in [
            (512, 0x47dd_fc5a_fb29_b892),
            (1023, 0x0b4b_2177_201c_e37c),
            (1024, 0x870a_f345_4afc_f950),
            (1025, 0x7263_373e_2097_b663),
            (1088, 0x572c_29f7_8416_1292),
            (2048, 0x1126_55cd_98ba_3d9e),
            (2049, 0xbb3e_bbe8_de02_3f60),
            (10_000, 0x46b4_3153_4d0e_4c6d),
        ] {
            let item: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            assert_eq!(xxph3_64(&item), want, "{len} bytes");
        }
    }
}
