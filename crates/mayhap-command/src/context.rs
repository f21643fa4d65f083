//! The world outside of a command: limits, parameters, the clock, randomness.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
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

    /// How large what takes `bytes` now may become by [`admit`](Self::admit)'s rules. Nothing is promised: others may be told the same.
    #[must_use]
    pub fn allowance(&self, bytes: u64) -> u64 {
        self.limits.filter_bytes.min(bytes.saturating_add(self.budget.room()))
    }
}

/// How far something grew within one request, by steps each of which was admitted, and so promised, before its memory was taken.
#[derive(Debug)]
pub struct Growth {
    bytes: u64,
}

impl Growth {
    /// It took so many bytes when the request began.
    #[must_use]
    pub const fn from(booked: u64) -> Self {
        Self { bytes: booked }
    }

    /// May it grow until it takes `bytes` in all? Ask before allocating.
    ///
    /// # Errors
    /// As [`Context::admit`].
    pub fn to(&mut self, bytes: u64, context: &Context<'_>) -> Result<(), Refusal> {
        context.grow(bytes, self.bytes)?;
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }
}

/// What one request and one filter may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one filter.
    pub filter_bytes: u64,
    /// Do settings bound what requests may ask for and load? Not where a log, a file or a master says so: it was allowed once.
    pub bound_by_settings: bool,
}

impl Limits {
    /// None at all.
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
    /// 0: any amount.
    limit: AtomicU64,
    /// Admitted to requests that are being run, and not booked yet.
    promised: AtomicU64,
}

thread_local! {
    /// What was promised to the request that this thread runs; `None`: whoever runs it keeps no promises.
    static PROMISED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// As long as it lives, whatever is admitted on this thread is promised to it, so that nobody else is admitted to the same memory.
#[derive(Debug)]
#[must_use = "the promises end with it"]
pub struct Promises<'a> {
    budget: &'a Budget,
    /// What was promised to the request inside of which this one is run.
    outer: Option<u64>,
    /// It belongs to its thread.
    _here: PhantomData<*const ()>,
}

impl Promises<'_> {
    /// A request is done, and what it took is booked: what it was promised counts no more.
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

/// Memory that was admitted for as long as this lives.
#[derive(Debug)]
#[must_use = "what was admitted ends with it"]
pub struct ForNow<'a> {
    budget: &'a Budget,
    /// What was promised; nothing, if whoever runs the request keeps no promises.
    bytes: u64,
}

impl Drop for ForNow<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

impl Budget {
    /// From now on what this thread is admitted to is promised to it. Inside of another request's promises, until this one's end.
    pub fn promises(&self) -> Promises<'_> {
        Promises { budget: self, outer: PROMISED.replace(Some(0)), _here: PhantomData }
    }

    /// May `more` bytes be taken? If so, they are promised until the request is done.
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

    /// [`admit`](Self::admit)s what is needed for a moment only: until that is dropped.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn admit_for_now(&self, more: u64) -> Result<ForNow<'_>, Refusal> {
        let promised = || PROMISED.get().unwrap_or(0);
        let before = promised();
        self.admit(more)?;
        Ok(ForNow { budget: self, bytes: promised() - before })
    }

    /// Gives back what was admitted to this thread and was needed for a moment only.
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

    /// How many more bytes may be taken, besides what is promised to others.
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
    /// Fills `bytes` with randomness that non-members cannot guess.
    fn random(&self, bytes: &mut [u8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::stage::Stage;
    use crate::reply::Reply;

    /// Others must not be admitted to the memory that a filter takes while it grows.
    #[test]
    fn what_grows_is_promised_before_it_is_there() {
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
            // A request that is never done.
            std::mem::forget(stage.budget.promises());
            let before = stage.budget.used();
            for item in 0.. {
                assert!(item < 100_000, "{make}: it does not grow");
                // The one before is done.
                stage.budget.release(u64::MAX);
                stage.run(&format!("{add} f {item}"));
                if stage.budget.used() > before {
                    break;
                }
            }
            let grown = stage.budget.used() - before;
            let room = std::thread::scope(|scope| scope.spawn(|| stage.budget.room()).join().unwrap());
            let promised = LIMIT - stage.budget.used() - room;
            // What a request asks for is promised whether or not it is taken.
            assert!(promised >= grown && promised <= 4 * grown.max(1_024), "{make}: {promised} for {grown}");
        }
    }

    /// What doubles is there twice for a moment, and takes the memory of both.
    #[test]
    fn what_is_made_anew_has_room_beside_what_it_was() {
        for make in [
            "MF.RESERVE f KIND growing CAPACITY 20000",
            "MF.RESERVE f KIND growable-cuckoo CAPACITY 20000 MAX 1000000",
        ] {
            // Twice as large at the end, three times as much in between.
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

    /// A host may run a request inside of another, on the same thread: whoever is told of a change may make one.
    #[test]
    fn promises_inside_of_promises_end_with_their_own_request() {
        let budget = Budget::default();
        budget.set_limit(100);
        let outer = budget.promises();
        budget.admit(50).unwrap();
        let inner = budget.promises();
        assert_eq!(budget.admit(51), Err(Refusal::OutOfMemory), "half of it is the outer one's");
        budget.admit(50).unwrap();
        drop(inner);
        budget.admit(50).unwrap();
        drop(outer);
        let nobody_else = budget.promises();
        budget.admit(100).unwrap();
        drop(nobody_else);
    }

    #[test]
    fn what_is_promised_to_one_is_not_promised_to_another() {
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
        // The other is done, and took nothing; mine took what it was promised.
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
