//! The bits of one item, for [`explain`](crate::explain).

use std::sync::atomic::{AtomicU64, Ordering};

use super::Bloom;
use crate::explain::{BitLookup, BitProbe, Density};
use crate::hash::ItemHash;
use crate::probe::{BloomPlacement, ForeignProbes, PositionStream, Probes};

impl Bloom {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BitLookup {
        match self.placement {
            BloomPlacement::Mayhap => self.trace_stream(Probes::new(hash)),
            placement => self.trace_stream(ForeignProbes::new(placement, hash)),
        }
    }

    fn trace_stream(&self, mut stream: impl PositionStream) -> BitLookup {
        let (bits, words) = (self.shape.bits(), self.bits.words());
        let never_taken = stream.is_nowhere();
        let probes =
            (0..self.shape.probes()).map(|_| probe(words, stream.next(self.shape.range()))).collect();
        BitLookup { bits, probes, never_taken }
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        Density::of_bits(name, self.bits.words(), self.shape.bits(), parts)
    }
}

/// Reads the bit at `position`.
pub(crate) fn probe(words: &[AtomicU64], position: u64) -> BitProbe {
    BitProbe::of(position, words[(position / 64) as usize].load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flipping_the_bit_that_decides_flips_the_answer() {
        for placement in [BloomPlacement::Mayhap, BloomPlacement::RedisBloom, BloomPlacement::Guava64] {
            let mut filter = Bloom::for_capacity(200, 0.2, 3).unwrap();
            filter.placement = placement;
            for item in 0..200_u64 {
                filter.insert(&item);
            }
            let mut flipped = [0, 0];
            for item in 0..1_000_u64 {
                let hash = filter.hash(&item);
                let before = filter.trace(hash);
                assert_eq!(before.holds(), filter.may_contain_hash(hash));
                let clear: Vec<u64> =
                    before.probes.iter().filter(|probe| !probe.set).map(|probe| probe.position).collect();
                // Clearing any bit of a member decides; setting a clear bit decides only if it is the single
                // clear one.
                let decisive = match &clear[..] {
                    [] => before.probes.iter().map(|probe| probe.position).collect(),
                    [first, others @ ..] if others.iter().all(|other| other == first) => vec![*first],
                    _ => continue,
                };
                for position in decisive {
                    filter.bits.words_mut()[(position / 64) as usize] ^= 1 << (position % 64);
                    assert_ne!(filter.may_contain_hash(hash), before.holds(), "{placement:?} {item}");
                    assert_ne!(filter.trace(hash).holds(), before.holds());
                    filter.bits.words_mut()[(position / 64) as usize] ^= 1 << (position % 64);
                    flipped[usize::from(before.holds())] += 1;
                }
            }
            assert!(flipped.iter().all(|&flips| flips > 50), "{placement:?}: {flipped:?}");
        }
    }
}
