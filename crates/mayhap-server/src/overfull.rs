//! Watches for overfull filters: a line in the log for each threshold a filter passes, and figures for `INFO`
//! and `/metrics`.

use std::time::{Duration, Instant};

use mayhap_command::Assessment;
use mayhap_command::overfull::{Figures, Overfull};

use crate::shared::Shared;

/// Time for looking at filters in each tick of the housekeeping. It is at most 2 % of one processor, and
/// enough for a million small filters in less than a minute.
const LOOK: Duration = Duration::from_millis(2);
/// The minimum time between the end of a round and the next one.
const REST: Duration = Duration::from_secs(1);
/// The maximum time between two rounds, if nothing was changed.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// The number of bytes of a name that the log shows.
const SHOWN_BYTES: usize = 128;

/// Repeated rounds over all filters.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    overfull: Overfull,
    /// The cursor of the current round, if one is under way.
    cursor: Option<u64>,
    /// When the last round ended, and the number of changes when it began.
    last: Option<(Instant, u64)>,
    /// The number of changes when the current round began.
    changes: u64,
}

impl Rounds {
    /// Continues the round for [`LOOK`].
    pub(crate) fn go_on(&mut self, shared: &Shared) {
        if shared.is_loading() {
            return;
        }
        let cursor = match self.cursor {
            Some(cursor) => cursor,
            None if !self.is_due(shared) => return,
            None => {
                self.changes = shared.engine().totals().changes;
                0
            }
        };
        let next = shared.engine().look_for_overfull(cursor, LOOK, &mut self.overfull, tell);
        self.cursor = Some(next).filter(|&next| next != 0);
        if next == 0 {
            let round = self.overfull.end_round();
            if round.without_line > 0 {
                tracing::warn!(
                    filters = round.without_line,
                    "more filters are above their target false-positive rate; MF.INFO shows the rate of each"
                );
            }
            shared.set_overfull(round.figures);
            self.last = Some((Instant::now(), self.changes));
        }
    }

    fn is_due(&self, shared: &Shared) -> bool {
        self.last.is_none_or(|(ended, changes)| {
            let rested = ended.elapsed();
            rested >= LONGEST_REST || rested >= REST && shared.engine().totals().changes != changes
        })
    }
}

fn tell(name: &[u8], seen: &Assessment) {
    let name = String::from_utf8_lossy(&name[..name.len().min(SHOWN_BYTES)]);
    tracing::warn!(filter = &*name, health = seen.health.name(), "{}", seen.warning());
}

/// The figures of the last round.
pub(crate) type LastRound = parking_lot::Mutex<Figures>;
