//! Memory in 64-byte lines: small arrays come from the heap, large ones from huge pages of their own; a line
//! array can also be a private view of a file.
//!
//! One of the modules with unsafe code (`store/` and `simd/` have it). Filters hold a [`Lines`] and see
//! slices: `&[AtomicU64]` through `&self`, `&mut [u64]` through `&mut self`. A relaxed atomic read costs
//! nothing: it is the same plain load. It lets a filter and its atomic twin share all lookup code.
#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::convert::Infallible;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fmt, slice};

use xxhash_rust::xxh3::Xxh3;

use super::Relocate;
#[cfg(unix)]
use super::pages::Pages;
use crate::error::BuildError;

/// A cache line, which is also the unit of allocation.
pub(crate) const LINE_BYTES: usize = 64;
/// 64-bit words in a line.
pub(crate) const WORDS_PER_LINE: usize = LINE_BYTES / size_of::<u64>();

/// An array of at least this size gets pages of its own and asks for huge pages. A smaller array would not
/// fill a single huge page. Miri has no huge pages.
#[cfg(unix)]
const OWN_PAGES_FROM_BYTES: usize = if cfg!(miri) { usize::MAX } else { 2 << 20 };
/// The size of a huge page on the systems that have them.
#[cfg(unix)]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Whether large arrays also come from the heap.
static ALL_FROM_HEAP: AtomicBool = AtomicBool::new(false);

/// From now on filters take all their memory from the program's global allocator. Without this call, large
/// arrays get huge pages of their own from the system.
///
/// For a program whose allocator counts memory, such as a module in a server with a memory limit. The setting
/// applies to the whole process and to arrays created from then on.
pub fn take_all_from_heap() {
    ALL_FROM_HEAP.store(true, Ordering::Relaxed);
}

/// Returns free memory in the allocator to the system. Only glibc's allocator needs this: it keeps freed
/// memory between pieces that are in use. With other allocators it does nothing.
///
/// Takes time in proportion to that memory; call it after freeing a lot.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: this is a function of glibc that any thread may call at any time.
        unsafe { malloc_trim(0) };
    }
}

/// The largest ordinary page of any system. Huge pages can be larger, but the system splits those.
#[cfg(unix)]
pub(super) const LARGEST_PAGE_BYTES: usize = 64 << 10;

/// A fixed number of zeroed 64-byte lines.
pub struct Lines {
    /// Aligned to [`LINE_BYTES`]; valid for `room_words` words as long as this lives.
    start: NonNull<u64>,
    words: usize,
    /// The number of words for which there is memory, at least `words`. The words after the first `words` are
    /// zero.
    room_words: usize,
    /// Anonymous pages or a private (copy-on-write) view of a file; unmapped when dropped. `None` for heap
    /// memory, allocated by [`heap_layout`], and for an empty array. Boxed, because there may be a hundred
    /// million small arrays, which do not need it.
    #[cfg(unix)]
    pages: Option<Box<OwnPages>>,
}

/// Pages of our own, anonymous or of a file.
#[cfg(unix)]
struct OwnPages {
    /// For a file: detects its loss. Dropped before the map.
    #[cfg(feature = "file")]
    _guard: Option<super::fault::Guard>,
    map: Pages,
}

/// Returns the layout with which `bytes` bytes of heap memory are allocated and freed.
fn heap_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, LINE_BYTES).ok()
}

// SAFETY: `Lines` is the only owner of its memory. It hands out only atomics through `&self` and plain words
// through `&mut self`, so the usual borrow rules make both traits sound, as for `Box<[AtomicU64]>`.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Lines {
    /// Returns `lines` lines of zeroes, or [`BuildError::OutOfMemory`]; never aborts.
    pub fn zeroed(lines: usize) -> Result<Self, BuildError> {
        let refused = || BuildError::OutOfMemory { bytes: (lines as u64).saturating_mul(LINE_BYTES as u64) };
        if lines == 0 {
            let start = NonNull::<Aligned>::dangling().cast();
            return Ok(Self::on_heap(start, 0));
        }
        let bytes = lines.checked_mul(LINE_BYTES).ok_or_else(refused)?;
        #[cfg(unix)]
        if bytes >= OWN_PAGES_FROM_BYTES && !ALL_FROM_HEAP.load(Ordering::Relaxed) {
            return Self::on_huge_pages(bytes).ok_or_else(refused);
        }
        let layout = heap_layout(bytes).ok_or_else(refused)?;
        // SAFETY: the layout is not empty, because `lines` is not 0.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }.cast()).ok_or_else(refused)?;
        Ok(Self::on_heap(start, lines * WORDS_PER_LINE))
    }

    /// Words that have no pages of their own.
    fn on_heap(start: NonNull<u64>, words: usize) -> Self {
        Self {
            start,
            words,
            room_words: words,
            #[cfg(unix)]
            pages: None,
        }
    }

    /// Has it memory of the heap?
    fn is_on_heap(&self) -> bool {
        #[cfg(unix)]
        if self.pages.is_some() {
            return false;
        }
        self.room_words > 0
    }

    /// Takes fresh pages from the system, starting on a huge-page boundary; untouched pages cost no memory.
    #[cfg(unix)]
    fn on_huge_pages(bytes: usize) -> Option<Self> {
        let map = Pages::of_memory(bytes.checked_add(HUGE_PAGE_BYTES)?)?;
        let address = map.first().as_ptr().addr();
        let offset = address.next_multiple_of(HUGE_PAGE_BYTES) - address;
        #[cfg(target_os = "linux")]
        // Not for the partial huge page at the end: it would take a whole one. On a system without huge pages,
        // the memory is usable as before.
        map.ask_for_huge_pages(offset..offset + bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);
        // SAFETY: the map has `HUGE_PAGE_BYTES` more than `bytes`, and `offset` is less than that.
        let start = unsafe { map.first().add(offset) }.cast();
        let words = bytes / size_of::<u64>();
        let pages = OwnPages {
            #[cfg(feature = "file")]
            _guard: None,
            map,
        };
        Some(Self { start, words, room_words: words, pages: Some(Box::new(pages)) })
    }

    /// Maps `lines` lines of `file` from byte `offset` on, copy-on-write: writes stay private to this
    /// process.
    ///
    /// `None` if the system refuses or maps no files, or if `offset` is not a multiple of [`LINE_BYTES`]. `lost` becomes true
    /// when the system no longer has the bytes and [`survive`](super::survive) was called; from then on all
    /// words are zero.
    #[cfg(all(unix, feature = "file"))]
    pub(crate) fn mapped(
        file: &std::fs::File,
        offset: u64,
        lines: usize,
        lost: &std::sync::Arc<AtomicBool>,
    ) -> Option<Self> {
        let bytes = lines.checked_mul(LINE_BYTES)?;
        // SAFETY: the map is private, so our writes never reach the file. If another process changes or
        // truncates the file in place meanwhile, reads may return other bits or fault, as for every memory
        // map; `file::open` documents this, `file::Backing` detects it, and our own writer never changes a
        // file in place. All reads are atomic or raw loads, which assume nothing about the values.
        let (map, before) = unsafe { Pages::of_file(file, offset, bytes) }?;
        // Lookups read at random places, so read-ahead would only load pages that are not used.
        map.expect_scattered_reads();
        // SAFETY: the map has `before + bytes` bytes.
        let start = unsafe { map.first().add(before) };
        if start.as_ptr().align_offset(LINE_BYTES) != 0 {
            return None;
        }
        let first = start.as_ptr().addr();
        let pages = OwnPages { _guard: Some(super::fault::Guard::new(first..first + bytes, lost)), map };
        let words = lines * WORDS_PER_LINE;
        Some(Self { start: start.cast(), words, room_words: words, pages: Some(Box::new(pages)) })
    }

    /// Returns `None`: this system maps no files.
    #[cfg(all(not(unix), feature = "file"))]
    pub(crate) fn mapped(
        _file: &std::fs::File,
        _offset: u64,
        _lines: usize,
        _lost: &std::sync::Arc<AtomicBool>,
    ) -> Option<Self> {
        None
    }

    /// Returns all words, for any thread to read (and for atomic twins to write).
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is aligned and valid for `words` words while `self` lives; `AtomicU64` has the layout of `u64`,
        // and only atomics are handed out while `self` is shared.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU64>(), self.words) }
    }

    /// Returns all words for an exclusive writer.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `words`, and `&mut self` excludes all other users.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.words) }
    }

    /// Returns a copy, or [`BuildError::OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        let mut copy = Self::zeroed(self.words / WORDS_PER_LINE)?;
        for (to, from) in copy.words_mut().iter_mut().zip(self.words()) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(copy)
    }

    /// Offers its memory to `by`, which may move it, if it is heap memory.
    pub(crate) fn relocate(&mut self, by: &mut dyn Relocate) {
        let bytes = self.room_words * size_of::<u64>();
        if !self.is_on_heap() {
            return;
        }
        if let Some(layout) = heap_layout(bytes)
            && let Some(moved) = by.relocate(self.start.cast(), layout)
        {
            // The new memory is aligned as the layout says, valid for the same number of words, and owned by
            // this array alone: the contract of `Relocate`.
            self.start = moved.cast();
        }
    }

    /// Grows to `lines` lines, if it is shorter; the new lines are zero. If it has to move, it takes memory
    /// for `room` lines when it can, so that growing in small steps does not move it each time.
    ///
    /// After [`BuildError::OutOfMemory`] it is unchanged.
    pub(crate) fn grow(&mut self, lines: usize, room: usize) -> Result<(), BuildError> {
        let used = self.words;
        if lines > self.room_words / WORDS_PER_LINE {
            let mut moved = Self::zeroed(lines.max(room)).or_else(|_| Self::zeroed(lines))?;
            moved.words_mut()[..used].copy_from_slice(self.words_mut());
            *self = moved;
        }
        // The words up to `room_words` have memory, and those after the old end have never been written.
        self.words = used.max(lines * WORDS_PER_LINE);
        Ok(())
    }

    /// Shrinks to `lines` lines, if it is longer. The removed lines must be zero.
    ///
    /// The memory returns to the system if there is enough memory for a copy.
    pub(crate) fn shrink(&mut self, lines: usize) {
        let words = lines * WORDS_PER_LINE;
        if words >= self.words {
            return;
        }
        debug_assert!(self.words_mut()[words..].iter().all(|&word| word == 0), "nothing is lost");
        self.words = words;
        if let Ok(copy) = self.try_clone() {
            *self = copy;
        }
    }

    /// Returns the memory of these words to the system, as far as it consists of whole pages of our own.
    /// Values read from them afterwards are meaningless. For moving the contents of an array from front to
    /// back without holding them twice.
    ///
    /// # Panics
    /// If there are no such words.
    pub(crate) fn give_back(&mut self, words: Range<usize>) {
        assert!(words.start <= words.end && words.end <= self.words);
        #[cfg(unix)]
        if let Some(pages) = &mut self.pages {
            // Pages are computed from addresses: the payload of a mapped file begins in the middle of a page.
            let (map, start) = (pages.map.first().as_ptr().addr(), self.start.as_ptr().addr());
            let page =
                |word: usize| (start + word * size_of::<u64>()) / LARGEST_PAGE_BYTES * LARGEST_PAGE_BYTES;
            // Starts at the page that contains the first word, because the words before it were given back
            // earlier, and ends with the last whole page.
            let first = page(words.start).max(start);
            let bytes = page(words.end).saturating_sub(first);
            let first = first - map;
            // Any value is a valid word, and `&mut self` guarantees that no other thread reads.
            if bytes > 0 {
                pages.map.give_back(first..first + bytes);
            }
        }
    }

    /// Returns the memory of the words and of the room after them.
    pub(crate) fn room_bytes(&self) -> u64 {
        (self.room_words * size_of::<u64>()) as u64
    }

    /// Returns the number of set bits in all words.
    pub(crate) fn ones(&self) -> u64 {
        // Counting is vectorised only for plain words, so they are copied a stretch at a time: three times as
        // fast.
        let mut stretch = [0_u64; 128];
        let count = |words: &[AtomicU64]| {
            for (to, from) in stretch.iter_mut().zip(words) {
                *to = from.load(Ordering::Relaxed);
            }
            stretch[..words.len()].iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
        };
        self.words().chunks(128).map(count).sum()
    }

    /// Returns `Err` with the number of the first set bit from `bit` on, which must lie in the last line.
    pub fn check_zero_from(&self, bit: u64) -> Result<(), u64> {
        let first = (bit / 64) as usize;
        for (index, word) in self.words().iter().enumerate().skip(first) {
            let below = if index == first { bit % 64 } else { 0 };
            let stray = word.load(Ordering::Relaxed) >> below << below;
            if stray != 0 {
                return Err(index as u64 * 64 + u64::from(stray.trailing_zeros()));
            }
        }
        Ok(())
    }

    /// Passes all words as little-endian bytes to `write`, a stretch at a time, until it fails.
    pub fn for_each_le_bytes<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        const STRETCH: usize = 1024;
        let mut bytes = [0; STRETCH * 8];
        for words in self.words().chunks(STRETCH) {
            for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            write(&bytes[..words.len() * 8])?;
        }
        Ok(())
    }

    /// Returns lines that begin with these bytes, the lowest byte of each word first: a bitmap whose first bit is
    /// the lowest bit of its first byte.
    pub fn from_le_bytes(bytes: &[u8]) -> Result<Self, BuildError> {
        let mut lines = Self::zeroed(bytes.len().div_ceil(LINE_BYTES))?;
        for (to, from) in lines.words_mut().iter_mut().zip(bytes.chunks(8)) {
            *to = from.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        Ok(lines)
    }

    /// Returns `count` bytes of all words as little-endian bytes, from byte `at` on; fewer if they end before
    /// that.
    pub fn le_bytes(&self, at: usize, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.min((self.words * 8).saturating_sub(at)));
        self.extend_le_bytes(at, count, &mut bytes);
        bytes
    }

    /// Appends `count` bytes of all words as little-endian bytes, from byte `at` on; fewer if they end before
    /// that.
    pub(crate) fn extend_le_bytes(&self, at: usize, count: usize, out: &mut Vec<u8>) {
        let end = at.saturating_add(count).min(self.words * 8);
        let some = |word: &AtomicU64, bytes: Range<usize>, out: &mut Vec<u8>| {
            out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[bytes]);
        };
        let words = self.words().get(at / 8..end.div_ceil(8)).unwrap_or_default();
        let (first, last) = (at % 8, end.wrapping_sub(1) % 8 + 1);
        match words {
            [] => {}
            [word] => some(word, first..last, out),
            [head, whole @ .., tail] => {
                some(head, first..8, out);
                // Copies 16 words at a time, which is faster: a caller may be waiting.
                let (many, few) = whole.as_chunks::<16>();
                for words in many {
                    let bytes = words.each_ref().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
                    out.extend_from_slice(bytes.as_flattened());
                }
                few.iter().for_each(|word| some(word, 0..8, out));
                some(tail, 0..last, out);
            }
        }
    }

    /// Writes `bytes` from byte `at` on into all words as little-endian bytes; leaves out those after the
    /// last word.
    pub fn put_le_bytes(&mut self, at: usize, bytes: &[u8]) {
        let mut put = |at: usize, byte: u8| {
            if let Some(word) = self.words_mut().get_mut(at / 8) {
                let shift = at % 8 * 8;
                *word = *word & !(0xff << shift) | u64::from(byte) << shift;
            }
        };
        let (head, rest) = bytes.split_at((at.next_multiple_of(8) - at).min(bytes.len()));
        let (whole, tail) = rest.as_chunks::<8>();
        head.iter().enumerate().for_each(|(i, &byte)| put(at + i, byte));
        let tail_at = at + head.len() + whole.len() * 8;
        tail.iter().enumerate().for_each(|(i, &byte)| put(tail_at + i, byte));
        let words = self.words_mut().get_mut((at + head.len()) / 8..).unwrap_or_default();
        for (word, &bytes) in words.iter_mut().zip(whole) {
            *word = u64::from_le_bytes(bytes);
        }
    }

    /// Returns the XXH3-64 of all words as little-endian bytes.
    pub(crate) fn checksum(&self) -> u64 {
        let Ok(checksum) = self.checksum_watched(|_| Ok::<_, Infallible>(()));
        checksum
    }

    /// [`checksum`](Self::checksum) that reports the number of further bytes read to `watch`, until that
    /// fails.
    pub(crate) fn checksum_watched<E>(&self, mut watch: impl FnMut(u64) -> Result<(), E>) -> Result<u64, E> {
        let mut checksum = Xxh3::new();
        self.for_each_le_bytes(|bytes| {
            checksum.update(bytes);
            watch(bytes.len() as u64)
        })?;
        Ok(checksum.digest())
    }

    /// Returns the memory of the words.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.words * size_of::<u64>()) as u64
    }
}

/// Gives the address of an empty array its alignment.
#[repr(align(64))]
struct Aligned;

impl Drop for Lines {
    fn drop(&mut self) {
        if !self.is_on_heap() {
            return;
        }
        if let Some(layout) = heap_layout(self.room_words * size_of::<u64>()) {
            // SAFETY: there are words and no pages, so `start` came from `alloc_zeroed` with the layout of
            // this number of bytes, which `room_words` records and which never changes. It is freed once.
            unsafe { alloc::dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

/// Equal words.
impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        self.words == other.words && self.words().iter().map(word).eq(other.words().iter().map(word))
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({} bytes)", self.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_arrays_are_zeroed_and_aligned_and_keep_writes() {
        let sizes = [0, 1, 3, 1000, (2 << 20) / LINE_BYTES, 40_001];
        for lines in sizes.into_iter().filter(|&lines| lines < 1000 || !cfg!(miri)) {
            let mut array = Lines::zeroed(lines).unwrap();
            assert_eq!(array.words().len(), lines * WORDS_PER_LINE);
            assert_eq!(array.words().as_ptr().align_offset(LINE_BYTES), 0);
            assert!(array.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
            if let Some(last) = array.words_mut().last_mut() {
                *last = 7;
                assert_eq!(array.try_clone().unwrap().words().last().unwrap().load(Ordering::Relaxed), 7);
            }
        }
    }

    #[test]
    fn grown_arrays_keep_their_words_and_are_zero_after_them() {
        let mut array = Lines::zeroed(0).unwrap();
        let (large, larger) = if cfg!(miri) { (200, 201) } else { (40_000, 40_001) };
        for lines in [1, 2, 2, 1, 7, 8, 100, large, larger] {
            let before = array.words().len();
            array.grow(lines, lines + lines / 2).unwrap();
            assert_eq!(array.words().len(), before.max(lines * WORDS_PER_LINE));
            assert!(array.room_bytes() >= array.memory_bytes());
            let words = array.words_mut();
            assert!(words[..before].iter().all(|&word| word == u64::MAX), "{lines} lines");
            assert!(words[before..].iter().all(|&word| word == 0), "{lines} lines");
            words.fill(u64::MAX);
        }
        assert!(matches!(array.grow(usize::MAX / LINE_BYTES, 0), Err(BuildError::OutOfMemory { .. })));
        if !cfg!(miri) {
            assert!(matches!(array.grow(1 << 52, 0), Err(BuildError::OutOfMemory { .. })));
        }
        assert_eq!(array.ones(), larger as u64 * 512);
    }

    // Uses pages of the system, which Miri does not have.
    #[cfg(all(unix, not(miri)))]
    #[test]
    fn giving_words_back_leaves_the_others_unchanged() {
        let words = 3 * HUGE_PAGE_BYTES / 8 + 800;
        for stretch in [1, 5_000, HUGE_PAGE_BYTES / 8, HUGE_PAGE_BYTES / 8 + 1, words] {
            let mut array = Lines::zeroed(words / WORDS_PER_LINE).unwrap();
            array.words_mut().fill(7);
            let mut at = 0;
            // Only some of the shortest stretches: each is a system call.
            for _ in 0..1_000 {
                let next = (at + stretch).min(words);
                array.give_back(at..next);
                assert!(
                    array.words_mut()[next..].iter().step_by(97).all(|&word| word == 7),
                    "{stretch}, {next}"
                );
                at = next;
            }
        }
        let mut small = Lines::zeroed(1).unwrap();
        small.give_back(0..8);
    }

    /// Changes to a mapped file exist only in memory: a page given back too early would have the file's old
    /// contents.
    #[cfg(all(unix, feature = "file", not(miri)))]
    #[test]
    fn giving_words_of_a_map_back_leaves_the_others_unchanged() {
        let (header, lines, stretch) = (192_usize, 40_000, 4_096 * WORDS_PER_LINE);
        let path = std::env::temp_dir().join(format!("mayhap-give-back-{}", std::process::id()));
        std::fs::write(&path, vec![1_u8; header + lines * LINE_BYTES]).unwrap();
        let mut array =
            Lines::mapped(&std::fs::File::open(&path).unwrap(), header as u64, lines, &Default::default())
                .unwrap();
        std::fs::remove_file(&path).unwrap();
        array.words_mut().fill(7);
        let words = lines * WORDS_PER_LINE;
        for at in (0..words).step_by(stretch) {
            let next = (at + stretch).min(words);
            array.give_back(at..next);
            assert!(array.words_mut()[next..].iter().all(|&word| word == 7), "behind word {next}");
        }
    }

    #[test]
    fn stray_bits_are_found_wherever_they_are() {
        let mut array = Lines::zeroed(1).unwrap();
        array.words_mut()[3] = 1 << 20;
        assert_eq!(array.check_zero_from(3 * 64 + 21), Ok(()));
        assert_eq!(array.check_zero_from(3 * 64 + 20), Err(3 * 64 + 20));
        assert_eq!(array.check_zero_from(0), Err(3 * 64 + 20));
        assert_eq!(array.check_zero_from(512), Ok(()));
        assert_eq!(array.ones(), 1);
    }

    #[test]
    fn bitmaps_of_whole_and_partial_words_become_words() {
        let lines = Lines::from_le_bytes(&[0b1, 0, 0, 0, 0, 0, 0, 0, 0b10]).unwrap();
        let words: Vec<u64> = lines.words().iter().map(|word| word.load(Ordering::Relaxed)).collect();
        assert_eq!(words, [1, 2, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn bytes_go_in_and_out_at_any_place() {
        let mut array = Lines::zeroed(2).unwrap();
        let mut plain = vec![0_u8; 128];
        let mut next = 1_u8;
        for at in 0..128 {
            for count in [0, 1, 3, 7, 8, 9, 20, 200] {
                let end = (at + count).min(128);
                let bytes: Vec<u8> = (0..count).map(|i| next.wrapping_add(i as u8)).collect();
                next = next.wrapping_mul(5).wrapping_add(3);
                array.put_le_bytes(at, &bytes);
                plain[at..end].copy_from_slice(&bytes[..end - at]);
                assert_eq!(array.le_bytes(0, 128), plain, "{count} at {at}");
                assert_eq!(array.le_bytes(at, count), plain[at..end], "{count} at {at}");
            }
        }
        array.put_le_bytes(1_000, &[1; 20]);
        assert!(array.le_bytes(1_000, 5).is_empty());
    }

    #[test]
    fn absurd_sizes_are_errors() {
        // Miri aborts on an allocation of that size.
        let sizes = [usize::MAX, usize::MAX / LINE_BYTES, 1 << 52];
        for lines in sizes.into_iter().filter(|&lines| lines != 1 << 52 || !cfg!(miri)) {
            assert!(matches!(Lines::zeroed(lines), Err(BuildError::OutOfMemory { .. })), "{lines} lines");
        }
    }
}
