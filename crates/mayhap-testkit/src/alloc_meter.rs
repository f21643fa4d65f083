//! Counts what a piece of code allocates, to hold decoders to "never more than the input times sixteen plus
//! 64 KiB".
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
//! Counters belong to the thread, so tests that run beside each other do not disturb each other, and what
//! other threads allocate for the measured code is not seen. [`AllocMeter::process`] sees all threads, for
//! tests of programs with threads of their own; such a test runs alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// What all threads hold.
static HELD: AtomicI64 = AtomicI64::new(0);
/// The most they held since [`AllocMeter::forget_peak`].
static MOST_HELD: AtomicI64 = AtomicI64::new(0);

/// What one thread allocated so far. Cells of plain numbers, made at compile time and never dropped: reading
/// them allocates nothing, which is what makes them usable from inside an allocator.
struct Tally {
    total: Cell<u64>,
    /// Below zero when the thread frees what others allocated.
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

/// What a piece of code allocated on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// All bytes ever handed out, those freed again included. A buffer that grew counts in full each time.
    pub total_bytes: u64,
    /// Most bytes held at once, above what was held at the beginning.
    pub peak_bytes: u64,
    /// The largest single request, also if it failed.
    pub largest_request: u64,
}

/// The system's allocator, counting.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocMeter;

impl AllocMeter {
    /// Runs `work` and says what it allocated on this thread. Measurements may be nested.
    ///
    /// # Panics
    ///
    /// If the meter is not the global allocator, for then everything would pass; and if `work` does.
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

/// What all threads of the process hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Bytes now.
    pub held: i64,
    /// Most bytes at once since [`AllocMeter::forget_peak`].
    pub most: i64,
}

impl AllocMeter {
    /// What all threads hold, and held.
    #[must_use]
    pub fn process() -> Process {
        Process { held: HELD.load(Ordering::Relaxed), most: MOST_HELD.load(Ordering::Relaxed) }
    }

    /// From now on [`Process::most`] begins with what is held now.
    pub fn forget_peak() {
        MOST_HELD.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A measurement under way. Sets the high-water marks back to here, and when dropped, also by a panic,
/// gives an outer measurement its own marks again.
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

// SAFETY: every method hands its arguments to `System` unchanged and returns what `System` returned, so
// `System`'s own keeping of the contract is ours. The counting between touches plain cells of the thread: it
// neither allocates nor unwinds (the additions stay far below 2^63, the sum of all memory ever handed out).
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

/// Counts a request for `bytes` that replaces `replaced` bytes, if it is granted.
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

// The counting itself is tested in `tests/alloc_meter.rs`, where the meter is the allocator. Here it is not.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "#[global_allocator]")]
    fn measuring_without_the_meter_installed_is_refused() {
        AllocMeter::measure(|| ());
    }
}
