//! The outside world of a command: limits, parameters, the clock, randomness.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::parameters::Parameters;
use crate::refusal::Refusal;

/// What a command can see of the outside world. All new memory is admitted here.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The limits of one filter.
    pub limits: &'a Limits,
    /// The memory of all filters, and its limit.
    pub budget: &'a Budget,
    /// The parameters of `CONFIG`.
    pub parameters: &'a Parameters,
    /// The clock and randomness.
    pub environment: &'a dyn Environment,
}

impl Context<'_> {
    /// Admits memory for something that is created, loaded or grown: `bytes` in total, of which `more` are new. Call it before
    /// allocating.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] above the limit of one filter, [`Refusal::OutOfMemory`] above the limit of all.
    pub fn admit(&self, bytes: u64, more: u64) -> Result<(), Refusal> {
        if bytes > self.limits.filter_bytes {
            return Err(Refusal::TooLarge { bytes, limit: self.limits.filter_bytes });
        }
        self.budget.admit(more)
    }

    /// Like [`admit`](Self::admit), for something that took `booked` bytes when the request began and would take `bytes`.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn grow(&self, bytes: u64, booked: u64) -> Result<(), Refusal> {
        self.admit(bytes, bytes.saturating_sub(booked))
    }

    /// The size to which something that takes `bytes` now may grow by [`admit`](Self::admit)'s rules. This reserves nothing: other
    /// requests may get the same answer.
    #[must_use]
    pub fn allowance(&self, bytes: u64) -> u64 {
        self.limits.filter_bytes.min(bytes.saturating_add(self.budget.room()))
    }
}

/// The growth of one value within a request. Every step is admitted, and so reserved, before its memory is allocated.
#[derive(Debug)]
pub struct AdmittedGrowth {
    bytes: u64,
}

impl AdmittedGrowth {
    /// Starts at the number of bytes that it took when the request began.
    #[must_use]
    pub const fn from(booked: u64) -> Self {
        Self { bytes: booked }
    }

    /// Admits growth to `bytes` in total. Call it before allocating.
    ///
    /// # Errors
    /// As [`Context::admit`].
    pub fn to(&mut self, bytes: u64, context: &Context<'_>) -> Result<(), Refusal> {
        context.grow(bytes, self.bytes)?;
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }
}

/// The limits of one request and one filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of one filter in bytes.
    pub filter_bytes: u64,
    /// Do settings limit requests and loads? Not in a replay from a log, a file or a master: the request was allowed once.
    pub bound_by_settings: bool,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { filter_bytes: u64::MAX, bound_by_settings: false };
}

impl Default for Limits {
    fn default() -> Self {
        Self { filter_bytes: 1 << 40, bound_by_settings: true }
    }
}

/// The memory of all filters together.
#[derive(Debug, Default)]
pub struct Budget {
    used: AtomicU64,
    /// 0 means unlimited.
    limit: AtomicU64,
    /// Bytes reserved by running requests and not booked yet.
    promised: AtomicU64,
}

thread_local! {
    /// Bytes reserved by the request that this thread runs; `None` if the caller does not use reservations.
    static PROMISED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, memory admitted on this thread stays reserved, so that no other request is admitted to the same memory.
#[derive(Debug)]
#[must_use = "the reservations end when it is dropped"]
pub struct Promises<'a> {
    budget: &'a Budget,
    /// Bytes reserved by the outer request, if this request runs inside another one.
    outer: Option<u64>,
    /// Not `Send`: it belongs to its thread.
    _here: PhantomData<*const ()>,
}

impl Promises<'_> {
    /// Ends a request whose memory is booked: its reservations no longer count.
    pub fn settle(&self) {
        if let Some(promised @ 1..) = PROMISED.replace(Some(0)) {
            self.budget.promised.fetch_sub(promised, Ordering::Relaxed);
        }
    }
}

impl Drop for Promises<'_> {
    fn drop(&mut self) {
        self.settle();
        PROMISED.set(self.outer);
    }
}

/// Memory that stays admitted while this value lives.
#[derive(Debug)]
#[must_use = "the memory is released when it is dropped"]
pub struct ForNow<'a> {
    budget: &'a Budget,
    /// The number of reserved bytes; 0 if the caller does not use reservations.
    bytes: u64,
}

impl Drop for ForNow<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl Budget {
    /// From now on, memory admitted on this thread is reserved. May be nested: an inner request ends only its own reservations.
    pub fn promises(&self) -> Promises<'_> {
        Promises { budget: self, outer: PROMISED.replace(Some(0)), _here: PhantomData }
    }

    /// Admits `more` bytes and reserves them until the request ends.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`].
    pub fn admit(&self, more: u64) -> Result<(), Refusal> {
        let limit = self.limit();
        if limit == 0 {
            return Ok(());
        }
        let Some(promised) = PROMISED.get().filter(|_| more > 0) else {
            return if more > self.room() || self.is_past(limit) {
                Err(Refusal::OutOfMemory)
            } else {
                Ok(())
            };
        };
        let others = self.promised.fetch_add(more, Ordering::Relaxed);
        if self.used().saturating_add(others).saturating_add(more) > limit {
            self.promised.fetch_sub(more, Ordering::Relaxed);
            return Err(Refusal::OutOfMemory);
        }
        PROMISED.set(Some(promised.saturating_add(more)));
        Ok(())
    }

    /// [`admit`](Self::admit)s temporary memory, until the returned guard is dropped.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn admit_for_now(&self, more: u64) -> Result<ForNow<'_>, Refusal> {
        let promised = || PROMISED.get().unwrap_or(0);
        let before = promised();
        self.admit(more)?;
        Ok(ForNow { budget: self, bytes: promised() - before })
    }

    /// Releases temporary memory that was admitted on this thread.
    pub fn release(&self, bytes: u64) {
        if let Some(promised) = PROMISED.get() {
            let bytes = bytes.min(promised);
            PROMISED.set(Some(promised - bytes));
            self.promised.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn is_past(&self, limit: u64) -> bool {
        self.used() > limit
    }

    /// The number of bytes that can still be allocated, without those reserved by other requests.
    #[must_use]
    pub fn room(&self) -> u64 {
        match self.limit() {
            0 => u64::MAX,
            limit => {
                let mine = PROMISED.get().unwrap_or(0);
                let others = self.promised.load(Ordering::Relaxed).saturating_sub(mine);
                limit.saturating_sub(self.used().saturating_add(others))
            }
        }
    }

    /// Books that something grew or shrank from `before` to `after` bytes.
    pub fn book(&self, before: u64, after: u64) {
        if after >= before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Bytes that all filters take.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit for all filters in bytes; 0 means unlimited.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit for all filters in bytes; 0 means unlimited.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }
}

/// The clock and randomness. Tests bring their own, so that runs can be replayed.
pub trait Environment: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Monotonic nanoseconds since an arbitrary time, for durations.
    fn monotonic_ns(&self) -> u64 {
        self.now_ms().saturating_mul(1_000_000)
    }
    /// Fills `bytes` with randomness that an attacker cannot predict.
    fn random(&self, bytes: &mut [u8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::stage::Stage;
    use crate::reply::Reply;

    /// Other requests must not be admitted to memory that a filter takes while it grows.
    #[test]
    fn growth_is_reserved_before_it_is_allocated() {
        const LIMIT: u64 = 1 << 30;
        for (make, add) in [
            ("BF.RESERVE f 0.01 1000 EXPANSION 2", "BF.ADD"),
            ("CF.RESERVE f 1024 EXPANSION 2", "CF.ADD"),
            ("MF.RESERVE f KIND scalable TIERS 1000,10000,100000 FPR 0.01", "MF.ADD"),
            ("MF.RESERVE f KIND growing CAPACITY 500", "MF.ADD"),
            ("MF.RESERVE f KIND growable-cuckoo CAPACITY 1000 MAX 8000", "MF.ADD"),
            ("MF.RESERVE f KIND scalable-cuckoo CAPACITY 1000", "MF.ADD"),
            ("MF.RESERVE f KIND fingerprints", "MF.ADD"),
            ("SET f x", "APPEND"),
        ] {
            let mut stage = Stage::new();
            assert_eq!(stage.run(make), Reply::Ok, "{make}");
            for item in 0..200 {
                stage.run(&format!("{add} f first{item}"));
            }
            stage.budget.set_limit(LIMIT);
            // A request that never ends.
            std::mem::forget(stage.budget.promises());
            let before = stage.budget.used();
            for item in 0.. {
                assert!(item < 100_000, "{make}: the filter does not grow");
                // The request before has ended.
                stage.budget.release(u64::MAX);
                stage.run(&format!("{add} f {item}"));
                if stage.budget.used() > before {
                    break;
                }
            }
            let grown = stage.budget.used() - before;
            let room = std::thread::scope(|scope| scope.spawn(|| stage.budget.room()).join().unwrap());
            let promised = LIMIT - stage.budget.used() - room;
            // Admitted memory is reserved whether or not it is allocated.
            assert!(promised >= grown && promised <= 4 * grown.max(1_024), "{make}: {promised} for {grown}");
        }
    }

    /// While a filter doubles, the old and the new table exist together, and both need memory.
    #[test]
    fn a_doubling_filter_is_admitted_with_its_old_table() {
        for make in [
            "MF.RESERVE f KIND growing CAPACITY 20000",
            "MF.RESERVE f KIND growable-cuckoo CAPACITY 20000 MAX 1000000",
        ] {
            // Twice as large in the end, three times as large while it doubles.
            for (tenths, grows) in [(25, false), (35, true)] {
                let mut stage = Stage::new();
                assert_eq!(stage.run(make), Reply::Ok, "{make}");
                let before = stage.budget.used();
                stage.budget.set_limit(before * tenths / 10);
                // As a server does, for every request.
                std::mem::forget(stage.budget.promises());
                let mut refused = 0;
                for item in 0..60_000 {
                    stage.budget.release(u64::MAX);
                    refused += u32::from(matches!(stage.run(&format!("MF.ADD f {item}")), Reply::Refused(_)));
                }
                assert_eq!(stage.budget.used() > before, grows, "{make}, limit {tenths}/10");
                assert!(refused > 1_000, "{make}: {refused}");
                assert!(stage.budget.used() <= stage.budget.limit());
            }
        }
    }

    /// A host may run a request inside another one on the same thread: a notification of a change may trigger another change.
    #[test]
    fn nested_reservations_end_with_their_own_request() {
        let budget = Budget::default();
        budget.set_limit(100);
        let outer = budget.promises();
        budget.admit(50).unwrap();
        let inner = budget.promises();
        assert_eq!(
            budget.admit(51),
            Err(Refusal::OutOfMemory),
            "half of the memory is reserved by the outer request"
        );
        budget.admit(50).unwrap();
        drop(inner);
        budget.admit(50).unwrap();
        drop(outer);
        let nobody_else = budget.promises();
        budget.admit(100).unwrap();
        drop(nobody_else);
    }

    #[test]
    fn memory_is_reserved_for_one_request_only() {
        let budget = Budget::default();
        budget.set_limit(100);
        budget.book(0, 20);
        let mine = budget.promises();
        budget.admit(50).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _others = budget.promises();
                assert_eq!(budget.admit(31), Err(Refusal::OutOfMemory));
                budget.admit(30).unwrap();
                assert_eq!((budget.admit(1), budget.room()), (Err(Refusal::OutOfMemory), 30));
            });
        });
        // The other request has ended and took nothing. This one took what it had reserved.
        budget.book(0, 50);
        mine.settle();
        assert_eq!(budget.room(), 30);
        assert_eq!(budget.admit(31), Err(Refusal::OutOfMemory));
        budget.admit(30).unwrap();
        budget.release(30);
        budget.admit(30).unwrap();
        drop(mine);
        assert_eq!((budget.room(), budget.used()), (30, 70));
        budget.book(70, 120);
        assert_eq!(budget.admit(0), Err(Refusal::OutOfMemory));
    }
}
