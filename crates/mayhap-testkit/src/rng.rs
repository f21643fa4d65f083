//! Seeded randomness that never changes: a failure seen today can be replayed next year.
//!
//! Not for secrets, and not the best generator: ten lines that need no updates.

/// An odd constant near 2^64 divided by the golden ratio; steps by it visit every `u64` once.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles 64 bits. It is a bijection: different inputs always give different outputs.
///
/// ```
/// use mayhap_testkit::rng::mix;
/// assert_ne!(mix(1), mix(2));
/// ```
#[must_use]
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// SplitMix64: one word of state, the same numbers for the same seed on every machine.
///
/// ```
/// use mayhap_testkit::rng::Rng;
/// let (mut once, mut again) = (Rng::new(7), Rng::new(7));
/// assert_eq!(once.next_u64(), again.next_u64());
/// assert!(once.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Creates a generator that depends only on `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: mix(seed ^ GOLDEN) }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns a number in `0..limit`. The bias is under `limit` / 2^64, which no test here can detect.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "the limit must be above 0");
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs of SplitMix64 from state 0. Replays depend on them.
    #[test]
    fn rng_is_splitmix64() {
        let mut rng = Rng { state: 0 };
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn below_returns_every_number_under_the_limit() {
        let mut rng = Rng::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| (850..1150).contains(&times)), "{seen:?}");
    }
}
