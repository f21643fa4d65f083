//! The report about a changed filter, as text and as JSON.

use std::time::Duration;

use mayhap::{Filter, say};
use serde::Serialize;

use crate::{health, progress};

/// The changes to the items.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Changed {
    /// `mayhap add`.
    Added {
        /// Items that were certainly not in the filter before.
        items_new: u64,
        /// Items that were maybe in the filter before.
        items_there_before: u64,
    },
    /// `mayhap remove`.
    Removed {
        /// Items that were removed.
        items_removed: u64,
        /// Items that were not in the filter.
        items_not_in: u64,
    },
}

/// The report about a changed filter. The field names are a stable interface.
#[derive(Debug, Serialize)]
pub(super) struct ChangeReport {
    /// The file that was written.
    out: String,
    kind: &'static str,
    /// Items read.
    items_read: u64,
    #[serde(flatten)]
    changed: Changed,
    /// Items in the filter now, as counted by the filter.
    items: u64,
    /// The capacity of the filter, in items.
    capacity: u64,
    target_fpr: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    file_bytes: u64,
    seconds: f64,
    /// The false-positive rate is higher than the target.
    over_capacity: bool,
    /// Warnings for the user.
    warnings: Vec<String>,
}

impl ChangeReport {
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

    /// The warnings, with the name of the file.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|warning| format!("{}: {warning}", self.out))
    }

    /// The report as one line of text.
    pub(super) fn text(&self) -> String {
        let done = match self.changed {
            Changed::Added { items_new, items_there_before: 0 } => format!("{} added", say::items(items_new)),
            Changed::Added { items_there_before, .. } => {
                let before = say::count(items_there_before);
                format!("{} added, {before} of them maybe there before", say::items(self.items_read))
            }
            Changed::Removed { items_removed, items_not_in: 0 } => {
                format!("{} removed", say::items(items_removed))
            }
            Changed::Removed { items_removed, items_not_in } => {
                let not_in = say::count(items_not_in);
                format!("{} removed, {not_in} not in the filter", say::items(items_removed))
            }
        };
        let took = progress::duration(Duration::from_secs_f64(self.seconds));
        let now = say::items(self.items);
        format!(
            "{}: {done}; {now} now, false-positive rate {}, {took}",
            self.out,
            say::rate(self.expected_fpr)
        )
    }
}
