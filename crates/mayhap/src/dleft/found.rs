//! The slots of an item in its four buckets, and how insertions and removals change them.

use std::sync::atomic::AtomicU64;

use super::bucket::{Bucket, Pattern, change};
use super::place::DLeftPlace;
use crate::sizing::dleft::{MAX_SLOTS, SLOTS, TABLES};

/// An item's four buckets, and one bit per slot for each property, those of sub-table 0 lowest.
pub(super) struct Found<const N: usize> {
    place: DLeftPlace,
    pattern: Pattern<N>,
    buckets: [Bucket<N>; TABLES as usize],
    /// Slots that hold this item, or one with the same fingerprint and home bucket.
    own: u32,
    /// Slots whose counter is at three.
    full: u32,
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DLeftPut {
    /// The first copy, in a free slot.
    New,
    /// A further copy, in a free slot.
    FurtherSlot,
    /// A further copy, in a slot with a counter below three. `sticks`: it is the fifteenth.
    Counted { sticks: bool },
    /// Nothing changed: there are fifteen copies already.
    Stuck,
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing changed: it is not a member.
    Absent,
    /// Nothing changed: there were fifteen copies or more, and the exact number is unknown.
    Stuck,
    /// One copy was removed; its slot holds others.
    Counted,
    /// One copy was removed and its slot is free. `last`: there is no other slot.
    Slot { last: bool },
}

impl<const N: usize> Found<N> {
    #[inline(always)]
    pub(super) fn look(words: &[AtomicU64], place: DLeftPlace, width: u32) -> Self {
        let pattern = Pattern::of(place.fingerprint, width);
        let buckets = place.bytes.map(|byte| Bucket::<N>::read(words, byte));
        let own = u32::from_le_bytes(buckets.map(|bucket| bucket.matching(&pattern)));
        let full = u32::from_le_bytes(buckets.map(|bucket| bucket.full()));
        Self { place, pattern, buckets, own, full }
    }

    /// Returns the number of copies counted in the item's slots.
    #[inline(always)]
    pub(super) fn copies(&self) -> u32 {
        let low = u32::from_le_bytes(self.buckets.map(|bucket| bucket.low()));
        let high = u32::from_le_bytes(self.buckets.map(|bucket| bucket.high()));
        (self.own & low).count_ones() + 2 * (self.own & high).count_ones()
    }

    /// Five slots of three copies stand for "fifteen or more".
    #[inline(always)]
    const fn is_stuck(&self) -> bool {
        (self.own & self.full).count_ones() >= MAX_SLOTS
    }

    /// Inserts one copy. `None`: it needs a free slot and there is none. Nothing changed.
    #[inline(always)]
    pub(super) fn put(&self, words: &mut [u64]) -> Option<DLeftPut> {
        // At most one of an item's slots counts less than three, so its copies take as few slots as possible.
        let with_room = self.own & !self.full;
        if with_room != 0 {
            let (table, slot) = place_of(with_room);
            let bucket = &self.buckets[table];
            self.change(words, table, bucket.raise(slot));
            let fills_up = u32::from(bucket.high() >> slot & 1);
            let sticks = (self.own & self.full).count_ones() + fills_up == MAX_SLOTS && fills_up == 1;
            return Some(DLeftPut::Counted { sticks });
        }
        if self.own.count_ones() >= MAX_SLOTS {
            return Some(DLeftPut::Stuck);
        }
        let loads = self.buckets.map(|bucket| bucket.taken().count_ones());
        // The least loaded bucket, and the leftmost of several: the load is in the high digits, the sub-table
        // in the low one.
        let least = (0..TABLES as u32).map(|table| loads[table as usize] * TABLES as u32 + table).min()?;
        let (load, table) = (least / TABLES as u32, (least % TABLES as u32) as usize);
        if load == SLOTS as u32 {
            return None;
        }
        let bucket = &self.buckets[table];
        self.change(words, table, self.pattern.put(bucket, bucket.taken().trailing_ones()));
        Some(if self.own == 0 { DLeftPut::New } else { DLeftPut::FurtherSlot })
    }

    /// Removes one copy.
    #[inline(always)]
    pub(super) fn take(&self, words: &mut [u64]) -> Taken {
        if self.own == 0 {
            return Taken::Absent;
        }
        if self.is_stuck() {
            return Taken::Stuck;
        }
        let with_room = self.own & !self.full;
        let (table, slot) = place_of(if with_room != 0 { with_room } else { self.own });
        let bucket = &self.buckets[table];
        if bucket.high() >> slot & 1 == 1 {
            self.change(words, table, bucket.lower(slot));
            return Taken::Counted;
        }
        self.change(words, table, self.pattern.take(bucket, slot));
        Taken::Slot { last: self.own.count_ones() == 1 }
    }

    #[inline(always)]
    fn change(&self, words: &mut [u64], table: usize, by: [u64; N]) {
        change(words, self.place.bytes[table], by);
    }
}

/// Returns the sub-table and the slot of the lowest of these bits.
#[inline(always)]
const fn place_of(slots: u32) -> (usize, u32) {
    let lowest = slots.trailing_zeros();
    ((lowest / SLOTS as u32) as usize, lowest % SLOTS as u32)
}
