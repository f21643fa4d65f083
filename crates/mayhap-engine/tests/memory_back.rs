//! Memory of removed values goes back to the system.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::time::{Duration, Instant};

use support::{engine, one};

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}

#[test]
fn flushall_gives_the_memory_of_many_small_filters_back() {
    const NAMES: u64 = 60_000;
    let ((engine, _), (other, _)) = (engine(), engine());
    one(&engine, "BF.RESERVE warm 0.01 1000");
    let before = resident_bytes();
    for number in 0..NAMES {
        one(&engine, &format!("BF.RESERVE name:{number} 0.01 1000"));
        // Names that stay lie between those that go, as names of other clients would.
        if number % 1_000 == 999 {
            one(&other, &format!("BF.RESERVE stays:{number} 0.01 1000"));
        }
    }
    let full = resident_bytes() - before;
    assert!(full > 80 << 20, "{full} bytes are too few for this test");
    one(&engine, "FLUSHALL");
    let begun = Instant::now();
    loop {
        let held = resident_bytes().saturating_sub(before);
        if held < full / 10 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{held} bytes of {full} are held");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(other.totals().names, NAMES / 1_000);
}
