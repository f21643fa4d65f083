//! The sample: members, and non-members that look like them.

use std::collections::HashSet;

use mayhap::{HashScheme, say};
use mayhap_advise::ItemShape;

use crate::error::CliError;
use crate::hashed_already::HashedAlready;
use crate::input::InputArgs;
use crate::progress::Progress;

/// One item in this many is held back as a non-member.
const HELD_BACK: u64 = 10;
/// The number of non-members is chosen to expect this many false positives, within the limits below.
const WRONG_ANSWERS: f64 = 1_000.0;
/// The fewest and the most non-members to look up.
const FEWEST_NON_MEMBERS: usize = 20_000;
const MOST_NON_MEMBERS: usize = 2_000_000;
/// Bytes per item besides its own: its end offset, its entry in the set of known hashes, and its share of about twenty filters
/// and of what building them takes.
const BESIDES: u64 = 100;
/// The hash that selects items; its seed differs from those of the filters.
const CHOOSING: HashScheme = HashScheme::fast(0x9e37_79b9_7f4a_7c15);

/// Items, stored contiguously.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Arena {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(super) fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len() as u64);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The memory of the items and of what is built from them.
    fn weight(&self) -> u64 {
        self.bytes.len() as u64 + BESIDES * self.len() as u64
    }
}

/// Where the items came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SampleOrigin {
    /// Read from input; of the distinct items, one in `sampled` was kept.
    Read { records: u64, sampled: u64 },
    /// Generated.
    Generated,
}

/// Members and non-members.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) origin: SampleOrigin,
    pub(super) members: Arena,
    /// Distinct items, none of which is a member.
    pub(super) non_members: Arena,
    /// How many of the non-members are altered members; they come last.
    pub(super) altered: usize,
    /// The lowest and the highest number, if all items are integers.
    range: Option<(u64, u64)>,
}

impl Sample {
    fn new(origin: SampleOrigin, members: Arena, non_members: Arena, altered: usize) -> Self {
        let mut range = None;
        for item in members.iter().chain(non_members.iter().take(non_members.len() - altered)) {
            let Some(number) = number(item) else {
                range = None;
                break;
            };
            let (low, high) = range.unwrap_or((number, number));
            range = Some((low.min(number), high.max(number)));
        }
        Self { origin, members, non_members, altered, range }
    }

    /// The shape of the items.
    pub(super) fn shape(&self) -> ItemShape {
        if let Some((low, high)) = self.range {
            return ItemShape::IntegerRange { low, high };
        }
        let typical = self.members.bytes.len() / self.members.len().max(1);
        ItemShape::Bytes { typical_len: u32::try_from(typical).unwrap_or(u32::MAX).max(1) }
    }
}

/// The number that an item spells, if it is in canonical decimal form.
pub(super) fn number(item: &[u8]) -> Option<u64> {
    let plain = item.iter().all(u8::is_ascii_digit) && (item.len() == 1 || item.first() != Some(&b'0'));
    plain.then(|| std::str::from_utf8(item).ok()?.parse().ok()).flatten()
}

/// Reads the items of the input. Whenever they take more than `memory`, half of them are dropped, chosen by their hashes. The rest is a
/// fair sample of the distinct items, in any order and with any number of duplicates.
pub(super) fn read(
    input: &InputArgs,
    fpr: f64,
    memory: u64,
    progress: &Progress,
) -> Result<Sample, CliError> {
    let mut blocks = input.open(progress)?;
    let (mut items, mut known) = (Arena::default(), Known::default());
    let (mut records, mut sampled) = (0_u64, 1_u64);
    while let Some(block) = blocks.next()? {
        for item in block.items() {
            let hash = chosen_by(item);
            if sampled_out(hash, sampled) || !known.insert(hash) {
                continue;
            }
            items.push(item);
            while items.weight() > memory {
                sampled *= 2;
                items = halved(&items, sampled);
                known.retain(|&hash| !sampled_out(hash, sampled));
            }
        }
        records += block.len() as u64;
        progress.add_items(block.len() as u64);
        blocks.reuse(block);
    }
    input.warn_of_skipped();
    if items.len() == 0 {
        let what = if records == 0 {
            "no items to measure with: the input is empty".into()
        } else {
            format!("--memory: {} is not enough for a single item", say::bytes(memory))
        };
        return Err(CliError::Usage(what));
    }
    let (members, mut non_members) = split(&items);
    drop(items);
    let altered = alter(&members, &mut non_members, &mut known, wanted(fpr));
    Ok(Sample::new(SampleOrigin::Read { records, sampled }, members, non_members, altered))
}

/// Generates members and non-members.
pub(super) fn generated(items: u64, fpr: f64, memory: u64) -> Result<Sample, CliError> {
    let non_members = wanted(fpr) as u64;
    let needed = (items + non_members).saturating_mul(BESIDES + GENERATED_LEN as u64);
    if items == 0 {
        return Err(CliError::Usage("--items: at least 1 item, got 0".into()));
    }
    if needed > memory {
        let what = format!(
            "--items: {} and their filters take about {}, the limit is {} (--memory)",
            say::items(items),
            say::bytes(needed),
            say::bytes(memory)
        );
        return Err(CliError::Usage(what));
    }
    let some = |range: std::ops::Range<u64>| {
        let mut arena = Arena::default();
        range.for_each(|number| arena.push(&generate(number)));
        arena
    };
    Ok(Sample::new(SampleOrigin::Generated, some(0..items), some(items..items + non_members), 0))
}

const GENERATED_LEN: usize = 16;

/// Sixteen hexadecimal digits that look random and are distinct for distinct numbers.
fn generate(number: u64) -> [u8; GENERATED_LEN] {
    let mixed = mixed(number);
    std::array::from_fn(|place| b"0123456789abcdef"[(mixed >> (60 - 4 * place)) as usize & 15])
}

/// A bijection: every step can be undone, so distinct numbers stay distinct.
const fn mixed(number: u64) -> u64 {
    let first = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let second = (first ^ (first >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let third = (second ^ (second >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    third ^ (third >> 31)
}

/// The number of non-members needed to measure a rate.
fn wanted(fpr: f64) -> usize {
    ((WRONG_ANSWERS / fpr) as usize).clamp(FEWEST_NON_MEMBERS, MOST_NON_MEMBERS)
}

/// Two independent hashes in one: the low half identifies items, the high half selects them.
fn chosen_by(item: &[u8]) -> u64 {
    CHOOSING.hash(item).to_u128() as u64
}

/// Whether an item is not among the one in `sampled` (a power of two) that is kept.
const fn sampled_out(hash: u64, sampled: u64) -> bool {
    hash >> 32 & (sampled - 1) != 0
}

fn halved(items: &Arena, sampled: u64) -> Arena {
    let mut kept = Arena::default();
    items.iter().filter(|item| !sampled_out(chosen_by(item), sampled)).for_each(|item| kept.push(item));
    kept
}

/// Holds back one item in ten as a non-member, chosen by its hash; none if there are too few items.
fn split(items: &Arena) -> (Arena, Arena) {
    let (mut members, mut non_members) = (Arena::default(), Arena::default());
    let few = (items.len() as u64) < 2 * HELD_BACK;
    for item in items.iter() {
        let held_back = !few && (chosen_by(item) & 0xffff_ffff).is_multiple_of(HELD_BACK);
        if held_back { non_members.push(item) } else { members.push(item) }
    }
    (members, non_members)
}

/// Adds altered members until there are `wanted` non-members or the attempts run out. Returns how many were added.
fn alter(members: &Arena, non_members: &mut Arena, known: &mut Known, wanted: usize) -> usize {
    let held_back = non_members.len();
    // If members are few, each is altered several times, with more changes each time.
    let tries = 4 * wanted.saturating_sub(held_back);
    let mut altered = Vec::new();
    for turn in 0..tries {
        if non_members.len() >= wanted {
            break;
        }
        altered.clear();
        altered.extend_from_slice(members.get(turn % members.len()));
        change(&mut altered, 2 + turn / members.len(), turn as u64);
        if known.insert(chosen_by(&altered)) {
            non_members.push(&altered);
        }
    }
    non_members.len() - held_back
}

/// Replaces some characters with others of the same class. Short items are extended, because there are too few of their length.
fn change(item: &mut Vec<u8>, characters: usize, turn: u64) {
    const DIGITS: &[u8] = b"0123456789";
    const SMALL: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
    const LARGE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let all_digits = item.iter().all(u8::is_ascii_digit);
    while item.len() < 6 {
        item.push(if all_digits { DIGITS[item.len() % 10] } else { SMALL[item.len()] });
    }
    for character in 0..characters.min(item.len()) as u64 {
        let choice = mixed(turn << 8 ^ character);
        let place = (choice >> 32) as usize % item.len();
        let other = (choice & 0xffff_ffff) as usize;
        // Numbers do not begin with 0.
        item[place] = match item[place] {
            b'0'..=b'9' if place == 0 => DIGITS[1 + other % 9],
            b'0'..=b'9' => DIGITS[other % 10],
            b'A'..=b'Z' => LARGE[other % 26],
            _ => SMALL[other % 26],
        };
    }
}

/// A set of hashes, which are not hashed again.
type Known = HashSet<u64, HashedAlready>;

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(items: impl IntoIterator<Item = String>) -> Arena {
        let mut arena = Arena::default();
        items.into_iter().for_each(|item| arena.push(item.as_bytes()));
        arena
    }

    #[test]
    fn generated_items_differ() {
        let all: HashSet<_> = (0..100_000).map(generate).collect();
        assert_eq!(all.len(), 100_000);
    }

    #[test]
    fn a_tenth_is_held_back_and_no_item_is_in_both_groups() {
        let items = arena((0..50_000).map(|number| format!("https://example.org/{number}")));
        let mut known: Known = items.iter().map(chosen_by).collect();
        let (members, mut non_members) = split(&items);
        assert_eq!(members.len() + non_members.len(), items.len());
        assert!((4_600..5_400).contains(&non_members.len()), "{}", non_members.len());
        let altered = alter(&members, &mut non_members, &mut known, 20_000);
        assert_eq!(non_members.len(), 20_000);
        assert!(altered > 14_000);
        let inside: HashSet<&[u8]> = members.iter().collect();
        let outside: HashSet<&[u8]> = non_members.iter().collect();
        assert_eq!(outside.len(), non_members.len(), "duplicate non-members");
        assert!(inside.is_disjoint(&outside));
    }

    #[test]
    fn a_sample_is_fair() {
        let items = arena((0..40_000).map(|number| format!("item {number}")));
        let quarter = halved(&items, 4);
        assert!((9_500..10_500).contains(&quarter.len()), "{}", quarter.len());
    }

    #[test]
    fn only_canonical_decimals_are_numbers() {
        assert_eq!([number(b"0"), number(b"120")], [Some(0), Some(120)]);
        for item in [&b""[..], b"007", b"-1", b"1.5", b"99999999999999999999", b" 1"] {
            assert_eq!(number(item), None, "{}", String::from_utf8_lossy(item));
        }
        let sample =
            Sample::new(SampleOrigin::Generated, arena(["7".into(), "12".into()]), arena(["3".into()]), 0);
        assert_eq!(sample.shape(), ItemShape::IntegerRange { low: 3, high: 12 });
        let sample =
            Sample::new(SampleOrigin::Generated, arena(["7".into(), "x".into()]), Arena::default(), 0);
        assert_eq!(sample.shape(), ItemShape::Bytes { typical_len: 1 });
    }
}
