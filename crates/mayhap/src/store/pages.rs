//! Whole pages from the system: fresh memory, or a private view of a file.
//!
//! On Unix, through `libc`. Other systems have none: arrays come from the heap there, and files are read.
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};

use libc::c_int;
// Offsets of 64 bits, also on processors of 32.
#[cfg(not(any(
    target_os = "android",
    all(target_os = "linux", not(any(target_env = "musl", target_env = "ohos")))
)))]
use libc::{mmap, off_t};
#[cfg(any(
    target_os = "android",
    all(target_os = "linux", not(any(target_env = "musl", target_env = "ohos")))
))]
use libc::{mmap64 as mmap, off64_t as off_t};

/// Pages that belong to this alone. They are unmapped when it is dropped.
pub(super) struct Pages {
    first: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// `bytes` zeroed bytes. Pages that are never touched cost no memory.
    pub(super) fn of_memory(bytes: usize) -> Option<Self> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0)
    }

    /// The pages that hold `bytes` bytes of `file` from byte `offset` on, and the position of the first of these bytes in them. Writes
    /// stay private to this process.
    ///
    /// # Safety
    /// Another process can change or cut the file. The caller must be right with any value it reads, and with a load that faults.
    #[cfg(feature = "file")]
    pub(super) unsafe fn of_file(file: &std::fs::File, offset: u64, bytes: usize) -> Option<(Self, usize)> {
        use std::os::fd::AsRawFd as _;

        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        const UNRESERVED: c_int = libc::MAP_NORESERVE;
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        const UNRESERVED: c_int = 0;

        let before = offset % page_bytes() as u64;
        let from = off_t::try_from(offset - before).ok()?;
        let before = usize::try_from(before).ok()?;
        let bytes = bytes.checked_add(before)?;
        let pages = Self::map(bytes, libc::MAP_PRIVATE | UNRESERVED, file.as_raw_fd(), from)?;
        Some((pages, before))
    }

    fn map(bytes: usize, flags: c_int, file: RawFd, offset: off_t) -> Option<Self> {
        // Rust knows no larger object; the system knows no empty map.
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the system picks addresses that are free, so nothing that exists is changed.
        let first = unsafe { mmap(ptr::null_mut(), bytes, access, flags, file, offset) };
        if first == libc::MAP_FAILED {
            return None;
        }
        Some(Self { first: NonNull::new(first.cast())?, bytes })
    }

    /// The first byte. All bytes may be read and written as long as this lives.
    pub(super) fn first(&self) -> NonNull<u8> {
        self.first
    }

    /// Asks for huge pages in this range, which begins with a page. The system may refuse.
    #[cfg(target_os = "linux")]
    pub(super) fn ask_for_huge_pages(&self, range: Range<usize>) {
        self.advise(range, libc::MADV_HUGEPAGE);
    }

    /// Tells the system that reads go anywhere, so that it does not read ahead. It may refuse.
    #[cfg(feature = "file")]
    pub(super) fn expect_scattered_reads(&self) {
        self.advise(0..self.bytes, libc::MADV_RANDOM);
    }

    /// Gives the pages of this range back, from the page its first byte is in. Their bytes are zero afterwards, or those of the file; if
    /// the system refuses, as before.
    pub(super) fn give_back(&mut self, range: Range<usize>) {
        let page = page_bytes();
        self.advise(range.start / page * page..range.end, libc::MADV_DONTNEED);
    }

    fn advise(&self, range: Range<usize>, advice: c_int) {
        assert!(range.start <= range.end && range.end <= self.bytes, "the range lies in the pages");
        // SAFETY: the range lies in the map, by the assertion. The advice used above changes at most the bytes of these pages, and
        // only where the caller has them alone.
        let _ = unsafe {
            libc::madvise(self.first.as_ptr().add(range.start).cast(), range.end - range.start, advice)
        };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: these are the bytes that `map` was given, and nothing of them is used after this.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

/// The size of a page.
pub(super) fn page_bytes() -> usize {
    // SAFETY: it only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(super::memory::LARGEST_PAGE_BYTES)
}
