//! Writing whole tables from start to end: merging, doubling, and inserting many items.

use super::groups::{MAX_COPIES, Written};
use super::lookup::groups_of;
use super::place::{RunPlace, place};
use crate::batch::Hashed;
use crate::error::BuildError;
use crate::hash::HashScheme;
use crate::run_table::{Appender, RunTable};

/// Why a table could not be written.
pub(super) enum Refused {
    /// There is no memory for it, or it is too large.
    Build(BuildError),
    /// The groups do not fit.
    Full,
}

/// A new table and its counts.
pub(super) struct Made {
    pub(super) table: RunTable,
    /// Different fingerprints.
    pub(super) distinct: u64,
    /// Copies of all of them.
    pub(super) copies: u64,
}

/// Writes a table from ascending `groups`. Neighbours with the same place are merged.
pub(super) fn write(
    homes: u64,
    bits: u32,
    max_slots: u64,
    groups: impl Iterator<Item = (RunPlace, u64)>,
) -> Result<Made, Refused> {
    let mut appender = Appender::with_homes(homes, bits).map_err(Refused::Build)?;
    let (mut distinct, mut copies) = (0, 0);
    let mut push = |(place, count): (RunPlace, u64)| {
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
    let mut waiting: Option<(RunPlace, u64)> = None;
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

/// Merges two ascending streams into one.
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

/// Returns whether sorting this many items and rewriting the table is faster than single inserts. It is not
/// for few items, or if the table is large or holds many more: all of that is rewritten too.
pub(super) const fn worth_sorting(table: &RunTable, items: usize) -> bool {
    items >= 1_000 && table.homes() / 16 <= items as u64 && table.used() / 4 <= items as u64
}

/// Returns the table with one more copy of each of `items`.
///
/// `None` if they do not all fit, there is no memory, or fingerprints are longer than a word. Single inserts
/// may still succeed then, up to the first that fails.
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
    let places = sorted.iter().map(|&key| RunPlace { home: key >> bits, remainder: key & ((1 << bits) - 1) });
    let groups = merged(groups_of(table), places.map(|place| (place, 1)));
    write(homes, bits, max_slots, groups).ok()
}

/// Returns the table with twice the homes and one bit less in every slot.
pub(super) fn doubled(table: &RunTable, max_slots: u64) -> Result<Made, Refused> {
    let bits = table.bits();
    let groups = groups_of(table).map(|(place, copies)| (place.doubled(bits), copies));
    write(table.homes().saturating_mul(2), bits - 1, max_slots, groups)
}
