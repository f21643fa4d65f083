//! The hot loops of the growing filter: find the run of a home and compare all its slots.

use std::ops::Range;

use super::slot::{self, SlotPlace};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::hash::{HashScheme, ItemHash};
use crate::run_table::RunTable;
use crate::simd::select::{self, Kernel, Plain, Select};

/// Returns whether any slot of the item's home covers it.
#[inline]
pub(super) fn covers(table: &RunTable, place: SlotPlace) -> bool {
    struct Covers<'a>(&'a RunTable, SlotPlace);
    impl Kernel for Covers<'_> {
        type Output = bool;
        #[inline(always)]
        fn run(self, select: impl Select) -> bool {
            any_covers(self.0, self.1, select)
        }
    }
    // The run is probably near its home: load that line without waiting for the exact position.
    table.prefetch(place.home);
    select::run(table.bmi2(), Covers(table, place))
}

#[inline(always)]
fn any_covers(table: &RunTable, place: SlotPlace, select: impl Select) -> bool {
    let view = table.view(select);
    let Some(run) = view.run(place.home) else { return false };
    // No early exit: runs have one or two slots, and a branch on each would be unpredictable.
    run.fold(false, |found, slot| found | slot::covers(view.get(slot), place.key))
}

/// Answers a batch chunk by chunk: the lines of one chunk are being loaded while the chunk before it is
/// compared.
pub(super) fn covers_batch<H: Hashed>(
    table: &RunTable,
    scheme: &HashScheme,
    items: &[H],
    place: impl Fn(ItemHash) -> SlotPlace,
    answers: &mut Answers,
) {
    const CHUNK: usize = 32;
    struct Chunk<'a>(&'a RunTable, &'a [SlotPlace]);
    impl Kernel for Chunk<'_> {
        type Output = u64;
        #[inline(always)]
        fn run(self, select: impl Select) -> u64 {
            let answer = |&place: &SlotPlace| u64::from(any_covers(self.0, place, select));
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

/// The facts about a run that an insertion or a removal needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The number of slots that cover the item.
    pub(super) covering: u64,
    /// The covering slot with the longest fingerprint, and its content.
    pub(super) longest: Option<(u64, u64)>,
    /// The position of a new slot: runs are sorted by the content of their slots.
    pub(super) at: u64,
}

/// Reads every slot of a run: counts those that cover `key`, and finds the position for `new`.
#[inline]
pub(super) fn look(table: &RunTable, run: &Range<u64>, key: u64, new: u64) -> Seen {
    let view = table.view(Plain);
    let mut seen = Seen { covering: 0, longest: None, at: run.start };
    for at in run.clone() {
        let content = view.get(at);
        seen.at += u64::from(content < new);
        if slot::covers(content, key) {
            seen.covering += 1;
            // Longer fingerprints come later in the run.
            seen.longest = Some((at, content));
        }
    }
    seen
}
