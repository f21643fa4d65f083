//! All memory comes from the host, which counts it: so `used_memory` is true, and `maxmemory` holds.
//!
//! The host's functions know no alignment but that of its `malloc`, which is 16 bytes of glibc's and 8 of the jemalloc that comes with Redis.
//! Hash tables want 16, filters whole cache lines. jemalloc, which is what most hosts have, aligns as asked who asks for a multiple of it;
//! from any other allocator a little more is taken, and where it began is written in front.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::host::{call, has};

/// What any `malloc` aligns to, and what most do.
const LEAST_ALIGN: usize = 8;
const MALLOC_ALIGN: usize = 16;
/// What jemalloc aligns multiples of it to.
const LINE: usize = 64;
/// Below this a host that cannot say no is asked without a look at whether the system would.
const LARGE: usize = 1 << 20;

/// What the host aligns everything to.
static PLAIN_ALIGN: AtomicUsize = AtomicUsize::new(MALLOC_ALIGN);
/// Does the host align multiples of 16 and of a line as they are?
static ALIGNS_MULTIPLES: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
pub(crate) struct HostAllocator;

/// How memory of a layout is asked for. The same for a layout as long as the module is loaded.
enum Way {
    /// Outside of a host: in tests.
    System,
    Plain,
    /// So many bytes, a multiple of the alignment.
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

/// Learns how the host aligns. Called once, when the module is loaded, before anything was aligned.
pub(crate) fn learn(is_jemalloc: bool) {
    let gives = |size: usize, align: usize| {
        let start = plain(size, false);
        let is_aligned = start.addr().is_multiple_of(align);
        // SAFETY: it came from the host just now, and nobody else has it. Nothing is done for a null pointer.
        unsafe { call!(RedisModule_Free(start.cast())) };
        is_aligned
    };
    // Some of jemalloc's classes are aligned by chance. What has a number in front of it, as musl's has in Redis, never is.
    let is_plain = !is_jemalloc && (1..64).all(|size| gives(size * 8, MALLOC_ALIGN));
    PLAIN_ALIGN.store(if is_plain { MALLOC_ALIGN } else { LEAST_ALIGN }, Relaxed);
    // Sizes of all classes: small, large, and between.
    let sizes = [16, 48, 64, 80, 128, 192, 320, 704, 1_088, 4_160, 20_032, 65_600, 1_048_640];
    let aligns = |size: usize| gives(size, if size.is_multiple_of(LINE) { LINE } else { MALLOC_ALIGN });
    ALIGNS_MULTIPLES.store(is_jemalloc && sizes.into_iter().all(aligns), Relaxed);
}

/// Does memory of this layout begin where the host's does?
pub(crate) fn is_as_it_came(layout: Layout) -> bool {
    matches!(Way::of(layout), Way::Plain | Way::Multiple(_))
}

/// Memory as `malloc` has it, or null.
fn plain(size: usize, zeroed: bool) -> *mut u8 {
    let may_fail = has!(RedisModule_TryAlloc) && has!(RedisModule_TryCalloc);
    // SAFETY: these functions may be called at any time, from any thread; sizes are not zero (`GlobalAlloc` demands it of callers).
    let start: *mut c_void = unsafe {
        match (may_fail, zeroed) {
            (true, false) => call!(RedisModule_TryAlloc(size)),
            (true, true) => call!(RedisModule_TryCalloc(1, size)),
            // The host would end the process.
            (false, _) if size >= LARGE && !system_has(size) => std::ptr::null_mut(),
            (false, false) => call!(RedisModule_Alloc(size)),
            (false, true) => call!(RedisModule_Calloc(1, size)),
        }
    };
    start.cast()
}

/// Would the system give so much?
fn system_has(size: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(size, MALLOC_ALIGN) else { return false };
    // SAFETY: the size is not zero; what was given is given back as it was asked for.
    unsafe {
        let start = System.alloc(layout);
        if !start.is_null() {
            System.dealloc(start, layout);
        }
        !start.is_null()
    }
}

/// Memory of any alignment: more than asked for, with where it began in front of it.
fn padded(layout: Layout, zeroed: bool) -> *mut u8 {
    let besides = layout.align() + size_of::<*mut u8>();
    let Some(size) = layout.size().checked_add(besides) else { return std::ptr::null_mut() };
    let start = plain(size, zeroed);
    if start.is_null() {
        return start;
    }
    let after = start.addr() + size_of::<*mut u8>();
    let aligned = start.with_addr(after.next_multiple_of(layout.align()));
    // SAFETY: `aligned` lies `besides` behind the start at most, so that the layout fits behind it, and the pointer in front of it lies behind the start.
    unsafe { aligned.cast::<*mut u8>().sub(1).write_unaligned(start) };
    aligned
}

// SAFETY: memory is the host's (or, outside of one, the system's) and aligned as asked: by `malloc`, by the size for jemalloc, which
// is checked each time, or by hand. A layout is always served the same way, so what is freed came from where it goes.
unsafe impl GlobalAlloc for HostAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: the caller's.
            Way::System => unsafe { System.alloc(layout) },
            Way::Plain => plain(layout.size(), false),
            Way::Multiple(size) => aligned(size, layout, false),
            Way::Padded => padded(layout, false),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: the caller's.
            Way::System => unsafe { System.alloc_zeroed(layout) },
            Way::Plain => plain(layout.size(), true),
            Way::Multiple(size) => aligned(size, layout, true),
            Way::Padded => padded(layout, true),
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match Way::of(layout) {
            // SAFETY: the caller's.
            Way::System => unsafe { System.dealloc(start, layout) },
            // SAFETY: it came from the host as it is.
            Way::Plain | Way::Multiple(_) => unsafe { call!(RedisModule_Free(start.cast())) },
            Way::Padded => {
                // SAFETY: `padded` wrote where it began in front of it.
                unsafe {
                    let start = start.cast::<*mut u8>().sub(1).read_unaligned();
                    call!(RedisModule_Free(start.cast()));
                }
            }
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match Way::of(layout) {
            // SAFETY: the caller's.
            Way::System => unsafe { System.realloc(start, layout, size) },
            // SAFETY: it came from the host as it is; the new size is not zero.
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
                // SAFETY: the new memory is another's; both have the bytes that are copied. The old goes back as it came.
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

/// Memory of a size that the host aligns.
fn aligned(size: usize, layout: Layout, zeroed: bool) -> *mut u8 {
    let start = plain(size, zeroed);
    if start.addr().is_multiple_of(layout.align()) {
        return start;
    }
    // Not seen yet. Without memory there is an error; with memory that is not aligned there would be worse.
    // SAFETY: it came from the host just now, and nobody else has it.
    unsafe { call!(RedisModule_Free(start.cast())) };
    std::ptr::null_mut()
}
