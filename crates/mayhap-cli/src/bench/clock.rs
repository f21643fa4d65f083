//! CPU time, which other load on the machine does not lengthen.

use std::time::Duration;

use cpu_time::{ProcessTime, ThreadTime};

/// Runs `work` and returns its result with the CPU time of this thread.
#[inline(never)]
pub(super) fn this_thread<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = ThreadTime::now();
    let answer = work();
    (answer, start.elapsed())
}

/// Runs `work`, which may use several threads, and returns its result with the CPU time of all threads.
#[inline(never)]
pub(super) fn all_threads<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = ProcessTime::now();
    let answer = work();
    (answer, start.elapsed())
}

/// Nanoseconds per item.
pub(super) fn per_item(spent: Duration, items: usize) -> f64 {
    spent.as_secs_f64() * 1e9 / items.max(1) as f64
}

/// The median of some times.
pub(super) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    match times.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => times[odd / 2],
        even => f64::midpoint(times[even / 2 - 1], times[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 900.0]), 3.0);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn sleeping_takes_no_cpu_time() {
        let (_, asleep) = this_thread(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(asleep < Duration::from_millis(20), "a sleep of 50 ms was charged {asleep:?}");
    }
}
