//! The content of a run: its remainders in ascending order, each with the number of its copies.
//!
//! A remainder `x` alone in its slot is one copy. Remainders ascend, so a value in the next slot that is not
//! above `x` is not the next remainder. It counts copies of `x` instead:
//!
//! ```text
//! x              one copy
//! x x            two copies
//! x y            y + 2 copies, 0 < y < x
//! x 0 digits     x + 2 + digits copies        (x above 0)
//! 0 0 0 digits   3 + digits copies            (x = 0)
//! ```
//!
//! A digit has all bits of a slot except the highest, which marks that another digit follows. The lowest
//! digit comes first. There is only one way to write a group, so equal contents have equal bytes.

use crate::codec::DecodeError;
use crate::run_table::RunTable;
use crate::sizing::quotient::MIN_REMAINDER_BITS;

/// The most copies of one fingerprint, which is also the most a filter counts.
pub(super) const MAX_COPIES: u64 = 1 << 62;
/// The most slots of a group: three, and 62 digits of one bit.
const MAX_SLOTS: usize = 3 + 62;
const _: () = assert!(MIN_REMAINDER_BITS == 2, "a digit has at least one bit");

/// The copies of one remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) remainder: u64,
    pub(super) copies: u64,
    /// The slot after it.
    pub(super) end: u64,
}

/// Reads the group that begins in slot `start` of a run that ends at `end`.
#[inline(always)]
pub(super) fn read(get: impl Fn(u64) -> u64, start: u64, end: u64, bits: u32) -> Group {
    let remainder = get(start);
    if start + 1 == end {
        return Group { remainder, copies: 1, end };
    }
    let next = get(start + 1);
    if next > remainder {
        return Group { remainder, copies: 1, end: start + 1 };
    }
    read_copies(get, remainder, next, start + 2, end, bits)
}

/// [`read`] for more than one copy: `next` is the slot content after the remainder, and `at` the slot after
/// that.
#[inline(always)]
pub(super) fn read_copies(
    get: impl Fn(u64) -> u64,
    remainder: u64,
    next: u64,
    mut at: u64,
    end: u64,
    bits: u32,
) -> Group {
    let mut copies = if remainder == 0 {
        if at == end || get(at) != 0 {
            return Group { remainder, copies: 2, end: at };
        }
        at += 1;
        3
    } else if next == remainder {
        return Group { remainder, copies: 2, end: at };
    } else if next > 0 {
        return Group { remainder, copies: next + 2, end: at };
    } else {
        remainder + 2
    };
    let (more, mut shift) = (1 << (bits - 1), 0);
    while at < end {
        let digit = get(at);
        at += 1;
        // Overflows only in an invalid table, which is rejected when decoded.
        copies = (digit % more).checked_shl(shift).map_or(u64::MAX, |digit| copies.saturating_add(digit));
        if digit & more == 0 {
            break;
        }
        shift = (shift + bits - 1).min(64);
    }
    Group { remainder, copies, end: at }
}

/// A group in its encoded form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    slots: [u64; MAX_SLOTS],
    len: usize,
}

impl Written {
    /// Encodes `copies` copies of `remainder`: at least one, at most [`MAX_COPIES`].
    pub(super) fn new(remainder: u64, copies: u64, bits: u32) -> Self {
        let mut written = Self { slots: [0; MAX_SLOTS], len: 0 };
        written.push(remainder);
        if copies == 1 {
            return written;
        }
        let mut digits = if remainder == 0 {
            written.push(0);
            if copies == 2 {
                return written;
            }
            written.push(0);
            copies - 3
        } else if copies == 2 {
            written.push(remainder);
            return written;
        } else if copies - 2 < remainder {
            written.push(copies - 2);
            return written;
        } else {
            written.push(0);
            copies - 2 - remainder
        };
        let more = 1 << (bits - 1);
        while digits >= more {
            written.push(digits % more + more);
            digits >>= bits - 1;
        }
        written.push(digits);
        written
    }

    fn push(&mut self, value: u64) {
        self.slots[self.len] = value;
        self.len += 1;
    }

    pub(super) fn slots(&self) -> &[u64] {
        &self.slots[..self.len]
    }
}

/// Checks the groups of a table with valid runs and returns their number. Every group must have its only
/// valid form, groups must ascend within each run, and all copies must add up to `copies`.
///
/// # Errors
/// [`DecodeError::BadField`] with the first invalid slot, or with the number of copies.
pub(super) fn check(table: &RunTable, copies: u64) -> Result<u64, DecodeError> {
    let (bits, mut groups, mut sum) = (table.bits(), 0, 0_u64);
    for (_, run) in table.runs() {
        let (mut at, mut above) = (run.start, None);
        while at < run.end {
            let group = read(|slot| table.get(slot), at, run.end, bits);
            let wrong = DecodeError::BadField { field: "slot", got: at };
            if group.copies > MAX_COPIES || above.is_some_and(|above| group.remainder <= above) {
                return Err(wrong);
            }
            let written = Written::new(group.remainder, group.copies, bits);
            if !written.slots().iter().copied().eq((at..group.end).map(|slot| table.get(slot))) {
                return Err(wrong);
            }
            (at, above) = (group.end, Some(group.remainder));
            groups += 1;
            sum = sum.saturating_add(group.copies);
        }
    }
    if sum != copies {
        return Err(DecodeError::BadField { field: "inserted", got: copies });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(run: &[u64], bits: u32) -> Vec<(u64, u64)> {
        let (mut at, mut groups) = (0, Vec::new());
        while at < run.len() as u64 {
            let group = read(|slot| run[slot as usize], at, run.len() as u64, bits);
            assert!(group.end > at && group.end <= run.len() as u64);
            groups.push((group.remainder, group.copies));
            at = group.end;
        }
        groups
    }

    #[test]
    fn groups_are_read_as_written_next_to_any_others() {
        for bits in [2, 3, 4, 7, 8, 13, 32, 58] {
            let top = (1_u64 << bits) - 1;
            let mut remainders: Vec<u64> =
                [0, 1, 2, 3, 4, 5, top / 2, top - 1, top].into_iter().filter(|&x| x <= top).collect();
            remainders.sort_unstable();
            remainders.dedup();
            let counts = (1..300).chain((8..=62).flat_map(|at| [(1 << at) - 1, 1 << at, (1 << at) + 1]));
            for copies in counts.map(|copies: u64| copies.min(MAX_COPIES)) {
                let (mut run, mut groups) = (Vec::new(), Vec::new());
                for (number, &remainder) in (0..).zip(&remainders) {
                    // Few and many copies next to each other.
                    let copies = if number % 3 == copies % 3 { copies } else { 1 + number % 4 };
                    let written = Written::new(remainder, copies, bits);
                    assert!(written.slots().iter().all(|&slot| slot <= top));
                    run.extend_from_slice(written.slots());
                    groups.push((remainder, copies));
                }
                assert_eq!(read_all(&run, bits), groups, "{bits} bits");
            }
        }
    }

    #[test]
    fn many_copies_take_few_slots() {
        let slots = |remainder, copies, bits| Written::new(remainder, copies, bits).slots().len();
        assert_eq!((slots(100, 1, 8), slots(100, 2, 8), slots(100, 101, 8)), (1, 2, 2));
        assert_eq!((slots(100, 102, 8), slots(100, 1_000_000, 8)), (3, 5));
        assert_eq!((slots(0, 2, 8), slots(0, 3, 8), slots(0, 1_000_000, 8)), (2, 4, 6));
        for bits in 2..=10 {
            for remainder in 0..1 << bits {
                // The sizing relies on this: no more slots than copies, except for three copies of 0.
                let most = |copies| copies as usize + usize::from(remainder == 0 && copies == 3);
                assert!((1..100).all(|copies| slots(remainder, copies, bits) <= most(copies)));
            }
        }
    }

    #[test]
    fn reading_invalid_groups_terminates() {
        for bits in [2, 5, 58] {
            for run in [vec![1, 0], vec![0, 0, 0], vec![1; 200], vec![(1 << bits) - 1; 200], vec![0; 200]] {
                read_all(&run, bits);
            }
            let mut endless = vec![1, 0];
            endless.extend([(1 << bits) - 1; 100]);
            assert!(read_all(&endless, bits)[0].1 > MAX_COPIES);
        }
    }
}
