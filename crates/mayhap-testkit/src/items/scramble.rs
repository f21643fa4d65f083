//! Seeded bijections of any range `0..space`.

use crate::rng::{GOLDEN, mix};

/// A bijection of the numbers of `bits` bits, chosen by `seed`.
///
/// Each of its steps is invertible: `xor` with a key, multiply by an odd number modulo 2^bits, `xor` the high half into the low half.
fn scramble_bits(x: u64, bits: u32, seed: u64) -> u64 {
    debug_assert!((1..=64).contains(&bits) && (bits == 64 || x >> bits == 0));
    let mask = u64::MAX >> (64 - bits);
    let half = bits.div_ceil(2);
    let mut x = x;
    let mut key = seed;
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb, 0xff51_afd7_ed55_8ccd] {
        key = mix(key.wrapping_add(GOLDEN));
        x = (x ^ key) & mask;
        x = x.wrapping_mul(factor) & mask;
        x ^= x.checked_shr(half).unwrap_or(0);
    }
    x
}

/// A bijection of `0..space`, chosen by `seed`; `space` 0 means all of `u64`.
///
/// If the space is not a power of two, a number mapped past the end is mapped again until it is inside. The walk follows a cycle that contains `x` itself,
/// so it ends, and no two walks end at the same number.
pub(super) fn scramble(x: u64, space: u64, seed: u64) -> u64 {
    let last = space.wrapping_sub(1);
    debug_assert!(x <= last);
    let bits = (64 - last.leading_zeros()).max(1);
    let mut x = scramble_bits(x, bits, seed);
    while x > last {
        x = scramble_bits(x, bits, seed);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_small_space_is_permuted() {
        for space in (1..=300).chain([1 << 12, 10_007]) {
            for seed in [0, 3] {
                let images: HashSet<u64> = (0..space).map(|x| scramble(x, space, seed)).collect();
                assert_eq!(images.len() as u64, space);
                assert!(images.iter().all(|&image| image < space));
            }
        }
    }

    #[test]
    fn different_seeds_give_different_permutations() {
        let same = (0..1 << 12).filter(|&x| scramble(x, 1 << 12, 1) == scramble(x, 1 << 12, 2)).count();
        assert!(same < 20, "{same} of 4096 in the same place");
    }

    #[test]
    fn all_of_u64_is_a_valid_space() {
        let images: HashSet<u64> = (u64::MAX - 999..=u64::MAX).map(|x| scramble(x, 0, 1)).collect();
        assert_eq!(images.len(), 1000);
    }
}
