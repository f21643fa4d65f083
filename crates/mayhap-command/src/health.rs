//! Is a filter wrong more often than it was made to be?

use std::hash::{BuildHasher as _, RandomState};

use mayhap::advise::say;
use mayhap::{BlockedPlacement, BloomPlacement, Filter, Sampling, WidePlacement};

use crate::value::Value;

/// A rate this many times the target is worth a word.
const WORTH_A_WORD: f64 = 1.1;
/// The same where the target is a guess: programs differ in how full their filters are when full.
const WORTH_A_WORD_AT_A_GUESS: f64 = 2.0;
const TENFOLD: f64 = 10.0;
const HALF: f64 = 0.5;

/// How far a filter is past what it was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Its expected rate is at most its target, within a tenth.
    #[default]
    Ok,
    /// The expected rate is over the target.
    OverTarget,
    /// The expected rate is over ten times the target.
    OverTenfold,
    /// More than half of all non-members get *maybe*.
    OverHalf,
}

impl Health {
    /// Of a filter with these rates.
    #[must_use]
    pub fn of(target_fpr: f64, expected_fpr: f64) -> Self {
        Self::past(target_fpr, expected_fpr, WORTH_A_WORD)
    }

    /// The same for a filter that does not say what it was made for.
    #[must_use]
    pub fn of_guess(target_fpr: f64, expected_fpr: f64) -> Self {
        Self::past(target_fpr, expected_fpr, WORTH_A_WORD_AT_A_GUESS)
    }

    fn past(target: f64, expected: f64, times: f64) -> Self {
        match () {
            () if expected <= target * times => Self::Ok,
            () if expected > HALF => Self::OverHalf,
            () if expected > target * TENFOLD => Self::OverTenfold,
            () => Self::OverTarget,
        }
    }

    /// As `MF.INFO` and JSON have it.
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

/// The rates of a filter, and what they say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// The rate promised.
    pub target_fpr: f64,
    /// The rate now: that of the model for the items counted, or that of the bits where it is higher.
    pub expected_fpr: f64,
    /// What that means. Chance alone is no illness: bits count only as far as they are beyond it.
    pub health: Health,
}

impl Assessment {
    /// Nothing can be wrong with it.
    pub(crate) const FINE: Self = Self { target_fpr: 0.0, expected_fpr: 0.0, health: Health::Ok };

    /// What a log says of a filter that is not well.
    #[must_use]
    pub fn warning(&self) -> String {
        let (rate, target) = (say::rate(self.expected_fpr), say::rate(self.target_fpr));
        let past = match self.health {
            Health::Ok | Health::OverTarget => "",
            Health::OverTenfold => "ten times ",
            Health::OverHalf => "a half and ",
        };
        format!(
            "expected false-positive rate {rate} is over {past}its target of {target}: more is in it than it was made for; build a larger one"
        )
    }
}

/// Bytes of a filter that one request reads to learn its fill: all of it up to here, and half as much of a larger one. That takes a few
/// milliseconds, which other clients of a module wait for.
pub const EXACT_BYTES: u64 = 16 << 20;
/// What is read of a larger one.
const SAMPLE_BYTES: u64 = 8 << 20;
/// What is read of each where many are looked at: some microseconds.
const GLANCE_BYTES: u64 = 64 << 10;

/// How much of a filter that takes `bytes` a request reads to learn its fill. Each call chooses other places: who could foresee them could set
/// bits that are not counted.
#[must_use]
pub fn look(bytes: u64) -> Sampling {
    if bytes <= EXACT_BYTES { Sampling::WHOLE } else { Sampling::at_most(SAMPLE_BYTES, unforeseen()) }
}

/// How much of each filter is read where many are looked at.
#[must_use]
pub fn glance() -> Sampling {
    Sampling::at_most(GLANCE_BYTES, unforeseen())
}

/// Not drawn from the request's randomness: that goes to the log, to be drawn again when it is played.
fn unforeseen() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// Is the filter of a program whose files do not say what it was made for? Capacity and rate are then those at which half of its bits are
/// set.
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
    /// Its rates, by a look at as much of it as `sampling` says; `None` for what is no filter, or answers nothing yet. The model of the count
    /// is followed only for a filter that holds more than it was made for: below that it says nothing new, and takes longer than the look.
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
    fn a_filter_is_well_until_its_rate_is_past_its_target() {
        let of = |expected| Health::of(0.01, expected);
        assert_eq!([0.0, 0.01, 0.010_9].map(of), [Health::Ok; 3]);
        assert_eq!([0.011_1, 0.099].map(of), [Health::OverTarget; 2]);
        assert_eq!([0.101, 0.49].map(of), [Health::OverTenfold; 2]);
        assert_eq!([0.51, 1.0].map(of), [Health::OverHalf; 2]);
        assert_eq!(Health::of(0.9, 0.95), Health::Ok, "it was made to be wrong for most");
        assert_eq!(Health::of(0.0, 0.0), Health::Ok);
        assert_eq!(Health::of_guess(0.01, 0.019), Health::Ok);
        assert_eq!(Health::of_guess(0.01, 0.021), Health::OverTarget);
        assert!(Health::Ok < Health::OverTarget && Health::OverTenfold < Health::OverHalf);
    }
}
