//! The world as one run of requests sees it: so that they can be run again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::context::Environment;

/// The time stands still for a run of requests, and what randomness they drew is remembered.
#[derive(Debug)]
pub struct Moment<'a> {
    /// Milliseconds since 1970; 0: nobody asked yet.
    ms: AtomicU64,
    chance: Chance<'a>,
    /// What was drawn since it was last taken.
    drawn: Mutex<Vec<u8>>,
}

#[derive(Debug)]
enum Chance<'a> {
    Of(&'a dyn Environment),
    /// What was drawn the first time.
    Again(Mutex<&'a [u8]>),
}

impl<'a> Moment<'a> {
    /// At this time.
    #[must_use]
    pub const fn new(ms: u64, environment: &'a dyn Environment) -> Self {
        Self::with(ms, Chance::Of(environment))
    }

    /// When somebody first asks what time it is.
    #[must_use]
    pub const fn lazy(environment: &'a dyn Environment) -> Self {
        Self::with(0, Chance::Of(environment))
    }

    /// One that was before, with the randomness that was drawn then.
    #[must_use]
    pub const fn again(ms: u64, random: &'a [u8]) -> Self {
        Self::with(ms, Chance::Again(Mutex::new(random)))
    }

    const fn with(ms: u64, chance: Chance<'a>) -> Self {
        Self { ms: AtomicU64::new(ms), chance, drawn: Mutex::new(Vec::new()) }
    }

    /// What was drawn since this was last asked.
    pub fn take_drawn(&self) -> Vec<u8> {
        self.drawn.lock().map(|mut drawn| std::mem::take(&mut *drawn)).unwrap_or_default()
    }

    /// The time, if it was given or somebody asked.
    #[must_use]
    pub fn asked_ms(&self) -> Option<u64> {
        Some(self.ms.load(Relaxed)).filter(|ms| *ms > 0)
    }
}

impl Environment for Moment<'_> {
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

    /// A clock and a die that never say the same twice.
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
    fn what_was_seen_once_is_seen_again() {
        let restless = Restless::default();
        let moment = Moment::lazy(&restless);
        assert_eq!(moment.asked_ms(), None);
        let (ms, mut first, mut second) = (moment.now_ms(), [0; 3], [0; 2]);
        moment.random(&mut first);
        moment.random(&mut second);
        assert_eq!((moment.now_ms(), moment.asked_ms()), (ms, Some(ms)));
        let drawn = moment.take_drawn();
        assert_eq!((drawn.len(), moment.take_drawn().len()), (5, 0));

        let again = Moment::again(ms, &drawn);
        let mut all = [0; 5];
        again.random(&mut all);
        assert_eq!((again.now_ms(), all[..3] == first, all[3..] == second), (ms, true, true));
    }
}
