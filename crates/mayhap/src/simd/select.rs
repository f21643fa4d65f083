//! Finds the n-th set bit of a word: one instruction on CPUs with BMI2, a dozen on others.
//!
//! Code that counts and selects bits is written once, as a [`Kernel`] over any [`Select`]. [`run`] compiles
//! it twice: for every CPU, and for those with BMI2 and POPCNT. One call should do a whole lookup or a whole
//! batch.

/// Finds set bits by their rank.
pub(crate) trait Select: Copy {
    /// Returns the position of the set bit of `word` that has `rank` set bits below it. `word` must have more
    /// than `rank` set bits; otherwise the result is meaningless.
    fn select(self, word: u64, rank: u32) -> u32;
}

/// For every CPU: the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

/// The lowest bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of every byte.
const TOPS: u64 = ONES << 7;

impl Select for Plain {
    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
        // Byte `i` is the number of set bits in bytes 0 to `i`: at most 64, so the top bit of each byte is
        // free for the comparison.
        let sums = bytes.wrapping_mul(ONES);
        let passed = (u64::from(rank).wrapping_mul(ONES) | TOPS).wrapping_sub(sums) & TOPS;
        let shift = ((passed >> 7).wrapping_mul(ONES) >> 53) as u32 & 56;
        let before = (sums << 8 >> shift) as u8;
        let row = (rank as u8).wrapping_sub(before) & 7;
        shift + u32::from(IN_BYTE[usize::from(row)][usize::from((word >> shift) as u8)])
    }
}

/// The position of the set bit of a byte that has `rank` set bits below it, at `[rank][byte]`.
static IN_BYTE: [[u8; 256]; 8] = {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut position, mut rank) = (0, 0);
        while position < 8 {
            if byte >> position & 1 == 1 {
                table[rank][byte] = position as u8;
                rank += 1;
            }
            position += 1;
        }
        byte += 1;
    }
    table
};

/// Proof that this CPU has BMI2, POPCNT and the other features checked together. Only the check of the CPU
/// creates one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bmi2(());

impl Bmi2 {
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            return Some(Self(()));
        }
        None
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Select for Bmi2 {
    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        // SAFETY: the proof guarantees BMI2.
        unsafe { std::arch::x86_64::_pdep_u64(1 << (rank & 63), word) }.trailing_zeros()
    }
}

/// A piece of work that selects bits. `run` should be `#[inline(always)]`, and so should all functions in its
/// inner loop: only inlined code is compiled for the better CPU.
pub(crate) trait Kernel {
    type Output;

    fn run(self, select: impl Select) -> Self::Output;
}

/// Runs the kernel: with a proof of BMI2, obtained when the filter was created, in the fastest way for this
/// CPU.
#[inline(always)]
pub(crate) fn run<K: Kernel>(proof: Option<Bmi2>, kernel: K) -> K::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(proof) = proof {
        // SAFETY: the proof guarantees all four features.
        return unsafe { run_with_bmi2(proof, kernel) };
    }
    let _ = proof;
    kernel.run(Plain)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
fn run_with_bmi2<K: Kernel>(proof: Bmi2, kernel: K) -> K::Output {
    kernel.run(proof)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    struct All<'a>(&'a [(u64, u32)]);

    impl Kernel for All<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run(self, select: impl Select) -> Vec<u32> {
            self.0.iter().map(|&(word, rank)| select.select(word, rank)).collect()
        }
    }

    #[test]
    fn the_fast_and_the_plain_twin_find_the_bit_that_counting_finds() {
        let mut rng = Rng::new(1);
        let mut questions = Vec::new();
        for round in 0..5_000 {
            let word = match round % 4 {
                0 => rng.next_u64(),
                1 => rng.next_u64() & rng.next_u64() & rng.next_u64(),
                2 => rng.next_u64() | rng.next_u64() | rng.next_u64(),
                _ => u64::MAX << rng.below(64),
            };
            questions.extend((0..word.count_ones()).map(|rank| (word, rank)));
        }
        let counted = |&(word, rank): &(u64, u32)| {
            (0..64).find(|&at| word >> at & 1 == 1 && (word & ((1 << at) - 1)).count_ones() == rank).unwrap()
        };
        let expected: Vec<u32> = questions.iter().map(counted).collect();
        assert_eq!(All(&questions).run(Plain), expected);
        assert_eq!(run(Bmi2::detect(), All(&questions)), expected);
        assert_eq!(run(None, All(&questions)), expected);
        // Invalid arguments may return anything, but must return.
        assert_eq!(All(&[(0, 0), (0, 63), (1, 40), (u64::MAX, 64), (0, u32::MAX)]).run(Plain).len(), 5);
    }
}
