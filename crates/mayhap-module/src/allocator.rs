//! All memory comes from the host, which counts it. This keeps `used_memory` correct, and `maxmemory` holds.
//!
//! The host's functions take no alignment. They align as its `malloc` does: to 16 bytes with glibc, to 8 with
//! the jemalloc that comes with Redis. Hash tables need 16 bytes, filters whole cache lines. jemalloc, which
//! most hosts use, aligns a block if its size is a multiple of the alignment. From any other allocator we
//! take a little more and write the address of the block in front of the aligned part.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::host::{call, has};

/// The alignment that every `malloc` gives, and the one that most give.
const LEAST_ALIGN: usize = 8;
const MALLOC_ALIGN: usize = 16;
/// jemalloc aligns sizes that are multiples of this to it.
const LINE: usize = 64;
/// From this size on we first ask the system for the memory if the host's allocator cannot fail gracefully.
const LARGE: usize = 1 << 20;

/// The alignment of every block of the host.
static PLAIN_ALIGN: AtomicUsize = AtomicUsize::new(MALLOC_ALIGN);
/// Whether the host aligns sizes that are multiples of 16 or of a cache line accordingly.
static ALIGNS_MULTIPLES: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
pub(crate) struct HostAllocator;

/// How memory of a layout is allocated. It does not change for a layout while the module is loaded.
enum Way {
    /// Without a host: in tests.
    System,
    Plain,
    /// Allocates this many bytes, a multiple of the alignment.
    Multiple(usize),
    Padded,
}

impl Way {
    #[inline]
    fn of(layout: Layout) -> Self {
        if !has!(RedisModule_Alloc) {
            Self::System
        } else if layout.align() <= LEAST_ALIGN || layout.align() <= PLAIN_ALIGN.load(Relaxed) {
            Self::Plain
        } else if layout.align() <= LINE && ALIGNS_MULTIPLES.load(Relaxed) {
            Self::Multiple(layout.size().next_multiple_of(layout.align()))
        } else {
            Self::Padded
        }
    }
}

/// Finds out how the host aligns. Called once, when the module is loaded, before the first aligned
/// allocation.
pub(crate) fn learn(is_jemalloc: bool) {
    let gives = |size: usize, align: usize| {
        let start = plain(size, false);
        let is_aligned = start.addr().is_multiple_of(align);
        // SAFETY: the host has just returned it, and nothing else uses it. A null pointer is ignored.
        unsafe { call!(RedisModule_Free(start.cast())) };
        is_aligned
    };
    // Some of jemalloc's size classes are aligned by chance. Blocks with a number in front of them, as with
    // musl in Redis, are never aligned.
    let is_plain = !is_jemalloc && (1..64).all(|size| gives(size * 8, MALLOC_ALIGN));
    PLAIN_ALIGN.store(if is_plain { MALLOC_ALIGN } else { LEAST_ALIGN }, Relaxed);
    // Sizes from all classes: small, medium and large.
    let sizes = [16, 48, 64, 80, 128, 192, 320, 704, 1_088, 4_160, 20_032, 65_600, 1_048_640];
    let aligns = |size: usize| gives(size, if size.is_multiple_of(LINE) { LINE } else { MALLOC_ALIGN });
    ALIGNS_MULTIPLES.store(is_jemalloc && sizes.into_iter().all(aligns), Relaxed);
}

/// Returns `true` if memory of this layout starts where the host's block starts.
pub(crate) fn is_as_it_came(layout: Layout) -> bool {
    matches!(Way::of(layout), Way::Plain | Way::Multiple(_))
}

/// Allocates memory with the alignment of `malloc`. Returns null if the host refuses.
fn plain(size: usize, zeroed: bool) -> *mut u8 {
    let may_fail = has!(RedisModule_TryAlloc) && has!(RedisModule_TryCalloc);
    // SAFETY: these functions may be called at any time, from any thread. Sizes are not zero (`GlobalAlloc`
    // requires it of callers).
    let start: *mut c_void = unsafe {
        match (may_fail, zeroed) {
            (true, false) => call!(RedisModule_TryAlloc(size)),
            (true, true) => call!(RedisModule_TryCalloc(1, size)),
            // The host would abort the process.
            (false, _) if size >= LARGE && !system_has(size) => std::ptr::null_mut(),
            (false, false) => call!(RedisModule_Alloc(size)),
            (false, true) => call!(RedisModule_Calloc(1, size)),
        }
    };
    start.cast()
}

/// Returns `true` if the system can allocate this many bytes.
fn system_has(size: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(size, MALLOC_ALIGN) else { return false };
    // SAFETY: the size is not zero, and the memory is freed with the layout it was allocated with.
    unsafe {
        let start = System.alloc(layout);
        if !start.is_null() {
            System.dealloc(start, layout);
        }
        !start.is_null()
    }
}

/// Allocates memory of any alignment: more than requested, with the address of the block in front of it.
fn padded(layout: Layout, zeroed: bool) -> *mut u8 {
    let besides = layout.align() + size_of::<*mut u8>();
    let Some(size) = layout.size().checked_add(besides) else { return std::ptr::null_mut() };
    let start = plain(size, zeroed);
    if start.is_null() {
        return start;
    }
    let after = start.addr() + size_of::<*mut u8>();
    let aligned = start.with_addr(after.next_multiple_of(layout.align()));
    // SAFETY: `aligned` is at most `besides` bytes after the start, so the layout fits after it. The pointer
    // in front of it lies inside the block.
    unsafe { aligned.cast::<*mut u8>().sub(1).write_unaligned(start) };
    aligned
}

// SAFETY: memory comes from the host (without a host from the system) and is aligned as requested: by
// `malloc`, by the size with jemalloc, which is checked each time, or by hand. A layout is always served in
// the same way, so memory is freed where it was allocated.
unsafe impl GlobalAlloc for HostAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: guaranteed by the caller.
            Way::System => unsafe { System.alloc(layout) },
            Way::Plain => plain(layout.size(), false),
            Way::Multiple(size) => aligned(size, layout, false),
            Way::Padded => padded(layout, false),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: guaranteed by the caller.
            Way::System => unsafe { System.alloc_zeroed(layout) },
            Way::Plain => plain(layout.size(), true),
            Way::Multiple(size) => aligned(size, layout, true),
            Way::Padded => padded(layout, true),
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match Way::of(layout) {
            // SAFETY: guaranteed by the caller.
            Way::System => unsafe { System.dealloc(start, layout) },
            // SAFETY: it is the start of a block of the host.
            Way::Plain | Way::Multiple(_) => unsafe { call!(RedisModule_Free(start.cast())) },
            Way::Padded => {
                // SAFETY: `padded` wrote the address of the block in front of it.
                unsafe {
                    let start = start.cast::<*mut u8>().sub(1).read_unaligned();
                    call!(RedisModule_Free(start.cast()));
                }
            }
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: guaranteed by the caller.
            Way::System => unsafe { System.realloc(start, layout, size) },
            // SAFETY: it is the start of a block of the host; the new size is not zero.
            Way::Plain if has!(RedisModule_TryRealloc) => unsafe {
                call!(RedisModule_TryRealloc(start.cast(), size)).cast()
            },
            Way::Plain if size >= LARGE && size > layout.size() && !system_has(size) => std::ptr::null_mut(),
            // SAFETY: as above.
            Way::Plain => unsafe { call!(RedisModule_Realloc(start.cast(), size)).cast() },
            Way::Multiple(_) | Way::Padded => {
                let Ok(grown) = Layout::from_size_align(size, layout.align()) else {
                    return std::ptr::null_mut();
                };
                // SAFETY: the new memory does not overlap the old, and both hold the bytes that are copied.
                // The old memory is freed with its own layout.
                unsafe {
                    let moved = self.alloc(grown);
                    if !moved.is_null() {
                        std::ptr::copy_nonoverlapping(start, moved, layout.size().min(size));
                        self.dealloc(start, layout);
                    }
                    moved
                }
            }
        }
    }
}

/// Allocates memory of a size that the host aligns.
fn aligned(size: usize, layout: Layout, zeroed: bool) -> *mut u8 {
    let start = plain(size, zeroed);
    if start.addr().is_multiple_of(layout.align()) {
        return start;
    }
    // Never observed. Out of memory is an error; misaligned memory would be undefined behaviour.
    // SAFETY: the host has just returned it, and nothing else uses it.
    unsafe { call!(RedisModule_Free(start.cast())) };
    std::ptr::null_mut()
}
