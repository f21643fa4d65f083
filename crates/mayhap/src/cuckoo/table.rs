//! The table of both kinds of cuckoo filter: buckets in words, and the operations on them.

use super::buckets::{Buckets, Content};
use super::eviction::Search;
use super::packed::{Packed, parts};
use super::placement::{BucketSpot, Placement};
use super::semi_sorted::SemiSorted;
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{Body, DecodeError};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::simd::{prefetch, prefetch_words};
use crate::store::{LINE_BYTES, Lines};

/// The storage format of the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketLayout {
    OnePart(Packed<1>),
    TwoParts(Packed<2>),
    FourParts(Packed<4>),
    SemiSorted(SemiSorted),
}

/// Runs the same code for either layout, compiled separately for each.
macro_rules! with_buckets {
    ($layout:expr, $buckets:ident => $run:expr) => {
        match $layout {
            BucketLayout::OnePart($buckets) => $run,
            BucketLayout::TwoParts($buckets) => $run,
            BucketLayout::FourParts($buckets) => $run,
            BucketLayout::SemiSorted($buckets) => $run,
        }
    };
}

impl BucketLayout {
    /// `slots` is 1, 2, 4 or 8, and `width` from 4 to 32.
    pub(super) const fn packed(slots: u32, width: u32) -> Self {
        match parts(slots, width) {
            1 => Self::OnePart(Packed::new(slots, width)),
            2 => Self::TwoParts(Packed::new(slots, width)),
            _ => Self::FourParts(Packed::new(slots, width)),
        }
    }

    /// `width` is from 5 to 32.
    pub(super) const fn semi_sorted(width: u32) -> Self {
        Self::SemiSorted(SemiSorted::new(width))
    }

    pub(super) fn bucket_bits(&self) -> u64 {
        with_buckets!(self, buckets => buckets.bucket_bits())
    }

    pub(super) fn slots(&self) -> u64 {
        with_buckets!(self, buckets => buckets.slots()) as u64
    }

    /// Returns the memory of this many buckets: whole lines, and one spare word so that reading two words at
    /// a time stays inside.
    pub(super) fn memory_bytes(&self, buckets: u64) -> u64 {
        (buckets * self.bucket_bits() + 64).div_ceil(LINE_BYTES as u64 * 8) * LINE_BYTES as u64
    }
}

/// Why a fingerprint could not be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// No chain of moves was found that ends in a free slot.
    Full,
    /// Both buckets hold nothing but this fingerprint.
    Copies,
}

/// The buckets, and the number of fingerprints in them.
#[derive(Debug)]
pub(super) struct CuckooTable {
    placement: Placement,
    layout: BucketLayout,
    lines: Lines,
    inserted: u64,
    search: Search,
}

impl CuckooTable {
    /// Creates an empty table.
    pub(super) fn new(placement: Placement, layout: BucketLayout) -> Result<Self, BuildError> {
        let bytes = layout.memory_bytes(placement.buckets());
        let lines =
            usize::try_from(bytes / LINE_BYTES as u64).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(Self::with_lines(placement, layout, Lines::zeroed(lines)?, 0))
    }

    /// Creates a table from these words. They must have the length of the layout, no bit set after the last
    /// bucket, and no more fingerprints counted than there are slots.
    pub(super) fn decoded(
        placement: Placement,
        layout: BucketLayout,
        inserted: u64,
        body: &Body<'_>,
    ) -> Result<Self, DecodeError> {
        let buckets = placement.buckets();
        if inserted > buckets * layout.slots() {
            return Err(DecodeError::BadField { field: "inserted", got: inserted });
        }
        let lines = body.lines(layout.memory_bytes(buckets))?;
        let end = buckets * layout.bucket_bits();
        lines.check_zero_from(end).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self::with_lines(placement, layout, lines, inserted))
    }

    fn with_lines(placement: Placement, layout: BucketLayout, lines: Lines, inserted: u64) -> Self {
        Self { placement, layout, lines, inserted, search: Search::default() }
    }

    pub(super) const fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(super) const fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Slots in a bucket.
    pub(super) fn slots(&self) -> usize {
        self.layout.slots() as usize
    }

    /// Returns the number of fingerprints in the table.
    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(super) fn clear(&mut self) {
        self.lines.words_mut().fill(0);
        self.inserted = 0;
    }

    pub(super) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self::with_lines(self.placement, self.layout, self.lines.try_clone()?, self.inserted))
    }

    /// Returns whether the item's fingerprint is in one of its buckets. It always reads both: their loads
    /// overlap, and there is no branch to mispredict.
    #[inline(always)]
    pub(super) fn holds(&self, hash: ItemHash) -> bool {
        let spot = self.placement.spot(hash);
        with_buckets!(&self.layout, buckets => holds(buckets, &self.lines, spot))
    }

    pub(super) fn holds_batch<H: Hashed>(&self, scheme: &HashScheme, items: &[H], answers: &mut Answers) {
        with_buckets!(self.layout, buckets => self.holds_all(buckets, scheme, items, answers));
    }

    #[inline(always)]
    fn holds_all<B: Buckets, H: Hashed>(
        &self,
        buckets: B,
        scheme: &HashScheme,
        items: &[H],
        answers: &mut Answers,
    ) {
        /// One word of answers.
        const CHUNK: usize = 64;
        answers.reset(items.len());
        let (placement, words) = (self.placement, self.lines.words());
        let start = |hash| {
            let spot = placement.spot(hash);
            for bucket in [spot.first, spot.second] {
                prefetch(words, buckets.word_of(bucket));
                prefetch(words, buckets.last_word_of(bucket));
            }
            spot
        };
        let answers = answers.words_mut();
        hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, spots| {
            let mut word = 0;
            for (&spot, bit) in spots.iter().zip(0..) {
                word |= u64::from(holds(&buckets, &self.lines, spot)) << bit;
            }
            answers[first / CHUNK] = word;
        });
    }

    /// Returns how often the item's fingerprint is in its buckets.
    pub(super) fn count(&self, hash: ItemHash) -> u64 {
        let BucketSpot { fingerprint, first, second } = self.placement.spot(hash);
        let copies =
            |bucket| self.read(bucket).into_iter().filter(|&held| held == fingerprint).count() as u64;
        copies(first) + copies(second)
    }

    /// Returns the content of the bucket.
    pub(super) fn read(&self, bucket: u64) -> Content {
        with_buckets!(&self.layout, buckets => buckets.read(self.lines.words(), bucket))
    }

    /// Inserts one copy. `Ok(true)`: the fingerprint was not there before. On error, nothing has changed.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: ItemHash) -> Result<bool, NoRoom> {
        let spot = self.placement.spot(hash);
        let new = with_buckets!(self.layout, buckets => insert(&buckets, &self.placement, &mut self.lines, &mut self.search, spot))?;
        self.inserted += 1;
        Ok(new)
    }

    /// Inserts one copy of each, in order, and counts those that were not there before. On error, all items
    /// before the failing one are inserted and counted, and none after it.
    pub(super) fn insert_batch<H: Hashed>(
        &mut self,
        scheme: &HashScheme,
        items: &[H],
    ) -> (u64, Result<(), NoRoom>) {
        with_buckets!(self.layout, buckets => self.insert_all(buckets, scheme, items))
    }

    #[inline(always)]
    fn insert_all<B: Buckets, H: Hashed>(
        &mut self,
        buckets: B,
        scheme: &HashScheme,
        items: &[H],
    ) -> (u64, Result<(), NoRoom>) {
        /// Each item prefetches two lines.
        const CHUNK: usize = 16;
        let placement = self.placement;
        let prefetch = prefetch_words(self.lines.words_mut());
        let start = |hash| {
            let spot = placement.spot(hash);
            prefetch.at(buckets.word_of(spot.first));
            prefetch.at(buckets.word_of(spot.second));
            spot
        };
        let (mut new, mut result) = (0, Ok(()));
        hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |_, spots| {
            for &spot in spots {
                if result.is_ok() {
                    match insert(&buckets, &placement, &mut self.lines, &mut self.search, spot) {
                        Ok(fresh) => {
                            new += u64::from(fresh);
                            self.inserted += 1;
                        }
                        Err(full) => result = Err(full),
                    }
                }
            }
        });
        (new, result)
    }

    /// Removes one copy. `false`: there is none, and nothing changed.
    pub(super) fn remove(&mut self, hash: ItemHash) -> bool {
        let BucketSpot { fingerprint, first, second } = self.placement.spot(hash);
        for bucket in [first, second] {
            if self.read(bucket).contains(&fingerprint) {
                with_buckets!(self.layout, buckets => buckets.replace(&mut self.lines, bucket, fingerprint, 0));
                self.inserted = self.inserted.saturating_sub(1);
                return true;
            }
        }
        false
    }

    /// Doubles the number of buckets, which makes each fingerprint one bit shorter. It needs the memory of
    /// both tables while it runs. On error, nothing has changed.
    pub(super) fn double(&mut self) -> Result<(), BuildError> {
        let placement = self.placement.doubled();
        let mut doubled =
            Self::new(placement, BucketLayout::packed(self.layout.slots() as u32, placement.width()))?;
        for bucket in 0..self.placement.buckets() {
            for fingerprint in self.read(bucket).into_iter().filter(|&fingerprint| fingerprint != 0) {
                let (bucket, fingerprint) = self.placement.split(bucket, fingerprint);
                with_buckets!(doubled.layout, buckets => buckets.put(&mut doubled.lines, bucket, fingerprint));
            }
        }
        doubled.inserted = self.inserted;
        *self = doubled;
        Ok(())
    }
}

#[inline(always)]
fn holds<B: Buckets>(buckets: &B, lines: &Lines, spot: BucketSpot) -> bool {
    let words = lines.words();
    buckets.holds(words, spot.first, spot.fingerprint) | buckets.holds(words, spot.second, spot.fingerprint)
}

#[inline(always)]
fn insert<B: Buckets>(
    buckets: &B,
    placement: &Placement,
    lines: &mut Lines,
    search: &mut Search,
    spot: BucketSpot,
) -> Result<bool, NoRoom> {
    let first = buckets.look(lines.words(), spot.first, spot.fingerprint);
    let second = buckets.look(lines.words(), spot.second, spot.fingerprint);
    let new = !(first.holds | second.holds);
    if first.room | second.room != 0 {
        // Into the emptier bucket: then buckets fill up later, and fingerprints are moved less often. The
        // choice cannot be predicted, so it is made by arithmetic. With a branch, every second insertion
        // would wait for memory twice.
        let choose_second = u64::from(second.room > first.room).wrapping_neg();
        let bucket = spot.first ^ (spot.first ^ spot.second) & choose_second;
        buckets.put(lines, bucket, spot.fingerprint);
        return Ok(new);
    }
    if search.make_room(buckets, placement, lines, spot) {
        return Ok(new);
    }
    let only_copies = |bucket| {
        let content = buckets.read(lines.words(), bucket);
        content[..buckets.slots()].iter().all(|&held| held == spot.fingerprint)
    };
    Err(if only_copies(spot.first) && only_copies(spot.second) { NoRoom::Copies } else { NoRoom::Full })
}
