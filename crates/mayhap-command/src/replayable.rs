//! An environment that records what requests saw of the clock and of randomness, so that they can be replayed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::context::Environment;

/// An [`Environment`] whose clock stands still, and which records the random bytes that requests drew.
#[derive(Debug)]
pub struct ReplayableEnvironment<'a> {
    /// Milliseconds since 1970; 0 if the time was not read yet.
    ms: AtomicU64,
    chance: Chance<'a>,
    /// Random bytes drawn since the last [`take_drawn`](Self::take_drawn).
    drawn: Mutex<Vec<u8>>,
}

#[derive(Debug)]
enum Chance<'a> {
    Of(&'a dyn Environment),
    /// Returns the random bytes that were drawn the first time.
    Again(Mutex<&'a [u8]>),
}

impl<'a> ReplayableEnvironment<'a> {
    /// At a given time.
    #[must_use]
    pub const fn new(ms: u64, environment: &'a dyn Environment) -> Self {
        Self::with(ms, Chance::Of(environment))
    }

    /// Reads the clock when a request first asks for the time.
    #[must_use]
    pub const fn lazy(environment: &'a dyn Environment) -> Self {
        Self::with(0, Chance::Of(environment))
    }

    /// Replays a recorded time and recorded random bytes.
    #[must_use]
    pub const fn again(ms: u64, random: &'a [u8]) -> Self {
        Self::with(ms, Chance::Again(Mutex::new(random)))
    }

    const fn with(ms: u64, chance: Chance<'a>) -> Self {
        Self { ms: AtomicU64::new(ms), chance, drawn: Mutex::new(Vec::new()) }
    }

    /// Takes the random bytes drawn since the last call.
    pub fn take_drawn(&self) -> Vec<u8> {
        self.drawn.lock().map(|mut drawn| std::mem::take(&mut *drawn)).unwrap_or_default()
    }

    /// The time, if it was given or was read.
    #[must_use]
    pub fn asked_ms(&self) -> Option<u64> {
        Some(self.ms.load(Relaxed)).filter(|ms| *ms > 0)
    }
}

impl Environment for ReplayableEnvironment<'_> {
    fn now_ms(&self) -> u64 {
        match (self.ms.load(Relaxed), &self.chance) {
            (0, Chance::Of(environment)) => {
                let now = environment.now_ms();
                self.ms.store(now, Relaxed);
                now
            }
            (ms, _) => ms,
        }
    }

    fn random(&self, bytes: &mut [u8]) {
        match &self.chance {
            Chance::Of(environment) => {
                environment.random(bytes);
                if let Ok(mut drawn) = self.drawn.lock() {
                    drawn.extend_from_slice(bytes);
                }
            }
            Chance::Again(drawn) => {
                let Ok(mut drawn) = drawn.lock() else { return };
                let some = bytes.len().min(drawn.len());
                bytes[..some].copy_from_slice(&drawn[..some]);
                *drawn = &drawn[some..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use super::*;

    /// A clock and a random source that never return the same value twice.
    #[derive(Debug, Default)]
    struct Restless(AtomicU8);

    impl Environment for Restless {
        fn now_ms(&self) -> u64 {
            1_000 + u64::from(self.0.fetch_add(1, Relaxed))
        }

        fn random(&self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.0.fetch_add(1, Relaxed));
        }
    }

    #[test]
    fn a_replay_sees_the_recorded_time_and_random_bytes() {
        let restless = Restless::default();
        let moment = ReplayableEnvironment::lazy(&restless);
        assert_eq!(moment.asked_ms(), None);
        let (ms, mut first, mut second) = (moment.now_ms(), [0; 3], [0; 2]);
        moment.random(&mut first);
        moment.random(&mut second);
        assert_eq!((moment.now_ms(), moment.asked_ms()), (ms, Some(ms)));
        let drawn = moment.take_drawn();
        assert_eq!((drawn.len(), moment.take_drawn().len()), (5, 0));

        let again = ReplayableEnvironment::again(ms, &drawn);
        let mut all = [0; 5];
        again.random(&mut all);
        assert_eq!((again.now_ms(), all[..3] == first, all[3..] == second), (ms, true, true));
    }
}
