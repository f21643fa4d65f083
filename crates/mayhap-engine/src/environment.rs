//! The clock and the randomness of the machine, and as a run of requests sees them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// The world as a run of requests sees it, and how far what it changed is in the log.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    world: mayhap_command::Moment<'a>,
    /// Everything this run changed has a number below this one in the log.
    logged: AtomicU64,
}

impl<'a> Moment<'a> {
    /// Now.
    pub(crate) const fn new(ms: u64, environment: &'a dyn Environment) -> Self {
        Self { world: mayhap_command::Moment::new(ms, environment), logged: AtomicU64::new(0) }
    }

    /// One that was before, with the randomness that was drawn then.
    pub(crate) const fn again(ms: u64, random: &'a [u8]) -> Self {
        Self { world: mayhap_command::Moment::again(ms, random), logged: AtomicU64::new(0) }
    }

    /// What was drawn since this was last asked.
    pub(crate) fn take_drawn(&self) -> Vec<u8> {
        self.world.take_drawn()
    }

    /// A change got this number in the log.
    pub(crate) fn log(&self, number: u64) {
        self.logged.fetch_max(number + 1, Relaxed);
    }

    /// Everything this run changed has a number below this one in the log.
    pub(crate) fn logged(&self) -> u64 {
        self.logged.load(Relaxed)
    }
}

impl Environment for Moment<'_> {
    fn now_ms(&self) -> u64 {
        self.world.now_ms()
    }

    fn random(&self, bytes: &mut [u8]) {
        self.world.random(bytes);
    }
}
