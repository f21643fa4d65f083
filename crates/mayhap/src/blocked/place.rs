//! From an [`ItemHash`] to the blocks an item has its bits in.

use super::BlockedShape;
use crate::hash::{ItemHash, reduce};
use crate::probe::Probes;
use crate::simd::generic::{LINE_WORDS, SPLIT_WORDS};

/// Where one item's bits are: the first word of its block, and the 32 bits that choose among the block's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) bits: u32,
}

/// What the 32 bits of each region are the top of: the hash's high half times this. Odd, so nothing of it is lost.
const REGION_MULTIPLIERS: [u64; 3] = [1, 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// The split block of an item. Placement scheme 1.
///
/// 64 bits are enough: the top ones choose among at most 2^40 blocks, the lowest 32 inside, and no split-block filter is asked for
/// a rate so low that two items agreeing in all 64 would matter.
#[inline(always)]
pub(crate) fn split(hash: ItemHash, blocks: u64) -> Place {
    Place { word: reduce(hash.low, blocks) as usize * SPLIT_WORDS, bits: hash.low as u32 }
}

/// The lines of an item, one in each of `R` regions. Placement scheme 2.
#[inline(always)]
pub(crate) fn lines<const R: usize>(hash: ItemHash, shape: &BlockedShape) -> [Place; R] {
    let mut stream = Probes::new(hash);
    std::array::from_fn(|region| {
        let line = region as u64 * shape.blocks() + stream.next(shape.blocks());
        let bits = (hash.high.wrapping_mul(REGION_MULTIPLIERS[region]) >> 32) as u32;
        Place { word: line as usize * LINE_WORDS, bits }
    })
}
