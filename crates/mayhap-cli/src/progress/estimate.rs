//! How long work will still take, judged by how fast it went lately.

use std::collections::VecDeque;
use std::time::Duration;

/// What counts as lately.
const LATELY: Duration = Duration::from_secs(20);
/// Before this nobody knows.
const TOO_SOON: Duration = Duration::from_secs(1);

/// Remembers how much was done when.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    seen: VecDeque<(Duration, f64)>,
}

impl Estimate {
    /// The time left when `done` (of 1) is done after `elapsed`.
    pub(super) fn left(&mut self, elapsed: Duration, done: f64) -> Option<Duration> {
        self.seen.push_back((elapsed, done));
        // The last one that is old enough stays: the speed is measured from there.
        while self.seen.len() > 2 && self.seen[1].0 + LATELY <= elapsed {
            self.seen.pop_front();
        }
        let &(since, done_then) = self.seen.front()?;
        let took = elapsed.checked_sub(since).filter(|took| *took >= TOO_SOON)?;
        let speed = (done - done_then) / took.as_secs_f64();
        let left = (1.0 - done) / speed;
        Duration::try_from_secs_f64(left).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn steady_work_is_foretold() {
        let mut estimate = Estimate::default();
        let mut left = None;
        for second in 0..=25_u32 {
            left = estimate.left(at(f64::from(second)), f64::from(second) / 100.0);
        }
        let left = left.unwrap().as_secs_f64();
        assert!((left - 75.0).abs() < 0.01, "{left}");
    }

    #[test]
    fn work_that_slows_down_is_noticed() {
        let mut estimate = Estimate::default();
        for second in 0..=10_u32 {
            estimate.left(at(f64::from(second)), f64::from(second) / 20.0);
        }
        // Half was done in ten seconds; since then a tenth of that speed.
        let mut left = None;
        for second in 11..=60_u32 {
            left = estimate.left(at(f64::from(second)), 0.5 + f64::from(second - 10) / 200.0);
        }
        let left = left.unwrap().as_secs_f64();
        assert!((left - 50.0).abs() < 1.0, "{left}");
    }

    #[test]
    fn nothing_is_said_too_soon_or_when_nothing_moves() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.left(at(0.0), 0.0), None);
        assert_eq!(estimate.left(at(0.5), 0.1), None);
        let mut stuck = Estimate::default();
        stuck.left(at(0.0), 0.3);
        assert_eq!(stuck.left(at(5.0), 0.3), None);
    }
}
