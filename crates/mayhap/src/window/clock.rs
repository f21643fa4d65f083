//! The time of a window, which may jump forwards and backwards.
//!
//! ```text
//! ahead:  12:00 ─▶ 12:01 ─▶ in a year ─▶ 12:02     the generation of "in a year" is merged into that of 12:01
//! back:   12:00 ─▶ 12:01 ─▶ 1970 ─▶ 12:02          1970 replaces 12:01, until 12:02 restores it
//! ```
//!
//! The window cannot know which of two clocks is right. It remembers both until one of them has filled the
//! ring, and uses the clock that is closer to the given time.

use std::sync::atomic::Ordering::Relaxed;

use super::{Pace, Window, ring};

/// In the parameter of the newest generation: set if the time jumped.
pub(super) const JUMPED: u64 = 1 << 16;
/// In the same parameter: set if it jumped ahead.
pub(super) const AHEAD: u64 = 1 << 17;
/// In the same parameter: the first bit of the number of generations begun since.
pub(super) const TURNED_FROM: u32 = 8;

/// The clock that a window used before the time jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    /// The latest time of that clock.
    pub(super) before: u64,
    /// Whether the time jumped ahead: the earlier generations have expired by the present clock.
    pub(super) is_over: bool,
    /// The number of generations begun since.
    pub(super) turned: u32,
}

impl Window {
    /// Sets the time of a window of time and drops expired generations. A time before the latest one changes
    /// nothing, unless it is more than two windows earlier. A window of items ignores the time.
    ///
    /// Inserting at a time does this automatically. Lookups at a time do not need it.
    pub fn advance(&mut self, now: u64) {
        let Some(length) = self.shape.generation_span() else { return };
        let generations = u64::from(self.shape.generations());
        *self.found_behind.get_mut() = 0;
        if !self.is_near(self.latest, now) {
            match self.jump {
                Some(jump) if self.is_near(jump.before, now) => self.return_from(jump, now),
                _ if self.accounted() == 0 => (self.latest, self.jump) = (now, None),
                _ if self.turns(self.latest, now) >= 2 * generations => self.jump_ahead(now),
                // A pause without calls.
                _ if now > self.latest => {
                    (0..generations as usize).for_each(|index| self.empty(index));
                    (self.latest, self.jump) = (now, None);
                }
                _ => self.jump_back(now, length),
            }
        }
        for _ in 0..self.turns(self.latest, now) {
            self.turn();
        }
        if now > self.latest {
            // The present clock has reached the time before a jump back: both clocks agree again.
            self.jump = self.jump.filter(|jump| jump.before < self.latest || jump.before > now);
            self.latest = now;
        }
        self.set_alive();
    }

    /// Returns how many generations begin after `from` and up to `now`.
    fn turns(&self, from: u64, now: u64) -> u64 {
        match self.shape.generation_span() {
            None => 0,
            Some(length) => (now / length).saturating_sub(from / length),
        }
    }

    /// Returns whether `now` belongs to the clock with this latest time: at most two windows earlier, and
    /// before all generations have expired.
    fn is_near(&self, latest: u64, now: u64) -> bool {
        let Pace::Time { span } = self.shape.pace() else { return true };
        now.saturating_add(span.saturating_mul(2)) >= latest
            && self.turns(latest, now) < u64::from(self.shape.generations())
    }

    /// Begins a generation by the present clock.
    fn turn(&mut self) {
        let Some(jump) = self.jump else { return self.rotate() };
        // Items that expired by this clock may still be in the window by the other one.
        if jump.turned + 1 < self.shape.generations() {
            self.merge_oldest();
        }
        self.rotate();
        let turned = jump.turned + 1;
        self.jump = (turned < self.shape.generations()).then_some(Jump { turned, ..jump });
    }

    /// Jumps ahead: if this time is right, all items have expired. New items get a separate generation.
    #[cold]
    fn jump_ahead(&mut self, now: u64) {
        self.merge_oldest();
        self.rotate();
        self.jump = Some(Jump { before: self.latest, is_over: true, turned: 1 });
        self.latest = now;
    }

    /// Jumps back: every generation keeps its age, and the newest keeps the elapsed share of its span.
    #[cold]
    fn jump_back(&mut self, now: u64, length: u64) {
        let before = self.latest;
        let into = before % length;
        let latest = (now - now % length).saturating_add(into);
        self.latest = if latest < now { latest.saturating_add(length) } else { latest };
        self.jump = (self.latest < before).then_some(Jump { before, is_over: false, turned: 0 });
        self.latest = self.latest.min(before);
    }

    /// Returns to the earlier clock: items inserted since the jump become as new as the newest generation of
    /// that time.
    #[cold]
    fn return_from(&mut self, jump: Jump, now: u64) {
        for _ in 0..jump.turned {
            let since = self.newest;
            self.newest = self.older(since);
            self.merge(since, self.newest);
        }
        // The time being left may still turn out to be right.
        self.jump = Some(Jump { before: self.latest, is_over: false, turned: 0 });
        // The insertion times are unknown, somewhere between then and now. No item may be dropped too early.
        self.latest = jump.before.max(now);
    }

    const fn older(&self, index: usize) -> usize {
        let generations = self.shape.generations() as usize;
        (index + generations - 1) % generations
    }

    /// Moves the items of the oldest generation to the one that will be the oldest after the next turn.
    fn merge_oldest(&mut self) {
        let generations = self.shape.generations() as usize;
        let oldest = (self.newest + 1) % generations;
        self.merge(oldest, (oldest + 1) % generations);
    }

    /// Moves the items of generation `from` into generation `into`.
    fn merge(&mut self, from: usize, into: usize) {
        let (shape, [came, changed]) = (self.shape, self.account(from));
        if came == 0 {
            return;
        }
        ring::merge(&mut self.lines.words_mut()[shape.head_words()..], &shape, from, into);
        self.empty(from);
        self.count_in(into, came, changed);
    }

    pub(super) fn set_alive(&mut self) {
        self.alive = self.alive_by(|window, age| window.is_alive_near(age, window.latest));
    }

    /// Returns one bit for every generation for whose age `is_alive` returns `true`.
    fn alive_by(&self, is_alive: impl Fn(&Self, u64) -> bool) -> u64 {
        let (generations, newest) = (u64::from(self.shape.generations()), self.newest as u64);
        let ages = (0..generations).filter(|&age| is_alive(self, age));
        // From the newest backwards around the ring.
        ages.fold(0, |mask, age| mask | 1 << ((newest + generations - age) % generations))
    }

    /// Returns whether the generation is alive at `now`, by the present clock.
    fn is_alive_near(&self, age: u64, now: u64) -> bool {
        let is_over = self.jump.is_some_and(|jump| jump.is_over && age >= u64::from(jump.turned));
        !is_over && self.turns(self.latest, now).saturating_add(age) < u64::from(self.shape.generations())
    }

    /// Returns one bit for every generation that has not expired at `now`.
    pub(super) fn alive_at(&self, now: u64) -> u64 {
        let generations = u64::from(self.shape.generations());
        let is_near = self.is_near(self.latest, now);
        let before = self.jump.filter(|jump| !is_near && self.is_near(jump.before, now));
        if (is_near || before.is_some() || now > self.latest) && self.found_behind.load(Relaxed) != 0 {
            self.found_behind.store(0, Relaxed);
        }
        match before {
            Some(jump) => {
                let (turns, turned) = (self.turns(jump.before, now), u64::from(jump.turned));
                self.alive_by(|_, age| turns + age.saturating_sub(turned) < generations)
            }
            None if is_near || now > self.latest => {
                self.alive_by(|window, age| window.is_alive_near(age, now))
            }
            None => {
                let found = self.found_at(now);
                let turns = self.turns(found, now);
                let since = self
                    .jump
                    .filter(|jump| jump.is_over && jump.before < now)
                    .map(|jump| u64::from(jump.turned));
                self.alive_by(|_, age| {
                    since.is_none_or(|turned| age < turned) && turns.saturating_add(age) < generations
                })
            }
        }
    }

    /// Returns the time at which lookups first found the clock far behind the latest time.
    #[cold]
    fn found_at(&self, now: u64) -> u64 {
        let found = self.found_behind.load(Relaxed);
        if found == 0 || found > now.saturating_add(1) {
            self.found_behind.store(now.saturating_add(1), Relaxed);
            return now;
        }
        found - 1
    }
}
