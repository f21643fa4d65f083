//! FarmHash's fingerprints (Google): the two functions of that library whose values never change.

use super::city_core::{K0, K1, K2, Rounds, ends, fold, join, multiplier, up_to_16, up_to_32};
use super::le::{u32_at, u64_at};

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// `Fingerprint64`. The same as [`city64`](super::city::city64) for items of up to 32 bytes, another function above.
#[inline]
pub fn fingerprint64(item: &[u8]) -> u64 {
    match item.len() {
        0..=16 => up_to_16(item),
        17..=32 => up_to_32(item),
        33..=64 => up_to_64(item),
        _ => long64(item),
    }
}

/// `Fingerprint32`.
#[inline]
pub fn fingerprint32(item: &[u8]) -> u32 {
    match item.len() {
        0..=4 => up_to_4(item),
        5..=12 => up_to_12(item),
        13..=24 => up_to_24(item),
        _ => long32(item),
    }
}

fn up_to_64(item: &[u8]) -> u64 {
    let by = multiplier(item.len());
    let last = |index: usize| u64_at(item, item.len().saturating_sub(8 * index));
    let a = u64_at(item, 0).wrapping_mul(K2);
    let (y, high) = ends(item, K2, by);
    let z = join(y, high, by);
    let e = u64_at(item, 16).wrapping_mul(by);
    let f = u64_at(item, 24);
    let g = y.wrapping_add(last(4)).wrapping_mul(by);
    let h = z.wrapping_add(last(3)).wrapping_mul(by);
    let low = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    join(low, e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g), by)
}

fn long64(item: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut rounds = Rounds {
        x: SEED.wrapping_mul(K2).wrapping_add(u64_at(item, 0)),
        y,
        z: fold(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
        v: (0, 0),
        w: (0, 0),
    };
    // The last 64 bytes, overlapping or not, get a separate round.
    let before_last = item.len().saturating_sub(1);
    for block in 0..before_last / 64 {
        rounds.take(item, 64 * block, K1, 1);
    }
    let by = K1.wrapping_add((rounds.z & 0xff) << 1);
    rounds.w.0 = rounds.w.0.wrapping_add((before_last % 64) as u64);
    rounds.v.0 = rounds.v.0.wrapping_add(rounds.w.0);
    rounds.w.0 = rounds.w.0.wrapping_add(rounds.v.0);
    rounds.take(item, item.len().saturating_sub(64), by, 9);
    rounds.finish(|low, high| join(low, high, by), K0)
}

/// Bytes are signed here. Crates that missed this give other values for bytes of 0x80 and above.
fn up_to_4(item: &[u8]) -> u32 {
    let mut b = 0u32;
    let mut c = 9;
    for &byte in item {
        b = b.wrapping_mul(C1).wrapping_add(i32::from(byte as i8) as u32);
        c ^= b;
    }
    finish(stir(b, stir(item.len() as u32, c)))
}

fn up_to_12(item: &[u8]) -> u32 {
    let len = item.len();
    let a = (len as u32).wrapping_add(u32_at(item, 0));
    let b = (5 * len as u32).wrapping_add(u32_at(item, len.saturating_sub(4)));
    let c = u32_at(item, (len / 2) & 4).wrapping_add(9);
    finish(stir(c, stir(b, stir(a, 5 * len as u32))))
}

fn up_to_24(item: &[u8]) -> u32 {
    let len = item.len();
    let a = u32_at(item, (len / 2).saturating_sub(4));
    let b = u32_at(item, 4);
    let c = u32_at(item, len.saturating_sub(8));
    let d = u32_at(item, len / 2);
    let e = u32_at(item, 0);
    let f = u32_at(item, len.saturating_sub(4));
    let h = d.wrapping_mul(C1).wrapping_add(len as u32);
    let a = a.rotate_right(12).wrapping_add(f);
    let h = stir(c, h).wrapping_add(a);
    let a = a.rotate_right(3).wrapping_add(c);
    let h = stir(e, h).wrapping_add(a);
    let a = a.wrapping_add(f).rotate_right(12).wrapping_add(d);
    finish(stir(b, h).wrapping_add(a))
}

fn long32(item: &[u8]) -> u32 {
    let len = item.len();
    let last = |index: usize| scramble(u32_at(item, len.saturating_sub(4 * index)));
    let mut h = turn(turn(len as u32 ^ last(1)) ^ last(4));
    let mut f = C1.wrapping_mul(len as u32);
    let mut g = turn(turn(f ^ last(2)) ^ last(3));
    f = f.wrapping_add(last(5)).rotate_right(19).wrapping_add(113);

    // The last 20 bytes went in above, so a block that ends exactly at the end of the item is left out.
    for block in 0..len.saturating_sub(1) / 20 {
        let [a, b, c, d, e] = [0, 4, 8, 12, 16].map(|offset| u32_at(item, 20 * block + offset));
        h = stir(d, h.wrapping_add(a)).wrapping_add(e);
        g = stir(c, g.wrapping_add(b)).wrapping_add(a);
        f = stir(b.wrapping_add(e.wrapping_mul(C1)), f.wrapping_add(c)).wrapping_add(d);
        f = f.wrapping_add(g);
        g = g.wrapping_add(f);
    }
    for word in [&mut g, &mut f] {
        *word = word.rotate_right(11).wrapping_mul(C1).rotate_right(17).wrapping_mul(C1);
    }
    for word in [g, f] {
        h = turn(h.wrapping_add(word)).rotate_right(17).wrapping_mul(C1);
    }
    h
}

#[inline]
fn scramble(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_right(17).wrapping_mul(C2)
}

#[inline]
fn turn(hash: u32) -> u32 {
    hash.rotate_right(19).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline]
fn stir(word: u32, hash: u32) -> u32 {
    turn(hash ^ scramble(word))
}

#[inline]
fn finish(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}
