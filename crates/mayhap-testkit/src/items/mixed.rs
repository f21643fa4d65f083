//! Several shapes in one sequence, for random operations.

use super::{Shape, Side};

/// Shapes that have no item in common: only URLs contain a `/`, only mail addresses an `@`, only IPv6 a `:` and no `/`. UUIDs have 36 characters, phone
/// numbers 11 digits, integers as text 13 or more. Chinese text is not ASCII, and integers as bytes end in zeros, which no text does.
const SHAPES: [Shape; 8] = [
    Shape::Url,
    Shape::Mail,
    Shape::Uuid,
    Shape::IntBytes,
    Shape::Phone,
    Shape::Chinese,
    Shape::Ipv6,
    Shape::IntText,
];

/// The items of one byte that are mixed in, after the empty item.
const ONE_BYTE_ITEMS: u64 = 16;
/// The index of the only huge member.
const HUGE_AT: u64 = 5_000;
/// Indexes below this give different items; phone numbers run out first.
const INDEXES: u64 = 1 << 34;

/// Member `i` of a mixture: the empty item, sixteen items of one byte, one of 1 MiB at index 5 000, and otherwise URLs, mail addresses, UUIDs, integers,
/// phone numbers, Chinese text and addresses in turn.
///
/// For `i` below 2^34 no two members are equal, and none is a [`mixed_non_member_into`] of the same seed.
///
/// ```
/// use mayhap_testkit::items::{mixed_member_into, mixed_non_member_into};
/// let (mut known, mut unknown) = (Vec::new(), Vec::new());
/// mixed_member_into(1, 20, &mut known);
/// mixed_non_member_into(1, 20, &mut unknown);
/// assert_ne!(known, unknown);
/// ```
pub fn mixed_member_into(seed: u64, i: u64, item: &mut Vec<u8>) {
    match i {
        0 => item.clear(),
        1..=ONE_BYTE_ITEMS => Shape::OneByte.member_into(seed, i - 1, item),
        HUGE_AT => Shape::Huge.member_into(seed, 0, item),
        _ => write(Side::Member, seed, i, item),
    }
}

/// Non-member `i` of the same mixture; never empty, tiny or huge.
pub fn mixed_non_member_into(seed: u64, i: u64, item: &mut Vec<u8>) {
    write(Side::NonMember, seed, i, item);
}

fn write(side: Side, seed: u64, i: u64, item: &mut Vec<u8>) {
    debug_assert!(i < INDEXES, "mixed items repeat from index {INDEXES} on, got {i}");
    let shapes = SHAPES.len() as u64;
    SHAPES[(i % shapes) as usize].write(side, seed, i / shapes, item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_mixture_has_no_repeats() {
        assert!(SHAPES.iter().all(|shape| shape.distinct() >= INDEXES / SHAPES.len() as u64));
        for seed in [0, 8] {
            let mut seen = HashSet::new();
            for i in (0..200_000).chain(INDEXES - 1_000..INDEXES) {
                let (mut member, mut non_member) = (Vec::new(), Vec::new());
                mixed_member_into(seed, i, &mut member);
                mixed_non_member_into(seed, i, &mut non_member);
                assert!(seen.insert(member), "member {i} of seed {seed} repeats");
                assert!(seen.insert(non_member), "non-member {i} of seed {seed} repeats");
            }
        }
    }

    #[test]
    fn the_empty_tiny_and_huge_items_are_included() {
        let lengths: Vec<usize> = [0, 1, 16, HUGE_AT]
            .map(|i| {
                let mut item = Vec::new();
                mixed_member_into(2, i, &mut item);
                item.len()
            })
            .to_vec();
        assert_eq!(lengths, [0, 1, 1, super::super::HUGE_BYTES]);
    }
}
