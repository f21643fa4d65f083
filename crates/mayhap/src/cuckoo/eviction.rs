//! Making room: the shortest chain of moves that ends in a bucket with a free slot.
//!
//! ```text
//! new ─▶ [ a b c d ]   both buckets of the new item are full …
//!            └─ b ─▶ [ e f g h ]   … so `b` goes to its other bucket, which is full too …
//!                          └─ g ─▶ [ i j · · ]   … so `g` goes to its own, where there is room.
//! ```
//!
//! The search is breadth first. Nothing is written until the whole chain is known, so a failed search changes
//! nothing.

use std::sync::atomic::AtomicU64;

use super::buckets::{Buckets, MAX_SLOTS};
use super::placement::{BucketSpot, Placement};
use crate::simd::prefetch;
use crate::store::Lines;

/// The most buckets that a search reads.
///
/// With this number, room is found until a table of a million buckets of four is 97 % full: more than any
/// filter reaches, unless its items were chosen to collide. A smaller table is searched completely.
const MOST_BUCKETS: usize = 2_048;

/// A bucket reached by the search.
#[derive(Clone, Copy, Debug)]
struct Reached {
    bucket: u64,
    /// The fingerprint that would move here, from the bucket reached by `parent`.
    fingerprint: u32,
    /// The step before, or [`NO_PARENT`] for the item's own buckets.
    parent: u32,
}

const NO_PARENT: u32 = u32::MAX;

/// The buffers of a search, reused by the next one. Empty until the first.
#[derive(Debug, Default)]
pub(super) struct Search {
    reached: Vec<Reached>,
    seen: Seen,
}

impl Search {
    /// Inserts the fingerprint of `spot` into one of its two full buckets by moving other fingerprints.
    ///
    /// `false`: no room was found, or no memory to search for it. Nothing has changed.
    #[inline(never)]
    pub(super) fn make_room<B: Buckets>(
        &mut self,
        buckets: &B,
        placement: &Placement,
        lines: &mut Lines,
        spot: BucketSpot,
    ) -> bool {
        for bucket in [spot.first, spot.second] {
            if move_one(buckets, placement, lines, bucket, spot.fingerprint) {
                return true;
            }
        }
        self.move_many(buckets, placement, lines, spot)
    }

    #[inline(never)]
    fn move_many<B: Buckets>(
        &mut self,
        buckets: &B,
        placement: &Placement,
        lines: &mut Lines,
        spot: BucketSpot,
    ) -> bool {
        let Some(end) = self.find(buckets, placement, lines.words(), spot) else { return false };
        let mut step = self.reached[end];
        // From the far end, so every move goes to a slot that is already free.
        buckets.put(lines, step.bucket, step.fingerprint);
        while step.parent != NO_PARENT {
            let parent = self.reached[step.parent as usize];
            buckets.replace(lines, parent.bucket, step.fingerprint, parent.fingerprint);
            step = parent;
        }
        true
    }

    /// Returns the step that reached a bucket with a free slot.
    fn find<B: Buckets>(
        &mut self,
        buckets: &B,
        placement: &Placement,
        words: &[AtomicU64],
        spot: BucketSpot,
    ) -> Option<usize> {
        let most = usize::try_from(placement.buckets()).unwrap_or(usize::MAX).min(MOST_BUCKETS);
        self.reached.clear();
        self.reached.try_reserve_exact(most).ok()?;
        self.seen.begin(most)?;
        for bucket in [spot.first, spot.second] {
            self.seen.add(bucket);
            self.reached.push(Reached { bucket, fingerprint: spot.fingerprint, parent: NO_PARENT });
        }
        let mut next = 0;
        while let Some(&Reached { bucket, .. }) = self.reached.get(next) {
            if buckets.room(words, bucket) != 0 {
                return Some(next);
            }
            for &fingerprint in &buckets.read(words, bucket)[..buckets.slots()] {
                let other = placement.other(bucket, fingerprint);
                if self.reached.len() < most && self.seen.add(other) {
                    prefetch(words, buckets.word_of(other));
                    self.reached.push(Reached { bucket: other, fingerprint, parent: next as u32 });
                }
            }
            next += 1;
        }
        None
    }
}

/// Inserts `fingerprint` into the full `bucket` if one of its fingerprints can move directly to its other
/// bucket. Nearly always one can: this is the first step of the search, without the bookkeeping.
#[inline(always)]
fn move_one<B: Buckets>(
    buckets: &B,
    placement: &Placement,
    lines: &mut Lines,
    bucket: u64,
    fingerprint: u32,
) -> bool {
    let content = buckets.read(lines.words(), bucket);
    let mut others = [0; MAX_SLOTS];
    for (other, &held) in others.iter_mut().zip(&content[..buckets.slots()]) {
        *other = placement.other(bucket, held);
        prefetch(lines.words(), buckets.word_of(*other));
    }
    for (&other, &held) in others.iter().zip(&content[..buckets.slots()]) {
        if buckets.room(lines.words(), other) != 0 {
            buckets.put(lines, other, held);
            buckets.replace(lines, bucket, held, fingerprint);
            return true;
        }
    }
    false
}

/// The set of buckets that one search has reached: a small hash table that need not be cleared between
/// searches.
#[derive(Debug, Default)]
struct Seen {
    /// A bucket, and above [`STAMP_SHIFT`] the number of the search that reached it.
    places: Vec<u64>,
    search: u64,
}

/// A bucket number has no more bits than this: a filter has at most 2^49 bits, and a bucket at least four.
const STAMP_SHIFT: u32 = 48;

impl Seen {
    /// Starts a new search and makes room for `most` buckets.
    fn begin(&mut self, most: usize) -> Option<()> {
        // At most half full, to keep probe sequences short.
        let room = (2 * most).next_power_of_two();
        self.search += 1;
        if self.places.len() < room || self.search >> (64 - STAMP_SHIFT) != 0 {
            self.places.clear();
            self.places.try_reserve_exact(room).ok()?;
            self.places.resize(room, 0);
            self.search = 1;
        }
        Some(())
    }

    /// Adds a bucket. Returns `true` if it was not there yet.
    #[inline]
    fn add(&mut self, bucket: u64) -> bool {
        let mask = self.places.len() - 1;
        let mut at = (bucket.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        loop {
            let place = &mut self.places[at & mask];
            if *place >> STAMP_SHIFT != self.search {
                *place = self.search << STAMP_SHIFT | bucket;
                return true;
            }
            if *place & !(u64::MAX << STAMP_SHIFT) == bucket {
                return false;
            }
            at += 1;
        }
    }
}
