//! What [`city`](super::city) and [`farm`](super::farm) share: constants, short items, the 64-byte round.

use super::le::{u32_at, u64_at};

pub(super) const K0: u64 = 0xc3a5_c85c_97cb_3127;
pub(super) const K1: u64 = 0xb492_b66f_be98_f273;
pub(super) const K2: u64 = 0x9ae1_6a3b_2f90_404f;

#[inline]
pub(super) fn fold(word: u64) -> u64 {
    word ^ (word >> 47)
}

/// Two words into one, multiplying by `by`.
#[inline]
pub(super) fn join(low: u64, high: u64, by: u64) -> u64 {
    let first = fold((low ^ high).wrapping_mul(by));
    fold((high ^ first).wrapping_mul(by)).wrapping_mul(by)
}

/// The odd multiplier of items of up to 64 bytes: it carries the length.
#[inline]
pub(super) fn multiplier(len: usize) -> u64 {
    K2.wrapping_add(2 * len as u64)
}

/// Items of 0 to 16 bytes.
#[inline]
pub(super) fn up_to_16(item: &[u8]) -> u64 {
    let len = item.len();
    let by = multiplier(len);
    match item {
        [] => K2,
        [first, ..] if len < 4 => {
            let middle = item.get(len / 2).copied().unwrap_or_default();
            let last = item.last().copied().unwrap_or_default();
            let low = u64::from(u16::from_le_bytes([*first, middle]));
            let high = len as u64 + (u64::from(last) << 2);
            fold(low.wrapping_mul(K2) ^ high.wrapping_mul(K0)).wrapping_mul(K2)
        }
        _ if len < 8 => {
            let low = len as u64 + (u64::from(u32_at(item, 0)) << 3);
            join(low, u64::from(u32_at(item, len - 4)), by)
        }
        _ => {
            let a = u64_at(item, 0).wrapping_add(K2);
            let b = u64_at(item, len - 8);
            let low = b.rotate_right(37).wrapping_mul(by).wrapping_add(a);
            let high = a.rotate_right(25).wrapping_add(b).wrapping_mul(by);
            join(low, high, by)
        }
    }
}

/// Items of 17 to 32 bytes.
#[inline]
pub(super) fn up_to_32(item: &[u8]) -> u64 {
    let by = multiplier(item.len());
    let (low, high) = ends(item, K1, by);
    join(low, high, by)
}

/// The first and last 16 bytes as two words; `first_by` is where the callers differ.
#[inline]
pub(super) fn ends(item: &[u8], first_by: u64, by: u64) -> (u64, u64) {
    let len = item.len();
    let a = u64_at(item, 0).wrapping_mul(first_by);
    let b = u64_at(item, 8);
    let c = u64_at(item, len.saturating_sub(8)).wrapping_mul(by);
    let d = u64_at(item, len.saturating_sub(16)).wrapping_mul(K2);
    let low = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let high = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    (low, high)
}

/// Seven words that carry an item of more than 64 bytes, one 64-byte block at a time.
pub(super) struct Rounds {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) z: u64,
    pub(super) v: (u64, u64),
    pub(super) w: (u64, u64),
}

impl Rounds {
    /// Takes in the block that starts at `at`. Farm's last round multiplies by another number and `weighs` two
    /// words by 9; every other round passes [`K1`] and 1.
    #[inline]
    pub(super) fn take(&mut self, item: &[u8], at: usize, by: u64, weighs: u64) {
        let word = |index: usize| u64_at(item, at + 8 * index);
        let sum = self.x.wrapping_add(self.y).wrapping_add(self.v.0).wrapping_add(word(1));
        let x = sum.rotate_right(37).wrapping_mul(by) ^ self.w.1.wrapping_mul(weighs);
        let y = self.y.wrapping_add(self.v.1).wrapping_add(word(6)).rotate_right(42).wrapping_mul(by);
        let y = y.wrapping_add(self.v.0.wrapping_mul(weighs)).wrapping_add(word(5));
        let z = self.z.wrapping_add(self.w.0).rotate_right(33).wrapping_mul(by);
        self.v = weak(item, at, self.v.1.wrapping_mul(by), x.wrapping_add(self.w.0));
        self.w = weak(item, at + 32, z.wrapping_add(self.w.1), y.wrapping_add(word(2)));
        (self.x, self.y, self.z) = (z, y, x);
    }

    /// The seven words as one; `join` and `y_by` are where the callers differ.
    #[inline]
    pub(super) fn finish(&self, join: impl Fn(u64, u64) -> u64, y_by: u64) -> u64 {
        let low = join(self.v.0, self.w.0).wrapping_add(fold(self.y).wrapping_mul(y_by)).wrapping_add(self.z);
        join(low, join(self.v.1, self.w.1).wrapping_add(self.x))
    }
}

/// Thirty-two bytes from `at` on and two seeds into two words: quick, and weak on its own.
#[inline]
pub(super) fn weak(item: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let word = |index: usize| u64_at(item, at + 8 * index);
    let start = a.wrapping_add(word(0));
    let turned = b.wrapping_add(start).wrapping_add(word(3)).rotate_right(21);
    let sum = start.wrapping_add(word(1)).wrapping_add(word(2));
    (sum.wrapping_add(word(3)), turned.wrapping_add(sum.rotate_right(44)).wrapping_add(start))
}
