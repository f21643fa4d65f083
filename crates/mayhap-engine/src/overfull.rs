//! Checks all filters, a few at a time, for overfull ones.

use std::time::Duration;

use mayhap_command::overfull::Overfull;
use mayhap_command::{Assessment, health};

use crate::engine::Engine;

/// The number of names that are fetched together, plus up to a segment of the keyspace.
const AT_ONCE: u64 = 16;
/// The maximum wait for a name that another thread has locked.
const PATIENCE: Duration = Duration::from_millis(1);

impl Engine {
    /// Checks filters from `cursor` on for about `budget`. The first cursor is 0. Returns the next cursor, or
    /// 0 after the last filter. Calls `tell` for each filter that deserves a line in the log. A client waits
    /// at most for the check of one filter, which reads at most 64 KiB of it.
    pub fn look_for_overfull(
        &self,
        mut cursor: u64,
        budget: Duration,
        overfull: &mut Overfull,
        mut tell: impl FnMut(&[u8], &Assessment),
    ) -> u64 {
        let end = self.environment.monotonic_ns().saturating_add(budget.as_nanos() as u64);
        let sampling = health::glance();
        loop {
            let (next, entries) = {
                let _open = self.gate.pass();
                self.walk_all(cursor, AT_ONCE)
            };
            for entry in &entries {
                let _open = self.gate.pass();
                if self.busy.has(entry.name()) {
                    overfull.skip(entry.name());
                    continue;
                }
                match entry.read_within(PATIENCE) {
                    None => overfull.skip(entry.name()),
                    Some(value) if entry.is_linked() => {
                        let seen = value.as_ref().and_then(|value| value.assess(sampling));
                        drop(value);
                        if let Some(seen) = seen
                            && overfull.see(entry.name(), &seen)
                        {
                            tell(entry.name(), &seen);
                        }
                    }
                    Some(_) => {}
                }
            }
            cursor = next;
            if cursor == 0 || self.environment.monotonic_ns() >= end {
                return cursor;
            }
        }
    }
}
