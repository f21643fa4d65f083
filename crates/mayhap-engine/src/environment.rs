//! The clock and the randomness of the machine, and as a run of requests sees them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mayhap_command::Environment;
use parking_lot::Mutex;

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

/// The time stands still for a run of requests, and what randomness they drew is remembered: so they can be run again.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    ms: u64,
    chance: Chance<'a>,
    /// What was drawn since it was last taken.
    drawn: Mutex<Vec<u8>>,
    /// Everything this run changed has a number below this one in the log.
    logged: AtomicU64,
}

#[derive(Debug)]
enum Chance<'a> {
    Of(&'a dyn Environment),
    /// What was drawn the first time.
    Again(Mutex<&'a [u8]>),
}

impl<'a> Moment<'a> {
    /// Now.
    pub(crate) const fn new(ms: u64, environment: &'a dyn Environment) -> Self {
        Self::with(ms, Chance::Of(environment))
    }

    /// One that was before, with the randomness that was drawn then.
    pub(crate) const fn again(ms: u64, random: &'a [u8]) -> Self {
        Self::with(ms, Chance::Again(Mutex::new(random)))
    }

    const fn with(ms: u64, chance: Chance<'a>) -> Self {
        Self { ms, chance, drawn: Mutex::new(Vec::new()), logged: AtomicU64::new(0) }
    }

    /// What was drawn since this was last asked.
    pub(crate) fn take_drawn(&self) -> Vec<u8> {
        std::mem::take(&mut self.drawn.lock())
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
        self.ms
    }

    fn random(&self, bytes: &mut [u8]) {
        match &self.chance {
            Chance::Of(environment) => {
                environment.random(bytes);
                self.drawn.lock().extend_from_slice(bytes);
            }
            Chance::Again(drawn) => {
                let mut drawn = drawn.lock();
                let some = bytes.len().min(drawn.len());
                bytes[..some].copy_from_slice(&drawn[..some]);
                *drawn = &drawn[some..];
            }
        }
    }
}
