//! Realistic items: members, which are inserted into a filter, and non-members, which never are.
//!
//! Every shape numbers its items. Number `2 i` is member `i`, number `2 i + 1` is non-member `i`. A seeded bijection scatters the numbers over the whole
//! space of the shape, and each number is written in a form that can be read back:
//!
//! ```text
//! (i, member or non-member) ─▶ 2 i + side ─▶ seeded bijection ─▶ text or bytes, one to one
//! ```
//!
//! So within a shape and a seed, no two items are equal and no member is a non-member, by construction. Both use the same words, digits and lengths, so a
//! weak hash gets no help from a telling prefix. There is no such guarantee between two seeds or two shapes, except by [`mixed_member_into`].
//!
//! ```
//! use mayhap_testkit::items::{Shape, member, non_member};
//!
//! assert_ne!(member(3), non_member(3)); // URLs, seed 0: the usual case
//! for shape in Shape::ALL {
//!     assert_ne!(shape.member(7, 0), shape.non_member(7, 0), "{}", shape.name());
//! }
//! ```

mod mixed;
mod scramble;
mod shape;

pub use mixed::{mixed_member_into, mixed_non_member_into};
pub use shape::{HUGE_BYTES, Shape};

use crate::rng::mix;

/// Which of the two disjoint halves of a shape an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Member = 0,
    NonMember = 1,
}

/// Member `i` of the default shape, a URL, at seed 0.
#[must_use]
pub fn member(i: u64) -> Vec<u8> {
    Shape::Url.member(0, i)
}

/// Non-member `i` of the default shape, a URL, at seed 0.
#[must_use]
pub fn non_member(i: u64) -> Vec<u8> {
    Shape::Url.non_member(0, i)
}

/// Member `i` as a number that takes a nanosecond to generate; for benchmarks and long accuracy runs.
///
/// For one seed all members and non-members of `i` below 2^63 differ, because every step is a bijection.
///
/// ```
/// use mayhap_testkit::items::{member_u64, non_member_u64};
/// assert_ne!(member_u64(1, 5), non_member_u64(1, 5));
/// ```
#[must_use]
#[inline]
pub const fn member_u64(seed: u64, i: u64) -> u64 {
    mix((i << 1) ^ mix(seed ^ crate::rng::GOLDEN))
}

/// Non-member `i` as a number; see [`member_u64`].
#[must_use]
#[inline]
pub const fn non_member_u64(seed: u64, i: u64) -> u64 {
    mix(((i << 1) | 1) ^ mix(seed ^ crate::rng::GOLDEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_never_repeat_and_are_disjoint() {
        for seed in [0, 1, u64::MAX] {
            let mut seen = HashSet::new();
            for i in (0..50_000).chain((1 << 63) - 100..1 << 63) {
                assert!(seen.insert(member_u64(seed, i)), "member {i} of seed {seed} repeats");
                assert!(seen.insert(non_member_u64(seed, i)), "non-member {i} of seed {seed} repeats");
            }
        }
    }

    #[test]
    fn shortcuts_are_urls_of_seed_0() {
        assert_eq!(member(9), Shape::Url.member(0, 9));
        assert_eq!(non_member(9), Shape::Url.non_member(0, 9));
        assert!(member(0).starts_with(b"https://"));
    }
}
