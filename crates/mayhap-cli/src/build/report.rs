//! The report about a built filter, as text and as JSON.

use std::time::Duration;

use mayhap::{Filter, say};
use serde::Serialize;

use super::Built;
use crate::progress;

/// The report about a built filter. The field names are a stable interface.
#[derive(Debug, Serialize)]
pub(super) struct BuildReport {
    /// The file.
    out: String,
    /// The kind, named as in `--kind`, or the other program's format.
    kind: String,
    format: &'static str,
    /// Items read.
    items_read: u64,
    /// Distinct items: counted if possible, otherwise as counted by the filter, which counts a few new items as
    /// duplicates.
    items_distinct: u64,
    /// The capacity of the filter, in items.
    capacity: u64,
    target_fpr: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    file_bytes: u64,
    /// Bits per item of the capacity, or per inserted item if those are more; `None` for a bitmap.
    bits_per_item: Option<f64>,
    /// Bytes that were written to a temporary file.
    spilled_bytes: u64,
    seconds: f64,
    /// There were more items than `--items`.
    over_capacity: bool,
    #[serde(skip)]
    told: Option<u64>,
    #[serde(skip)]
    exact: bool,
}

impl BuildReport {
    pub(super) fn new(built: &Built, out: String, file_bytes: u64, took: Duration) -> Self {
        let filter = &built.filter;
        let items = filter.inserted();
        let exact = matches!(filter, Filter::Bitmap(_));
        let room = filter.capacity().max(items).max(1);
        let over = built.told.is_some_and(|told| items > told && filter.expected_fpr() > built.target_fpr);
        Self {
            out,
            kind: built.kind.clone(),
            format: built.format.name(),
            items_read: built.read,
            items_distinct: built.distinct.unwrap_or(items),
            capacity: filter.capacity(),
            target_fpr: built.target_fpr,
            expected_fpr: filter.expected_fpr(),
            memory_bytes: filter.memory_bytes(),
            file_bytes,
            bits_per_item: (!exact).then(|| filter.memory_bytes() as f64 * 8.0 / room as f64),
            spilled_bytes: built.spilled_bytes,
            seconds: took.as_secs_f64(),
            over_capacity: over,
            told: built.told,
            exact,
        }
    }

    /// The warning to print, if any.
    pub(super) fn warning(&self) -> Option<String> {
        if self.items_read == 0 {
            return Some(format!("{}: the input has no items", self.out));
        }
        let told = self.told.filter(|_| self.over_capacity)?;
        let (told, got) = (say::count(told), say::count(self.items_distinct));
        let (now, target) = (say::rate(self.expected_fpr), say::rate(self.target_fpr));
        Some(format!(
            "{}: --items is {told}, but there were at least {got} distinct items: the false-positive rate is {now}, not {target}",
            self.out
        ))
    }

    /// The report as one line of text.
    pub(super) fn text(&self) -> String {
        let new = match self.items_distinct {
            new if new == self.items_read => String::new(),
            new => format!(", {} of them new", say::count(new)),
        };
        let rate = match (self.exact, say::rate(self.expected_fpr), say::rate(self.target_fpr)) {
            (true, ..) => "exact (no false positives)".into(),
            (false, now, target) if now == target => format!("false-positive rate {now}"),
            (false, now, target) => format!("false-positive rate {now} (target {target})"),
        };
        let room = say::count(self.capacity.max(self.items_distinct));
        let bits =
            self.bits_per_item.map_or_else(String::new, |bits| format!(" for {room} ({bits:.1} bits each)"));
        format!(
            "{}: {}, {}{new}, {}{bits}, {rate}, {}",
            self.out,
            self.kind,
            say::items(self.items_read),
            say::bytes(self.file_bytes),
            progress::duration(Duration::from_secs_f64(self.seconds)),
        )
    }
}
