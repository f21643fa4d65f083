//! What an item finds in its four buckets, and what going in and out changes there.

use std::sync::atomic::AtomicU64;

use super::bucket::{Bucket, Pattern, change};
use super::place::Place;
use crate::sizing::dleft::{MAX_SLOTS, SLOTS, TABLES};

/// An item's four buckets, with one bit per slot for what the slots are: those of sub-table 0 lowest.
pub(super) struct Found<const N: usize> {
    place: Place,
    pattern: Pattern<N>,
    buckets: [Bucket<N>; TABLES as usize],
    /// Slots that hold this very item, or one it cannot be told from.
    own: u32,
    /// Slots whose counter is at three.
    full: u32,
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The first copy, in a slot that was free.
    New,
    /// One copy more, in a slot that was free.
    FurtherSlot,
    /// One copy more, in a slot that counted less than three. `sticks`: it is the fifteenth.
    Counted { sticks: bool },
    /// Nothing: fifteen copies are in already.
    Stuck,
}

/// What a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing: it is not in.
    Absent,
    /// Nothing: fifteen copies or more were in, and nobody knows how many.
    Stuck,
    /// One copy; its slot has others left.
    Counted,
    /// One copy, and its slot is free. `last`: there is no other.
    Slot { last: bool },
}

impl<const N: usize> Found<N> {
    #[inline(always)]
    pub(super) fn look(words: &[AtomicU64], place: Place, width: u32) -> Self {
        let pattern = Pattern::of(place.fingerprint, width);
        let buckets = place.bytes.map(|byte| Bucket::<N>::read(words, byte));
        let own = u32::from_le_bytes(buckets.map(|bucket| bucket.matching(&pattern)));
        let full = u32::from_le_bytes(buckets.map(|bucket| bucket.full()));
        Self { place, pattern, buckets, own, full }
    }

    /// Copies counted in the item's slots.
    #[inline(always)]
    pub(super) fn copies(&self) -> u32 {
        let low = u32::from_le_bytes(self.buckets.map(|bucket| bucket.low()));
        let high = u32::from_le_bytes(self.buckets.map(|bucket| bucket.high()));
        (self.own & low).count_ones() + 2 * (self.own & high).count_ones()
    }

    /// Five slots of three copies: this is how "fifteen or more" is written.
    #[inline(always)]
    const fn is_stuck(&self) -> bool {
        (self.own & self.full).count_ones() >= MAX_SLOTS
    }

    /// Puts one copy in. `None`: it takes a free slot and there is none; nothing changed.
    #[inline(always)]
    pub(super) fn put(&self, words: &mut [u64]) -> Option<Put> {
        // At most one of an item's slots counts less than three, so that its copies take as few slots as can be.
        let with_room = self.own & !self.full;
        if with_room != 0 {
            let (table, slot) = place_of(with_room);
            let bucket = &self.buckets[table];
            self.change(words, table, bucket.raise(slot));
            let fills_up = u32::from(bucket.high() >> slot & 1);
            let sticks = (self.own & self.full).count_ones() + fills_up == MAX_SLOTS && fills_up == 1;
            return Some(Put::Counted { sticks });
        }
        if self.own.count_ones() >= MAX_SLOTS {
            return Some(Put::Stuck);
        }
        let loads = self.buckets.map(|bucket| bucket.taken().count_ones());
        // The least loaded bucket, of several the leftmost: the load above, the sub-table below.
        let least = (0..TABLES as u32).map(|table| loads[table as usize] * TABLES as u32 + table).min()?;
        let (load, table) = (least / TABLES as u32, (least % TABLES as u32) as usize);
        if load == SLOTS as u32 {
            return None;
        }
        let bucket = &self.buckets[table];
        self.change(words, table, self.pattern.put(bucket, bucket.taken().trailing_ones()));
        Some(if self.own == 0 { Put::New } else { Put::FurtherSlot })
    }

    /// Takes one copy out.
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

/// The sub-table and the slot of the lowest of these bits.
#[inline(always)]
const fn place_of(slots: u32) -> (usize, u32) {
    let lowest = slots.trailing_zeros();
    ((lowest / SLOTS as u32) as usize, lowest % SLOTS as u32)
}
