//! Filters that are past what they were made for: a line in the log for each threshold one passes, and figures for `INFO` and `/metrics`.

use std::time::{Duration, Instant};

use mayhap_command::Assessment;
use mayhap_command::overfull::{Figures, Overfull};

use crate::shared::Shared;

/// How long filters are looked at in each tick of the housekeeping: at most 2 % of one processor, and a million small filters in less than
/// a minute.
const LOOK: Duration = Duration::from_millis(2);
/// The shortest time between the end of a round and the next one.
const REST: Duration = Duration::from_secs(1);
/// The longest, if nothing was changed meanwhile.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Bytes of a name in the log.
const SHOWN_BYTES: usize = 128;

/// One round after the other.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    overfull: Overfull,
    /// Where the round goes on, if one is under way.
    cursor: Option<u64>,
    /// When the last one ended, and how many changes there had been when it began.
    last: Option<(Instant, u64)>,
    /// The same of this one.
    changes: u64,
}

impl Rounds {
    /// Goes on for a moment.
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
                    "more filters answer maybe for non-members more often than promised; MF.INFO tells of each"
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

/// What the last round found.
pub(crate) type LastRound = parking_lot::Mutex<Figures>;
