//! The blocks of one item, for [`explain`](crate::explain).

use std::sync::atomic::{AtomicU64, Ordering};

use super::place::{self, BlockPlace};
use super::{BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape};
use crate::explain::{BitProbe, BlockLookup, BlockProbe, Density};
use crate::hash::ItemHash;
use crate::simd::generic;

impl BlockedBloom {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BlockLookup {
        let (shape, rule) = (&self.shape, self.placement);
        let places = match (shape.layout(), shape.lines_per_item()) {
            _ if rule.is_rocksdbs() => vec![rule.line(hash, shape.blocks())],
            (BlockedLayout::Split256, _) => vec![self.split_place(hash)],
            (BlockedLayout::Line512, 1) => place::lines::<1>(hash, shape).into(),
            (BlockedLayout::Line512, 2) => place::lines::<2>(hash, shape).into(),
            (BlockedLayout::Line512, _) => place::lines::<3>(hash, shape).into(),
        };
        let words = self.words.words();
        let probed =
            places.iter().map(|&at| shape.trace_block(words, at, at.word / shape.block_words(), rule));
        shape.trace(probed.collect())
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        Density::of_bits(name, self.words.words(), self.shape.bits(), parts)
    }
}

impl BlockedShape {
    /// Returns the lookup that reads these blocks.
    pub(crate) fn trace(&self, probed: Vec<BlockProbe>) -> BlockLookup {
        let lane_bits = match self.layout() {
            BlockedLayout::Split256 => 32,
            BlockedLayout::Line512 => 64,
        };
        let block_bits = self.block_words() as u64 * 64;
        BlockLookup { blocks: self.blocks(), block_bits, lane_bits, probed }
    }

    /// Reads the bits of an item in the block at `place`, which has the number `block`.
    pub(crate) fn trace_block(
        &self,
        words: &[AtomicU64],
        place: BlockPlace,
        block: usize,
        rule: BlockedPlacement,
    ) -> BlockProbe {
        let words: Vec<u64> = words[place.word..][..self.block_words()]
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        let first = (block * words.len() * 64) as u64;
        let bits = rule
            .bits_in_block(place.bits, self.probes())
            .into_iter()
            .map(|bit| BitProbe::of(first + u64::from(bit), words[bit as usize / 64]))
            .collect();
        BlockProbe { block: block as u64, words, bits }
    }
}

impl BlockedPlacement {
    /// Returns the positions of an item's bits in its block, in the order in which they are drawn.
    fn bits_in_block(self, bits: u32, probes: u32) -> Vec<u32> {
        match self {
            Self::Split | Self::Parquet => {
                let lanes = (0..generic::SPLIT_WORDS).flat_map(|index| {
                    let mask = generic::split_mask(bits, index);
                    [mask as u32, (mask >> 32) as u32]
                });
                (0..).zip(lanes).map(|(lane, mask)| 32 * lane + mask.trailing_zeros()).collect()
            }
            Self::Line => generic::line_positions(bits, probes).collect(),
            Self::RocksDbLegacy | Self::RocksDbFastLocal => self.positions(bits, probes).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flipping_the_bit_that_decides_flips_the_answer() {
        let layouts =
            [(BlockedLayout::Split256, 0.1), (BlockedLayout::Line512, 0.1), (BlockedLayout::Line512, 1e-4)];
        for (layout, rate) in layouts {
            let shape = BlockedShape::with_layout(layout, 400, rate).unwrap();
            let mut filter = BlockedBloom::with_shape(shape, 3).unwrap();
            for item in 0..800_u64 {
                filter.insert(&item);
            }
            let mut flipped = [0, 0];
            for item in 0..4_000_u64 {
                let hash = filter.hash(&item);
                let before = filter.trace(hash);
                assert_eq!(before.holds(), filter.may_contain_hash(hash));
                let clear: Vec<u64> =
                    before.probes().filter(|probe| !probe.set).map(|probe| probe.position).collect();
                let decisive = match &clear[..] {
                    [] => before.probes().map(|probe| probe.position).collect(),
                    [first, others @ ..] if others.iter().all(|other| other == first) => vec![*first],
                    _ => continue,
                };
                for position in decisive {
                    filter.words.words_mut()[(position / 64) as usize] ^= 1 << (position % 64);
                    assert_ne!(filter.may_contain_hash(hash), before.holds(), "{layout:?} {item}");
                    assert_ne!(filter.trace(hash).holds(), before.holds());
                    filter.words.words_mut()[(position / 64) as usize] ^= 1 << (position % 64);
                    flipped[usize::from(before.holds())] += 1;
                }
            }
            assert!(flipped.iter().all(|&flips| flips > 20), "{layout:?}: {flipped:?}");
        }
    }
}
