//! The meter must be the allocator of a whole program, so it has its own test program.

use mayhap_testkit::alloc_meter::AllocMeter;
use std::hint::black_box;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

#[test]
fn counts_total_peak_and_largest() {
    let ((), measured) = AllocMeter::measure(|| {
        let first = black_box(vec![1_u8; 1_000]);
        drop(first);
        let second = black_box(vec![0_u8; 3_000]);
        let third = black_box(Vec::<u8>::with_capacity(500));
        drop((second, third));
    });
    assert_eq!(measured.total_bytes, 4_500);
    assert_eq!(measured.peak_bytes, 3_500);
    assert_eq!(measured.largest_request, 3_000);
}

#[test]
fn no_allocation_counts_as_zero() {
    let (sum, measured) = AllocMeter::measure(|| (0..black_box(1_000_u64)).sum::<u64>());
    assert_eq!(sum, 499_500);
    assert_eq!((measured.total_bytes, measured.peak_bytes, measured.largest_request), (0, 0, 0));
}

#[test]
fn growth_counts_the_new_buffer_each_time() {
    let (_, measured) = AllocMeter::measure(|| {
        let mut bytes: Vec<u8> = black_box(Vec::with_capacity(100));
        bytes.resize(100, 1);
        bytes.reserve_exact(900);
        black_box(bytes)
    });
    assert_eq!(measured.total_bytes, 1_100);
    assert_eq!(measured.largest_request, 1_000);
    assert!((1_000..=1_100).contains(&measured.peak_bytes), "{measured:?}");
}

#[test]
fn a_failed_request_is_counted() {
    let (refused, measured) = AllocMeter::measure(|| Vec::<u8>::new().try_reserve_exact(1 << 60).is_err());
    assert!(refused);
    assert_eq!(measured.largest_request, 1 << 60);
    assert_eq!(measured.total_bytes, 0);
}

#[test]
fn other_threads_are_not_counted() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                black_box(vec![0_u8; 100_000]);
            }
        });
        for _ in 0..200 {
            let (_, measured) = AllocMeter::measure(|| black_box(vec![0_u8; 64]));
            assert_eq!(measured.total_bytes, 64);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn measurements_nest_even_when_the_inner_one_panics() {
    let (inner, outer) = AllocMeter::measure(|| {
        drop(black_box(vec![0_u8; 5_000]));
        let (_, inner) = AllocMeter::measure(|| drop(black_box(vec![0_u8; 10])));
        inner
    });
    assert_eq!((inner.peak_bytes, inner.largest_request), (10, 10));
    assert_eq!((outer.peak_bytes, outer.largest_request), (5_000, 5_000));

    let (_, outer) = AllocMeter::measure(|| {
        drop(black_box(vec![0_u8; 50_000]));
        std::panic::catch_unwind(|| AllocMeter::measure(|| panic!("on purpose"))).is_err()
    });
    assert!(outer.peak_bytes >= 50_000 && outer.largest_request >= 50_000, "{outer:?}");
}

/// Memory held before does not count, and freeing it does not lower the peak.
#[test]
fn memory_held_before_is_not_counted() {
    let before = black_box(vec![0_u8; 1 << 20]);
    let ((), measured) = AllocMeter::measure(|| {
        drop(before);
        drop(black_box(vec![0_u8; 100]));
    });
    assert_eq!((measured.total_bytes, measured.peak_bytes), (100, 0));
}
