//! SpookyHash V2 (Bob Jenkins): 128 bits; the narrower functions keep a part of them.
//!
//! It is two algorithms under one name: items under 192 bytes use four words of state, longer ones twelve.

use super::le::{padded_u64, u64_at};

/// Fills every state word that has no seed.
const FILLER: u64 = 0xdead_beef_dead_beef;
/// Items this long or longer take the twelve-word path.
const LONG_BYTES: usize = 192;
const LANES: usize = 12;
const BLOCK_BYTES: usize = 8 * LANES;

/// The low 32 bits of [`hash64`].
#[inline]
pub fn hash32(item: &[u8], seed: u32) -> u32 {
    hash64(item, u64::from(seed)) as u32
}

/// The first word of [`hash128`] with the seed used twice.
#[inline]
pub fn hash64(item: &[u8], seed: u64) -> u64 {
    hash128(item, [seed, seed])[0]
}

/// The whole function.
#[inline]
pub fn hash128(item: &[u8], seeds: [u64; 2]) -> [u64; 2] {
    if item.len() < LONG_BYTES { short(item, seeds) } else { long(item, seeds) }
}

fn short(item: &[u8], [seed1, seed2]: [u64; 2]) -> [u64; 2] {
    let [mut a, mut b, mut c, mut d] = [seed1, seed2, FILLER, FILLER];
    let (blocks, mut tail) = item.as_chunks::<32>();
    for block in blocks {
        c = c.wrapping_add(u64_at(block, 0));
        d = d.wrapping_add(u64_at(block, 8));
        [a, b, c, d] = short_mix([a, b, c, d]);
        a = a.wrapping_add(u64_at(block, 16));
        b = b.wrapping_add(u64_at(block, 24));
    }
    if let Some((half, after)) = tail.split_first_chunk::<16>() {
        c = c.wrapping_add(u64_at(half, 0));
        d = d.wrapping_add(u64_at(half, 8));
        [a, b, c, d] = short_mix([a, b, c, d]);
        tail = after;
    }
    d = d.wrapping_add((item.len() as u64) << 56);
    let (low, high) = match tail {
        [] => (FILLER, FILLER),
        _ => (padded_u64(tail), padded_u64(tail.get(8..).unwrap_or_default())),
    };
    short_finish([a, b, c.wrapping_add(low), d.wrapping_add(high)])
}

/// Twelve steps; each uses one word as the pivot, and the next round the four words.
#[inline]
fn short_mix([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    for [for_c, for_d, for_a, for_b] in [[50, 52, 30, 41], [54, 48, 38, 37], [62, 34, 5, 36]] {
        c = c.rotate_left(for_c).wrapping_add(d);
        a ^= c;
        d = d.rotate_left(for_d).wrapping_add(a);
        b ^= d;
        a = a.rotate_left(for_a).wrapping_add(b);
        c ^= a;
        b = b.rotate_left(for_b).wrapping_add(c);
        d ^= b;
    }
    [a, b, c, d]
}

/// Eleven steps, shifted by one word each time; the first two words are the result.
#[inline]
fn short_finish(mut state: [u64; 4]) -> [u64; 2] {
    for (turn, rotation) in [15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63].into_iter().enumerate() {
        let (from, to) = ((turn + 2) % 4, (turn + 3) % 4);
        state[to] ^= state[from];
        state[from] = state[from].rotate_left(rotation);
        state[to] = state[to].wrapping_add(state[from]);
    }
    [state[0], state[1]]
}

fn long(item: &[u8], [seed1, seed2]: [u64; 2]) -> [u64; 2] {
    let mut state = [0; LANES];
    for (lane, word) in state.iter_mut().enumerate() {
        *word = [seed1, seed2, FILLER][lane % 3];
    }
    let (blocks, tail) = item.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        long_mix(&mut state, block);
    }
    // The tail is one more block, zero-padded, with its length in the last byte.
    let mut last = [0; BLOCK_BYTES];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    last[BLOCK_BYTES - 1] = tail.len() as u8;
    for (lane, word) in state.iter_mut().enumerate() {
        *word = word.wrapping_add(u64_at(&last, 8 * lane));
    }
    for _ in 0..3 {
        long_finish(&mut state);
    }
    [state[0], state[1]]
}

#[inline]
fn long_mix(state: &mut [u64; LANES], block: &[u8; BLOCK_BYTES]) {
    const ROTATIONS: [u32; LANES] = [11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46];
    for (lane, rotation) in ROTATIONS.into_iter().enumerate() {
        let [next, second, tenth, before] = [1, 2, 10, 11].map(|step| (lane + step) % LANES);
        state[lane] = state[lane].wrapping_add(u64_at(block, 8 * lane));
        state[second] ^= state[tenth];
        state[before] ^= state[lane];
        state[lane] = state[lane].rotate_left(rotation);
        state[before] = state[before].wrapping_add(state[next]);
    }
}

#[inline]
fn long_finish(state: &mut [u64; LANES]) {
    const ROTATIONS: [u32; LANES] = [44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54];
    for (lane, rotation) in ROTATIONS.into_iter().enumerate() {
        let [next, second, before] = [1, 2, 11].map(|step| (lane + step) % LANES);
        state[before] = state[before].wrapping_add(state[next]);
        state[second] ^= state[before];
        state[next] = state[next].rotate_left(rotation);
    }
}
