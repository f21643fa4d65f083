//! The facts about the written filter in the reports of `add`, `remove` and `merge`.

use std::time::Duration;

use mayhap::Filter;
use serde::Serialize;

use crate::{health, progress};

/// A filter that was written. The field names are a stable interface: they end the JSON objects of these reports.
#[derive(Debug, Serialize)]
pub(crate) struct SavedFilter {
    /// Items in the filter, as counted by the filter.
    pub(crate) items: u64,
    /// The capacity of the filter, in items.
    capacity: u64,
    target_fpr: f64,
    pub(crate) expected_fpr: f64,
    memory_bytes: u64,
    pub(crate) file_bytes: u64,
    seconds: f64,
    /// Whether the false-positive rate is higher than the target.
    over_capacity: bool,
    /// Warnings for the user.
    warnings: Vec<String>,
}

impl SavedFilter {
    pub(crate) fn new(filter: &Filter, file_bytes: u64, took: Duration) -> Self {
        Self {
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

    /// Returns the warnings, with the name of the file.
    pub(crate) fn warnings(&self, out: &str) -> impl Iterator<Item = String> {
        self.warnings.iter().map(move |warning| format!("{out}: {warning}"))
    }

    /// Returns how long it took.
    pub(crate) fn took(&self) -> String {
        progress::duration(Duration::from_secs_f64(self.seconds))
    }
}
