//! The lines, and where in them a fingerprint is.
//!
//! ```text
//! low half of the ItemHash:  ├── scaled to the number of lines: its home ──┤ … ├─ 28 or 16 low bits: what is left of it once cut ─┤
//!
//!   … ┃ line 6: a b c d e f g h ┃ line 7: i · · · · · · · ┃ …       full: what has its home in 6 and came later is in 7, or behind it
//! ```
//!
//! The home grows with the fingerprint, so lines are in order, and whatever moves (growing, cutting) moves front to back.

use std::sync::atomic::{AtomicU64, Ordering};

use super::line::{self, Line, Look};
use crate::error::BuildError;
use crate::explain::{BucketProbe, BucketSlot};
use crate::hash::reduce;
use crate::simd::prefetch_words;
use crate::store::{Lines, WORDS_PER_LINE};

/// How much of each fingerprint is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// 16 bits.
    Quarter,
    /// 28 bits, and in 4 more how many lines it is behind its home, so that it can be cut once more.
    Half,
    /// All 64 bits.
    Whole,
}

/// A fingerprint of 28 bits is at most so many lines behind its home.
const FARTHEST: u64 = 15;
/// Bits of a [`Width::Half`] that come from the hash.
pub(super) const HALF_BITS: u32 = 28;

impl Width {
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Whole => 64,
            Self::Half => 32,
            Self::Quarter => 16,
        }
    }

    pub(super) const fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            64 => Some(Self::Whole),
            32 => Some(Self::Half),
            16 => Some(Self::Quarter),
            _ => None,
        }
    }

    /// Half of it.
    pub(super) const fn cut(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Half),
            Self::Half => Some(Self::Quarter),
            Self::Quarter => None,
        }
    }

    /// Fingerprints in a line.
    pub(super) const fn slots(self) -> u64 {
        512 / self.bits() as u64
    }

    /// The most fingerprints in so many lines. Fuller ones are slow, for runs of full lines become long; and where distances are not stored, a non-member
    /// is compared with all of a run.
    pub(super) const fn most_in(self, lines: u64) -> u64 {
        match self {
            Self::Whole | Self::Half => lines.saturating_mul(self.slots()) / 16 * 15,
            Self::Quarter => Self::Quarter.comfortable_in(lines),
        }
    }

    /// As many as can be had fast: 7 of 8. A new item looks at 4 lines then, and at 17 when 15 of 16 slots are taken.
    pub(super) const fn comfortable_in(self, lines: u64) -> u64 {
        lines.saturating_mul(self.slots()) / 8 * 7
    }

    /// What is stored in a line `distance` lines behind the home.
    #[inline(always)]
    const fn stored(self, fingerprint: u64, distance: u64) -> u64 {
        match self {
            Self::Whole => fingerprint,
            Self::Half => distance << HALF_BITS | not_zero(fingerprint & ((1 << HALF_BITS) - 1)),
            Self::Quarter => not_zero(fingerprint & 0xffff),
        }
    }
}

/// An empty slot is 0, so that no fingerprint is.
#[inline(always)]
pub(super) const fn not_zero(fingerprint: u64) -> u64 {
    if fingerprint == 0 { 1 } else { fingerprint }
}

/// The home of a fingerprint.
#[inline(always)]
pub(super) fn home(fingerprint: u64, lines: usize) -> usize {
    reduce(fingerprint, lines as u64) as usize
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It is in now.
    New,
    /// It was in before, mayhap.
    Held,
    /// There is no place for it within reach.
    NoRoom,
}

/// The lines of a set to be changed, with fingerprints of `BITS` bits.
pub(super) struct Table<'a, const BITS: u32> {
    pub(super) lines: &'a mut [Line],
}

impl<'a, const BITS: u32> Table<'a, BITS> {
    const WIDTH: Width = match Width::from_bits(BITS as u64) {
        Some(width) => width,
        None => panic!("fingerprints have 64, 32 or 16 bits"),
    };

    pub(super) fn of(lines: &'a mut Lines) -> Self {
        Self { lines: lines.words_mut().as_chunks_mut::<WORDS_PER_LINE>().0 }
    }

    /// Puts in what has its home at `home`, unless it is there.
    #[inline(always)]
    pub(super) fn insert(&mut self, home: usize, fingerprint: u64) -> Put {
        let stored = Self::WIDTH.stored(fingerprint, 0);
        match line::look::<BITS>(&self.lines[home], stored) {
            Look::Held => Put::Held,
            Look::Free(slot) => {
                line::put::<BITS>(&mut self.lines[home], slot, stored);
                Put::New
            }
            Look::Full => self.insert_behind(home, fingerprint),
        }
    }

    /// The same where its home is full.
    fn insert_behind(&mut self, home: usize, fingerprint: u64) -> Put {
        for (distance, at) in behind(home, self.lines.len(), Self::WIDTH) {
            let stored = Self::WIDTH.stored(fingerprint, distance);
            match line::look::<BITS>(&self.lines[at], stored) {
                Look::Held => return Put::Held,
                Look::Free(_) if Self::WIDTH == Width::Half => break,
                Look::Free(slot) => {
                    line::put::<BITS>(&mut self.lines[at], slot, stored);
                    return Put::New;
                }
                Look::Full => {}
            }
        }
        match Self::WIDTH {
            Width::Half if self.push_in(home, fingerprint) => Put::New,
            _ => Put::NoRoom,
        }
    }

    /// Puts a fingerprint of which the distance is stored near its full home, and moves others on that are nearer to theirs: in order of their homes
    /// all are as near as they can be, so that the distances suffice. (First come, first served, the last one would go to the end of its run.)
    ///
    /// `false`: one would have to go too far, and nothing has changed.
    fn push_in(&mut self, home: usize, fingerprint: u64) -> bool {
        let all = self.lines.len();
        // Once to see how far they have to go, and then once more.
        for moving in [false, true] {
            let (mut carried, mut at) = (Width::Half.stored(fingerprint, 0), home);
            loop {
                if let Some(slot) = line::free::<BITS>(&self.lines[at]) {
                    if moving {
                        line::put::<BITS>(&mut self.lines[at], slot, carried);
                    }
                    break;
                }
                let (nearest, slot) = nearest::<BITS>(&self.lines[at]);
                if nearest >> HALF_BITS < carried >> HALF_BITS {
                    if moving {
                        line::replace::<BITS>(&mut self.lines[at], slot, carried);
                    }
                    carried = nearest;
                }
                if carried >> HALF_BITS == FARTHEST {
                    return false;
                }
                carried += 1 << HALF_BITS;
                at = (at + 1) % all;
                if at == home {
                    return false;
                }
            }
        }
        true
    }

    /// Puts a fingerprint that is known not to be there, or does not mind being there twice, into the first free slot from its
    /// home on, but not behind line `last`. `false`: there is none.
    #[inline(always)]
    fn place(&mut self, home: usize, fingerprint: u64, last: usize) -> bool {
        match line::free::<BITS>(&self.lines[home]) {
            Some(slot) => {
                line::put::<BITS>(&mut self.lines[home], slot, Self::WIDTH.stored(fingerprint, 0));
                true
            }
            None => self.place_behind(home, fingerprint, last),
        }
    }

    /// The same where its home is full.
    fn place_behind(&mut self, home: usize, fingerprint: u64, last: usize) -> bool {
        for (distance, at) in behind(home, self.lines.len(), Self::WIDTH) {
            if at > last {
                return false;
            }
            if let Some(slot) = line::free::<BITS>(&self.lines[at]) {
                line::put::<BITS>(&mut self.lines[at], slot, Self::WIDTH.stored(fingerprint, distance));
                return true;
            }
        }
        false
    }
}

/// Of a full line with stored distances, the fingerprint that is nearest to its home, and its slot: the last of those that are equally near.
fn nearest<const BITS: u32>(line: &Line) -> (u64, usize) {
    let stored = line::fingerprints::<BITS>(line).enumerate();
    stored
        .map(|(slot, stored)| (stored, slot))
        .min_by_key(|&(stored, slot)| (stored >> HALF_BITS, usize::MAX - slot))
        .unwrap_or_default()
}

/// The lines behind `home` a fingerprint may be in, and how far behind they are. Behind the last line comes the first.
fn behind(home: usize, lines: usize, width: Width) -> impl Iterator<Item = (u64, usize)> {
    let farthest = if width == Width::Half { FARTHEST } else { u64::MAX };
    let all = (home + 1..lines).chain(0..home);
    (1..=farthest).zip(all)
}

/// Is the fingerprint in the lines?
pub(super) fn holds<const BITS: u32>(lines: &Lines, fingerprint: u64) -> bool {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let (home, width) = (home(fingerprint, all.len()), Table::<'_, BITS>::WIDTH);
    let here = std::iter::once((0, home));
    for (distance, at) in here.chain(behind(home, all.len(), width)) {
        let line = load(&all[at]);
        match line::look::<BITS>(&line, width.stored(fingerprint, distance)) {
            Look::Held => return true,
            Look::Free(_) => return false,
            Look::Full => {}
        }
    }
    false
}

/// What [`holds`] looks at: what would be stored for the fingerprint in its home, and its lines.
pub(super) fn trace<const BITS: u32>(lines: &Lines, fingerprint: u64) -> (u64, Vec<BucketProbe>) {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let (home, width) = (home(fingerprint, all.len()), Table::<'_, BITS>::WIDTH);
    let mut probes = Vec::new();
    for (distance, at) in std::iter::once((0, home)).chain(behind(home, all.len(), width)) {
        let wanted = width.stored(fingerprint, distance);
        let slot = |held| Some(BucketSlot { fingerprint: held, copies: 1, matches: held == wanted });
        let line = load(&all[at]);
        let mut slots: Vec<_> = line::fingerprints::<BITS>(&line).map(slot).collect();
        slots.resize(width.slots() as usize, None);
        let probe = BucketProbe { table: 0, bucket: at as u64, of: all.len() as u64, slots };
        let last = probe.holds() || probe.slots.contains(&None);
        probes.push(probe);
        if last {
            break;
        }
    }
    (width.stored(fingerprint, 0), probes)
}

/// How many slots of a line are taken.
pub(super) fn taken<const BITS: u32>(lines: &Lines, line: usize) -> u64 {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    line::fingerprints::<BITS>(&load(&all[line])).count() as u64
}

/// A line that others may read at the same time.
#[inline(always)]
fn load(line: &[AtomicU64; WORDS_PER_LINE]) -> Line {
    std::array::from_fn(|word| line[word].load(Ordering::Relaxed))
}

/// How many fingerprints a non-member with this home is compared with.
pub(super) fn compared_with<const BITS: u32>(lines: &Lines, home: usize) -> u64 {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let here = std::iter::once((0, home));
    let mut compared = 0;
    for (_, at) in here.chain(behind(home, all.len(), Table::<'_, BITS>::WIDTH)) {
        let line = load(&all[at]);
        let held = line::fingerprints::<BITS>(&line).count() as u64;
        compared += held;
        if held < Table::<'_, BITS>::WIDTH.slots() {
            break;
        }
    }
    compared
}

/// Moves all of `from`, front to back, into the empty and larger `to`, and gives the memory of `from` back as it goes: what both
/// take is little more than what `to` takes in the end.
///
/// # Errors
/// [`BuildError::OutOfMemory`], before anything has moved.
pub(super) fn move_into(from: &mut Lines, to: &mut Lines) -> Result<(), BuildError> {
    /// Lines moved before their memory is given back: 256 KiB.
    const STRETCH: usize = (256 << 10) / 64;
    let to = Table::<'_, 64>::of(to);
    let (lines, all) = (from.words().len() / WORDS_PER_LINE, to.lines.len());
    // How many are in each line so far. Looking at the lines themselves would wait for what was just stored there, every time: four times as slow.
    let mut taken = zeroes(all)?;
    for first in (0..lines).step_by(STRETCH) {
        let end = (first + STRETCH).min(lines);
        for line in &Table::<'_, 64>::of(from).lines[first..end] {
            for &fingerprint in line.iter().take_while(|&&fingerprint| fingerprint != 0) {
                let mut at = home(fingerprint, all);
                while usize::from(taken[at]) == WORDS_PER_LINE {
                    at = if at + 1 == all { 0 } else { at + 1 };
                }
                to.lines[at][usize::from(taken[at]) % WORDS_PER_LINE] = fingerprint;
                taken[at] += 1;
            }
        }
        from.give_back(first * WORDS_PER_LINE..end * WORDS_PER_LINE);
    }
    Ok(())
}

/// A zero for every line: 1.6 % of the memory, for a moment.
fn zeroes(lines: usize) -> Result<Vec<u8>, BuildError> {
    let mut zeroes = Vec::new();
    zeroes.try_reserve_exact(lines).map_err(|_| BuildError::OutOfMemory { bytes: lines as u64 })?;
    zeroes.resize(lines, 0);
    Ok(zeroes)
}

/// Can all fingerprints be cut? Not if so many have nearly the same home that a distance would be too large: with honest hashes that does not
/// happen, for lines are half empty once they are cut.
pub(super) fn can_be_cut(lines: &mut Lines, width: Width) -> Result<bool, BuildError> {
    if width != Width::Whole {
        return Ok(true);
    }
    let table = Table::<'_, 64>::of(lines);
    let all = table.lines.len();
    let mut at_home = zeroes(all)?;
    for fingerprint in table.lines.iter().flat_map(line::fingerprints::<64>) {
        let count = &mut at_home[home(fingerprint, all)];
        *count = count.saturating_add(1);
    }
    // Whatever the order they are placed in, none goes farther than the run of full lines it is in. Twice around, for the last line goes on in the first.
    let (mut waiting, mut run) = (0, 0);
    for &came in at_home.iter().chain(&at_home) {
        waiting = (waiting + u64::from(came)).saturating_sub(Width::Half.slots());
        run = if waiting > 0 { run + 1 } else { 0 };
        if run >= FARTHEST {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Cuts every fingerprint to the next width, in place. `false`: some found no place, for the lines were not such as insertions make.
pub(super) fn cut(lines: &mut Lines, width: Width) -> bool {
    match width {
        Width::Whole => cut_to::<64, 32>(lines, |fingerprint, _, all| (home(fingerprint, all), fingerprint)),
        Width::Half => cut_to::<32, 16>(lines, |stored, at, all| {
            let distance = (stored >> HALF_BITS) as usize;
            ((at + all - distance % all) % all, stored)
        }),
        Width::Quarter => true,
    }
}

/// Front to back. What is in its home stays in its line, which has twice the slots now; what is not goes back to its home, or as near
/// as there is room. `decode` tells, of what is stored in a line, the home and the bits that are kept.
fn cut_to<const FROM: u32, const TO: u32>(
    lines: &mut Lines,
    decode: impl Fn(u64, usize, usize) -> (usize, u64),
) -> bool {
    let mut table = Table::<'_, TO>::of(lines);
    let all = table.lines.len();
    // Lines behind the present one are not cut yet, so what belongs there waits: that at the very front with its home at the very end.
    let mut waiting = Vec::new();
    for at in 0..all {
        let uncut = std::mem::take(&mut table.lines[at]);
        for stored in line::fingerprints::<FROM>(&uncut) {
            let (home, fingerprint) = decode(stored, at, all);
            if home > at || !table.place(home, fingerprint, at) {
                waiting.push((home, fingerprint));
            }
        }
    }
    waiting.into_iter().all(|(home, fingerprint)| table.place(home, fingerprint, all - 1))
}

/// Starts loading the home of each fingerprint.
#[inline(always)]
pub(super) fn prefetcher(lines: &mut Lines) -> impl Fn(usize) + use<> {
    let words = prefetch_words(lines.words_mut());
    move |line| words.at(line * WORDS_PER_LINE)
}
