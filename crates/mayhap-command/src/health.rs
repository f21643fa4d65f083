//! Checks whether the false-positive rate of a filter is above its target.

use std::hash::{BuildHasher as _, RandomState};

use mayhap::{BlockedPlacement, BloomPlacement, Filter, Sampling, WidePlacement, say};

use crate::value::Value;

/// A rate is reported from this multiple of the target.
const REPORTED_FROM: f64 = 1.1;
/// The same if the target is a guess: programs differ in how much they fill their filters.
const REPORTED_FROM_IF_GUESSED: f64 = 2.0;
const TENFOLD: f64 = 10.0;
const HALF: f64 = 0.5;

/// How far a filter is above its target rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// The expected rate is at most the target, with a tolerance of a tenth.
    #[default]
    Ok,
    /// The expected rate is above the target.
    OverTarget,
    /// The expected rate is above ten times the target.
    OverTenfold,
    /// More than half of all non-members get *maybe*.
    OverHalf,
}

impl Health {
    /// The health of a filter with these rates.
    #[must_use]
    pub fn of(target_fpr: f64, expected_fpr: f64) -> Self {
        Self::past(target_fpr, expected_fpr, REPORTED_FROM)
    }

    /// The same for a filter whose target rate is a guess.
    #[must_use]
    pub fn of_guess(target_fpr: f64, expected_fpr: f64) -> Self {
        Self::past(target_fpr, expected_fpr, REPORTED_FROM_IF_GUESSED)
    }

    fn past(target: f64, expected: f64, times: f64) -> Self {
        match () {
            () if expected <= target * times => Self::Ok,
            () if expected > HALF => Self::OverHalf,
            () if expected > target * TENFOLD => Self::OverTenfold,
            () => Self::OverTarget,
        }
    }

    /// Its name in `MF.INFO` and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OverTarget => "over-target",
            Self::OverTenfold => "over-10x-target",
            Self::OverHalf => "over-half",
        }
    }
}

/// The rates of a filter and the health that follows from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// The target rate.
    pub target_fpr: f64,
    /// The rate now: by the model for the inserted items, or by the bits that are set if that is higher.
    pub expected_fpr: f64,
    /// The health. Random variation does not count: the bits count only as far as they exceed it.
    pub health: Health,
}

impl Assessment {
    /// Of a value that has no false positives.
    pub(crate) const FINE: Self = Self { target_fpr: 0.0, expected_fpr: 0.0, health: Health::Ok };

    /// The log message for a filter above its target.
    #[must_use]
    pub fn warning(&self) -> String {
        let (rate, target) = (say::rate(self.expected_fpr), say::rate(self.target_fpr));
        let past = match self.health {
            Health::Ok | Health::OverTarget => "",
            Health::OverTenfold => "ten times ",
            Health::OverHalf => "a half and ",
        };
        format!(
            "expected false-positive rate {rate} is over {past}its target of {target}: it holds more items than its capacity; build a larger filter"
        )
    }
}

/// Bytes of a filter that one request reads to estimate its fill: a filter up to this size is read completely, a larger one to half of
/// this size. That takes a few milliseconds, for which other clients of a module wait.
pub const EXACT_BYTES: u64 = 16 << 20;
/// Bytes read of a larger filter.
const SAMPLE_BYTES: u64 = 8 << 20;
/// Bytes read of each filter when many are checked: some microseconds.
const GLANCE_BYTES: u64 = 64 << 10;

/// How much of a filter of `bytes` bytes a request reads to estimate its fill. Each call reads other places: a client that could predict
/// them could set bits that are not counted.
#[must_use]
pub fn look(bytes: u64) -> Sampling {
    if bytes <= EXACT_BYTES { Sampling::WHOLE } else { Sampling::at_most(SAMPLE_BYTES, unforeseen()) }
}

/// How much of each filter is read when many are checked.
#[must_use]
pub fn glance() -> Sampling {
    Sampling::at_most(GLANCE_BYTES, unforeseen())
}

/// Not drawn from the request's randomness, which is logged for replay.
fn unforeseen() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// Does the filter come from a program whose files do not contain its capacity and rate? Then both are those at which half of its bits
/// are set.
#[must_use]
pub fn capacity_is_guessed(filter: &Filter) -> bool {
    match filter {
        Filter::Bloom(bloom) => guessed_bloom(bloom.placement()),
        Filter::BlockedBloom(blocked) => guessed_blocked(blocked.placement()),
        Filter::WideBloom(wide) => {
            matches!(wide.placement(), WidePlacement::BitsAndBlooms | WidePlacement::Bip37 { .. })
        }
        _ => false,
    }
}

pub(crate) const fn guessed_bloom(placement: BloomPlacement) -> bool {
    matches!(
        placement,
        BloomPlacement::Guava64
            | BloomPlacement::Guava32
            | BloomPlacement::Spark2
            | BloomPlacement::DataSketches
            | BloomPlacement::Rbloom
            | BloomPlacement::LevelDb
            | BloomPlacement::Cassandra
    )
}

pub(crate) const fn guessed_blocked(placement: BlockedPlacement) -> bool {
    matches!(
        placement,
        BlockedPlacement::Parquet | BlockedPlacement::RocksDbLegacy | BlockedPlacement::RocksDbFastLocal
    )
}

impl Value {
    /// Its rates, from as much of it as `sampling` allows; `None` for a value that is not a filter or cannot answer yet. The model for the
    /// inserted items is used only above capacity: below, it adds nothing and takes longer than the sample.
    #[must_use]
    pub fn assess(&self, sampling: Sampling) -> Option<Assessment> {
        match self {
            Self::Bloom(filter) => {
                let (target_fpr, fill) = (filter.target_fpr(), filter.uncounted().fill_by(sampling));
                Some(Assessment {
                    target_fpr,
                    expected_fpr: fill.expected_fpr,
                    health: Health::of(target_fpr, fill.certain_fpr()),
                })
            }
            Self::Cuckoo(filter) => {
                let (target_fpr, expected_fpr) = (filter.target_fpr(), filter.expected_fpr());
                Some(Assessment { target_fpr, expected_fpr, health: Health::of(target_fpr, expected_fpr) })
            }
            Self::Filter(holder) => holder.assess(sampling),
            Self::LoadingBloom(_) | Self::LoadingCuckoo(_) | Self::Text(_) | Self::Lost(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_changes_when_the_rate_passes_the_target() {
        let of = |expected| Health::of(0.01, expected);
        assert_eq!([0.0, 0.01, 0.010_9].map(of), [Health::Ok; 3]);
        assert_eq!([0.011_1, 0.099].map(of), [Health::OverTarget; 2]);
        assert_eq!([0.101, 0.49].map(of), [Health::OverTenfold; 2]);
        assert_eq!([0.51, 1.0].map(of), [Health::OverHalf; 2]);
        assert_eq!(Health::of(0.9, 0.95), Health::Ok, "its target is already above a half");
        assert_eq!(Health::of(0.0, 0.0), Health::Ok);
        assert_eq!(Health::of_guess(0.01, 0.019), Health::Ok);
        assert_eq!(Health::of_guess(0.01, 0.021), Health::OverTarget);
        assert!(Health::Ok < Health::OverTarget && Health::OverTenfold < Health::OverHalf);
    }
}
