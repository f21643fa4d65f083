//! How much memory the machine has.

use std::fs;

/// Where neither the system nor a container says how much there is.
const UNKNOWN: u64 = 4 << 30;

/// A quarter of the machine's memory, or of what a container allows.
pub(super) fn quarter_of_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min().unwrap_or(UNKNOWN) / 4
}

/// `MemTotal:  24643136 kB`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_among_the_rest() {
        let text = "MemTotal:       24643136 kB\nMemFree:        20000000 kB\n";
        assert_eq!(total(text), Some(24_643_136 * 1024));
        assert_eq!(total("nothing"), None);
        assert!(quarter_of_memory() > 1 << 20);
    }
}
