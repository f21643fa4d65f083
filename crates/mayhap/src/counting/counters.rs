//! Sixteen 4-bit counters in a word: raise one, lower one, or add sixteen together.
//!
//! A counter below 15 is exact: it is the number of probes of all stored copies. A counter that reaches 15
//! stays there (it is stuck), because from then on the number of its probes is unknown. Raising and lowering
//! go probe by probe: an item with two probes on the same counter raises it twice and lowers it twice.

use crate::probe::{PositionStream as _, Probes, Range};
use crate::sizing::counting::{COUNTER_BITS, MAX_COUNT};

/// Counters in a 64-bit word.
pub(super) const COUNTERS_PER_WORD: u64 = 64 / COUNTER_BITS as u64;

/// The lowest bit of every counter.
const ONES: u64 = u64::MAX / MAX_COUNT;
/// Every second counter, each with room for two.
const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// Returns the word that holds a counter.
#[inline(always)]
pub(super) const fn word_of(position: u64) -> usize {
    (position / COUNTERS_PER_WORD) as usize
}

/// Returns the shift of a counter in its word.
#[inline(always)]
pub(super) const fn shift_of(position: u64) -> u64 {
    position % COUNTERS_PER_WORD * COUNTER_BITS as u64
}

/// The result of raising the counters of one item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Raised {
    /// Counters that were zero before.
    pub(super) fresh: u64,
    /// Probes that hit a stuck counter and were not counted.
    pub(super) lost: u64,
}

/// Raises the counters of the first `probes` probes of an item. Stuck ones stay.
#[inline(always)]
pub(super) fn raise(words: &mut [u64], mut stream: Probes, counters: u64, probes: u32) -> Raised {
    let mut raised = Raised::default();
    for _ in 0..probes {
        let position = stream.next(Range::of(counters));
        let (word, shift) = (&mut words[word_of(position)], shift_of(position));
        let count = *word >> shift & MAX_COUNT;
        raised.fresh += u64::from(count == 0);
        raised.lost += u64::from(count == MAX_COUNT);
        *word += u64::from(count != MAX_COUNT) << shift;
    }
    raised
}

/// Lowers all counters of an item, except stuck ones, and returns how many are zero now.
///
/// `None`: a counter was lower than the number of the item's probes on it, so the item is certainly a
/// non-member. Nothing has changed.
pub(super) fn lower(words: &mut [u64], stream: Probes, counters: u64, probes: u32) -> Option<u64> {
    let mut freed = 0;
    let mut ahead = stream;
    for done in 0..probes {
        let position = ahead.next(Range::of(counters));
        let (word, shift) = (&mut words[word_of(position)], shift_of(position));
        match *word >> shift & MAX_COUNT {
            0 => {
                // The counters lowered so far are below 14 now, so this restores exactly those and makes none
                // stuck.
                raise(words, stream, counters, done);
                return None;
            }
            MAX_COUNT => {}
            count => {
                *word -= 1 << shift;
                freed += u64::from(count == 1);
            }
        }
    }
    Some(freed)
}

/// Adds sixteen counters to sixteen others, each sum limited to 15. Also returns how much the limit cut off.
#[inline]
pub(super) fn add(ours: u64, theirs: u64) -> (u64, u64) {
    // Even and odd counters apart: each sum has eight bits. Bit 4 or a low half of all ones means that it is
    // stuck.
    let capped = |ours: u64, theirs: u64| {
        let sums = ours + theirs;
        let over = sums >> COUNTER_BITS & (EVEN & ONES);
        (sums | (over * MAX_COUNT)) & EVEN
    };
    let low = capped(ours & EVEN, theirs & EVEN);
    let high = capped(ours >> COUNTER_BITS & EVEN, theirs >> COUNTER_BITS & EVEN);
    let sums = low | high << COUNTER_BITS;
    (sums, total(ours) + total(theirs) - total(sums))
}

/// Returns the sum of the sixteen counters.
#[inline]
fn total(word: u64) -> u64 {
    let pairs = (word & EVEN) + (word >> COUNTER_BITS & EVEN);
    pairs.wrapping_mul(EVEN & ONES) >> 56
}

/// Returns the lowest bit of every counter that is not zero.
#[inline]
pub(super) const fn occupied(word: u64) -> u64 {
    let pairs = word | word >> 1;
    (pairs | pairs >> 2) & ONES
}

/// Returns the lowest bit of every counter that is stuck.
#[inline]
pub(super) const fn stuck(word: u64) -> u64 {
    let pairs = word & word >> 1;
    pairs & pairs >> 2 & ONES
}

/// Returns one bit per counter in the low sixteen bits: set if the counter is not zero.
#[inline]
pub(super) const fn to_bits(word: u64) -> u64 {
    let nibbles = occupied(word);
    let pairs = (nibbles | nibbles >> 3) & 0x0303_0303_0303_0303;
    let fours = (pairs | pairs >> 6) & 0x000f_000f_000f_000f;
    let eights = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
    (eights | eights >> 24) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashScheme;
    use mayhap_testkit::rng::Rng;

    fn counters_of(word: u64) -> [u64; 16] {
        std::array::from_fn(|i| word >> (4 * i) & 15)
    }

    /// Words with zero and full counters far more often than by chance.
    fn random_word(rng: &mut Rng) -> u64 {
        (0..16).fold(0, |word, _| {
            word << 4
                | match rng.below(4) {
                    0 => 0,
                    1 => 15,
                    _ => rng.below(16),
                }
        })
    }

    #[test]
    fn a_word_is_its_sixteen_counters() {
        let mut rng = Rng::new(1);
        for _ in 0..10_000 {
            let (a, b) = (random_word(&mut rng), random_word(&mut rng));
            let (ours, theirs) = (counters_of(a), counters_of(b));
            let (sums, lost) = add(a, b);
            assert_eq!(counters_of(sums), std::array::from_fn(|i| (ours[i] + theirs[i]).min(15)));
            let cut = ours.iter().zip(theirs).map(|(ours, theirs)| (ours + theirs).saturating_sub(15));
            assert_eq!(lost, cut.sum::<u64>());
            assert_eq!(counters_of(occupied(a)), ours.map(|count| u64::from(count > 0)));
            assert_eq!(counters_of(stuck(a)), ours.map(|count| u64::from(count == 15)));
            assert!((0..16).all(|i| to_bits(a) >> i & 1 == u64::from(ours[i] > 0)) && to_bits(a) < 1 << 16);
        }
    }

    /// Compares with plain integers that never stick: below 15 a counter is exact, and from 15 on it stays
    /// 15.
    #[test]
    fn raise_and_lower_agree_for_probes_on_the_same_counter_even_if_stuck() {
        for (counters, probes) in [(1, 1), (1, 5), (2, 7), (3, 3), (5, 16), (16, 7), (17, 20), (40, 4)] {
            let positions =
                |mut stream: Probes| (0..probes).map(move |_| stream.next(Range::of(counters)) as usize);
            let mut words = [0_u64; 3];
            let mut truth = vec![0_u64; counters as usize];
            let mut sticks = vec![false; counters as usize];
            let mut held: Vec<Probes> = Vec::new();
            let mut rng = Rng::new(counters << 8 | u64::from(probes));
            for step in 0..4_000 {
                // In waves, to hit counters on the way up and down, below 15 and stuck.
                let most = [2, 5, 9, 3][step / 1000];
                if held.is_empty() || (held.len() < most && rng.below(2) == 0) {
                    let stream = Probes::new(HashScheme::fast(0).hash(&rng.below(50)));
                    let was_zero = positions(stream).any(|at| truth[at] == 0 && !sticks[at]);
                    positions(stream).for_each(|at| truth[at] += 1);
                    assert_eq!(raise(&mut words, stream, counters, probes).fresh > 0, was_zero);
                    held.push(stream);
                } else {
                    let stream = held.swap_remove(rng.below(held.len() as u64) as usize);
                    positions(stream).for_each(|at| truth[at] -= 1);
                    assert!(lower(&mut words, stream, counters, probes).is_some(), "a member can be removed");
                }
                for (at, truth) in truth.iter().enumerate() {
                    sticks[at] |= *truth >= MAX_COUNT;
                    let count = words[word_of(at as u64)] >> shift_of(at as u64) & MAX_COUNT;
                    let expected = if sticks[at] { MAX_COUNT } else { *truth };
                    assert_eq!(count, expected, "counter {at} of {counters}, {probes} probes, step {step}");
                }
            }
        }
    }

    #[test]
    fn lower_rejects_a_certain_non_member_and_changes_nothing() {
        // One counter, seven probes: at five, an item with seven probes cannot be a member.
        let stream = Probes::new(HashScheme::fast(0).hash("any"));
        for count in 0..7 {
            let mut words = [count];
            assert_eq!(lower(&mut words, stream, 1, 7), None);
            assert_eq!(words, [count]);
        }
        let mut words = [7];
        assert_eq!(lower(&mut words, stream, 1, 7), Some(1));
        assert_eq!(words, [0]);
        words = [15];
        assert_eq!(lower(&mut words, stream, 1, 7), Some(0));
        assert_eq!(words, [15], "stuck");
    }
}
