//! The lines, and the position of a fingerprint in them.
//!
//! ```text
//! low half of the ItemHash:  ├── scaled to the number of lines: its home ──┤ … ├─ 28 or 16 low bits: what remains after a cut ─┤
//!
//!   … ┃ line 6: a b c d e f g h ┃ line 7: i · · · · · · · ┃ …       full: later fingerprints with home 6 are in 7, or after it
//! ```
//!
//! The home grows with the fingerprint, so lines are in order, and growing and cutting can proceed from front
//! to back.

use std::sync::atomic::{AtomicU64, Ordering};

use super::line::{self, Line, LineLook};
use crate::error::BuildError;
use crate::explain::{BucketProbe, BucketSlot};
use crate::hash::reduce;
use crate::simd::prefetch_words;
use crate::store::{Lines, WORDS_PER_LINE};

/// The number of bits kept of each fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// 16 bits.
    Quarter,
    /// 28 bits, and 4 more for its distance in lines from its home. With the distance it can be cut once
    /// more.
    Half,
    /// All 64 bits.
    Whole,
}

/// The most lines between a fingerprint of 28 bits and its home.
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

    /// Returns half of this width.
    pub(super) const fn cut(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::Half),
            Self::Half => Some(Self::Quarter),
            Self::Quarter => None,
        }
    }

    /// Returns the number of fingerprints in a line.
    pub(super) const fn slots(self) -> u64 {
        512 / self.bits() as u64
    }

    /// Returns the most fingerprints in this many lines. A fuller table is slow, because runs of full lines
    /// become long. If distances are not stored, a non-member is compared with a whole run.
    pub(super) const fn most_in(self, lines: u64) -> u64 {
        match self {
            Self::Whole | Self::Half => lines.saturating_mul(self.slots()) / 16 * 15,
            Self::Quarter => Self::Quarter.comfortable_in(lines),
        }
    }

    /// Returns the number of fingerprints with fast inserts: 7 of 8 slots. A new item reads 4 lines then, and
    /// 17 when 15 of 16 slots are taken.
    pub(super) const fn comfortable_in(self, lines: u64) -> u64 {
        lines.saturating_mul(self.slots()) / 8 * 7
    }

    /// Returns the stored value of a fingerprint `distance` lines after its home.
    #[inline(always)]
    const fn stored(self, fingerprint: u64, distance: u64) -> u64 {
        match self {
            Self::Whole => fingerprint,
            Self::Half => distance << HALF_BITS | not_zero(fingerprint & ((1 << HALF_BITS) - 1)),
            Self::Quarter => not_zero(fingerprint & 0xffff),
        }
    }
}

/// Replaces 0, which marks an empty slot, with 1.
#[inline(always)]
pub(super) const fn not_zero(fingerprint: u64) -> u64 {
    if fingerprint == 0 { 1 } else { fingerprint }
}

/// Returns the home of a fingerprint.
#[inline(always)]
pub(super) fn home(fingerprint: u64, lines: usize) -> usize {
    reduce(fingerprint, lines as u64) as usize
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePut {
    /// It was inserted.
    New,
    /// It may have been there before.
    Held,
    /// There is no room within reach.
    NoRoom,
}

/// The mutable lines of a set with fingerprints of `BITS` bits.
pub(super) struct LineTable<'a, const BITS: u32> {
    pub(super) lines: &'a mut [Line],
}

impl<'a, const BITS: u32> LineTable<'a, BITS> {
    const WIDTH: Width = match Width::from_bits(BITS as u64) {
        Some(width) => width,
        None => panic!("fingerprints have 64, 32 or 16 bits"),
    };

    pub(super) fn of(lines: &'a mut Lines) -> Self {
        Self { lines: lines.words_mut().as_chunks_mut::<WORDS_PER_LINE>().0 }
    }

    /// Inserts a fingerprint with this home, unless it is there.
    #[inline(always)]
    pub(super) fn insert(&mut self, home: usize, fingerprint: u64) -> LinePut {
        let stored = Self::WIDTH.stored(fingerprint, 0);
        match line::look::<BITS>(&self.lines[home], stored) {
            LineLook::Held => LinePut::Held,
            LineLook::Free(slot) => {
                line::put::<BITS>(&mut self.lines[home], slot, stored);
                LinePut::New
            }
            LineLook::Full => self.insert_after(home, fingerprint),
        }
    }

    /// Same as `insert`, for a full home.
    fn insert_after(&mut self, home: usize, fingerprint: u64) -> LinePut {
        for (distance, at) in lines_after(home, self.lines.len(), Self::WIDTH) {
            let stored = Self::WIDTH.stored(fingerprint, distance);
            match line::look::<BITS>(&self.lines[at], stored) {
                LineLook::Held => return LinePut::Held,
                LineLook::Free(_) if Self::WIDTH == Width::Half => break,
                LineLook::Free(slot) => {
                    line::put::<BITS>(&mut self.lines[at], slot, stored);
                    return LinePut::New;
                }
                LineLook::Full => {}
            }
        }
        match Self::WIDTH {
            Width::Half if self.push_in(home, fingerprint) => LinePut::New,
            _ => LinePut::NoRoom,
        }
    }

    /// Inserts a fingerprint near its full home and moves others that are nearer to theirs. This keeps the
    /// fingerprints in the order of their homes and all distances as small as possible, so that they fit in 4
    /// bits. (If each simply took the next free slot, the last one would go to the end of its run.)
    ///
    /// `false`: a distance would be too large, and nothing has changed.
    fn push_in(&mut self, home: usize, fingerprint: u64) -> bool {
        let all = self.lines.len();
        // Once to check the distances, then again to move.
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

    /// Writes a fingerprint, without checking whether it is there, into the first free slot from its home on,
    /// but not after line `last`. `false`: there is none.
    #[inline(always)]
    fn place(&mut self, home: usize, fingerprint: u64, last: usize) -> bool {
        match line::free::<BITS>(&self.lines[home]) {
            Some(slot) => {
                line::put::<BITS>(&mut self.lines[home], slot, Self::WIDTH.stored(fingerprint, 0));
                true
            }
            None => self.place_after(home, fingerprint, last),
        }
    }

    /// Same as `place`, for a full home.
    fn place_after(&mut self, home: usize, fingerprint: u64, last: usize) -> bool {
        for (distance, at) in lines_after(home, self.lines.len(), Self::WIDTH) {
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

/// Returns the fingerprint of a full line that is nearest to its home, and its slot: the last of several. The
/// line must store distances.
fn nearest<const BITS: u32>(line: &Line) -> (u64, usize) {
    let stored = line::fingerprints::<BITS>(line).enumerate();
    stored
        .map(|(slot, stored)| (stored, slot))
        .min_by_key(|&(stored, slot)| (stored >> HALF_BITS, usize::MAX - slot))
        .unwrap_or_default()
}

/// Returns the lines after `home` that may hold a fingerprint, with their distances. The first line follows
/// the last.
fn lines_after(home: usize, lines: usize, width: Width) -> impl Iterator<Item = (u64, usize)> {
    let farthest = if width == Width::Half { FARTHEST } else { u64::MAX };
    let all = (home + 1..lines).chain(0..home);
    (1..=farthest).zip(all)
}

/// Returns whether the lines hold the fingerprint.
pub(super) fn holds<const BITS: u32>(lines: &Lines, fingerprint: u64) -> bool {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let (home, width) = (home(fingerprint, all.len()), LineTable::<'_, BITS>::WIDTH);
    let here = std::iter::once((0, home));
    for (distance, at) in here.chain(lines_after(home, all.len(), width)) {
        let line = load(&all[at]);
        match line::look::<BITS>(&line, width.stored(fingerprint, distance)) {
            LineLook::Held => return true,
            LineLook::Free(_) => return false,
            LineLook::Full => {}
        }
    }
    false
}

/// Traces what [`holds`] reads: the value that is stored for the fingerprint in its home, and its lines.
pub(super) fn trace<const BITS: u32>(lines: &Lines, fingerprint: u64) -> (u64, Vec<BucketProbe>) {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let (home, width) = (home(fingerprint, all.len()), LineTable::<'_, BITS>::WIDTH);
    let mut probes = Vec::new();
    for (distance, at) in std::iter::once((0, home)).chain(lines_after(home, all.len(), width)) {
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

/// Returns the number of occupied slots in a line.
pub(super) fn taken<const BITS: u32>(lines: &Lines, line: usize) -> u64 {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    line::fingerprints::<BITS>(&load(&all[line])).count() as u64
}

/// Reads a line that other threads may read at the same time.
#[inline(always)]
fn load(line: &[AtomicU64; WORDS_PER_LINE]) -> Line {
    std::array::from_fn(|word| line[word].load(Ordering::Relaxed))
}

/// Returns the number of fingerprints that a non-member with this home is compared with.
pub(super) fn compared_with<const BITS: u32>(lines: &Lines, home: usize) -> u64 {
    let (all, _) = lines.words().as_chunks::<WORDS_PER_LINE>();
    let here = std::iter::once((0, home));
    let mut compared = 0;
    for (_, at) in here.chain(lines_after(home, all.len(), LineTable::<'_, BITS>::WIDTH)) {
        let line = load(&all[at]);
        let held = line::fingerprints::<BITS>(&line).count() as u64;
        compared += held;
        if held < LineTable::<'_, BITS>::WIDTH.slots() {
            break;
        }
    }
    compared
}

/// Moves all fingerprints from `from` into the empty and larger `to`, front to back, and frees the memory of
/// `from` on the way. Both together take little more than `to` alone.
///
/// # Errors
/// [`BuildError::OutOfMemory`], before anything has moved.
pub(super) fn move_into(from: &mut Lines, to: &mut Lines) -> Result<(), BuildError> {
    /// Lines moved before their memory is freed: 256 KiB.
    const STRETCH: usize = (256 << 10) / 64;
    let to = LineTable::<'_, 64>::of(to);
    let (lines, all) = (from.words().len() / WORDS_PER_LINE, to.lines.len());
    // The number of fingerprints in each line so far. Reading it from the lines would wait for the last store
    // every time, and be four times as slow.
    let mut taken = zeroes(all)?;
    for first in (0..lines).step_by(STRETCH) {
        let end = (first + STRETCH).min(lines);
        for line in &LineTable::<'_, 64>::of(from).lines[first..end] {
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

/// Returns a zero for every line: temporarily 1.6 % of the memory.
fn zeroes(lines: usize) -> Result<Vec<u8>, BuildError> {
    let mut zeroes = Vec::new();
    zeroes.try_reserve_exact(lines).map_err(|_| BuildError::OutOfMemory { bytes: lines as u64 })?;
    zeroes.resize(lines, 0);
    Ok(zeroes)
}

/// Returns whether all fingerprints can be cut. They cannot if too many have nearly the same home: a distance
/// would be too large. Unless hashes were chosen for this, it does not happen, because lines are half empty
/// after a cut.
pub(super) fn can_be_cut(lines: &mut Lines, width: Width) -> Result<bool, BuildError> {
    if width != Width::Whole {
        return Ok(true);
    }
    let table = LineTable::<'_, 64>::of(lines);
    let all = table.lines.len();
    let mut at_home = zeroes(all)?;
    for fingerprint in table.lines.iter().flat_map(line::fingerprints::<64>) {
        let count = &mut at_home[home(fingerprint, all)];
        *count = count.saturating_add(1);
    }
    // In any order of placement, no fingerprint moves beyond its run of full lines. Twice around, because the
    // first line follows the last.
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

/// Cuts every fingerprint to the next width, in place. `false`: some found no room, because the lines were
/// not made by insertions.
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

/// Cuts from front to back. A fingerprint in its home stays in its line, which has twice the slots now. Any
/// other moves back to its home, or as near as there is room. `decode` returns the home and the kept bits of
/// a stored value.
fn cut_to<const FROM: u32, const TO: u32>(
    lines: &mut Lines,
    decode: impl Fn(u64, usize, usize) -> (usize, u64),
) -> bool {
    let mut table = LineTable::<'_, TO>::of(lines);
    let all = table.lines.len();
    // Lines after the present one are not cut yet, so fingerprints that belong there wait: those in the first
    // lines with a home in the last ones.
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

/// Returns a function that starts loading a line.
#[inline(always)]
pub(super) fn prefetcher(lines: &mut Lines) -> impl Fn(usize) + use<> {
    let words = prefetch_words(lines.words_mut());
    move |line| words.at(line * WORDS_PER_LINE)
}
