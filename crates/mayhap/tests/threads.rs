//! The atomic twins under many threads: nothing is lost, nothing is counted twice.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mayhap::{AtomicBlockedBloom, AtomicBloom, BlockedLayout, BlockedShape, Bloom};
use mayhap_testkit::member_u64;

const THREADS: u64 = 4;
const EACH: u64 = 20_000;

/// Every thread inserts its own items and some that all share; at the same time, readers query the items reported as inserted.
fn hammer(insert: impl Fn(u64) -> bool + Sync, may_contain: impl Fn(u64) -> bool + Sync) -> u64 {
    let done: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let (running, told_new) = (AtomicBool::new(true), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (insert, done, told_new) = (&insert, &done, &told_new);
                scope.spawn(move || {
                    for i in 0..EACH {
                        // Every fourth item is shared by all.
                        let item = if i % 4 == 0 { member_u64(0, i) } else { member_u64(thread + 1, i) };
                        told_new.fetch_add(u64::from(insert(item)), Ordering::Relaxed);
                        done[thread as usize].store(i + 1, Ordering::Release);
                    }
                })
            })
            .collect();
        for reader in 0..2 {
            let (may_contain, done, running) = (&may_contain, &done, &running);
            scope.spawn(move || {
                let mut step = reader;
                while running.load(Ordering::Relaxed) {
                    for thread in 0..THREADS {
                        let finished = done[thread as usize].load(Ordering::Acquire);
                        if finished > 0 {
                            step = (step * 31 + 7) % finished;
                            let item = if step % 4 == 0 {
                                member_u64(0, step)
                            } else {
                                member_u64(thread + 1, step)
                            };
                            assert!(may_contain(item), "thread {thread} had inserted item {step}");
                        }
                    }
                }
            });
        }
        // Stop the readers before a writer's failure is passed on; otherwise they would run forever.
        let finished: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        running.store(false, Ordering::Relaxed);
        finished.into_iter().for_each(|writer| writer.unwrap());
    });
    told_new.into_inner()
}

fn all_items() -> impl Iterator<Item = u64> {
    (0..THREADS).flat_map(|thread| {
        (0..EACH).map(move |i| if i % 4 == 0 { member_u64(0, i) } else { member_u64(thread + 1, i) })
    })
}

#[test]
fn the_classic_twin_loses_nothing_between_threads() {
    let shared = AtomicBloom::for_capacity(THREADS * EACH, 0.001, 5).unwrap();
    let told_new = hammer(|item| shared.insert(&item), |item| shared.may_contain(&item));
    assert!(all_items().all(|item| shared.may_contain(&item)));
    assert_eq!(shared.inserted(), told_new);
    // The bits do not depend on the order: one thread alone makes the same filter.
    let mut alone = Bloom::for_capacity(THREADS * EACH, 0.001, 5).unwrap();
    all_items().for_each(|item| {
        alone.insert(&item);
    });
    assert_eq!(shared.into_inner().ones(), alone.ones());
    // Two threads that insert the same new item at the same time may both get "new". Which items are false positives when inserted depends on the order: at
    // a rate of 0.001, fewer than one in 500.
    let different = THREADS * EACH * 3 / 4 + EACH / 4;
    assert!(told_new >= different - different / 500, "{told_new} for {different}");
    assert!(told_new <= different + THREADS * EACH / 4, "{told_new} for {different}");
}

#[test]
fn the_blocked_twin_loses_nothing_between_threads() {
    for (layout, rate) in [(BlockedLayout::Split256, 0.01), (BlockedLayout::Line512, 1e-5)] {
        let shape = BlockedShape::with_layout(layout, THREADS * EACH, rate).unwrap();
        let shared = AtomicBlockedBloom::with_shape(shape, 5).unwrap();
        let told_new = hammer(|item| shared.insert(&item), |item| shared.may_contain(&item));
        assert!(all_items().all(|item| shared.may_contain(&item)));
        assert_eq!(shared.inserted(), told_new);
    }
}
