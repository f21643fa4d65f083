//! Bytes in a row that lie in several arrays, so that more of them need not move those that are there.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use xxhash_rust::xxh3::Xxh3;

use super::{LINE_BYTES, Lines, Relocate, relocate_vec};
use crate::error::BuildError;

/// A segment is at least as long before another is begun: its place in the list and the allocator's own take about a hundred bytes. To move so
/// few bytes takes less time than to insert the items that fill them.
const SMALL_BYTES: usize = 4 << 10;

/// No segment of more bytes than these is moved, whatever is added.
const MOST_MOVED_BYTES: usize = 32 << 10;

/// A stretch that is not whole lines is a power of two below 64 times at most so many bytes.
const WIDEST: usize = 255;
// One that was small, the stretch that made it large, and as many more as it takes to come to whole lines.
const _: () = assert!(SMALL_BYTES + 32 * WIDEST + LINE_BYTES * WIDEST <= MOST_MOVED_BYTES);

/// Bytes in a row, added stretch by stretch, each of which lies in one array.
///
/// ```text
/// segment 0  │ 3 │ 6 │ 12 │ … │ 3072 ··│       ends in the middle of a line; what is added next is lines
/// segment 1  │ 6144                │
/// segment 2  │ 12288                              │
/// ```
///
/// Together they take the memory that one array of all bytes would take, or a line more if they were added to a long array that came from elsewhere. Written one
/// behind the other, they are that array.
#[derive(Debug)]
pub(crate) struct Segments {
    /// At least one.
    segments: Vec<Segment>,
    /// In all of them.
    bytes: usize,
    /// What their words take.
    memory_bytes: u64,
}

#[derive(Debug)]
struct Segment {
    lines: Lines,
    /// Bytes in the segments before it.
    before: usize,
}

/// Where a stretch of bytes begins: a segment, and a byte in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) segment: u32,
    pub(crate) at: usize,
}

/// Do `more` bytes go behind a last segment of `bytes`, which has to move for that?
///
/// Yes if it is small. And if neither is whole lines: else what is lost at their ends would add up. That ends soon, for 64 stretches that are alike are whole
/// lines, and so is each that is 64 times as long as the first. Only what came from a file is longer by then.
const fn joins(bytes: usize, more: usize) -> bool {
    let whole_lines = bytes.is_multiple_of(LINE_BYTES) || more.is_multiple_of(LINE_BYTES);
    bytes < SMALL_BYTES || (!whole_lines && bytes <= MOST_MOVED_BYTES)
}

impl Segments {
    /// No bytes yet.
    pub(crate) fn new() -> Result<Self, BuildError> {
        Ok(Self::of_lines(Lines::zeroed(0)?, 0))
    }

    /// The first `bytes` bytes of an array that has no line more than they need.
    pub(crate) fn of_lines(lines: Lines, bytes: usize) -> Self {
        debug_assert_eq!(lines.memory_bytes(), bytes.next_multiple_of(LINE_BYTES) as u64);
        let memory_bytes = lines.memory_bytes();
        Self { segments: vec![Segment { lines, before: 0 }], bytes, memory_bytes }
    }

    fn last(&self) -> &Segment {
        &self.segments[self.segments.len() - 1]
    }

    /// Bytes in the last segment.
    fn last_bytes(&self) -> usize {
        self.bytes - self.last().before
    }

    /// What [`add`](Self::add) of so many bytes comes to.
    pub(crate) fn memory_bytes_with(&self, more: usize) -> u64 {
        let last = self.last_bytes();
        let (gone, new) = if joins(last, more) { (last, last.saturating_add(more)) } else { (0, more) };
        let lines =
            |bytes: usize| (bytes as u64).div_ceil(LINE_BYTES as u64).saturating_mul(LINE_BYTES as u64);
        (self.memory_bytes - lines(gone)).saturating_add(lines(new))
    }

    /// `more` bytes of zeroes behind the others, in one array, and where they begin; or [`BuildError::OutOfMemory`], and everything is as it was.
    ///
    /// What is there moves only if it is small.
    pub(crate) fn add(&mut self, more: usize) -> Result<Start, BuildError> {
        let refused = BuildError::OutOfMemory { bytes: more as u64 };
        let (last, memory_bytes) = (self.last_bytes(), self.memory_bytes_with(more));
        let bytes = self.bytes.checked_add(more).ok_or_else(|| refused.clone())?;
        let at = if joins(last, more) {
            let lines = (last + more).div_ceil(LINE_BYTES);
            let at = self.segments.len() - 1;
            self.segments[at].lines.grow(lines, lines)?;
            last
        } else {
            self.segments.try_reserve(1).map_err(|_| refused)?;
            let lines = Lines::zeroed(more.div_ceil(LINE_BYTES))?;
            self.segments.push(Segment { lines, before: self.bytes });
            0
        };
        (self.bytes, self.memory_bytes) = (bytes, memory_bytes);
        // As many arrays of a page each as 32 bits count are more than there is memory for.
        Ok(Start { segment: (self.segments.len() - 1) as u32, at })
    }

    /// Cuts off what is behind the first `bytes` bytes, which is zeroes, and gives the memory back.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        let kept = self.segments.iter().rposition(|segment| segment.before < bytes).unwrap_or(0);
        self.segments.truncate(kept + 1);
        let last = &mut self.segments[kept];
        last.lines.shrink((bytes - last.before).div_ceil(LINE_BYTES));
        self.bytes = self.bytes.min(bytes);
        self.memory_bytes = self.segments.iter().map(|segment| segment.lines.memory_bytes()).sum();
    }

    /// Makes all bytes zeroes, and cuts off what is behind the first `bytes` of them.
    pub(crate) fn clear(&mut self, bytes: usize) {
        let kept = self.segments.iter().rposition(|segment| segment.before < bytes).unwrap_or(0);
        self.segments.truncate(kept + 1);
        self.segments.iter_mut().for_each(|segment| segment.lines.words_mut().fill(0));
        self.truncate(bytes);
    }

    /// All words of a segment.
    #[inline(always)]
    pub(crate) fn words(&self, segment: u32) -> &[AtomicU64] {
        self.segments[segment as usize].lines.words()
    }

    /// All words of a segment, to be written.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self, segment: u32) -> &mut [u64] {
        self.segments[segment as usize].lines.words_mut()
    }

    /// The number, over all segments, of the byte at `start`.
    pub(crate) fn number(&self, start: Start) -> usize {
        self.segments[start.segment as usize].before + start.at
    }

    /// What the words of all segments take.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// A copy, or [`BuildError::OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        let copy = |segment: &Segment| Ok(Segment { lines: segment.lines.try_clone()?, ..*segment });
        let segments = self.segments.iter().map(copy).collect::<Result<_, BuildError>>()?;
        Ok(Self { segments, ..*self })
    }

    /// Has the memory of all of them put elsewhere.
    pub(crate) fn relocate(&mut self, by: &mut dyn Relocate) {
        relocate_vec(&mut self.segments, by);
        self.segments.iter_mut().for_each(|segment| segment.lines.relocate(by));
    }

    /// The bytes of segment `index`, by their numbers over all segments.
    fn range(&self, index: usize) -> Range<usize> {
        let end = self.segments.get(index + 1).map_or(self.bytes, |next| next.before);
        self.segments[index].before..end
    }

    /// The segment that byte `at` is in, if there is such a byte.
    fn segment_of(&self, at: usize) -> Option<usize> {
        let behind = self.segments.partition_point(|segment| segment.before <= at);
        behind.checked_sub(1).filter(|_| at < self.bytes)
    }

    /// Bytes when all are in one array: whole lines.
    pub(crate) fn packed_bytes(&self) -> usize {
        self.bytes.next_multiple_of(LINE_BYTES)
    }

    /// What one array of all bytes would have, a stretch at a time, until `write` fails.
    pub(crate) fn for_each_le_bytes<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (index, segment) in self.segments.iter().enumerate() {
            let mut left = self.range(index).len();
            segment.lines.for_each_le_bytes(|stretch| {
                let some = &stretch[..stretch.len().min(left)];
                left -= some.len();
                write(some)
            })?;
        }
        write(&[0; LINE_BYTES][..self.packed_bytes() - self.bytes])
    }

    /// The XXH3-64 of what one array of all bytes would have.
    pub(crate) fn checksum(&self) -> u64 {
        let mut checksum = Xxh3::new();
        let Ok(()) = self.for_each_le_bytes(|bytes| {
            checksum.update(bytes);
            Ok::<_, std::convert::Infallible>(())
        });
        checksum.digest()
    }

    /// Appends `count` bytes from byte `at` on of what one array of all bytes would have; fewer if they end before.
    pub(crate) fn extend_le_bytes(&self, at: usize, count: usize, out: &mut Vec<u8>) {
        let end = at.saturating_add(count).min(self.packed_bytes());
        let mut at = at;
        while at < end
            && let Some(index) = self.segment_of(at)
        {
            let range = self.range(index);
            let some = range.end.min(end) - at;
            self.segments[index].lines.extend_le_bytes(at - range.start, some, out);
            at += some;
        }
        out.resize(out.len() + end.saturating_sub(at), 0);
    }

    /// Puts `bytes` from byte `at` on; what would be behind the last is left out.
    pub(crate) fn put_le_bytes(&mut self, at: usize, bytes: &[u8]) {
        let (mut at, mut left) = (at, bytes);
        while !left.is_empty()
            && let Some(index) = self.segment_of(at)
        {
            let range = self.range(index);
            let (some, rest) = left.split_at(left.len().min(range.end - at));
            self.segments[index].lines.put_le_bytes(at - range.start, some);
            (at, left) = (at + some.len(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches as tables have them: all alike, or each so many times as long as the one before.
    fn stretches(first: usize, times: usize, most: usize) -> impl Iterator<Item = usize> {
        let all = std::iter::successors(Some(first), move |last| Some(last * times));
        let mut left = most;
        all.take_while(move |&bytes| {
            left = left.saturating_sub(bytes);
            left > 0
        })
    }

    /// Of all lengths that tables of up to 32 buckets have, and of some that are whole lines.
    const FAMILIES: [(usize, usize); 18] = [
        (1, 1),
        (3, 1),
        (7, 1),
        (255, 1),
        (2 * 255, 1),
        (32 * 255, 1),
        (32 * 33, 1),
        (8, 1),
        (64, 1),
        (1_024, 1),
        (4_096, 1),
        (1, 2),
        (3, 2),
        (255, 2),
        (16 * 7, 4),
        (5, 8),
        (13, 64),
        (192, 2),
    ];

    fn packed(segments: &Segments) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = segments.for_each_le_bytes(|some| {
            bytes.extend_from_slice(some);
            Ok::<_, std::convert::Infallible>(())
        });
        bytes
    }

    /// Writes `byte` to byte `at` of a segment.
    fn set(segments: &mut Segments, start: Start, at: usize, byte: u8) {
        let at = start.at + at;
        segments.words_mut(start.segment)[at / 8] |= u64::from(byte) << (at % 8 * 8);
    }

    fn addresses(segments: &Segments) -> Vec<*const AtomicU64> {
        (0..segments.segments.len()).map(|segment| segments.words(segment as u32).as_ptr()).collect()
    }

    #[test]
    fn what_is_added_bit_by_bit_is_one_array_of_the_same_memory() {
        for (first, times) in FAMILIES {
            let most = if cfg!(miri) { 1 << 13 } else { (3 << 17) * times.pow(2).min(10) };
            let (mut segments, mut plain) = (Segments::new().unwrap(), Vec::<u8>::new());
            for (step, more) in stretches(first, times, most).enumerate() {
                let expected = segments.memory_bytes_with(more);
                let start = segments.add(more).unwrap();
                assert_eq!(segments.number(start), plain.len(), "{first} times {times}");
                assert_eq!(segments.memory_bytes(), expected);
                for at in 0..more {
                    let byte = ((at * 31 + step * 7) % 255) as u8 + 1;
                    plain.push(byte);
                    set(&mut segments, start, at, byte);
                }
                let lines: u64 = segments.segments.iter().map(|segment| segment.lines.room_bytes()).sum();
                assert_eq!(lines, plain.len().next_multiple_of(LINE_BYTES) as u64, "{first} times {times}");
                assert_eq!(segments.memory_bytes(), lines);
            }
            let many = segments.segments.len();
            assert!(cfg!(miri) || many > 1, "{first} times {times}: {many} segments");
            assert!(many <= 1 + plain.len() / SMALL_BYTES);
            plain.resize(plain.len().next_multiple_of(LINE_BYTES), 0);
            assert!(packed(&segments) == plain, "{first} times {times}");
            assert_eq!(segments.checksum(), xxhash_rust::xxh3::xxh3_64(&plain));
            assert!(packed(&segments.try_clone().unwrap()) == plain);
            for (at, count) in [(0, 1), (5, 8_192), (4_090, 5_000), (12_345, 70_000), (0, usize::MAX)] {
                let (from, to) = (at.min(plain.len()), at.saturating_add(count).min(plain.len()));
                let mut some = vec![1];
                segments.extend_le_bytes(at, count, &mut some);
                assert!(some[1..] == plain[from..to], "{count} bytes from {at} of {first} times {times}");
            }
        }
    }

    /// Whatever is long stays where it is.
    #[test]
    fn nothing_large_is_moved() {
        for (first, times) in FAMILIES {
            let (mut segments, mut moved) = (Segments::new().unwrap(), 0);
            for more in stretches(first, times, if cfg!(miri) { 1 << 13 } else { 1 << 20 }) {
                let (before, last) = (addresses(&segments), segments.last_bytes());
                segments.add(more).unwrap();
                let after = addresses(&segments);
                let stayed = before.iter().zip(&after).filter(|(before, after)| before == after).count();
                if stayed < before.len() {
                    assert_eq!(stayed, before.len() - 1, "only the last");
                    moved = moved.max(last);
                }
            }
            assert!(moved <= MOST_MOVED_BYTES, "{moved} bytes of {first} times {times}");
            assert!(!first.is_multiple_of(LINE_BYTES) || moved < SMALL_BYTES, "{moved} bytes");
        }
        // An array that came from elsewhere, and ends in the middle of a line.
        let bytes = 8 * MOST_MOVED_BYTES + 3;
        let mut segments = Segments::of_lines(Lines::zeroed(bytes.div_ceil(LINE_BYTES)).unwrap(), bytes);
        let before = addresses(&segments);
        for more in [3, 3, 64, 3] {
            let expected = segments.memory_bytes_with(more);
            segments.add(more).unwrap();
            assert_eq!(segments.memory_bytes(), expected);
            assert_eq!(addresses(&segments)[0], before[0]);
        }
        assert_eq!(segments.memory_bytes(), segments.packed_bytes() as u64 + 64, "a line more");
    }

    /// Back to any stretch, and on from there.
    #[test]
    fn what_is_cut_off_can_be_added_again() {
        for (first, times) in FAMILIES {
            let all: Vec<usize> =
                stretches(first, times, if cfg!(miri) { 1 << 12 } else { 1 << 15 }).collect();
            let mut segments = Segments::new().unwrap();
            for kept in (0..all.len()).step_by(all.len() / 20 + 1) {
                let bytes: usize = all[..kept].iter().sum();
                segments.truncate(bytes);
                assert_eq!(
                    (segments.bytes, segments.memory_bytes()),
                    (bytes, segments.packed_bytes() as u64)
                );
                let mut number = bytes;
                for &more in &all[kept..] {
                    let start = segments.add(more).unwrap();
                    assert_eq!(segments.number(start), number);
                    number += more;
                }
                assert_eq!(
                    (segments.bytes, segments.memory_bytes()),
                    (number, segments.packed_bytes() as u64)
                );
                assert!(packed(&segments).iter().all(|&byte| byte == 0));
            }
            let start = segments.add(first).unwrap();
            set(&mut segments, start, 0, 9);
            set(&mut segments, Start { segment: 0, at: 0 }, 0, 9);
            segments.clear(first);
            assert_eq!(
                (segments.bytes, packed(&segments)),
                (first, vec![0; first.next_multiple_of(LINE_BYTES)])
            );
            assert_eq!(segments.memory_bytes(), segments.packed_bytes() as u64);
        }
    }

    #[test]
    fn bytes_are_put_across_segments() {
        for (first, times) in [(3, 2), (255, 1), (1_024, 1), (13, 64)] {
            let mut segments = Segments::new().unwrap();
            stretches(first, times, if cfg!(miri) { 1 << 13 } else { 1 << 16 }).for_each(|more| {
                segments.add(more).unwrap();
            });
            let mut plain = vec![0; segments.packed_bytes()];
            let end = segments.bytes;
            for (round, at) in (0..end).step_by(977).enumerate() {
                let bytes: Vec<u8> = (0..round * 911 % 9_000).map(|i| (i + round) as u8).collect();
                segments.put_le_bytes(at, &bytes);
                let count = bytes.len().min(end - at);
                plain[at..at + count].copy_from_slice(&bytes[..count]);
            }
            assert!(packed(&segments) == plain, "{first} times {times}");
        }
    }

    #[test]
    fn too_much_is_an_error_and_changes_nothing() {
        let mut segments = Segments::new().unwrap();
        segments.add(5_000).unwrap();
        let before = (segments.bytes, segments.memory_bytes(), segments.segments.len());
        for more in [usize::MAX, usize::MAX / 2].into_iter().chain((!cfg!(miri)).then_some(1 << 58)) {
            assert!(matches!(segments.add(more), Err(BuildError::OutOfMemory { .. })), "{more}");
            assert_eq!((segments.bytes, segments.memory_bytes(), segments.segments.len()), before);
        }
    }
}
