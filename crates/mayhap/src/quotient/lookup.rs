//! The hot loops of the quotient filter: a home, its run, and the remainders in it.

use std::ops::Range;

use super::groups::{self, Group};
use super::place::{RunPlace, place};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::hash::HashScheme;
use crate::run_table::{RunTable, View};
use crate::simd::select::{self, Kernel, Select};

/// For each slot width, the lowest bit of every slot that fits in a word.
static ONE_PER_SLOT: [u64; 64] = {
    let mut table = [0; 64];
    let mut bits = 1;
    while bits < 64 {
        let mut slot = 0;
        while (slot + 1) * bits <= 64 {
            table[bits] |= 1 << (slot * bits);
            slot += 1;
        }
        bits += 1;
    }
    table
};

/// Returns whether the fingerprint is in the table.
#[inline(always)]
pub(super) fn holds(table: &RunTable, place: RunPlace) -> bool {
    struct Holds<'a>(&'a RunTable, RunPlace);
    impl Kernel for Holds<'_> {
        type Output = bool;
        #[inline(always)]
        fn run(self, select: impl Select) -> bool {
            holds_in(&self.0.view(select), self.0.bits(), self.1)
        }
    }
    // Load the slots while the run is being located.
    table.prefetch_slot(place.home);
    select::run(table.bmi2(), Holds(table, place))
}

#[inline(always)]
fn holds_in<S: Select>(view: &View<'_, S>, bits: u32, place: RunPlace) -> bool {
    let Some(Range { start, end }) = view.run(place.home) else { return false };
    let width = (end - start) * u64::from(bits);
    if width <= 64 {
        // All slots of the run together: no branch depends on their number, which cannot be predicted.
        let ones = ONE_PER_SLOT[bits as usize % 64];
        let differing = view.window(start) ^ place.remainder.wrapping_mul(ones);
        let tops = (ones << (bits - 1)) & (u64::MAX >> (64 - width));
        // The top bit of every equal slot, and possibly of some slots after one.
        let equal = differing.wrapping_sub(ones) & !differing & tops;
        if equal == 0 {
            return false;
        }
        if equal >> (bits - 1) & 1 == 1 {
            return true;
        }
    }
    // Another slot is equal, but it may be part of a counter.
    let (mut remainder, mut at) = (view.get(start), start + 1);
    loop {
        if remainder >= place.remainder || at >= end {
            return remainder == place.remainder;
        }
        let next = view.get(at);
        at += 1;
        if next > remainder {
            remainder = next;
            continue;
        }
        // `next` is not a remainder but the number of copies of this one.
        at = groups::read_copies(|slot| view.get(slot), remainder, next, at, end, bits).end;
        if at >= end {
            return false;
        }
        remainder = view.get(at);
        at += 1;
    }
}

/// Looks up all items, one chunk after the one being prefetched.
#[inline(always)]
pub(super) fn holds_batch<H: Hashed>(
    table: &RunTable,
    scheme: &HashScheme,
    items: &[H],
    answers: &mut Answers,
) {
    /// The answers of a chunk are one word.
    const CHUNK: usize = 64;
    struct Chunk<'a>(&'a RunTable, &'a [RunPlace]);
    impl Kernel for Chunk<'_> {
        type Output = u64;
        #[inline(always)]
        fn run(self, select: impl Select) -> u64 {
            let (view, bits) = (self.0.view(select), self.0.bits());
            let bit = |(index, place): (u32, &RunPlace)| u64::from(holds_in(&view, bits, *place)) << index;
            (0..).zip(self.1).map(bit).fold(0, |word, bit| word | bit)
        }
    }
    answers.reset(items.len());
    let (homes, bits) = (table.homes(), table.bits());
    let start = |hash| {
        let place = place(hash, homes, bits);
        table.prefetch(place.home);
        place
    };
    let words = answers.words_mut();
    hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, places| {
        words[first / CHUNK] = select::run(table.bmi2(), Chunk(table, places));
    });
}

/// The position of a fingerprint in the table, or where it belongs.
#[derive(Clone, Debug)]
pub(super) struct RunSpot {
    /// The run of its home. If it is empty, where it would begin.
    pub(super) run: Range<u64>,
    /// Its first slot, or the slot before which it would be inserted.
    pub(super) at: u64,
    pub(super) group: Option<Group>,
}

/// Searches for the fingerprint.
#[inline(always)]
pub(super) fn spot(table: &RunTable, place: RunPlace) -> RunSpot {
    struct Find<'a>(&'a RunTable, RunPlace);
    impl Kernel for Find<'_> {
        type Output = RunSpot;
        #[inline(always)]
        fn run(self, select: impl Select) -> RunSpot {
            let (view, bits) = (self.0.view(select), self.0.bits());
            let run = view.run_or_gap(self.1.home);
            let mut at = run.start;
            while at < run.end {
                let group = groups::read(|slot| view.get(slot), at, run.end, bits);
                if group.remainder >= self.1.remainder {
                    let group = (group.remainder == self.1.remainder).then_some(group);
                    return RunSpot { run, at, group };
                }
                at = group.end;
            }
            RunSpot { run, at, group: None }
        }
    }
    table.prefetch_slot(place.home);
    select::run(table.bmi2(), Find(table, place))
}

/// Returns all groups of a table with their places, in ascending order.
pub(super) fn groups_of(table: &RunTable) -> impl Iterator<Item = (RunPlace, u64)> + '_ {
    let bits = table.bits();
    table.runs().flat_map(move |(home, run)| {
        let mut at = run.start;
        std::iter::from_fn(move || {
            if at >= run.end {
                return None;
            }
            let group = groups::read(|slot| table.get(slot), at, run.end, bits);
            at = group.end;
            Some((RunPlace { home, remainder: group.remainder }, group.copies))
        })
    })
}
