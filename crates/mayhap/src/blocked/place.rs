//! From an [`ItemHash`] to the blocks that hold an item's bits.

use super::BlockedShape;
use crate::hash::{ItemHash, reduce};
use crate::probe::{PositionStream as _, Probes, Range};
use crate::simd::generic::{LINE_WORDS, SPLIT_WORDS};

/// The place of one item's bits: the first word of its block, and the 32 bits that choose positions in the
/// block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockPlace {
    pub(crate) word: usize,
    pub(crate) bits: u32,
}

/// The 32 bits for each region are the top of the hash's high half times this. It is odd, so no information
/// is lost.
const REGION_MULTIPLIERS: [u64; 3] = [1, 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// Returns the split block of an item. Placement scheme 1.
///
/// 64 bits are enough. The top bits choose one of at most 2^40 blocks, the lowest 32 the positions inside. No
/// split-block filter has a rate low enough for two items with the same 64 bits to matter.
#[inline(always)]
pub(crate) fn split(hash: ItemHash, blocks: u64) -> BlockPlace {
    BlockPlace { word: reduce(hash.low, blocks) as usize * SPLIT_WORDS, bits: hash.low as u32 }
}

/// Returns the split block of an item in a Parquet filter. Parquet's rule is `((low >> 32) · blocks) >> 32`:
/// ours, but without the lower half of the hash. Placement scheme 3.
#[inline(always)]
pub(crate) fn parquet(hash: ItemHash, blocks: u64) -> BlockPlace {
    BlockPlace { word: reduce(hash.low >> 32 << 32, blocks) as usize * SPLIT_WORDS, bits: hash.low as u32 }
}

/// Returns the lines of an item, one in each of `R` regions. Placement scheme 2.
#[inline(always)]
pub(crate) fn lines<const R: usize>(hash: ItemHash, shape: &BlockedShape) -> [BlockPlace; R] {
    let mut stream = Probes::new(hash);
    std::array::from_fn(|region| {
        let line = region as u64 * shape.blocks() + stream.next(Range::of(shape.blocks()));
        let bits = (hash.high.wrapping_mul(REGION_MULTIPLIERS[region]) >> 32) as u32;
        BlockPlace { word: line as usize * LINE_WORDS, bits }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parquet_block_matches_its_specification_and_ours_for_powers_of_two() {
        let mut differ = 0;
        for blocks in [1, 2, 3, 7, 64, 1000, 1 << 22, (1 << 22) + 1, (1 << 30) - 1, 1 << 30, (1 << 31) - 1] {
            for item in 0..2_000 {
                let mut hash = ItemHash::from_unmixed(item);
                // Every second hash lies just below a boundary, where the lower half changes the result of
                // our own rule.
                if item % 2 == 1 {
                    let boundary = ((u128::from(item) % u128::from(blocks) + 1) << 64) / u128::from(blocks);
                    hash.low = boundary as u64;
                }
                let specified = ((hash.low >> 32) * blocks) >> 32;
                let place = parquet(hash, blocks);
                assert_eq!((place.word as u64, place.bits), (specified * 4, hash.low as u32));
                let ours = split(hash, blocks);
                assert!(ours.word == place.word || !blocks.is_power_of_two(), "{blocks} {hash:?}");
                differ += u32::from(ours.word != place.word);
            }
        }
        assert!(differ > 100, "only {differ} blocks differ between the two rules");
    }
}
