//! Tracks filters above their target rate over repeated rounds: each is reported once per threshold, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use crate::health::{Assessment, Health};

/// The maximum number of remembered filters, about 32 bytes each.
const MOST_KNOWN: usize = 64 << 10;
/// The maximum number of log lines per round; the other filters are reported by their number.
const MOST_LINES: u64 = 32;
/// A rate below this share of the target means that the filter was cleared or rebuilt: it is reported again when it fills.
const CURED: f64 = 0.5;

/// Repeated rounds over all filters.
#[derive(Debug, Default)]
pub struct Overfull {
    /// Filters that passed a threshold, by the hash of their keys.
    known: HashMap<u64, Known>,
    hasher: RandomState,
    round: u32,
    this_round: Figures,
    lines: u64,
    /// Filters in this round that got no log line.
    without_line: u64,
    /// The highest number of filters that could not be remembered.
    forgotten_before: u64,
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The worst health that was reported.
    told: Health,
    /// Its health when it was last checked.
    last: Health,
    expected_fpr: f64,
    round: u32,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Filters whose expected rate is above their target, but not above ten times the target or a half.
    pub over_target: u64,
    /// Filters above ten times the target, but not above a half.
    pub over_tenfold: u64,
    /// Filters above a half.
    pub over_half: u64,
    /// The highest expected rate of any filter.
    pub worst_expected_fpr: f64,
}

impl Figures {
    /// All filters above their target.
    #[must_use]
    pub const fn over_capacity(&self) -> u64 {
        self.over_target + self.over_tenfold + self.over_half
    }

    fn count(&mut self, health: Health, expected_fpr: f64) {
        self.worst_expected_fpr = self.worst_expected_fpr.max(expected_fpr);
        match health {
            Health::Ok => {}
            Health::OverTarget => self.over_target += 1,
            Health::OverTenfold => self.over_tenfold += 1,
            Health::OverHalf => self.over_half += 1,
        }
    }
}

/// The result of a round, and the number of filters that passed a threshold in it without a log line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The figures.
    pub figures: Figures,
    /// To be reported in one line, if there are any.
    pub without_line: u64,
}

impl Overfull {
    /// Records the health of a filter. Returns `true` if it passed a threshold that was not reported yet, so it deserves a log line.
    pub fn see(&mut self, name: &[u8], seen: &Assessment) -> bool {
        self.this_round.count(seen.health, seen.expected_fpr);
        if seen.health == Health::Ok && self.known.is_empty() {
            return false;
        }
        let key = self.hasher.hash_one(name);
        let round = self.round;
        if let Some(known) = self.known.get_mut(&key) {
            if seen.health == Health::Ok && seen.expected_fpr <= seen.target_fpr * CURED {
                self.known.remove(&key);
                return false;
            }
            let worse = seen.health > known.told;
            let told = known.told.max(seen.health);
            *known = Known { told, last: seen.health, expected_fpr: seen.expected_fpr, round };
            return worse && self.has_line();
        }
        if seen.health == Health::Ok {
            return false;
        }
        if self.known.len() >= MOST_KNOWN {
            self.forgotten += 1;
            return false;
        }
        let known = Known { told: seen.health, last: seen.health, expected_fpr: seen.expected_fpr, round };
        self.known.insert(key, known);
        self.has_line()
    }

    /// Records that a filter could not be checked because another thread uses it: its last health still counts.
    pub fn skip(&mut self, name: &[u8]) {
        if self.known.is_empty() {
            return;
        }
        let key = self.hasher.hash_one(name);
        if let Some(known) = self.known.get_mut(&key) {
            known.round = self.round;
            self.this_round.count(known.last, known.expected_fpr);
        }
    }

    /// Ends a round. Filters that were not seen in it no longer exist.
    pub fn end_round(&mut self) -> Round {
        let round = self.round;
        self.known.retain(|_, known| known.round == round);
        if self.known.capacity() > 4 * self.known.len() {
            self.known.shrink_to(2 * self.known.len());
        }
        let new = self.forgotten.saturating_sub(self.forgotten_before);
        self.forgotten_before = self.forgotten_before.max(self.forgotten);
        let ended = Round { figures: self.this_round, without_line: self.without_line + new };
        self.round = round.wrapping_add(1);
        self.this_round = Figures::default();
        (self.lines, self.without_line, self.forgotten) = (0, 0, 0);
        ended
    }

    fn has_line(&mut self) -> bool {
        let left = self.lines < MOST_LINES;
        if left {
            self.lines += 1;
        } else {
            self.without_line += 1;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(expected_fpr: f64) -> Assessment {
        Assessment { target_fpr: 0.01, expected_fpr, health: Health::of(0.01, expected_fpr) }
    }

    /// Runs a round over one filter. Returns whether there was a log line.
    fn round(overfull: &mut Overfull, expected_fpr: f64) -> bool {
        let line = overfull.see(b"seen", &at(expected_fpr));
        overfull.end_round();
        line
    }

    #[test]
    fn each_filter_gets_one_line_per_threshold() {
        let mut overfull = Overfull::default();
        let lines = [0.005, 0.02, 0.03, 0.009, 0.02, 0.2, 0.02, 0.3, 0.76, 0.9, 0.2, 0.95]
            .map(|rate| round(&mut overfull, rate));
        let expected = [false, true, false, false, false, true, false, false, true, false, false, false];
        assert_eq!(lines, expected);
        assert!(!round(&mut overfull, 0.001), "the filter was cleared");
        assert!(round(&mut overfull, 0.02), "the filter is full again");
        overfull.end_round();
        assert!(round(&mut overfull, 0.02), "missing for a round: this is another filter");
    }

    #[test]
    fn counts_cover_the_round_and_busy_filters_keep_their_health() {
        let mut overfull = Overfull::default();
        for (name, rate) in [("a", 0.001), ("b", 0.02), ("c", 0.2), ("d", 0.76), ("e", 0.011_5)] {
            overfull.see(name.as_bytes(), &at(rate));
        }
        let figures = Figures { over_target: 2, over_tenfold: 1, over_half: 1, worst_expected_fpr: 0.76 };
        assert_eq!(overfull.end_round(), Round { figures, without_line: 0 });
        for name in ["a", "b", "c", "d", "e"] {
            overfull.skip(name.as_bytes());
        }
        assert_eq!(overfull.end_round().figures, figures);
        assert_eq!(overfull.end_round().figures, Figures::default());
        assert!(overfull.known.is_empty());
    }

    #[test]
    fn a_million_filters_take_few_lines_and_little_memory() {
        let mut overfull = Overfull::default();
        for number in 0..3 {
            let lines = (0..200_000_u32).filter(|name| overfull.see(&name.to_le_bytes(), &at(0.2))).count();
            let round = overfull.end_round();
            assert_eq!(round.figures.over_tenfold, 200_000);
            match number {
                0 => assert_eq!((lines as u64, round.without_line), (MOST_LINES, 200_000 - MOST_LINES)),
                _ => assert_eq!((lines, round.without_line), (0, 0), "nothing is reported twice"),
            }
            assert!(overfull.known.len() <= MOST_KNOWN);
        }
    }
}
