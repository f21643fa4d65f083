//! The memory available to this process: that of the machine, or the limit of its control group.

use std::fs;
use std::path::Path;

/// Bytes this process may use before the system refuses more or kills it. `None` if the system does not
/// report it.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    memory_below(Path::new("/"))
}

/// As [`memory`], for a system whose files are below `root`.
fn memory_below(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let installed = read("proc/meminfo").and_then(|text| of_meminfo(&text));
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| group_limits(root, line));
    installed.into_iter().chain(limits).min()
}

/// `MemTotal:  24000000 kB`.
fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

/// The limits of one line of `/proc/self/cgroup`: of the group and of its parents. `0::/a/b` is version 2,
/// `7:memory:/a/b` is version 1.
fn group_limits(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':');
    let (Some(number), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (mount, file) = match controllers {
        "" if number == "0" => ("sys/fs/cgroup", "memory.max"),
        controllers if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let mount = root.join(mount);
    // In a container the folder of the group may not exist: then the mount is the group.
    let group = Path::new(group.trim_start_matches('/'));
    let folders = group.ancestors().map(|part| mount.join(part));
    // `max` is not a number and means no limit.
    folders.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system of a few files, in a temporary folder.
    fn system(test: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("mayhap-machine-{}-{test}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = memory_below(&root);
        let _ = fs::remove_dir_all(&root);
        found
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 10 kB\n");

    #[test]
    fn the_smallest_limit_of_group_and_machine_counts() {
        assert_eq!(system("none", &[]), None);
        assert_eq!(system("plain", &[MEMINFO]), Some(1_024_000));
        let of_version_2 = [
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "4096\n"),
        ];
        assert_eq!(system("two", &of_version_2), Some(4_096));
        let of_version_1 = [
            MEMINFO,
            ("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n"),
            ("sys/fs/cgroup/cpu/a/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(system("one", &of_version_1), Some(8_192));
    }

    #[test]
    fn this_machine_reports_its_memory() {
        assert!(memory_bytes().unwrap() > 1 << 20);
    }
}
