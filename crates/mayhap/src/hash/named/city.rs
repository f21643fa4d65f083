//! CityHash64, version 1.1 (Google). ClickHouse froze the older 1.0.2, which has other values.

use super::city_core::{K1, K2, Rounds, fold, multiplier, up_to_16, up_to_32, weak};
use super::le::u64_at;

/// Joins words where the length has no influence.
const JOIN_BY: u64 = 0x9ddf_ea08_eb38_2d69;

/// The function without a seed; not the same as any seed.
#[inline]
pub fn city64(item: &[u8]) -> u64 {
    match item.len() {
        0..=16 => up_to_16(item),
        17..=32 => up_to_32(item),
        33..=64 => up_to_64(item),
        _ => long(item),
    }
}

/// `CityHash64WithSeed`.
#[inline]
pub fn city64_with_seed(item: &[u8], seed: u64) -> u64 {
    city64_with_seeds(item, [K2, seed])
}

/// `CityHash64WithSeeds`.
#[inline]
pub fn city64_with_seeds(item: &[u8], seeds: [u64; 2]) -> u64 {
    join(city64(item).wrapping_sub(seeds[0]), seeds[1])
}

#[inline]
fn join(low: u64, high: u64) -> u64 {
    super::city_core::join(low, high, JOIN_BY)
}

fn up_to_64(item: &[u8]) -> u64 {
    let by = multiplier(item.len());
    let last = |index: usize| u64_at(item, item.len().saturating_sub(8 * index));
    let a = u64_at(item, 0).wrapping_mul(K2);
    let b = u64_at(item, 8);
    let c = last(3);
    let d = last(4);
    let e = u64_at(item, 16).wrapping_mul(K2);
    let f = u64_at(item, 24).wrapping_mul(9);
    let g = last(1);
    let h = last(2).wrapping_mul(by);

    let ag = a.wrapping_add(g);
    let efc = e.wrapping_add(f).wrapping_add(c);
    let u = ag.rotate_right(43).wrapping_add(b.rotate_right(30).wrapping_add(c).wrapping_mul(9));
    let v = (ag ^ d).wrapping_add(f).wrapping_add(1);
    let w = u.wrapping_add(v).wrapping_mul(by).swap_bytes().wrapping_add(h);
    let x = e.wrapping_add(f).rotate_right(42).wrapping_add(c);
    let y = v.wrapping_add(w).wrapping_mul(by).swap_bytes().wrapping_add(g).wrapping_mul(by);
    let a = x.wrapping_add(efc).wrapping_mul(by).wrapping_add(y).swap_bytes().wrapping_add(b);
    let b = fold(efc.wrapping_add(a).wrapping_mul(by).wrapping_add(d).wrapping_add(h)).wrapping_mul(by);
    b.wrapping_add(x)
}

fn long(item: &[u8]) -> u64 {
    let len = item.len();
    let last = |index: usize| u64_at(item, len.saturating_sub(8 * index));
    let x = last(5);
    let y = last(2).wrapping_add(last(7));
    let z = join(last(6).wrapping_add(len as u64), last(3));
    let mut rounds = Rounds {
        x: x.wrapping_mul(K1).wrapping_add(u64_at(item, 0)),
        y,
        z,
        v: weak(item, len.saturating_sub(64), len as u64, z),
        w: weak(item, len.saturating_sub(32), y.wrapping_add(K1), x),
    };
    // The last 64 bytes went in above, so a block that ends exactly at the end of the item is left out.
    for block in 0..len.saturating_sub(1) / 64 {
        rounds.take(item, 64 * block, K1, 1);
    }
    rounds.finish(join, K1)
}
