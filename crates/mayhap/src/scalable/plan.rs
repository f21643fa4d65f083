//! Whose rule sizes the layers of a chain: ours, or RedisBloom's.

use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::probe::BloomPlacement;

/// The most layers a chain of ours may have. A lookup asks all of them.
pub(super) const MAX_LAYERS: usize = 64;
/// The most layers of RedisBloom's, whose chains may grow by equal layers. Some 1 070 halvings leave nothing of any rate.
const MAX_REDIS_LAYERS: usize = 1024;

/// The rate of every layer of RedisBloom's relative to the one before, and of the first relative to the promise.
pub(crate) const REDIS_TIGHTENING: f64 = 0.5;
/// The tightening that takes the least memory over many growths; see [`Plan::RedisBloomTightened`].
#[cfg(feature = "formats")]
pub(crate) const COMPACT_TIGHTENING: f64 = 0.85;
/// ln 2 squared, to the digits RedisBloom has it. With others the number of probes can differ by one.
const LN_2_SQUARED: f64 = 0.480453013918201;
/// ln 2, likewise.
#[expect(clippy::approx_constant, reason = "its own digits")]
const LN_2: f64 = 0.693147180559945;

/// Whose rule sizes the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Ours: the shares of all layers add up to the promise, whatever the tightening ratio.
    Mayhap,
    /// RedisBloom's: every layer has half the rate of the one before, and the first has half the promise.
    RedisBloom,
    /// RedisBloom's `NONSCALING`: one layer, which has all of it.
    RedisBloomFixed,
    /// Layers RedisBloom reads, with rates of ours: the first has half the promise, as RedisBloom's has, and the others share the
    /// other half by the tightening ratio `r`, `(1 - r) / 2`, `(1 - r) r / 2`, … Later layers are larger, so that a bit for each of
    /// their items costs more: they get more of the promise than by halving. With `r = 1/2` it is RedisBloom's own plan.
    RedisBloomTightened,
}

impl Plan {
    pub(crate) const fn max_layers(self) -> usize {
        match self {
            Self::Mayhap => MAX_LAYERS,
            Self::RedisBloom | Self::RedisBloomTightened => MAX_REDIS_LAYERS,
            Self::RedisBloomFixed => 1,
        }
    }

    /// What the first layer of RedisBloom's promises.
    pub(super) fn first_rate(self, target_fpr: f64) -> f64 {
        match self {
            Self::RedisBloomFixed => target_fpr,
            _ => target_fpr * REDIS_TIGHTENING,
        }
    }

    /// What the layer behind `layers` others promises, the last of which promises `last`.
    pub(super) fn rate_behind(self, layers: usize, last: f64, tightening: f64) -> f64 {
        match self {
            Self::RedisBloomTightened if layers == 1 => last * (1.0 - tightening),
            _ => last * tightening,
        }
    }

    /// `Ok` for numbers a plan of RedisBloom's can have.
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

/// A layer as RedisBloom sizes it: bits rounded down, then up to whole words.
pub(crate) fn redis_layer(entries: u64, error: f64) -> Result<BloomShape, BuildError> {
    let per_entry = redis_bits_per_entry(error);
    let bits = ((entries as f64 * per_entry) as u64).max(1).saturating_add(63) / 64 * 64;
    BloomShape::of_placement(BloomPlacement::RedisBloom, bits, redis_probes(per_entry), entries, error)
}

/// How many bits RedisBloom takes for one entry.
fn redis_bits_per_entry(error: f64) -> f64 {
    -error.ln() / LN_2_SQUARED
}

/// The bits for one entry that make so many probes, if those of this error do. Logarithms differ in their last digit from machine to
/// machine, and for an error of 1/2, 1/4 … that digit decides.
pub(crate) fn redis_bits_for_probes(error: f64, probes: u32) -> Option<f64> {
    let computed = redis_bits_per_entry(error);
    let near = |steps: i64| f64::from_bits(computed.to_bits().wrapping_add_signed(steps));
    [0, 1, -1, 2, -2].into_iter().map(near).find(|&bits| redis_probes(bits) == probes)
}

/// Are these the bits for one entry, but for the last digits of a logarithm?
#[cfg(feature = "formats")]
pub(crate) fn redis_bits_agree(error: f64, bits_per_entry: f64) -> bool {
    redis_bits_per_entry(error).to_bits().abs_diff(bits_per_entry.to_bits()) <= 2
}

/// How many probes that makes.
pub(crate) fn redis_probes(bits_per_entry: f64) -> u32 {
    (LN_2 * bits_per_entry).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of its documentation and its tests.
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

    #[cfg(feature = "formats")]
    #[test]
    fn bits_of_an_entry_agree_but_for_rounding() {
        let bits = redis_bits_per_entry(0.01);
        assert!(redis_bits_agree(0.01, bits.next_up()) && !redis_bits_agree(0.01, bits * 1.001));
        assert!(!redis_bits_agree(0.01, f64::NAN) && !redis_bits_agree(0.01, -bits));
    }
}
