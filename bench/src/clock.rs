//! CPU time of this thread, which a busy neighbour on the same machine does not lengthen. Also of the whole process, for builds that use several
//! threads.

use std::time::Instant;

use cpu_time::{ProcessTime, ThreadTime};

/// Runs `work`. Returns its result and the CPU nanoseconds that this thread spent in it.
#[inline(never)]
pub(crate) fn time<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = ThreadTime::now();
    let answer = work();
    let spent = start.elapsed();
    (answer, spent.as_secs_f64() * 1e9)
}

/// Nanoseconds of work that may have used several threads.
pub(crate) struct Spent {
    /// CPU time of all threads of this process.
    pub(crate) process: f64,
    /// Elapsed time. A busy neighbour lengthens it.
    pub(crate) wall: f64,
}

/// Runs `work`, which may use several threads. If nothing else runs in this process, the process time of a single-threaded build equals the time of
/// its thread.
#[inline(never)]
pub(crate) fn time_all_threads<R>(work: impl FnOnce() -> R) -> (R, Spent) {
    let (wall, process) = (Instant::now(), ProcessTime::now());
    let answer = work();
    let (process, wall) = (process.elapsed(), wall.elapsed());
    (answer, Spent { process: process.as_secs_f64() * 1e9, wall: wall.as_secs_f64() * 1e9 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{hint::black_box, thread, time::Duration};

    #[test]
    fn sleep_takes_no_cpu_time_and_work_does() {
        let (_, asleep) = time(|| thread::sleep(Duration::from_millis(50)));
        let (_, working) = time(|| (0..5_000_000u64).fold(0, |sum, i| black_box(sum ^ i)));
        assert!(asleep < 20e6, "a sleep of 50 ms was charged {asleep} ns");
        assert!(working > 100e3, "five million steps were charged {working} ns");
    }

    #[test]
    fn work_of_other_threads_counts() {
        let work = || (0..20_000_000u64).fold(0, |sum, i| black_box(sum ^ i));
        let (_, mine) = time(|| thread::spawn(work).join());
        let (_, all) = time_all_threads(|| thread::spawn(work).join());
        assert!(mine < all.process, "the thread itself slept: {mine} ns of {} ns", all.process);
        assert!(all.process > 1e6 && all.wall > 1e6, "twenty million steps in {} ns", all.process);
    }
}
