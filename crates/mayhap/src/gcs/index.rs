//! The index of bucket positions in the stream: one line covers 28 buckets.
//!
//! ```text
//! word 0                    words 1 to 7
//! ┌──────────┬───────┐ ┌────────┬────────┬────────┬───
//! │ base, 49 │ slope │ │ off 1  │ off 2  │ off 3  │ …      28 signed numbers of 16 bits
//! └──────────┴───────┘ └────────┴────────┴────────┴───
//! bucket 0 begins at base; bucket j at base + j·slope + off j, which is the end of bucket j - 1
//! ```
//!
//! Buckets hold similar numbers of items, so a straight line through the 28 buckets is close to all their
//! ends: within a few hundred bits, for codes of any length. An offset has room for 32 767.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::WORDS_PER_LINE;

/// The number of buckets of one line.
pub(super) const BUCKETS_PER_LINE: usize = 28;
/// Ends per word of a line.
const OFFSETS_PER_WORD: usize = 4;
const _: () = assert!((WORDS_PER_LINE - 1) * OFFSETS_PER_WORD == BUCKETS_PER_LINE);

const BASE_BITS: u32 = 49;
const MAX_BASE: u64 = (1 << BASE_BITS) - 1;
const MAX_SLOPE: u64 = u64::MAX >> BASE_BITS;

/// The bits of the stream that hold one bucket: from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The longest stretch that a line can describe, for any words. It limits the cost of a lookup in forged
/// bytes.
#[cfg(test)]
const MAX_STRETCH_BITS: u64 = MAX_SLOPE + u16::MAX as u64;

/// Returns the first word of the index line of `bucket`.
#[inline(always)]
pub(super) const fn line_of(bucket: u64) -> usize {
    (bucket / BUCKETS_PER_LINE as u64) as usize * WORDS_PER_LINE
}

/// Returns the position of `bucket` in the stream; empty if the index has no such bucket. It is never longer
/// than [`MAX_STRETCH_BITS`].
#[inline(always)]
pub(super) fn stretch(index: &[AtomicU64], bucket: u64) -> Stretch {
    let Some(line) = index.get(line_of(bucket)..).and_then(|rest| rest.first_chunk::<WORDS_PER_LINE>())
    else {
        return Stretch::default();
    };
    let number = (bucket % BUCKETS_PER_LINE as u64) as usize;
    let head = line[0].load(Ordering::Relaxed);
    let (base, slope) = (head & MAX_BASE, head >> BASE_BITS);
    // Saturating: a forged offset may be before the stream.
    let end_of = |number: usize| {
        let word = line[1 + number / OFFSETS_PER_WORD].load(Ordering::Relaxed);
        let offset = (word >> (16 * (number % OFFSETS_PER_WORD))) as i16;
        (base + (number as u64 + 1) * slope).saturating_add_signed(i64::from(offset))
    };
    let start = if number == 0 { base } else { end_of(number - 1) };
    Stretch { start, end: end_of(number) }
}

/// Returns whether `line` has a bit set after the offset of `bucket`, the last one.
pub(super) fn stray_offsets(line: &[AtomicU64], bucket: u64) -> bool {
    let number = (bucket % BUCKETS_PER_LINE as u64) as usize;
    (number + 1..BUCKETS_PER_LINE).any(|number| {
        let word = line.get(1 + number / OFFSETS_PER_WORD).map_or(0, |word| word.load(Ordering::Relaxed));
        (word >> (16 * (number % OFFSETS_PER_WORD))) as u16 != 0
    })
}

/// Returns the words of a line for buckets that begin at `base` and end at `ends`, at most 28. `None` if they
/// are too uneven.
pub(super) fn line(base: u64, ends: &[u64]) -> Option<[u64; WORDS_PER_LINE]> {
    let last = *ends.last()?;
    let slope = ((last - base) / ends.len() as u64).min(MAX_SLOPE);
    if base > MAX_BASE {
        return None;
    }
    let mut words = [0; WORDS_PER_LINE];
    words[0] = base | slope << BASE_BITS;
    for (number, &end) in ends.iter().enumerate() {
        let straight = base + (number as u64 + 1) * slope;
        let offset = i16::try_from(end as i64 - straight as i64).ok()?;
        words[1 + number / OFFSETS_PER_WORD] |=
            u64::from(offset as u16) << (16 * (number % OFFSETS_PER_WORD));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    fn atomics(words: &[u64]) -> Vec<AtomicU64> {
        words.iter().map(|&word| AtomicU64::new(word)).collect()
    }

    #[test]
    fn stretch_returns_the_ends_given_to_line() {
        let mut rng = Rng::new(5);
        for buckets in [1, 2, 27, 28] {
            for base in [0, 77, 1 << 40, MAX_BASE] {
                for longest in [1, 1_000, 4_000] {
                    let mut at = base;
                    let ends: Vec<u64> = (0..buckets)
                        .map(|_| {
                            at += rng.below(longest);
                            at
                        })
                        .collect();
                    let index = atomics(&line(base, &ends).unwrap());
                    let mut start = base;
                    for (bucket, &end) in ends.iter().enumerate() {
                        assert_eq!(stretch(&index, bucket as u64), Stretch { start, end });
                        start = end;
                    }
                }
            }
        }
        assert_eq!(stretch(&[], 0), Stretch::default());
    }

    #[test]
    fn line_refuses_ends_that_do_not_fit() {
        assert_eq!(line(MAX_BASE + 1, &[MAX_BASE + 1]), None);
        // All items in the last bucket of 28, or in the first.
        assert_eq!(line(0, &[&[0; 27][..], &[1 << 17]].concat()), None);
        assert_eq!(line(0, &[1 << 17; 28]), None);
        assert!(line(0, &[65_000]).is_some());
        assert_eq!(line(0, &[66_000]), None);
    }

    #[test]
    fn stretch_is_bounded_for_forged_lines() {
        let mut rng = Rng::new(6);
        for _ in 0..10_000 {
            let words: [u64; WORDS_PER_LINE] = std::array::from_fn(|_| rng.next_u64());
            let index = atomics(&words);
            for bucket in 0..40 {
                let Stretch { start, end } = stretch(&index, bucket);
                assert!(end.saturating_sub(start) <= MAX_STRETCH_BITS);
            }
        }
    }
}
