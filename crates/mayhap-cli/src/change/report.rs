//! The report about a changed filter, as text and as JSON.

use std::time::Duration;

use mayhap::{Filter, say};
use serde::Serialize;

use crate::saved::SavedFilter;

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
    /// The filter with the changes.
    #[serde(flatten)]
    saved: SavedFilter,
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
            saved: SavedFilter::new(filter, file_bytes, took),
        }
    }

    /// The warnings, with the name of the file.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.saved.warnings(&self.out)
    }

    /// The report as one line of text.
    pub(super) fn text(&self) -> String {
        let done = match self.changed {
            Changed::Added { items_new, items_there_before: 0 } => format!("{} added", say::items(items_new)),
            Changed::Added { items_new, items_there_before } => {
                let (new, before) = (say::count(items_new), say::count(items_there_before));
                format!(
                    "{} read, {new} certainly new, {before} maybe members already",
                    say::items(self.items_read)
                )
            }
            Changed::Removed { items_removed, items_not_in: 0 } => {
                format!("{} removed", say::items(items_removed))
            }
            Changed::Removed { items_removed, items_not_in } => {
                let not_in = say::count(items_not_in);
                format!("{} removed, {not_in} not in the filter", say::items(items_removed))
            }
        };
        let (now, took) = (say::items(self.saved.items), self.saved.took());
        format!(
            "{}: {done}; {now} now, false-positive rate {}, {took}",
            self.out,
            say::rate(self.saved.expected_fpr)
        )
    }
}
