//! The clock and random numbers of the machine, and how a run of requests sees them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mayhap_command::Environment;

/// The clock and random numbers of the machine.
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
    /// If the operating system provides no random numbers, which no supported system admits.
    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system provides random numbers");
    }
}

/// The environment of a run of requests, and the number of its last log record.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    world: mayhap_command::ReplayableEnvironment<'a>,
    /// Every change of this run has a number below this one in the log.
    logged: AtomicU64,
}

impl<'a> Moment<'a> {
    /// The environment of a run that begins now.
    pub(crate) const fn new(ms: u64, environment: &'a dyn Environment) -> Self {
        Self { world: mayhap_command::ReplayableEnvironment::new(ms, environment), logged: AtomicU64::new(0) }
    }

    /// The environment of a past run, with the random bytes it drew.
    pub(crate) const fn again(ms: u64, random: &'a [u8]) -> Self {
        Self { world: mayhap_command::ReplayableEnvironment::again(ms, random), logged: AtomicU64::new(0) }
    }

    /// Takes the random bytes drawn since the last call.
    pub(crate) fn take_drawn(&self) -> Vec<u8> {
        self.world.take_drawn()
    }

    /// Records that a change got this number in the log.
    pub(crate) fn log(&self, number: u64) {
        self.logged.fetch_max(number + 1, Relaxed);
    }

    /// Every change of this run has a number below this one in the log.
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
