//! The table both kinds of cuckoo filter are made of: buckets in words, and what is done with them.

use super::buckets::{Buckets, Content};
use super::eviction::Search;
use super::packed::{Packed, parts};
use super::placement::{Placement, Spot};
use super::semi_sorted::SemiSorted;
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{Body, DecodeError};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::simd::{prefetch, prefetch_words};
use crate::store::{LINE_BYTES, Lines};

/// How buckets lie in the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    OnePart(Packed<1>),
    TwoParts(Packed<2>),
    FourParts(Packed<4>),
    SemiSorted(SemiSorted),
}

/// Runs the same lines for whichever layout it is, each with its own code.
macro_rules! with_buckets {
    ($layout:expr, $buckets:ident => $run:expr) => {
        match $layout {
            Layout::OnePart($buckets) => $run,
            Layout::TwoParts($buckets) => $run,
            Layout::FourParts($buckets) => $run,
            Layout::SemiSorted($buckets) => $run,
        }
    };
}

impl Layout {
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

    /// Memory of so many buckets: whole lines, and a word to spare, so that reading two words at a time never ends outside.
    pub(super) fn memory_bytes(&self, buckets: u64) -> u64 {
        (buckets * self.bucket_bits() + 64).div_ceil(LINE_BYTES as u64 * 8) * LINE_BYTES as u64
    }
}

/// Why a fingerprint did not go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// No chain of moves within reach ends in a free place.
    Full,
    /// Both buckets hold nothing but this very fingerprint.
    Copies,
}

/// The buckets, and how many fingerprints are in them.
#[derive(Debug)]
pub(super) struct Table {
    placement: Placement,
    layout: Layout,
    lines: Lines,
    inserted: u64,
    search: Search,
}

impl Table {
    /// An empty table.
    pub(super) fn new(placement: Placement, layout: Layout) -> Result<Self, BuildError> {
        let bytes = layout.memory_bytes(placement.buckets());
        let lines =
            usize::try_from(bytes / LINE_BYTES as u64).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(Self::with_lines(placement, layout, Lines::zeroed(lines)?, 0))
    }

    /// The table with these words: as many as the layout takes, no bit behind the last bucket, no more counted than there are places.
    pub(super) fn decoded(
        placement: Placement,
        layout: Layout,
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

    fn with_lines(placement: Placement, layout: Layout, lines: Lines, inserted: u64) -> Self {
        Self { placement, layout, lines, inserted, search: Search::default() }
    }

    pub(super) const fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(super) const fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Places in a bucket.
    pub(super) fn slots(&self) -> usize {
        self.layout.slots() as usize
    }

    /// Fingerprints in the table.
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

    /// Is a fingerprint like the item's in one of its buckets? Both are looked at, so that their loads overlap and there is no
    /// branch to mispredict.
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

    /// How many fingerprints like the item's are in its buckets.
    pub(super) fn count(&self, hash: ItemHash) -> u64 {
        let Spot { fingerprint, first, second } = self.placement.spot(hash);
        let copies =
            |bucket| self.read(bucket).into_iter().filter(|&held| held == fingerprint).count() as u64;
        copies(first) + copies(second)
    }

    /// What is in the bucket.
    pub(super) fn read(&self, bucket: u64) -> Content {
        with_buckets!(&self.layout, buckets => buckets.read(self.lines.words(), bucket))
    }

    /// Puts one copy in. `Ok(true)`: there was none like it before. An error changes nothing.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: ItemHash) -> Result<bool, NoRoom> {
        let spot = self.placement.spot(hash);
        let new = with_buckets!(self.layout, buckets => insert(&buckets, &self.placement, &mut self.lines, &mut self.search, spot))?;
        self.inserted += 1;
        Ok(new)
    }

    /// Puts one copy of each in, in order, and counts those that had none like them before. At an error all before it are in and
    /// counted, and none behind it.
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
        /// Two lines on their way for each.
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

    /// Takes one copy out. `false`: there is none, and nothing changed.
    pub(super) fn remove(&mut self, hash: ItemHash) -> bool {
        let Spot { fingerprint, first, second } = self.placement.spot(hash);
        for bucket in [first, second] {
            if self.read(bucket).contains(&fingerprint) {
                with_buckets!(self.layout, buckets => buckets.replace(&mut self.lines, bucket, fingerprint, 0));
                self.inserted = self.inserted.saturating_sub(1);
                return true;
            }
        }
        false
    }

    /// The same fingerprints in twice as many buckets, each a bit shorter. Takes the memory of both while it works, and an error
    /// changes nothing.
    pub(super) fn double(&mut self) -> Result<(), BuildError> {
        let placement = self.placement.doubled();
        let mut doubled =
            Self::new(placement, Layout::packed(self.layout.slots() as u32, placement.width()))?;
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
fn holds<B: Buckets>(buckets: &B, lines: &Lines, spot: Spot) -> bool {
    let words = lines.words();
    buckets.holds(words, spot.first, spot.fingerprint) | buckets.holds(words, spot.second, spot.fingerprint)
}

#[inline(always)]
fn insert<B: Buckets>(
    buckets: &B,
    placement: &Placement,
    lines: &mut Lines,
    search: &mut Search,
    spot: Spot,
) -> Result<bool, NoRoom> {
    let first = buckets.look(lines.words(), spot.first, spot.fingerprint);
    let second = buckets.look(lines.words(), spot.second, spot.fingerprint);
    let new = !(first.holds | second.holds);
    if first.room | second.room != 0 {
        // Into the emptier one: the others fill up later, and are moved less often.
        // Which one it is, nobody can predict: chosen by arithmetic, or every other insertion would wait for memory twice.
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
