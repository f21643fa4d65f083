//! The hot loop: searching the codes of a bucket for a value.

use std::hint::{black_box, select_unpredictable};
use std::sync::atomic::AtomicU64;

use super::index::Stretch;
use super::rice::{Reader, word};

/// Returns whether the value at `place` of a bucket is among the codes of its `stretch`.
#[inline(always)]
pub(crate) fn stretch_holds(words: &[AtomicU64], stretch: Stretch, low: u32, place: u64) -> bool {
    // Decodes as many codes from one load as nearly always fit in 64 bits. On average a code has up to
    // `low + 2.6` bits.
    match low {
        0..=4 => holds::<6>(words, stretch, low, place),
        5..=7 => holds::<5>(words, stretch, low, place),
        8..=10 => holds::<4>(words, stretch, low, place),
        11..=15 => holds::<3>(words, stretch, low, place),
        16..=26 => holds::<2>(words, stretch, low, place),
        _ => holds::<1>(words, stretch, low, place),
    }
}

/// [`stretch_holds`] with `GROUP` codes at a time. They are added up without comparing each one; only the
/// group that reaches the place is examined again.
#[inline(always)]
fn holds<const GROUP: usize>(words: &[AtomicU64], stretch: Stretch, low: u32, place: u64) -> bool {
    let Stretch { mut start, end } = stretch;
    let sought = place.wrapping_add(1);
    // One past the last value: the next gap counts from here.
    let mut free = 0_u64;
    while start < end {
        // Three inverted words: the group is in the first two, and the third is loaded before the next group
        // needs it. With one load per group, every group would wait for it.
        let (mut index, mut skip, mut left) = ((start / 64) as usize, start % 64, end - start);
        let [mut first, mut second, mut third] = [0, 1, 2].map(|next| !word(words, index + next));
        // A separate variable on purpose: otherwise the two shifts become one instruction that is slow on
        // many CPUs.
        let mut half = second >> 1;
        loop {
            let group = first << skip | half >> (63 - skip);
            let (mut bits, mut runs, mut tails) = (group, 0, 0_u64);
            for _ in 0..GROUP {
                let (run, tail, rest) = split(bits, low);
                runs += u64::from(run);
                tails = tails.wrapping_add(tail);
                bits = rest;
            }
            let used = runs + GROUP as u64 * u64::from(1 + low);
            if used > 64 {
                break;
            }
            let next = after(free, runs, GROUP as u64, tails, low);
            if next >= sought || used >= left {
                // Opaque, or the compiler would store the parts of every group in memory for this call.
                return reaches_exactly::<GROUP>(black_box(group), low, free, sought, left);
            }
            (free, skip, left) = (next, skip + used, left - used);
            let on = skip >= 64;
            skip %= 64;
            index += usize::from(on);
            first = select_unpredictable(on, second, first);
            second = select_unpredictable(on, third, second);
            half = select_unpredictable(on, third >> 1, half);
            third = !word(words, index + 2);
        }
        // A code too long for a group is read separately.
        let mut reader = Reader::new(words, index as u64 * 64 + skip, end);
        let Some(gap) = reader.next(low) else { return false };
        free = free.wrapping_add(gap).wrapping_add(1);
        if free >= sought {
            return free == sought;
        }
        start = reader.at();
    }
    false
}

/// Splits the first code off `bits`, which are inverted so that its unary part is a run of leading zeroes.
/// Returns the length of that run; the bits after it (`2^low` for the end of the run plus the inverted
/// remainder); and the bits after the code.
#[inline(always)]
fn split(bits: u64, low: u32) -> (u32, u64, u64) {
    let run = bits.leading_zeros();
    let bits = bits.wrapping_shl(run);
    (run, bits >> (63 - low), bits << (low + 1))
}

/// Returns one past the value that `count` codes lead to from `free`. A gap is `run · 2^low + remainder`, and
/// the remainder is `2^(low + 1) - 1 - tail`.
#[inline(always)]
fn after(free: u64, runs: u64, count: u64, tails: u64, low: u32) -> u64 {
    free.wrapping_add((runs + 2 * count) << low).wrapping_sub(tails)
}

/// Returns whether one of the first `GROUP` codes of `bits` leads exactly to `sought`. Only `left` bits
/// belong to the stretch.
#[inline(always)]
fn reaches_exactly<const GROUP: usize>(
    mut bits: u64,
    low: u32,
    mut free: u64,
    sought: u64,
    left: u64,
) -> bool {
    let (mut found, mut used) = (false, 0);
    for _ in 0..GROUP {
        let (run, tail, rest) = split(bits, low);
        free = after(free, u64::from(run), 1, tail, low);
        used += u64::from(run + 1 + low);
        found |= free == sought && used <= left;
        bits = rest;
    }
    found
}

/// A lookup that continues where the one before it stopped, for ascending places. Values differ by at least
/// `STEP`: 1, or 0 with duplicates.
#[derive(Clone, Copy, Debug)]
pub(super) struct StretchCursor<'a, const STEP: u64 = 1> {
    pub(super) bucket: u64,
    reader: Reader<'a>,
    free: u64,
    /// One past the last place looked up.
    sought: u64,
}

impl<'a, const STEP: u64> StretchCursor<'a, STEP> {
    pub(super) const fn new(words: &'a [AtomicU64], bucket: u64, stretch: Stretch) -> Self {
        Self { bucket, reader: Reader::new(words, stretch.start, stretch.end), free: 0, sought: 0 }
    }

    /// Returns whether `place` is not before the last one looked up.
    #[inline(always)]
    pub(super) const fn reaches(&self, place: u64) -> bool {
        self.sought <= place.wrapping_add(1)
    }

    /// Returns whether the value at `place` is among the codes. It must be [reachable](Self::reaches).
    #[inline(always)]
    pub(super) fn holds(&mut self, low: u32, place: u64) -> bool {
        self.sought = place.wrapping_add(1);
        while self.free < self.sought {
            let Some(gap) = self.reader.next(low) else { return false };
            self.free = self.free.wrapping_add(gap).wrapping_add(STEP);
        }
        self.free == self.sought
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::rice::{Packer, length, stored};
    use mayhap_testkit::rng::Rng;

    /// The plain version: compares one code after the other.
    fn holds_plainly(words: &[AtomicU64], stretch: Stretch, low: u32, place: u64) -> bool {
        let mut reader = Reader::new(words, stretch.start, stretch.end);
        let mut free = 0;
        while let Some(gap) = reader.next(low) {
            if free + gap >= place {
                return free + gap == place;
            }
            free += gap + 1;
        }
        false
    }

    #[test]
    fn stretch_holds_agrees_with_the_plain_version() {
        let mut rng = Rng::new(9);
        for low in [0, 1, 2, 4, 7, 8, 11, 15, 19, 26, 27, 40, 50] {
            for shift in [0, 3] {
                let (mut words, mut packer) = (Vec::new(), Packer::default());
                packer.put(0, shift, &mut |word| words.push(word));
                // One gap in forty has a long unary part.
                let gaps: Vec<u64> = (0..200)
                    .map(|_| {
                        let quotient = if rng.below(40) == 0 { rng.below(90) } else { rng.below(5) };
                        quotient << low | rng.next_u64() & ((1 << low) - 1)
                    })
                    .collect();
                gaps.iter().for_each(|&gap| packer.put_rice(gap, low, &mut |word| words.push(word)));
                // The bits after it belong to another bucket and must be ignored.
                (0..9).for_each(|_| packer.put_rice(0, low, &mut |word| words.push(word)));
                words.extend(packer.finish());
                let words: Vec<AtomicU64> = words.iter().map(|&word| AtomicU64::new(stored(word))).collect();
                let end = u64::from(shift) + gaps.iter().map(|&gap| length(gap, low)).sum::<u64>();
                let stretch = Stretch { start: u64::from(shift), end };
                let mut places: Vec<u64> = Vec::new();
                let mut free = 0;
                for gap in gaps {
                    places.extend([free + gap, free + gap + 1, (free + gap).saturating_sub(1)]);
                    free += gap + 1;
                }
                places.extend([0, free + (1 << low), u64::MAX]);
                places.sort_unstable();
                let mut cursor = StretchCursor::<1>::new(&words, 0, stretch);
                let mut held = 0;
                for place in places {
                    let plain = holds_plainly(&words, stretch, low, place);
                    assert_eq!(stretch_holds(&words, stretch, low, place), plain, "{low} low bits, {place}");
                    assert!(place == u64::MAX || cursor.reaches(place));
                    assert_eq!(
                        place != u64::MAX && cursor.holds(low, place),
                        plain,
                        "{low} low bits, {place}"
                    );
                    held += u32::from(plain);
                }
                assert!(held >= 200, "{held}");
            }
        }
    }
}
