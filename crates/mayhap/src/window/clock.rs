//! The time of a window, which may jump both ways.
//!
//! ```text
//! ahead:  12:00 ─▶ 12:01 ─▶ in a year ─▶ 12:02     the generation of "in a year" is merged into that of 12:01
//! back:   12:00 ─▶ 12:01 ─▶ 1970 ─▶ 12:02          1970 takes the place of 12:01, and gives it back
//! ```
//!
//! The window cannot know which of two clocks is the right one. So it remembers both until one of them has filled the ring, and answers by
//! the one that a time is near to.

use std::sync::atomic::Ordering::Relaxed;

use super::{Pace, Window, ring};

/// In the parameter of the newest generation: the time jumped.
pub(super) const JUMPED: u64 = 1 << 16;
/// In the same parameter: it jumped ahead.
pub(super) const AHEAD: u64 = 1 << 17;
/// In the same parameter: from this bit on, the generations begun since.
pub(super) const TURNED_FROM: u32 = 8;

/// The clock that a window went by before the time jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    /// The latest time by it.
    pub(super) before: u64,
    /// Time jumped ahead: the generations of before are over, by the clock of now.
    pub(super) is_over: bool,
    /// Generations that began since.
    pub(super) turned: u32,
}

impl Window {
    /// Tells a window of time how late it is: generations whose time is over are given up. A time before the latest one changes
    /// nothing unless it is more than two windows before it, and a window of items does not look at it.
    ///
    /// Inserting at a time does this by itself. Lookups at a time need no such thing.
    pub fn advance(&mut self, now: u64) {
        let Some(length) = self.shape.generation_span() else { return };
        let generations = u64::from(self.shape.generations());
        *self.found_behind.get_mut() = 0;
        if !self.is_near(self.latest, now) {
            match self.jump {
                Some(jump) if self.is_near(jump.before, now) => self.return_from(jump, now),
                _ if self.accounted() == 0 => (self.latest, self.jump) = (now, None),
                _ if self.turns(self.latest, now) >= 2 * generations => self.jump_ahead(now),
                // A silence.
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
            // The clock before a jump back is reached: they are the same again.
            self.jump = self.jump.filter(|jump| jump.before < self.latest || jump.before > now);
            self.latest = now;
        }
        self.set_alive();
    }

    /// How many generations begin after `from` and up to `now`.
    fn turns(&self, from: u64, now: u64) -> u64 {
        match self.shape.generation_span() {
            None => 0,
            Some(length) => (now / length).saturating_sub(from / length),
        }
    }

    /// Is `now` by the clock that was at `latest`: at most two windows before it, and not after all generations are over?
    fn is_near(&self, latest: u64, now: u64) -> bool {
        let Pace::Time { span } = self.shape.pace() else { return true };
        now.saturating_add(span.saturating_mul(2)) >= latest
            && self.turns(latest, now) < u64::from(self.shape.generations())
    }

    /// A generation begins by the clock of now.
    fn turn(&mut self) {
        let Some(jump) = self.jump else { return self.rotate() };
        // What is over by this clock may be inside the window by the other one.
        if jump.turned + 1 < self.shape.generations() {
            self.merge_oldest();
        }
        self.rotate();
        let turned = jump.turned + 1;
        self.jump = (turned < self.shape.generations()).then_some(Jump { turned, ..jump });
    }

    /// Everything is over, if this is the right time. What comes now has a generation of its own.
    #[cold]
    fn jump_ahead(&mut self, now: u64) {
        self.merge_oldest();
        self.rotate();
        self.jump = Some(Jump { before: self.latest, is_over: true, turned: 1 });
        self.latest = now;
    }

    /// Every generation keeps its age, and the newest its share of its span.
    #[cold]
    fn jump_back(&mut self, now: u64, length: u64) {
        let before = self.latest;
        let into = before % length;
        let latest = (now - now % length).saturating_add(into);
        self.latest = if latest < now { latest.saturating_add(length) } else { latest };
        self.jump = (self.latest < before).then_some(Jump { before, is_over: false, turned: 0 });
        self.latest = self.latest.min(before);
    }

    /// The clock of before is right again: what came since is as new as the newest of then.
    #[cold]
    fn return_from(&mut self, jump: Jump, now: u64) {
        for _ in 0..jump.turned {
            let since = self.newest;
            self.newest = self.older(since);
            self.merge(since, self.newest);
        }
        // The time that it leaves may have been the right one after all.
        self.jump = Some(Jump { before: self.latest, is_over: false, turned: 0 });
        // When between then and now the items came, the clock did not say: none of them may be forgotten too soon.
        self.latest = jump.before.max(now);
    }

    const fn older(&self, index: usize) -> usize {
        let generations = self.shape.generations() as usize;
        (index + generations - 1) % generations
    }

    /// What the oldest generation holds is held by the one that is oldest after the next turn.
    fn merge_oldest(&mut self) {
        let generations = self.shape.generations() as usize;
        let oldest = (self.newest + 1) % generations;
        self.merge(oldest, (oldest + 1) % generations);
    }

    /// Moves what generation `from` holds into generation `into`.
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

    /// One bit for every generation of which `is_alive` says so by its age.
    fn alive_by(&self, is_alive: impl Fn(&Self, u64) -> bool) -> u64 {
        let (generations, newest) = (u64::from(self.shape.generations()), self.newest as u64);
        let ages = (0..generations).filter(|&age| is_alive(self, age));
        // The newest, and those before it, counted backwards around the ring.
        ages.fold(0, |mask, age| mask | 1 << ((newest + generations - age) % generations))
    }

    /// Is the generation alive at `now`, by the clock of now?
    fn is_alive_near(&self, age: u64, now: u64) -> bool {
        let is_over = self.jump.is_some_and(|jump| jump.is_over && age >= u64::from(jump.turned));
        !is_over && self.turns(self.latest, now).saturating_add(age) < u64::from(self.shape.generations())
    }

    /// One bit for every generation whose time is not over at `now`.
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

    /// When lookups first found the clock far behind the latest time.
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
