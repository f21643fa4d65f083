//! Random histories, one per seed, on all processors, until enough states were seen.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// The situations that histories met.
pub(crate) trait Coverage: Default + Send {
    /// The number of states that were tried.
    fn states(&self) -> u64;
    /// Adds the counts of another one.
    fn add(&mut self, other: Self);
}

/// The number in this environment variable.
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Runs histories until they saw as many states as `MAYHAP_CRASH_STATES` says, or `usual`. Returns the
/// situations they met and their number. If `MAYHAP_CRASH_SEED` is set, runs only that one and returns
/// nothing.
pub(crate) fn see<S: Coverage>(
    usual: u64,
    history: impl Fn(u64, &mut S) -> Result<(), String> + Sync,
) -> Option<(S, u64)> {
    if let Some(seed) = setting("MAYHAP_CRASH_SEED") {
        history(seed, &mut S::default()).unwrap();
        return None;
    }
    let wanted = setting("MAYHAP_CRASH_STATES").unwrap_or(usual);
    let (seeds, all) = (AtomicU64::new(0), Mutex::new(S::default()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while all.lock().unwrap().states() < wanted {
                    let mut seen = S::default();
                    if let Err(what) = history(seeds.fetch_add(1, Relaxed), &mut seen) {
                        panic!("{what}; MAYHAP_CRASH_SEED runs only this seed");
                    }
                    all.lock().unwrap().add(seen);
                }
            });
        }
    });
    Some((all.into_inner().unwrap(), seeds.into_inner()))
}
