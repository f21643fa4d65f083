//! The world outside of a command: limits, parameters, the clock, randomness.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::parameters::Parameters;
use crate::refusal::Refusal;

/// What a command may know of the world, and the one door through which new memory comes.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What one filter may take.
    pub limits: &'a Limits,
    /// What all filters take and may take.
    pub budget: &'a Budget,
    /// The parameters of `CONFIG`.
    pub parameters: &'a Parameters,
    /// The clock and randomness.
    pub environment: &'a dyn Environment,
}

impl Context<'_> {
    /// May something be made, loaded or grown that then takes `bytes` in all, of which `more` are new? Ask before allocating.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] past the limit of one filter, [`Refusal::OutOfMemory`] past that of all.
    pub fn admit(&self, bytes: u64, more: u64) -> Result<(), Refusal> {
        if bytes > self.limits.filter_bytes {
            return Err(Refusal::TooLarge { bytes, limit: self.limits.filter_bytes });
        }
        self.budget.admit(more)
    }

    /// [`admit`](Self::admit) for what took `booked` bytes when the request began and would take `bytes`.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn grow(&self, bytes: u64, booked: u64) -> Result<(), Refusal> {
        self.admit(bytes, bytes.saturating_sub(booked))
    }

    /// How large what takes `bytes` now may become by [`admit`](Self::admit)'s rules: the limit for whatever grows, or decodes, on its own.
    #[must_use]
    pub fn allowance(&self, bytes: u64) -> u64 {
        self.limits.filter_bytes.min(bytes.saturating_add(self.budget.room()))
    }
}

/// What one request and one filter may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one filter.
    pub filter_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { filter_bytes: 1 << 40 }
    }
}

/// The memory of all filters together.
#[derive(Debug, Default)]
pub struct Budget {
    used: AtomicU64,
    /// 0: any amount.
    limit: AtomicU64,
}

impl Budget {
    /// May `more` bytes be taken?
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`].
    pub fn admit(&self, more: u64) -> Result<(), Refusal> {
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && self.used.load(Ordering::Relaxed).saturating_add(more) > limit {
            return Err(Refusal::OutOfMemory);
        }
        Ok(())
    }

    /// How many more bytes may be taken.
    #[must_use]
    pub fn room(&self) -> u64 {
        match self.limit() {
            0 => u64::MAX,
            limit => limit.saturating_sub(self.used()),
        }
    }

    /// Books that what took `before` bytes takes `after` now.
    pub fn book(&self, before: u64, after: u64) {
        if after >= before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Bytes all filters take.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes all filters may take; 0 means any amount.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// From now on they may take so many; 0 means any amount.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }
}

/// The clock and randomness. Tests bring their own, so that a history can be played again.
pub trait Environment: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Nanoseconds since any moment, for durations; never goes back.
    fn monotonic_ns(&self) -> u64 {
        self.now_ms().saturating_mul(1_000_000)
    }
    /// Fills `bytes` with randomness that strangers cannot guess.
    fn random(&self, bytes: &mut [u8]);
}
