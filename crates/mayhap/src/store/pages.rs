//! Whole pages from the system: fresh memory, or a private view of a file.
//!
//! It calls `libc`, on Unix only. On other systems, arrays come from the heap and files are read into memory.
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};

use libc::c_int;
// File offsets have 64 bits, also on 32-bit processors.
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

/// Pages that only this value owns. Dropping it unmaps them.
pub(super) struct Pages {
    first: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps `bytes` zeroed bytes. Untouched pages cost no memory.
    pub(super) fn of_memory(bytes: usize) -> Option<Self> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0)
    }

    /// Maps the pages that hold `bytes` bytes of `file` from byte `offset` on. Also returns the position of byte `offset` in these pages.
    /// Writes stay private to this process.
    ///
    /// # Safety
    /// Another process can change or truncate the file. The caller must be sound for any value that it reads, and for a load that faults.
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
        // No Rust object is larger than `isize::MAX` bytes, and the system has no empty maps.
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return None;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the system picks free addresses, so the call changes no existing memory.
        let first = unsafe { mmap(ptr::null_mut(), bytes, access, flags, file, offset) };
        if first == libc::MAP_FAILED {
            return None;
        }
        Some(Self { first: NonNull::new(first.cast())?, bytes })
    }

    /// Returns a pointer to the first byte. All bytes may be read and written while `self` lives.
    pub(super) fn first(&self) -> NonNull<u8> {
        self.first
    }

    /// Requests huge pages for this range, which begins at the start of a page. The system may refuse.
    #[cfg(target_os = "linux")]
    pub(super) fn ask_for_huge_pages(&self, range: Range<usize>) {
        self.advise(range, libc::MADV_HUGEPAGE);
    }

    /// Advises the system not to read ahead, because reads are scattered. The system may refuse.
    #[cfg(feature = "file")]
    pub(super) fn expect_scattered_reads(&self) {
        self.advise(0..self.bytes, libc::MADV_RANDOM);
    }

    /// Returns the pages of this range to the system, starting with the page that contains the first byte of the range. Afterwards their
    /// bytes are zero, or those of the file. If the system refuses, they are unchanged.
    pub(super) fn give_back(&mut self, range: Range<usize>) {
        let page = page_bytes();
        self.advise(range.start / page * page..range.end, libc::MADV_DONTNEED);
    }

    fn advise(&self, range: Range<usize>, advice: c_int) {
        assert!(range.start <= range.end && range.end <= self.bytes, "the range lies in the pages");
        // SAFETY: the assertion shows that the range lies in the map. The advice used above changes at most the bytes of these pages,
        // and only where the caller has exclusive access.
        let _ = unsafe {
            libc::madvise(self.first.as_ptr().add(range.start).cast(), range.end - range.start, advice)
        };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `map` got exactly these bytes from the system, and no code uses them after this.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the size of a page in bytes.
pub(super) fn page_bytes() -> usize {
    // SAFETY: the call only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(super::memory::LARGEST_PAGE_BYTES)
}
