//! From an [`ItemHash`] to positions in a bit array.
//!
//! ```text
//! low ──▶ reduce ─▶ position 0
//!  │ + high, rotate left 27
//!  ▼
//! state ─▶ reduce ─▶ position 1 …
//! ```
//!
//! Plain double hashing (`low + i · high`) draws arithmetic progressions: in a small filter two items then share *all*
//! their positions far more often than k independent probes would, and a rate of 1e-6 for 1 000 items is out of reach.
//! The rotation brings other bits of the state to the top, where [`reduce`] reads them, so every position depends on
//! fresh bits. By 27, because no few of its multiples come near a multiple of 64. By 21 (three make 63) a filter of 4 items was wrong
//! 13 % more often than with independent probes, and without rotation six times as often; by 27 there is nothing to be seen, nor with a
//! multiplication in its place, which takes longer.

mod foreign;
mod range;
mod redis;

pub use foreign::BloomPlacement;
pub(crate) use foreign::ForeignProbes;
pub(crate) use range::Range;
pub(crate) use redis::RedisProbes;

use crate::hash::{ItemHash, reduce};

/// The most probes any filter of ours takes per item.
pub(crate) const MAX_PROBES: u32 = 64;
/// The most probes a filter of another program takes per item: what fits Guava's byte.
pub(crate) const MAX_FOREIGN_PROBES: u32 = 255;
/// The most probes a filter of RedisBloom's takes per item: what the lowest rate above 0 asks for.
pub(crate) const MAX_REDIS_PROBES: u32 = 1075;

/// The positions of one item, one after the other and without an end.
pub(crate) trait Stream: Copy + Default {
    /// The current position, always in `range`; what reads without a bounds check relies on it.
    fn position(&self, range: Range) -> u64;

    /// On to the next position.
    fn advance(&mut self);

    /// Is this an item that a filter neither takes nor ever holds? Its positions then mean nothing. Asked before and after moving on.
    #[inline(always)]
    fn is_nowhere(&self) -> bool {
        false
    }

    /// The current position, moving on.
    #[inline(always)]
    fn next(&mut self, range: Range) -> u64 {
        let position = self.position(range);
        self.advance();
        position
    }
}

const ROTATION: u32 = 27;

/// The positions of one item: an endless stream, of which a filter takes its number of probes.
///
/// Frozen as placement scheme 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probes {
    state: u64,
    step: u64,
}

impl Probes {
    #[inline(always)]
    pub(crate) fn new(hash: ItemHash) -> Self {
        Self { state: hash.low, step: hash.high }
    }
}

impl Stream for Probes {
    #[inline(always)]
    fn position(&self, range: Range) -> u64 {
        reduce(self.state, range.len())
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.state = self.state.wrapping_add(self.step).rotate_left(ROTATION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_stay_in_range_and_never_change() {
        let hash = ItemHash { low: 0x0123_4567_89ab_cdef, high: 0xfedc_ba98_7654_3210 };
        let mut probes = Probes::new(hash);
        let positions: Vec<u64> = (0..6).map(|_| probes.next(Range::of(1_000_003))).collect();
        assert_eq!(positions, GOLDEN, "placement scheme 1 is frozen");
        let mut probes = Probes::new(hash);
        assert!((0..1000).all(|_| probes.next(Range::of(7)) < 7));
    }

    const GOLDEN: [u64; 6] = [4444, 1_000_002, 764_446, 280_065, 737_845, 65];
}
