//! What the server does on its own: names that expired are removed, snapshots are written, connections that take too long or too much
//! are closed, filters are looked at for those past what they were made for.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::overfull::Rounds;
use crate::shared::Shared;

/// How often it looks what there is to do.
const TICK: Duration = Duration::from_millis(100);
/// How long it removes expired names before others may have the processor.
const SWEEP: Duration = Duration::from_millis(5);
/// How soon after a snapshot another may be begun because the log is long.
const AGAIN: Duration = Duration::from_secs(5);
/// How soon it goes on when there are more.
const SOON: Duration = Duration::from_millis(10);

/// How often it looks for connections that take too long.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the thread; it ends when the server stops.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("housekeeping".to_owned()).spawn(move || keep_house(&shared))
}

fn keep_house(shared: &Arc<Shared>) {
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
            tracing::error!(why, "the log failed: changes are refused until a restart");
        }
        rounds.go_on(shared);
        let every = shared.save_interval();
        let is_time = !every.is_zero() && last_save.elapsed() >= every;
        // One that failed, for want of room most likely, is not tried ten times a second.
        let is_due = last_save.elapsed() >= AGAIN && shared.engine().is_snapshot_due();
        if (is_time || is_due) && shared.saving().folder().is_some() {
            last_save = Instant::now();
            if is_due || shared.saving().changes(shared.engine()) > 0 {
                // One that is under way already is as good.
                let _ = shared.saving().save_in_background(shared.engine());
            }
        }
        std::thread::sleep(if more { SOON } else { TICK });
    }
}
