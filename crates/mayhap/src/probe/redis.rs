//! RedisBloom's positions, the same as those of [`ForeignProbes`](super::ForeignProbes), but without a division and without
//! checking the rule at every probe: a server for RedisBloom's commands does little else.

use super::{PositionStream, Range};
use crate::hash::ItemHash;

/// The positions of one item by RedisBloom's rule: `low + i · high` in 64 bits, modulo the bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedisProbes {
    state: u64,
    step: u64,
}

impl RedisProbes {
    #[inline(always)]
    pub(crate) fn new(hash: ItemHash) -> Self {
        Self { state: hash.low, step: hash.high }
    }
}

impl PositionStream for RedisProbes {
    #[inline(always)]
    fn position(&self, range: Range) -> u64 {
        range.remainder(self.state)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.state = self.state.wrapping_add(self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::range::tests::lengths;
    use crate::probe::{BloomPlacement, ForeignProbes};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn positions_equal_those_of_the_plain_implementation(len in lengths(), low in any::<u64>(), high in any::<u64>()) {
            let hash = ItemHash { low, high };
            let range = Range::of(len);
            let (mut fast, mut plain) = (RedisProbes::new(hash), ForeignProbes::new(BloomPlacement::RedisBloom, hash));
            for probe in 0..30 {
                let (fast, plain) = (fast.next(range), plain.next(range));
                prop_assert_eq!(fast, plain, "probe {}", probe);
            }
        }
    }
}
