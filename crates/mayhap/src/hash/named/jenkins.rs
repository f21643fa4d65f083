//! Bob Jenkins' early functions: one-at-a-time, and lookup3 with one or two results.
//! His last one is [`spooky`](super::spooky).

use super::le::{padded_u32, u32_at};

/// One-at-a-time: three operations a byte, 32 bits.
#[inline]
pub fn one_at_a_time(item: &[u8]) -> u32 {
    let mut hash = item.iter().fold(0u32, |hash, &byte| {
        let hash = hash.wrapping_add(u32::from(byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// lookup3's `hashlittle`: the first result of [`hashlittle2`] with a second seed of 0.
#[inline]
pub fn hashlittle(item: &[u8], seed: u32) -> u32 {
    hashlittle2(item, [seed, 0])[0]
}

/// lookup3's `hashlittle2`: two results from two seeds, in Jenkins' order `[pc, pb]`; the first is the better one.
#[inline]
pub fn hashlittle2(item: &[u8], seeds: [u32; 2]) -> [u32; 2] {
    let start = 0xdead_beef_u32.wrapping_add(item.len() as u32).wrapping_add(seeds[0]);
    let mut state = [start, start, start.wrapping_add(seeds[1])];

    // The last block, even a whole one, is finished and not mixed; an empty item is neither.
    let mut rest = item;
    while let Some((block, after)) = rest.split_first_chunk::<12>()
        && !after.is_empty()
    {
        state = mix(add(state, [u32_at(block, 0), u32_at(block, 4), u32_at(block, 8)]));
        rest = after;
    }
    if !rest.is_empty() {
        let word = |at| padded_u32(rest.get(at..).unwrap_or_default());
        state = finish(add(state, [word(0), word(4), word(8)]));
    }
    [state[2], state[1]]
}

#[inline]
fn add([a, b, c]: [u32; 3], [x, y, z]: [u32; 3]) -> [u32; 3] {
    [a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z)]
}

/// Six reversible turns: each word loses its left neighbour and passes itself on to the right.
#[inline]
fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

#[inline]
fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}
