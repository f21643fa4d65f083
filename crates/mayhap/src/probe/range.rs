//! The number of positions, and a remainder without a division.

use std::hint::select_unpredictable;

/// The positions `0..len`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    len: u64,
    /// 2^64 / `len`, rounded down, minus one if it divides exactly. [`Range::remainder`] relies on this.
    reciprocal: u64,
}

impl Range {
    /// Divides once. The compiler removes the division if only the length is used.
    #[inline(always)]
    pub(crate) const fn of(len: u64) -> Self {
        Self { len, reciprocal: u64::MAX / if len == 0 { 1 } else { len } }
    }

    /// The number of positions.
    #[inline(always)]
    pub(crate) const fn len(self) -> u64 {
        self.len
    }

    /// `bits` modulo [`len`](Self::len), by two multiplications.
    ///
    /// The reciprocal is below 2^64 / `len` by at most 1, so the quotient of any 64 bits is too low by less than 1. Rounded down
    /// it is the true quotient or the one before, and the remainder is less than twice `len`.
    #[inline(always)]
    pub(crate) fn remainder(self, bits: u64) -> u64 {
        let quotient = ((u128::from(bits) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = bits.wrapping_sub(quotient.wrapping_mul(self.len));
        // Which of the two it is depends on the item; a branch would be mispredicted half of the time.
        select_unpredictable(rest < self.len, rest, rest.wrapping_sub(self.len))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lengths of every magnitude, and those where an imprecise reciprocal fails first.
    pub(in crate::probe) fn lengths() -> impl Strategy<Value = u64> {
        let near =
            |middle: u64| (0..64_u64).prop_map(move |off| middle.wrapping_add(off).wrapping_sub(32).max(1));
        prop_oneof![
            (0..64_u32).prop_map(|power| 1 << power),
            Just(64),
            (0..64_u32, any::<u64>()).prop_map(|(shift, bits)| (bits >> shift).max(1)),
            (0..60_u32, any::<u64>()).prop_map(|(shift, bits)| ((bits >> 3 >> shift) | 1) * 8),
            near(1 << 32),
            near(1 << 63),
            near(u64::MAX - 32),
            1..300_u64,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn remainders_are_those_of_the_division(len in lengths(), bits in any::<u64>(), off in 0..4_u64) {
            let range = Range::of(len);
            let multiple = bits / len * len;
            for bits in [bits, off, u64::MAX - off, multiple.wrapping_add(off), multiple.wrapping_sub(off)] {
                prop_assert_eq!(range.remainder(bits), bits % len);
            }
        }
    }
}
