//! Looks at all filters, a few at a time, for those that are past what they were made for.

use std::time::Duration;

use mayhap_command::overfull::Overfull;
use mayhap_command::{Assessment, health};

use crate::engine::Engine;

/// Names that are fetched at once; up to a segment of the keyspace more.
const AT_ONCE: u64 = 16;
/// How long a name is waited for that another thread has for itself.
const PATIENCE: Duration = Duration::from_millis(1);

impl Engine {
    /// Looks at filters from `cursor` on, which is 0 at first and then what the call before said, for about as long as `budget`. Says where to
    /// go on; 0: that was all of them. `tell` is called for each that is worth a line. A client waits for no more than the look at one filter,
    /// which reads at most 64 KiB of it.
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
