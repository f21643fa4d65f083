//! One cache line of fingerprints: eight of 64 bits, sixteen of 32, or thirty-two of 16.
//!
//! Lanes are filled from the lowest up and a fingerprint is never 0, so the empty ones are at the end. All
//! eight words are compared together, without a branch and without extracting lanes. A word has an empty lane
//! if `word - 0…01…01` borrows into the top bit of a lane in which it was clear.

/// A line.
pub(super) type Line = [u64; 8];

/// A one in every lane.
const fn ones<const BITS: u32>() -> u64 {
    u64::MAX / (u64::MAX >> (64 - BITS))
}

/// Returns the top bit of every lane that is zero. (It may also return that of lanes above a zero one.)
#[inline(always)]
const fn zero_lanes<const BITS: u32>(word: u64) -> u64 {
    word.wrapping_sub(ones::<BITS>()) & !word & ones::<BITS>() << (BITS - 1)
}

/// The result of searching a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineLook {
    /// The line holds the fingerprint.
    Held,
    /// It does not, and this lane is the first empty one.
    Free(usize),
    /// It does not, and there is no room: the next line may hold it.
    Full,
}

/// Searches `line` for `fingerprint`, which is not 0.
#[inline(always)]
pub(super) fn look<const BITS: u32>(line: &Line, fingerprint: u64) -> LineLook {
    let wanted = fingerprint.wrapping_mul(ones::<BITS>());
    let (mut equal, mut words_with_room) = (0, 0);
    for &word in line {
        equal |= zero_lanes::<BITS>(word ^ wanted);
        words_with_room += usize::from(zero_lanes::<BITS>(word) != 0);
    }
    match (equal, words_with_room) {
        (0, 0) => LineLook::Full,
        (0, _) => LineLook::Free(first_empty::<BITS>(line, line.len() - words_with_room)),
        _ => LineLook::Held,
    }
}

/// Returns the first empty lane, if there is one.
#[inline(always)]
pub(super) fn free<const BITS: u32>(line: &Line) -> Option<usize> {
    let words_with_room = line.iter().filter(|&&word| zero_lanes::<BITS>(word) != 0).count();
    (words_with_room > 0).then(|| first_empty::<BITS>(line, line.len() - words_with_room))
}

/// Returns the first empty lane. It is in this word, except in a forged line with gaps.
#[inline(always)]
fn first_empty<const BITS: u32>(line: &Line, word: usize) -> usize {
    let word = if zero_lanes::<BITS>(line[word]) != 0 { word } else { first_with_room::<BITS>(line) };
    let lane = zero_lanes::<BITS>(line[word]).trailing_zeros() / BITS;
    word * (64 / BITS) as usize + lane as usize
}

/// Returns the first word that has an empty lane. Needed only for forged lines.
#[cold]
fn first_with_room<const BITS: u32>(line: &Line) -> usize {
    line.iter().position(|&word| zero_lanes::<BITS>(word) != 0).unwrap_or_default()
}

/// Writes `fingerprint` into an empty lane.
#[inline(always)]
pub(super) fn put<const BITS: u32>(line: &mut Line, lane: usize, fingerprint: u64) {
    let lanes = (64 / BITS) as usize;
    line[lane / lanes] |= fingerprint << (lane % lanes * BITS as usize);
}

/// Overwrites an occupied lane with `fingerprint`.
pub(super) fn replace<const BITS: u32>(line: &mut Line, lane: usize, fingerprint: u64) {
    let lanes = (64 / BITS) as usize;
    let (word, shift) = (&mut line[lane / lanes], lane % lanes * BITS as usize);
    *word = *word & !(u64::MAX >> (64 - BITS) << shift) | fingerprint << shift;
}

/// Returns the fingerprints in `line`.
#[inline(always)]
pub(super) fn fingerprints<const BITS: u32>(line: &Line) -> impl Iterator<Item = u64> {
    let lanes = (64 / BITS) as usize;
    let lane =
        move |lane: usize| line[lane / lanes] >> (lane % lanes * BITS as usize) & (u64::MAX >> (64 - BITS));
    (0..line.len() * lanes).map(lane).take_while(|&fingerprint| fingerprint != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain version: lane by lane.
    fn look_plainly<const BITS: u32>(line: &Line, fingerprint: u64) -> LineLook {
        let held: Vec<u64> = fingerprints::<BITS>(line).collect();
        match held.len() {
            _ if held.contains(&fingerprint) => LineLook::Held,
            free if free < 8 * (64 / BITS) as usize => LineLook::Free(free),
            _ => LineLook::Full,
        }
    }

    fn agrees<const BITS: u32>() {
        let most = u64::MAX >> (64 - BITS);
        // Values that could produce a wrong borrow, and some ordinary ones.
        let values =
            [1, 2, most, most - 1, most / 2, most / 2 + 1, 1 << (BITS - 1), 0x1234_5678_9abc_def1 & most];
        for first in 0..values.len() {
            let mut line = Line::default();
            for lane in 0..=8 * (64 / BITS) as usize {
                for asked in values.into_iter().chain([3, 0x8001 & most]) {
                    assert_eq!(
                        look::<BITS>(&line, asked),
                        look_plainly::<BITS>(&line, asked),
                        "{line:x?} {asked:x}"
                    );
                }
                if let LineLook::Free(free) = look::<BITS>(&line, 5) {
                    assert_eq!((free, self::free::<BITS>(&line)), (lane, Some(lane)));
                    put::<BITS>(&mut line, free, values[(first + lane * lane) % values.len()]);
                }
            }
            assert_eq!((look::<BITS>(&line, 5), free::<BITS>(&line)), (LineLook::Full, None));
        }
    }

    /// Forged files can hold lines with gaps, where the lane after the last one was once returned as empty.
    #[test]
    fn look_finds_an_empty_lane_in_a_line_with_gaps() {
        for full in 0..255_u32 {
            let line: Line = std::array::from_fn(|word| if full >> word & 1 == 1 { u64::MAX } else { 0 });
            let lane = free::<32>(&line).unwrap();
            assert_eq!(line[lane / 2], 0, "{full:b}");
            assert_eq!(look::<32>(&line, 5), LineLook::Free(lane));
        }
    }

    #[test]
    fn look_agrees_with_the_plain_version_for_all_widths() {
        agrees::<64>();
        agrees::<32>();
        agrees::<16>();
    }
}
