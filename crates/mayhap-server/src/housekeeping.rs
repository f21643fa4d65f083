//! What the server does on its own: names that expired are removed, snapshots are written.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::shared::Shared;

/// How often it looks what there is to do.
const TICK: Duration = Duration::from_millis(100);
/// How long it removes expired names before others may have the processor.
const SWEEP: Duration = Duration::from_millis(5);
/// How soon it goes on when there are more.
const SOON: Duration = Duration::from_millis(10);

/// Starts the thread; it ends when the server stops.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("housekeeping".to_owned()).spawn(move || keep_house(&shared))
}

fn keep_house(shared: &Arc<Shared>) {
    let mut last_save = Instant::now();
    while !shared.is_stopping() {
        let more = shared.engine().sweep(SWEEP);
        let every = shared.save_interval();
        let is_time = !every.is_zero() && last_save.elapsed() >= every;
        if is_time && shared.saving().folder().is_some() {
            last_save = Instant::now();
            if shared.saving().changes(shared.engine()) > 0 {
                // One that is under way already is as good.
                let _ = shared.saving().save_in_background(shared.engine());
            }
        }
        std::thread::sleep(if more { SOON } else { TICK });
    }
}
