//! The memory and the work of building a large static filter. The only test in its program, because it measures the whole process.
//!
//! Ten million items in small shards by default; `just large` builds from a hundred million, as users would.
#![cfg(target_os = "linux")]

use std::time::Instant;

use mayhap::{BinaryFuse8, BuildOptions};

/// A line of `/proc/self/status`, in KiB.
fn status_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// CPU time so far, in seconds, of all threads of this process (`self`) or of the calling one (`thread-self`).
fn cpu_secs(whose: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{whose}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

const LARGE: u64 = 100_000_000;

/// The number of items: `MAYHAP_LARGE_ITEMS`, or ten million.
fn items() -> u64 {
    std::env::var("MAYHAP_LARGE_ITEMS").map_or(LARGE / 10, |number| number.parse().expect("a number"))
}

#[test]
fn many_items_take_the_hashes_and_three_times_the_filter() {
    let items = items();
    // At least as many shards as a hundred million items have: only a small part is processed at a time.
    let mut options = BuildOptions::default().threads(2);
    if items < LARGE {
        options = options.items_per_shard((items / 64).max(1));
    }
    let item = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let before = status_kib("VmRSS");
    let (start, all, own) = (Instant::now(), cpu_secs("self"), cpu_secs("thread-self"));
    let filter = BinaryFuse8::build_with((0..items).map(item), &options, 0).unwrap();
    let (all, own) = (cpu_secs("self") - all, cpu_secs("thread-self") - own);
    let wall = start.elapsed().as_secs_f64();
    let peak = (status_kib("VmHWM") - before) * 1024;
    let limit = 3 * filter.memory_bytes() + 8 * items;
    println!(
        "{:.3} bits per item; {wall:.1} s; {all:.1} s of CPU, {own:.1} s of it in this thread; peak {peak} bytes, limit {limit}",
        filter.bits_per_item()
    );
    assert!(peak <= limit, "{peak} bytes, limit is {limit}");
    assert!((0..items).step_by(997).all(|i| filter.may_contain(&item(i))));
    if items >= LARGE {
        assert!(filter.bits_per_item() < 9.07);
        // Only where nothing else runs: both cores are busy if the thread that built did little more than its half of the work.
        if std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1) {
            assert!(all / own > 1.5, "{all} s of CPU, {own} s of it in this thread");
        }
    }
}
