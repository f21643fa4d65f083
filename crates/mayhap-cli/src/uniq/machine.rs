//! The machine's memory.

use std::fs;

/// The memory that is assumed if neither the system nor a container reports it.
const UNKNOWN: u64 = 4 << 30;

/// A quarter of the machine's memory, or of a container's limit.
pub(super) fn quarter_of_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min().unwrap_or(UNKNOWN) / 4
}

/// Parses `MemTotal:  24643136 kB`. Returns bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mem_total_is_found() {
        let text = "MemTotal:       24643136 kB\nMemFree:        20000000 kB\n";
        assert_eq!(total(text), Some(24_643_136 * 1024));
        assert_eq!(total("nothing"), None);
        assert!(quarter_of_memory() > 1 << 20);
    }
}
