//! Background work of the server: removes expired names, writes snapshots, closes connections that exceed a
//! timeout or the buffer limit, and watches for overfull filters.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::overfull::Rounds;
use crate::shared::Shared;

/// The time between two rounds of background work.
const TICK: Duration = Duration::from_millis(100);
/// The maximum time for removing expired names in one round.
const SWEEP: Duration = Duration::from_millis(5);
/// The minimum time between two snapshots that are written because the log is long.
const AGAIN: Duration = Duration::from_secs(5);
/// The time until the next round if expired names are left.
const SOON: Duration = Duration::from_millis(10);

/// The time between two checks for connections that exceed a timeout.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the thread. It ends when the server stops.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("housekeeping".to_owned()).spawn(move || run_housekeeping(&shared))
}

fn run_housekeeping(shared: &Arc<Shared>) {
    let mut last_save = Instant::now();
    let mut last_look = Instant::now();
    let mut has_told = false;
    let mut rounds = Rounds::default();
    while !shared.is_stopping() {
        let more = shared.engine().sweep(SWEEP);
        shared.clients().close_overfull(shared.settings().buffers_limit);
        if last_look.elapsed() >= LOOK {
            last_look = Instant::now();
            shared.clients().close_overdue(shared.idle_timeout());
        }
        if let Some(why) = shared.engine().log().and_then(|log| log.failure()).filter(|_| !has_told) {
            has_told = true;
            tracing::error!(
                why,
                "the log failed: changes are refused until a restart, lookups continue; check the disk, then restart"
            );
        }
        rounds.go_on(shared);
        let every = shared.save_interval();
        let is_time = !every.is_zero() && last_save.elapsed() >= every;
        // After a failure, most likely a full disk, do not try again ten times a second.
        let is_due = last_save.elapsed() >= AGAIN && shared.engine().is_snapshot_due();
        if (is_time || is_due) && shared.saving().folder().is_some() {
            last_save = Instant::now();
            if is_due || shared.saving().changes(shared.engine()) > 0 {
                // An error means that a snapshot is already under way, which is fine.
                let _ = shared.saving().save_in_background(shared.engine());
            }
        }
        std::thread::sleep(if more { SOON } else { TICK });
    }
}
