//! Whole tables written from their beginning to their end: merging, doubling, many items at once.

use super::groups::{MAX_COPIES, Written};
use super::lookup::groups_of;
use super::place::{Place, place};
use crate::batch::Hashed;
use crate::error::BuildError;
use crate::hash::HashScheme;
use crate::run_table::{Appender, RunTable};

/// Why a table could not be written.
pub(super) enum Refused {
    /// The memory for it, or its size.
    Build(BuildError),
    /// It would not fit.
    Full,
}

/// A new table, with what it holds.
pub(super) struct Made {
    pub(super) table: RunTable,
    /// Different fingerprints.
    pub(super) distinct: u64,
    /// Copies of all of them.
    pub(super) copies: u64,
}

/// A table of `groups`, which ascend; neighbours of one place become one.
pub(super) fn write(
    homes: u64,
    bits: u32,
    max_slots: u64,
    groups: impl Iterator<Item = (Place, u64)>,
) -> Result<Made, Refused> {
    let mut appender = Appender::with_homes(homes, bits).map_err(Refused::Build)?;
    let (mut distinct, mut copies) = (0, 0);
    let mut push = |(place, count): (Place, u64)| {
        if count == 1 {
            appender.push(place.home, place.remainder).map_err(|_| Refused::Full)?;
        } else {
            for &slot in Written::new(place.remainder, count.min(MAX_COPIES), bits).slots() {
                appender.push(place.home, slot).map_err(|_| Refused::Full)?;
            }
        }
        distinct += 1;
        copies += count;
        if appender.used() > max_slots || copies > MAX_COPIES {
            return Err(Refused::Full);
        }
        Ok(())
    };
    let mut waiting: Option<(Place, u64)> = None;
    for (place, count) in groups {
        match &mut waiting {
            Some((last, copies)) if *last == place => *copies = copies.saturating_add(count),
            _ => {
                if let Some(group) = waiting.replace((place, count)) {
                    push(group)?;
                }
            }
        }
    }
    if let Some(group) = waiting {
        push(group)?;
    }
    Ok(Made { distinct, copies, table: appender.finish() })
}

/// What two ascending streams hold together, ascending.
pub(super) fn merged<G: Ord>(
    ours: impl Iterator<Item = G>,
    theirs: impl Iterator<Item = G>,
) -> impl Iterator<Item = G> {
    let (mut ours, mut theirs) = (ours.peekable(), theirs.peekable());
    std::iter::from_fn(move || match (ours.peek(), theirs.peek()) {
        (Some(our), Some(their)) if our <= their => ours.next(),
        (Some(_), None) => ours.next(),
        _ => theirs.next(),
    })
}

/// Is sorting so many items and writing the table anew faster than finding a place for each? Not for a few, and not if the
/// table is large or holds many more: all of that is written too.
pub(super) const fn worth_sorting(table: &RunTable, items: usize) -> bool {
    items >= 1_000 && table.homes() / 16 <= items as u64 && table.used() / 4 <= items as u64
}

/// The table with one copy of each of `items` more.
///
/// `None` if there is no room for all of them, or no memory, or fingerprints are longer than a word: then they may still go
/// in one by one, until the first that does not.
pub(super) fn with_sorted<H: Hashed>(
    table: &RunTable,
    scheme: &HashScheme,
    max_slots: u64,
    items: &[H],
) -> Option<Made> {
    let (homes, bits) = (table.homes(), table.bits());
    if homes.leading_zeros() < bits {
        return None;
    }
    let mut sorted = Vec::new();
    sorted.try_reserve_exact(items.len()).ok()?;
    sorted.extend(items.iter().map(|item| {
        let place = place(item.hashed(scheme), homes, bits);
        place.home << bits | place.remainder
    }));
    sorted.sort_unstable();
    let places = sorted.iter().map(|&key| Place { home: key >> bits, remainder: key & ((1 << bits) - 1) });
    let groups = merged(groups_of(table), places.map(|place| (place, 1)));
    write(homes, bits, max_slots, groups).ok()
}

/// The table with twice the homes, and a bit less in every slot.
pub(super) fn doubled(table: &RunTable, max_slots: u64) -> Result<Made, Refused> {
    let bits = table.bits();
    let groups = groups_of(table).map(|(place, copies)| (place.doubled(bits), copies));
    write(table.homes().saturating_mul(2), bits - 1, max_slots, groups)
}
