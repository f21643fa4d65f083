//! Making room: the shortest chain of moves that ends in a bucket with a free place.
//!
//! ```text
//! new ─▶ [ a b c d ]   both buckets of the new item are full …
//!            └─ b ─▶ [ e f g h ]   … so `b` goes to its other bucket, which is full too …
//!                          └─ g ─▶ [ i j · · ]   … so `g` goes to its own, where there is room.
//! ```
//!
//! Found breadth first, and nothing is written until the whole chain is known: a search that finds none has changed nothing.

use std::sync::atomic::AtomicU64;

use super::buckets::{Buckets, MAX_SLOTS};
use super::placement::{Placement, Spot};
use crate::simd::prefetch;
use crate::store::Lines;

/// Buckets looked at before giving up.
///
/// So many find room until a table of a million buckets of four is 97 % full, further than any filter sized for honest items goes.
/// A smaller table is searched whole.
const MOST_BUCKETS: usize = 2_048;

/// A bucket reached by the search.
#[derive(Clone, Copy, Debug)]
struct Reached {
    bucket: u64,
    /// What would move here, from the bucket reached by `parent`.
    fingerprint: u32,
    /// The step before, or [`NOBODY`] for the item's own buckets.
    parent: u32,
}

const NOBODY: u32 = u32::MAX;

/// The memory of searches, kept from one to the next. Empty until the first.
#[derive(Debug, Default)]
pub(super) struct Search {
    reached: Vec<Reached>,
    seen: Seen,
}

impl Search {
    /// Puts the fingerprint of `spot`, both of whose buckets are full, in one of them, moving others on.
    ///
    /// `false`: no room within reach, or no memory to look for it. Nothing has changed.
    #[inline(never)]
    pub(super) fn make_room<B: Buckets>(
        &mut self,
        buckets: &B,
        placement: &Placement,
        lines: &mut Lines,
        spot: Spot,
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
        spot: Spot,
    ) -> bool {
        let Some(end) = self.find(buckets, placement, lines.words(), spot) else { return false };
        let mut step = self.reached[end];
        // From the far end, so that every move goes where a place is free already.
        buckets.put(lines, step.bucket, step.fingerprint);
        while step.parent != NOBODY {
            let parent = self.reached[step.parent as usize];
            buckets.replace(lines, parent.bucket, step.fingerprint, parent.fingerprint);
            step = parent;
        }
        true
    }

    /// The step that reached a bucket with a free place.
    fn find<B: Buckets>(
        &mut self,
        buckets: &B,
        placement: &Placement,
        words: &[AtomicU64],
        spot: Spot,
    ) -> Option<usize> {
        let most = usize::try_from(placement.buckets()).unwrap_or(usize::MAX).min(MOST_BUCKETS);
        self.reached.clear();
        self.reached.try_reserve_exact(most).ok()?;
        self.seen.begin(most)?;
        for bucket in [spot.first, spot.second] {
            self.seen.add(bucket);
            self.reached.push(Reached { bucket, fingerprint: spot.fingerprint, parent: NOBODY });
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

/// Puts `fingerprint` in `bucket`, which is full, if one of those in it can move to its other bucket at once. Nearly always one can:
/// this is the first step of the search, without the bookkeeping.
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

/// The buckets one search has reached: a small hash table that need not be cleared between searches.
#[derive(Debug, Default)]
struct Seen {
    /// A bucket, and above [`STAMP_SHIFT`] the number of the search that reached it.
    places: Vec<u64>,
    search: u64,
}

/// A bucket's number has no more bits: there are at most 2^49 bits in a filter, and a bucket takes at least four.
const STAMP_SHIFT: u32 = 48;

impl Seen {
    /// Forgets the last search and makes room for `most` buckets.
    fn begin(&mut self, most: usize) -> Option<()> {
        // At most half full, so that looking for a bucket ends soon.
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

    /// `true` if it was not there yet.
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
