//! An engine with a clock that the test controls, and requests as lines.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code)]

pub(crate) mod histories;
pub(crate) mod simulated;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::{Environment, Limits, Reply, Request, Scratch, table};
use mayhap_engine::Engine;

/// A clock that stands still unless a test sets it, and reproducible random numbers.
#[derive(Debug)]
pub(crate) struct FixedClock {
    now_ms: AtomicU64,
    random: AtomicU64,
}

impl FixedClock {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicU64::new(1_700_000_000_000), random: AtomicU64::new(seed) })
    }

    /// Another one with the same time.
    pub(crate) fn like(&self, seed: u64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicU64::new(self.now_ms.load(Relaxed)), random: AtomicU64::new(seed) })
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Relaxed);
    }
}

impl Environment for FixedClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Relaxed)
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let state = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
            *byte = (mix(state) >> 32) as u8;
        }
    }
}

/// The last step of splitmix64.
pub(crate) fn mix(state: u64) -> u64 {
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// Pseudorandom numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % end
    }
}

pub(crate) fn engine() -> (Engine, Arc<FixedClock>) {
    let clock = FixedClock::new(1);
    (Engine::new(Limits::default(), clock.clone()), clock)
}

/// Runs requests, one per line, with words separated by blanks, and returns the replies.
pub(crate) fn run<L: AsRef<str>>(engine: &Engine, lines: &[L]) -> Vec<Reply> {
    let words: Vec<Vec<&[u8]>> =
        lines.iter().map(|line| line.as_ref().split(' ').map(str::as_bytes).collect()).collect();
    let requests: Vec<Request<'_>> = words
        .iter()
        .map(|words| Request { command: table::find(words[0]).expect("a command"), words })
        .collect();
    let mut replies = Vec::new();
    engine.execute(&requests, &mut Scratch::default(), &mut replies);
    replies
}

/// Runs one request and returns its reply.
pub(crate) fn one(engine: &Engine, line: &str) -> Reply {
    run(engine, &[line]).remove(0)
}

/// The text of a refusal.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Refused(refusal) => refusal.to_string(),
        reply => format!("{reply:?}"),
    }
}
