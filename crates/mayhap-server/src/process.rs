//! Figures of this process from the operating system.

use std::fs;
use std::time::Duration;

/// Figures of this process; 0 where the system does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// The maximum resident memory so far, in bytes.
    pub peak_bytes: u64,
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The number of threads.
    pub threads: u64,
}

impl Process {
    /// Reads the current figures.
    #[must_use]
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self::read(&status, &stat, rustix::param::clock_ticks_per_second())
    }

    fn read(status: &str, stat: &str, ticks_per_second: u64) -> Self {
        let of_status = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        // After the name, which may contain anything, and its parenthesis; the state is field 3.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / ticks_per_second.max(1) as f64);
        Self {
            resident_bytes: of_status("VmRSS") * 1_024,
            peak_bytes: of_status("VmHWM") * 1_024,
            user: time(ticks(14)),
            system: time(ticks(15)),
            threads: of_status("Threads"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_files_are_read() {
        let status = "Name:\tmay) hap\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\nThreads:\t5\n";
        let stat = "7 (may) hap) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 1 1 1";
        let read = Process::read(status, stat, 100);
        let (user, system) = (Duration::from_millis(2_500), Duration::from_millis(500));
        let expected = Process { resident_bytes: 204_800, peak_bytes: 307_200, user, system, threads: 5 };
        assert_eq!(read, expected);
        assert_eq!(Process::read("", "", 100), Process::default());
    }
}
