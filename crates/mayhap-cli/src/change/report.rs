//! What became of a filter, for people and for programs.

use std::time::Duration;

use mayhap::Filter;
use mayhap::advise::say;
use serde::Serialize;

use crate::{health, progress};

/// What was done to the items.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Changed {
    /// `mayhap add`.
    Added {
        /// Certainly not in before.
        items_new: u64,
        /// Mayhap in before.
        items_there_before: u64,
    },
    /// `mayhap remove`.
    Removed {
        /// Taken out.
        items_removed: u64,
        /// Certainly not in.
        items_not_in: u64,
    },
}

/// What is said about a filter that was changed. The names of the fields are a promise.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The file that was written.
    out: String,
    kind: &'static str,
    /// Items read.
    items_read: u64,
    #[serde(flatten)]
    changed: Changed,
    /// Items in the filter now, as it counts.
    items: u64,
    /// Items it is for.
    capacity: u64,
    target_fpr: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    file_bytes: u64,
    seconds: f64,
    /// It is wrong more often than it was to be.
    over_capacity: bool,
    /// What its users should know, in plain words.
    warnings: Vec<String>,
}

impl Report {
    pub(super) fn new(
        filter: &Filter,
        out: String,
        items_read: u64,
        changed: Changed,
        file_bytes: u64,
        took: Duration,
    ) -> Self {
        Self {
            out,
            kind: filter.kind().name(),
            items_read,
            changed,
            items: filter.inserted(),
            capacity: filter.capacity(),
            target_fpr: filter.target_fpr(),
            expected_fpr: filter.expected_fpr(),
            memory_bytes: filter.memory_bytes(),
            file_bytes,
            seconds: took.as_secs_f64(),
            over_capacity: health::is_over_capacity(filter),
            warnings: health::warnings(filter),
        }
    }

    /// What its users should know.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|warning| format!("{}: {warning}", self.out))
    }

    /// One line for people.
    pub(super) fn text(&self) -> String {
        let done = match self.changed {
            Changed::Added { items_new, items_there_before: 0 } => format!("{} added", say::items(items_new)),
            Changed::Added { items_there_before, .. } => {
                let before = say::count(items_there_before);
                format!("{} added, {before} of them mayhap there before", say::items(self.items_read))
            }
            Changed::Removed { items_removed, items_not_in: 0 } => {
                format!("{} removed", say::items(items_removed))
            }
            Changed::Removed { items_removed, items_not_in } => {
                let not_in = say::count(items_not_in);
                format!("{} removed, {not_in} certainly not in", say::items(items_removed))
            }
        };
        let took = progress::duration(Duration::from_secs_f64(self.seconds));
        let now = say::items(self.items);
        format!("{}: {done}; {now} now, wrong for {}, {took}", self.out, say::rate(self.expected_fpr))
    }
}
