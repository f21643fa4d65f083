//! Counts the allocations of a piece of code, to check that decoders allocate at most sixteen times their input plus 64 KiB.
//!
//! A test crate makes the meter its allocator, once:
//!
//! ```
//! use mayhap_testkit::alloc_meter::AllocMeter;
//!
//! #[global_allocator]
//! static METER: AllocMeter = AllocMeter;
//!
//! # fn main() {
//! let (bytes, measured) = AllocMeter::measure(|| vec![0_u8; 1000]);
//! assert_eq!(bytes.len(), 1000);
//! assert_eq!(measured.largest_request, 1000);
//! # }
//! ```
//!
//! Counters are per thread, so tests that run in parallel do not disturb each other. Allocations of other threads for the measured code are not counted.
//! [`AllocMeter::process`] counts all threads, for tests of programs with their own threads; such a test must run alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes held by all threads.
static HELD: AtomicI64 = AtomicI64::new(0);
/// The peak of these bytes since [`AllocMeter::forget_peak`].
static MOST_HELD: AtomicI64 = AtomicI64::new(0);

/// The allocations of one thread so far. Cells of plain numbers, initialized at compile time and never dropped: reading them allocates nothing, so an
/// allocator can use them.
struct Tally {
    total: Cell<u64>,
    /// Negative if the thread frees memory that others allocated.
    live: Cell<i64>,
    peak: Cell<i64>,
    largest: Cell<u64>,
}

thread_local! {
    static TALLY: Tally = const {
        Tally { total: Cell::new(0), live: Cell::new(0), peak: Cell::new(0), largest: Cell::new(0) }
    };
}

impl Tally {
    fn asked(&self, bytes: usize) {
        self.largest.set(self.largest.get().max(bytes as u64));
    }

    fn got(&self, bytes: usize) {
        self.total.set(self.total.get() + bytes as u64);
        self.live.set(self.live.get() + bytes as i64);
        self.peak.set(self.peak.get().max(self.live.get()));
        let held = HELD.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
        if held > MOST_HELD.load(Ordering::Relaxed) {
            MOST_HELD.fetch_max(held, Ordering::Relaxed);
        }
    }

    fn gave_back(&self, bytes: usize) {
        self.live.set(self.live.get() - bytes as i64);
        HELD.fetch_sub(bytes as i64, Ordering::Relaxed);
    }
}

/// The allocations of a piece of code on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// All bytes ever allocated, including those freed again. A buffer that grew counts in full each time.
    pub total_bytes: u64,
    /// The peak of held bytes, above those held at the beginning.
    pub peak_bytes: u64,
    /// The largest single request, even if it failed.
    pub largest_request: u64,
}

/// The system's allocator with counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocMeter;

impl AllocMeter {
    /// Runs `work` and returns its allocations on this thread. Measurements may be nested.
    ///
    /// # Panics
    ///
    /// If the meter is not the global allocator, because then everything would pass; and if `work` panics.
    pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Measured) {
        let span = Span::begin();
        let probe = std::hint::black_box(Vec::<u8>::with_capacity(1));
        let installed = span.so_far().total_bytes > 0;
        drop(probe);
        drop(span);
        assert!(installed, "declare `#[global_allocator] static METER: AllocMeter = AllocMeter;` first");

        let span = Span::begin();
        let result = work();
        let measured = span.so_far();
        (result, measured)
    }
}

/// The bytes held by all threads of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The current number of bytes.
    pub held: i64,
    /// The peak since [`AllocMeter::forget_peak`].
    pub most: i64,
}

impl AllocMeter {
    /// Returns the current and the peak bytes of all threads.
    #[must_use]
    pub fn process() -> Process {
        Process { held: HELD.load(Ordering::Relaxed), most: MOST_HELD.load(Ordering::Relaxed) }
    }

    /// Resets [`Process::most`] to the bytes held now.
    pub fn forget_peak() {
        MOST_HELD.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A running measurement. It resets the peaks. When dropped, even by a panic, it restores the peaks of the outer measurement.
struct Span {
    total: u64,
    live: i64,
    outer_peak: i64,
    outer_largest: u64,
}

impl Span {
    fn begin() -> Self {
        TALLY.with(|tally| Self {
            total: tally.total.get(),
            live: tally.live.get(),
            outer_peak: tally.peak.replace(tally.live.get()),
            outer_largest: tally.largest.replace(0),
        })
    }

    fn so_far(&self) -> Measured {
        TALLY.with(|tally| Measured {
            total_bytes: tally.total.get() - self.total,
            peak_bytes: (tally.peak.get() - self.live).unsigned_abs(),
            largest_request: tally.largest.get(),
        })
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        TALLY.with(|tally| {
            tally.peak.set(tally.peak.get().max(self.outer_peak));
            tally.largest.set(tally.largest.get().max(self.outer_largest));
        });
    }
}

// SAFETY: every method passes its arguments to `System` unchanged and returns what `System` returned, so `System` upholds the contract for us. The
// counting in between touches plain thread-local cells: it neither allocates nor unwinds (the additions stay far below 2^63, the sum of all memory ever
// handed out).
unsafe impl GlobalAlloc for AllocMeter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller owes `alloc` a layout of nonzero size, and `System` asks for no more.
        counted(layout.size(), 0, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        counted(layout.size(), 0, || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller got `pointer` from this allocator with `layout`, so from `System` with `layout`,
        // and `new_size` is nonzero and fits, as the caller owes.
        counted(new_size, layout.size(), || unsafe { System.realloc(pointer, layout, new_size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TALLY.with(|tally| tally.gave_back(layout.size()));
        // SAFETY: the caller got `pointer` from this allocator with `layout`, so from `System` with `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts a successful request for `bytes` that replaces `replaced` bytes.
fn counted(bytes: usize, replaced: usize, request: impl FnOnce() -> *mut u8) -> *mut u8 {
    TALLY.with(|tally| {
        tally.asked(bytes);
        let pointer = request();
        if !pointer.is_null() {
            tally.got(bytes);
            tally.gave_back(replaced);
        }
        pointer
    })
}

// The counting is tested in `tests/alloc_meter.rs`, where the meter is the allocator. Here it is not.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "#[global_allocator]")]
    fn measuring_panics_without_the_meter_installed() {
        AllocMeter::measure(|| ());
    }
}
