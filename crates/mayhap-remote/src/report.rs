//! A report on a filter: its parameters and its fill.

use std::time::Duration;

use crate::{Measures, RemoteError};

/// One shard of a filter.
#[derive(Clone, Debug)]
pub struct ShardFill {
    /// Its number.
    pub shard: u32,
    /// The number of items in it, counted by the server or estimated from its bits; or why that is unknown.
    pub items: Result<u64, RemoteError>,
}

/// The state of a filter.
#[derive(Clone, Debug)]
pub struct FilterReport {
    pub(crate) generation: u64,
    pub(crate) measures: Measures,
    pub(crate) lease: Duration,
    pub(crate) building: Vec<u64>,
    pub(crate) retiring: Vec<u64>,
    pub(crate) fill: Vec<ShardFill>,
}

impl FilterReport {
    /// The number of the serving generation.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Its measures.
    #[must_use]
    pub const fn measures(&self) -> &Measures {
        &self.measures
    }

    /// How long clients use the descriptor before they read it again.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// Generations that are being built.
    #[must_use]
    pub fn building(&self) -> &[u64] {
        &self.building
    }

    /// Generations that are about to be removed.
    #[must_use]
    pub fn retiring(&self) -> &[u64] {
        &self.retiring
    }

    /// Every shard, in order.
    #[must_use]
    pub fn shards(&self) -> &[ShardFill] {
        &self.fill
    }

    /// The shards that are not ready.
    pub fn missing(&self) -> impl Iterator<Item = &ShardFill> {
        self.fill.iter().filter(|fill| fill.items.is_err())
    }

    /// The number of items in all ready shards.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.counts().sum()
    }

    /// The number of items in the fullest shard.
    #[must_use]
    pub fn fullest(&self) -> u64 {
        self.counts().max().unwrap_or(0)
    }

    /// How much fuller the fullest shard is than the mean, as a fraction of the mean: 0.02 is 2 %.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let shards = self.counts().count();
        if self.inserted() == 0 {
            return 0.0;
        }
        self.fullest() as f64 * shards as f64 / self.inserted() as f64 - 1.0
    }

    /// The false-positive rate at the present fill, by the model: the mean over the ready shards.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let (shards, sum) = self
            .counts()
            .fold((0_u32, 0.0), |(shards, sum), items| (shards + 1, sum + self.measures.counted_fpr(items)));
        if shards == 0 { 0.0 } else { sum / f64::from(shards) }
    }

    /// Does it hold more items than its capacity? For plain shards the number of items is estimated from
    /// their bits, to 5 %.
    #[must_use]
    pub fn over_capacity(&self) -> bool {
        let made_for = self.measures.capacity();
        let slack = if self.measures.plain().is_some() { made_for / 20 } else { 0 };
        self.inserted() > made_for.saturating_add(slack)
    }

    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.fill.iter().filter_map(|fill| fill.items.as_ref().ok().copied())
    }
}
