//! CPU time of this thread: what a busy neighbour on the same machine cannot lengthen.

use cpu_time::ThreadTime;

/// Runs `work` and returns its answer with the CPU nanoseconds this thread spent in it.
#[inline(never)]
pub(crate) fn time<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = ThreadTime::now();
    let answer = work();
    let spent = start.elapsed();
    (answer, spent.as_secs_f64() * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{hint::black_box, thread, time::Duration};

    #[test]
    fn sleeping_is_free_and_work_is_not() {
        let (_, asleep) = time(|| thread::sleep(Duration::from_millis(50)));
        let (_, working) = time(|| (0..5_000_000u64).fold(0, |sum, i| black_box(sum ^ i)));
        assert!(asleep < 20e6, "a sleep of 50 ms was charged {asleep} ns");
        assert!(working > 100e3, "five million steps were charged {working} ns");
    }
}
