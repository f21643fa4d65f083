//! Counts the bytes that a filter really allocates, whatever its crate reports.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes allocated and not yet freed by this process. Memory maps are not on the heap and do not count.
pub(crate) fn live_bytes() -> i64 {
    let stats = HEAP.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_meter_counts_a_vector() {
        // Other tests allocate at the same time, but a vector this large stands out.
        let before = live_bytes();
        let held = std::hint::black_box(vec![1u8; 256 << 20]);
        let after = live_bytes();
        assert!(after - before > 200 << 20);
        drop(held);
    }
}
