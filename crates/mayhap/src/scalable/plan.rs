//! The rule that sizes the layers of a chain: ours or RedisBloom's.

use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::probe::BloomPlacement;

/// The most layers of our own chains. A lookup reads all of them.
pub(super) const MAX_LAYERS: usize = 64;
/// The most layers of RedisBloom's chains, which may grow by layers of equal size. After about 1 070 halvings
/// any rate is 0.
const MAX_REDIS_LAYERS: usize = 1024;

/// The rate of every RedisBloom layer relative to the one before, and of the first relative to the promised
/// rate.
pub(crate) const REDIS_TIGHTENING: f64 = 0.5;
/// The tightening ratio that takes the least memory over many growths; see [`Plan::RedisBloomTightened`].
pub(crate) const COMPACT_TIGHTENING: f64 = 0.85;
/// ln 2 squared, with RedisBloom's digits. With other digits the number of probes can differ by one.
const LN_2_SQUARED: f64 = 0.480453013918201;
/// ln 2, with RedisBloom's digits.
#[expect(clippy::approx_constant, reason = "RedisBloom's own digits")]
const LN_2: f64 = 0.693147180559945;

/// The rule that sizes the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Ours: the rates of all layers add up to the promised rate, for any tightening ratio.
    Mayhap,
    /// RedisBloom's: every layer has half the rate of the one before, and the first has half the promised
    /// rate.
    RedisBloom,
    /// RedisBloom's `NONSCALING`: one layer with the whole promised rate.
    RedisBloomFixed,
    /// Layers that RedisBloom can read, with our own rates. The first has half the promised rate, as in
    /// RedisBloom. The others share the other half by the tightening ratio `r`: `(1 - r) / 2`,
    /// `(1 - r) r / 2`, … Later layers are larger, so one more bit for each of their items costs more memory.
    /// They therefore get a larger share than by halving. With `r = 1/2` this is RedisBloom's own plan.
    RedisBloomTightened,
}

impl Plan {
    /// The most layers of a filter.
    pub const fn max_layers(self) -> usize {
        match self {
            Self::Mayhap => MAX_LAYERS,
            Self::RedisBloom | Self::RedisBloomTightened => MAX_REDIS_LAYERS,
            Self::RedisBloomFixed => 1,
        }
    }

    /// Returns the rate of RedisBloom's first layer.
    pub(super) fn first_rate(self, target_fpr: f64) -> f64 {
        match self {
            Self::RedisBloomFixed => target_fpr,
            _ => target_fpr * REDIS_TIGHTENING,
        }
    }

    /// Returns the rate of the layer after `layers` others, if the last of them has the rate `last`.
    pub(super) fn rate_after(self, layers: usize, last: f64, tightening: f64) -> f64 {
        match self {
            Self::RedisBloomTightened if layers == 1 => last * (1.0 - tightening),
            _ => last * tightening,
        }
    }

    /// Checks that a RedisBloom plan can have these numbers.
    pub(super) fn check(
        self,
        tiers: usize,
        growth: f64,
        tightening: f64,
        target_fpr: f64,
    ) -> Result<(), BuildError> {
        const MOST: f64 = u32::MAX as f64;
        let least = if self == Self::RedisBloomFixed { 0.0 } else { 1.0 };
        if !(target_fpr > 0.0 && target_fpr <= 1.0) {
            return Err(BuildError::RateOutOfRange { got: target_fpr });
        }
        if !(least..=MOST).contains(&growth) || growth.fract() != 0.0 {
            return Err(BuildError::GrowthOutOfRange { got: growth, limit: MOST });
        }
        let free = self == Self::RedisBloomTightened && tightening > 0.0 && tightening < 1.0;
        if !free && tightening != REDIS_TIGHTENING {
            return Err(BuildError::TighteningOutOfRange { got: tightening });
        }
        if tiers != 1 {
            return Err(BuildError::TiersOutOfRange { got: tiers, limit: 1 });
        }
        Ok(())
    }
}

/// Returns a layer as RedisBloom sizes it: bits rounded down, then up to whole words.
pub(crate) fn redis_layer(entries: u64, error: f64) -> Result<BloomShape, BuildError> {
    let per_entry = redis_bits_per_entry(error);
    let bits = ((entries as f64 * per_entry) as u64).max(1).saturating_add(63) / 64 * 64;
    BloomShape::of_placement(BloomPlacement::RedisBloom, bits, redis_probes(per_entry), entries, error)
}

/// Returns RedisBloom's number of bits per entry.
fn redis_bits_per_entry(error: f64) -> f64 {
    -error.ln() / LN_2_SQUARED
}

/// Returns the bits per entry that give this number of probes, if those of this error do. Logarithms differ
/// in their last digit between machines, and for an error of 1/2, 1/4 … that digit decides.
pub(crate) fn redis_bits_for_probes(error: f64, probes: u32) -> Option<f64> {
    let computed = redis_bits_per_entry(error);
    let near = |steps: i64| f64::from_bits(computed.to_bits().wrapping_add_signed(steps));
    [0, 1, -1, 2, -2].into_iter().map(near).find(|&bits| redis_probes(bits) == probes)
}

/// Returns whether these are the bits per entry, except for the last digits of a logarithm.
pub(crate) fn redis_bits_agree(error: f64, bits_per_entry: f64) -> bool {
    redis_bits_per_entry(error).to_bits().abs_diff(bits_per_entry.to_bits()) <= 2
}

/// Returns the number of probes for these bits per entry.
pub(crate) fn redis_probes(bits_per_entry: f64) -> u32 {
    (LN_2 * bits_per_entry).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples from RedisBloom's documentation and tests.
    #[test]
    fn layers_are_sized_as_redis_bloom_does() {
        for (error, entries, bits, probes) in [
            (0.005, 100, 1_152, 8),
            (0.0005, 100, 1_600, 11),
            (0.005, 1_000_000, 11_027_776, 8),
            (0.01, 1_000_000, 9_585_088, 7),
        ] {
            let layer = redis_layer(entries, error).unwrap();
            assert_eq!((layer.bits(), layer.probes()), (bits, probes), "{entries} at {error}");
        }
        assert_eq!(redis_layer(300_000_000, 0.0000005).unwrap().bits() / 8, 1_132_420_232 - 96);
        assert_eq!(redis_layer(1, 0.9).unwrap().bits(), 64, "at least one bit, then a whole word");
        assert_eq!(redis_layer(1, 1e-310).unwrap().probes(), 1030);
        assert!(redis_layer(1, 0.0).is_err());
    }

    #[test]
    fn probes_lead_back_to_the_bits_of_an_entry() {
        for power in 1..1_000 {
            for error in [0.5_f64.powi(power), 0.9_f64.powi(power), 0.01 * 0.5_f64.powi(power)] {
                let bits = redis_bits_per_entry(error);
                assert_eq!(redis_bits_for_probes(error, redis_probes(bits)), Some(bits));
                assert_eq!(redis_bits_for_probes(error, redis_probes(bits) + 2), None);
            }
        }
    }

    #[test]
    fn bits_of_an_entry_agree_except_for_rounding() {
        let bits = redis_bits_per_entry(0.01);
        assert!(redis_bits_agree(0.01, bits.next_up()) && !redis_bits_agree(0.01, bits * 1.001));
        assert!(!redis_bits_agree(0.01, f64::NAN) && !redis_bits_agree(0.01, -bits));
    }
}
