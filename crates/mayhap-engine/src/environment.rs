//! The clock and the randomness of the machine.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mayhap_command::Environment;

/// The machine's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Environment for System {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic_ns(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// # Panics
    /// If the system has no randomness to give, which no system we run on admits to.
    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}
