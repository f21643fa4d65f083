//! One measured line, as it is written in JSON.

use serde::Serialize;

use crate::{contender::Kind, items::Shape, samples::Samples};

/// Thread-CPU nanoseconds per item. None: the filter has no such call.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Filling by batch, or one by one where there is no batch; for a filter built whole, the build: CPU time of
    /// all its threads.
    pub(crate) build_ns: Option<f64>,
    /// Filling one by one.
    pub(crate) insert_ns: Option<f64>,
    /// Asking one by one for non-members.
    pub(crate) miss_ns: Option<f64>,
    /// Asking one by one for members.
    pub(crate) hit_ns: Option<f64>,
    /// Asking by batch for non-members.
    pub(crate) batch_miss_ns: Option<f64>,
    /// Asking by batch for members.
    pub(crate) batch_hit_ns: Option<f64>,
    /// Removing members one by one.
    pub(crate) remove_ns: Option<f64>,
}

/// The timed chunks behind [`Figures`].
#[derive(Default)]
pub(crate) struct Timings {
    pub(crate) build: Samples,
    pub(crate) insert: Samples,
    pub(crate) miss: Samples,
    pub(crate) hit: Samples,
    pub(crate) batch_miss: Samples,
    pub(crate) batch_hit: Samples,
    pub(crate) remove: Samples,
    /// Filters that are built whole, by the clock on the wall.
    pub(crate) build_wall: Samples,
}

impl Timings {
    /// The same statistic of every series.
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

/// A filter or a limit, measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) ours: bool,
    pub(crate) layout: Option<&'static str>,
    pub(crate) shape: Shape,
    pub(crate) items: u64,
    pub(crate) target_fpr: f64,
    /// Share of non-members taken for members.
    pub(crate) observed_fpr: Option<f64>,
    #[serde(rename = "strangers_asked")]
    pub(crate) non_members_asked: u64,
    /// For a limit: log2(1/p), less than which no filter can do.
    pub(crate) bits_per_item: f64,
    pub(crate) memory_bytes: u64,
    /// Medians.
    #[serde(flatten)]
    pub(crate) median: Figures,
    /// Mean over the chunks of the build: the one that grows the filter counts here.
    pub(crate) build_mean_ns: Option<f64>,
    /// Filters built whole only: the median build by the clock on the wall. Much less than `build_ns`: it used
    /// several threads.
    pub(crate) build_wall_ns: Option<f64>,
    /// Share of the slots in use when full, for filters made of slots.
    pub(crate) load: Option<f64>,
    /// Limits only: the rolling gather, which is also their `batch_miss_ns`.
    pub(crate) gather_ns: Option<f64>,
    pub(crate) p10: Figures,
    /// Members denied. More than none is a broken filter.
    pub(crate) false_negatives: Option<u64>,
    pub(crate) members_asked: u64,
    /// Did the batch calls count what the single calls count?
    pub(crate) batch_agrees: Option<bool>,
    /// Members that were not to be found for removing, or were denied after others were removed. None: it cannot
    /// remove.
    pub(crate) lost_by_removing: Option<u64>,
}

impl Row {
    /// Bits per item over log2(1/observed rate): 1 is the bound that no filter can beat. None: no rate was observed.
    pub(crate) fn over_the_bound(&self) -> Option<f64> {
        let fpr = self.observed_fpr.filter(|&fpr| fpr > 0.0 && fpr < 1.0)?;
        Some(self.bits_per_item / -fpr.log2())
    }

    /// Does this row break a promise that has no tolerance? Rivals that lose members by removing others are known
    /// (the table says how many); ours must not.
    pub(crate) fn is_broken(&self) -> bool {
        self.false_negatives.is_some_and(|lost| lost > 0)
            || self.batch_agrees == Some(false)
            || self.ours && self.lost_by_removing.is_some_and(|lost| lost > 0)
    }
}

/// Rounded to three places: what is below is noise.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
