//! Estimates the time left from the recent speed.

use std::collections::VecDeque;
use std::time::Duration;

/// The span over which the recent speed is measured.
const LATELY: Duration = Duration::from_secs(20);
/// No estimate is made before this time has passed.
const TOO_SOON: Duration = Duration::from_secs(1);

/// Records how much was done at which time.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    seen: VecDeque<(Duration, f64)>,
}

impl Estimate {
    /// The time left when `done` (of 1) is done after `elapsed`.
    pub(super) fn left(&mut self, elapsed: Duration, done: f64) -> Option<Duration> {
        self.seen.push_back((elapsed, done));
        // Keeps one sample that is old enough: the speed is measured from it.
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
    fn steady_work_is_estimated_well() {
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
    fn no_estimate_too_early_or_without_progress() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.left(at(0.0), 0.0), None);
        assert_eq!(estimate.left(at(0.5), 0.1), None);
        let mut stuck = Estimate::default();
        stuck.left(at(0.0), 0.3);
        assert_eq!(stuck.left(at(5.0), 0.3), None);
    }
}
