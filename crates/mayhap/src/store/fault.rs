//! Maps of files whose pages are gone: the file was truncated while it was mapped, or the disk no longer
//! reads.
//!
//! A load from such a page is not an error that the program receives: the system sends SIGBUS, which ends the
//! process. [`survive`] installs a handler. It maps zeroes over the whole map, so that the load is repeated
//! and returns, and marks the map as lost. Values read from it are meaningless from then on; a caller that
//! checks the mark ([`crate::file::Backing`]) learns this before it uses an answer.
//!
//! The handler calls nothing except `mmap` and `sigaction`, takes no lock and allocates no memory: it reads
//! the table of maps as atomics.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{io, mem, ptr};

use libc::{c_int, c_void, sigaction, siginfo_t};

use super::pages::page_bytes;

/// One map of a file. Entries are reused and never freed: the handler may read any of them at any time.
struct Entry {
    /// Odd while the entry is being changed.
    version: AtomicUsize,
    /// Addresses of whole pages; both 0 if the entry has no map.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The flag that marks the loss; valid while there is a map.
    lost: AtomicPtr<AtomicBool>,
    is_taken: AtomicBool,
    next: Option<&'static Entry>,
}

/// The newest entry; each entry points to the one added before it.
static NEWEST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// Held by a thread that adds an entry, never by the handler.
static ADDING: Mutex<()> = Mutex::new(());

/// The action for SIGBUS that was installed before ours.
static BEFORE: OnceLock<sigaction> = OnceLock::new();

fn newest() -> Option<&'static Entry> {
    // SAFETY: the pointer is null or points to an entry that `Entry::free_one` leaked, whose fields were
    // written before the pointer was.
    unsafe { NEWEST.load(Ordering::Acquire).as_ref() }
}

impl Entry {
    /// Returns an entry that belongs to the caller alone.
    fn free_one() -> &'static Self {
        let _one_at_a_time = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = newest();
        while let Some(entry) = at {
            if !entry.is_taken.swap(true, Ordering::Acquire) {
                return entry;
            }
            at = entry.next;
        }
        let entry = Box::leak(Box::new(Self {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lost: AtomicPtr::new(ptr::null_mut()),
            is_taken: AtomicBool::new(true),
            next: newest(),
        }));
        NEWEST.store(entry, Ordering::Release);
        entry
    }

    /// Records a map in the entry. Only the entry's owner calls this.
    fn set(&self, pages: Range<usize>, lost: *mut AtomicBool) {
        self.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(pages.start, Ordering::Relaxed);
        self.end.store(pages.end, Ordering::Relaxed);
        self.lost.store(lost, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the map that contains this address. An entry that changes during the call belongs to another
    /// map: a thread that reads from a map keeps its entry unchanged.
    fn map_of(&self, address: usize) -> Option<(Range<usize>, *mut AtomicBool)> {
        let before = self.version.load(Ordering::Acquire);
        let pages = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        let lost = self.lost.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let whole = before.is_multiple_of(2) && before == self.version.load(Ordering::Relaxed);
        (whole && pages.contains(&address)).then_some((pages, lost))
    }
}

/// A map of a file that the handler knows until this is dropped. Drop it before the map.
pub(super) struct Guard {
    entry: &'static Entry,
    /// Keeps the flag that the entry points to.
    _lost: Arc<AtomicBool>,
}

impl Guard {
    /// Guards the map that holds these bytes. Its loss is marked in `lost`.
    pub(super) fn new(bytes: Range<usize>, lost: &Arc<AtomicBool>) -> Self {
        let page = page_bytes();
        let pages = bytes.start / page * page..bytes.end.next_multiple_of(page);
        let entry = Entry::free_one();
        entry.set(pages, Arc::as_ptr(lost).cast_mut());
        Self { entry, _lost: Arc::clone(lost) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.entry.set(0..0, ptr::null_mut());
        self.entry.is_taken.store(false, Ordering::Release);
    }
}

/// Installs the handler: from now on a lost map of a file is marked and does not end the process. One call is
/// enough.
pub(crate) fn survive() -> io::Result<()> {
    let _one_at_a_time = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: both are plain data, for which all zeroes are valid: no flags, no signal blocked. The pointers
    // refer to them, and the handler has the signature that SA_SIGINFO requires. It is safe to run at any
    // load: it uses atomics and two system calls.
    unsafe {
        let (mut before, mut ours): (sigaction, sigaction) = (mem::zeroed(), mem::zeroed());
        if sigaction(libc::SIGBUS, ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        // The handler may run at once and needs it.
        let _ = BEFORE.set(before);
        ours.sa_sigaction = handle as *const () as usize;
        // Runs on the thread's stack for signal handlers, if it has one (the standard library's threads do):
        // a full stack may be the cause of the signal.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid `info` to a handler with SA_SIGINFO, and for SIGBUS it contains an
    // address.
    let address = unsafe { (*info).si_addr() }.addr();
    let mut at = newest();
    while let Some(entry) = at {
        if let Some((pages, lost)) = entry.map_of(address) {
            // SAFETY: these pages are one map of a file, and the map is alive: a load from it caused this
            // signal. MAP_FIXED replaces it in one step with memory that can be read and written as before;
            // `munmap` frees either. Words loaded from it may have any value, and no code relies on their
            // values. `lost` lives as long as the map is in the table.
            let laid = unsafe {
                libc::mmap(
                    ptr::without_provenance_mut(pages.start),
                    pages.len(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if laid != libc::MAP_FAILED {
                // SAFETY: as above.
                unsafe { (*lost).store(true, Ordering::SeqCst) };
                return;
            }
            break;
        }
        at = entry.next;
    }
    // Not one of our maps: do what would have happened without us.
    // SAFETY: the previous action is the one the system returned, called as its flags say. Without a handler
    // the default action is restored, and the load is repeated.
    unsafe {
        match BEFORE.get() {
            Some(before) if !matches!(before.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) => {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                        mem::transmute(before.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    let handler: extern "C" fn(c_int) = mem::transmute(before.sa_sigaction);
                    handler(signal);
                }
            }
            _ => {
                let mut default: sigaction = mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_map_and_an_entry_is_used_again() {
        let (one, other) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let page = page_bytes();
        // Addresses at which nothing is mapped.
        let guard = Guard::new(page * 3 + 192..page * 5 + 7, &one);
        let entry = guard.entry;
        assert_eq!(entry.map_of(page * 3), Some((page * 3..page * 6, Arc::as_ptr(&one).cast_mut())));
        assert_eq!(entry.map_of(page * 6), None);
        assert_eq!(entry.map_of(page * 3 - 1), None);
        let second = Guard::new(page * 6..page * 7, &other);
        assert!(!ptr::eq(second.entry, entry) && second.entry.map_of(page * 6).is_some());
        drop(guard);
        assert_eq!(entry.map_of(page * 3), None);
        assert_eq!(Arc::strong_count(&one), 1);
        entry.version.fetch_add(1, Ordering::Relaxed);
        assert_eq!(entry.map_of(0), None, "one that is being changed is of no map");
        entry.version.fetch_add(1, Ordering::Relaxed);
    }
}
