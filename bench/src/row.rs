//! One measured row, as written in JSON.

use serde::Serialize;

use crate::{contender::Kind, items::Shape, samples::Samples};

/// Thread-CPU nanoseconds per item. `None`: the filter has no such call.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Filling in batches, or one by one if there is no batch call; for a static filter, the build: CPU time of all its threads.
    pub(crate) build_ns: Option<f64>,
    /// Filling one by one.
    pub(crate) insert_ns: Option<f64>,
    /// Querying non-members one by one.
    pub(crate) miss_ns: Option<f64>,
    /// Querying members one by one.
    pub(crate) hit_ns: Option<f64>,
    /// Querying non-members in batches.
    pub(crate) batch_miss_ns: Option<f64>,
    /// Querying members in batches.
    pub(crate) batch_hit_ns: Option<f64>,
    /// Removing members one by one.
    pub(crate) remove_ns: Option<f64>,
}

/// The timed chunks for [`Figures`].
#[derive(Default)]
pub(crate) struct Timings {
    pub(crate) build: Samples,
    pub(crate) insert: Samples,
    pub(crate) miss: Samples,
    pub(crate) hit: Samples,
    pub(crate) batch_miss: Samples,
    pub(crate) batch_hit: Samples,
    pub(crate) remove: Samples,
    /// The elapsed time of static builds.
    pub(crate) build_wall: Samples,
}

impl Timings {
    /// Computes the same statistic of every series.
    pub(crate) fn figures(&self, statistic: fn(&Samples) -> Option<f64>) -> Figures {
        let of = |samples| statistic(samples).map(thousandths);
        Figures {
            build_ns: of(&self.build),
            insert_ns: of(&self.insert),
            miss_ns: of(&self.miss),
            hit_ns: of(&self.hit),
            batch_miss_ns: of(&self.batch_miss),
            batch_hit_ns: of(&self.batch_hit),
            remove_ns: of(&self.remove),
        }
    }
}

/// A measured filter or limit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) ours: bool,
    pub(crate) layout: Option<&'static str>,
    pub(crate) shape: Shape,
    pub(crate) items: u64,
    pub(crate) target_fpr: f64,
    /// The share of false positives among non-members.
    pub(crate) observed_fpr: Option<f64>,
    #[serde(rename = "strangers_asked")]
    pub(crate) non_members_asked: u64,
    /// For a limit: log2(1/p), the smallest possible size.
    pub(crate) bits_per_item: f64,
    pub(crate) memory_bytes: u64,
    /// Medians.
    #[serde(flatten)]
    pub(crate) median: Figures,
    /// Mean over the chunks of the build; it includes the chunk in which the filter grew.
    pub(crate) build_mean_ns: Option<f64>,
    /// Static filters only: the median elapsed time of a build. If it is much less than `build_ns`, the build used several threads.
    pub(crate) build_wall_ns: Option<f64>,
    /// Share of the slots in use when full, for filters made of slots.
    pub(crate) load: Option<f64>,
    /// Limits only: the rolling gather, which is also their `batch_miss_ns`.
    pub(crate) gather_ns: Option<f64>,
    pub(crate) p10: Figures,
    /// Members that were answered *no*. Any is a broken filter.
    pub(crate) false_negatives: Option<u64>,
    pub(crate) members_asked: u64,
    /// Whether batch calls and single calls returned the same counts.
    pub(crate) batch_agrees: Option<bool>,
    /// Members that could not be removed, or were answered *no* after others were removed. `None`: the filter cannot remove.
    pub(crate) lost_by_removing: Option<u64>,
}

impl Row {
    /// Bits per item divided by log2(1/observed rate); 1 is the lower bound for any filter. `None`: no rate was observed.
    pub(crate) fn over_the_bound(&self) -> Option<f64> {
        let fpr = self.observed_fpr.filter(|&fpr| fpr > 0.0 && fpr < 1.0)?;
        Some(self.bits_per_item / -fpr.log2())
    }

    /// Returns whether this row breaks a guarantee without tolerance. Some rivals lose members by removing others (the table tells how many); ours must
    /// not.
    pub(crate) fn is_broken(&self) -> bool {
        self.false_negatives.is_some_and(|lost| lost > 0)
            || self.batch_agrees == Some(false)
            || self.ours && self.lost_by_removing.is_some_and(|lost| lost > 0)
    }
}

/// Rounds to three decimals; more would be noise.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
