//! The hot loops of the growing filter: find the run of a home, compare every slot of it.

use std::ops::Range;

use super::slot::{self, Place};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::hash::{HashScheme, ItemHash};
use crate::run_table::RunTable;
use crate::simd::select::{self, Kernel, Plain, Select};

/// Does any slot of the item's home cover it?
#[inline]
pub(super) fn covers(table: &RunTable, place: Place) -> bool {
    struct Covers<'a>(&'a RunTable, Place);
    impl Kernel for Covers<'_> {
        type Output = bool;
        #[inline(always)]
        fn run(self, select: impl Select) -> bool {
            any_covers(self.0, self.1, select)
        }
    }
    // The run is near its home, most likely: its line need not wait for the line that says where exactly.
    table.prefetch(place.home);
    select::run(table.bmi2(), Covers(table, place))
}

#[inline(always)]
fn any_covers(table: &RunTable, place: Place, select: impl Select) -> bool {
    let view = table.view(select);
    let Some(run) = view.run(place.home) else { return false };
    // No way out of the loop before its end: runs have one or two slots, and a branch on each would be a coin toss.
    run.fold(false, |found, slot| found | slot::covers(view.get(slot), place.key))
}

/// Answers a batch one chunk behind: the lines of one chunk are on their way while the one before it is looked at.
pub(super) fn covers_batch<H: Hashed>(
    table: &RunTable,
    scheme: &HashScheme,
    items: &[H],
    place: impl Fn(ItemHash) -> Place,
    answers: &mut Answers,
) {
    const CHUNK: usize = 32;
    struct Chunk<'a>(&'a RunTable, &'a [Place]);
    impl Kernel for Chunk<'_> {
        type Output = u64;
        #[inline(always)]
        fn run(self, select: impl Select) -> u64 {
            let answer = |&place: &Place| u64::from(any_covers(self.0, place, select));
            self.1.iter().rev().fold(0, |answers, place| answers << 1 | answer(place))
        }
    }
    answers.reset(items.len());
    let words = answers.words_mut();
    let start = |hash| {
        let place = place(hash);
        table.prefetch(place.home);
        place
    };
    hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, places| {
        words[first / 64] |= select::run(table.bmi2(), Chunk(table, places)) << (first % 64);
    });
}

/// What an insertion or a removal has to know of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Slots that cover the item.
    pub(super) covering: u64,
    /// The one of them with the longest fingerprint, and what is in it.
    pub(super) longest: Option<(u64, u64)>,
    /// Where a new slot goes: runs are in the order of what their slots hold.
    pub(super) at: u64,
}

/// Looks at every slot of a run: which cover `key`, and where does `new` go?
#[inline]
pub(super) fn look(table: &RunTable, run: &Range<u64>, key: u64, new: u64) -> Seen {
    let view = table.view(Plain);
    let mut seen = Seen { covering: 0, longest: None, at: run.start };
    for at in run.clone() {
        let content = view.get(at);
        seen.at += u64::from(content < new);
        if slot::covers(content, key) {
            seen.covering += 1;
            // The longer the fingerprint, the further back.
            seen.longest = Some((at, content));
        }
    }
    seen
}
