//! The positions of programs that draw them from more of an item than an [`ItemHash`](crate::ItemHash) has. Frozen, as their files are.
//!
//! ```text
//! BitsAndBlooms   a, b = murmur3(item), c, d = murmur3(item 01):   a, b + d, a + 2·d, b + 3·c, a + 4·c …   mod bits
//! Bip37           murmur3 x86 32 of the item with seed i · fba4c795 + tweak                            mod bits
//! PybloomLive     probe i has bits of its own, a slice: chunks of as many salted digests as it takes    mod slice
//! Pyprobables     FNV-1a 64 of the item's code points from basis + 31 · i                               mod bits
//! ```

use super::slices::Slices;
use crate::bloom::BloomShape;
use crate::hash::named::{fnv, murmur3};
use crate::item::ItemEncoding;

/// How a [`WideBloom`](crate::WideBloom) turns an item into positions. Its number is in the header of an encoded filter and never
/// changes; those below 64 are [`BloomPlacement`](crate::BloomPlacement)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WidePlacement {
    /// Go's bits-and-blooms: 256 bits of murmur3.
    BitsAndBlooms,
    /// Bitcoin's `filterload`: one murmur3 for every probe.
    Bip37 {
        /// What the one who made the filter added to every seed.
        tweak: u32,
    },
    /// pybloom_live up to 3.x: MD5 where 128 bits are enough, SHA-1 and SHA-2 where they are not.
    PybloomLive3,
    /// pybloom_live 4.x: XXH3-128 in place of MD5.
    PybloomLive4,
    /// pyprobables: one FNV-1a for every probe.
    Pyprobables,
}

/// Numbers below this are placements of plain hashes.
pub(crate) const FIRST_NUMBER: u16 = 64;

/// The most bytes a `filterload` message has room for.
pub(crate) const BIP37_MAX_BYTES: u64 = 36_000;
/// The most functions it may ask for.
pub(crate) const BIP37_MAX_FUNCTIONS: u32 = 50;

impl WidePlacement {
    /// The number in encoded filters.
    #[must_use]
    pub const fn number(self) -> u16 {
        FIRST_NUMBER
            + match self {
                Self::BitsAndBlooms => 0,
                Self::Bip37 { .. } => 1,
                Self::PybloomLive3 => 2,
                Self::PybloomLive4 => 3,
                Self::Pyprobables => 4,
            }
    }

    /// What the header keeps where our own schemes have their seed or key.
    pub(super) fn secret(self) -> [u8; 16] {
        let mut secret = [0; 16];
        if let Self::Bip37 { tweak } = self {
            secret[..4].copy_from_slice(&tweak.to_le_bytes());
        }
        secret
    }

    /// The placement of this number, with what the header keeps beside it.
    pub(super) fn from_parts(number: u16, secret: [u8; 16]) -> Option<Self> {
        Some(match number.checked_sub(FIRST_NUMBER)? {
            0 => Self::BitsAndBlooms,
            1 => Self::Bip37 { tweak: u32::from_le_bytes(std::array::from_fn(|i| secret[i])) },
            2 => Self::PybloomLive3,
            3 => Self::PybloomLive4,
            4 => Self::Pyprobables,
            _ => return None,
        })
    }

    /// The name of the hash function, if it is compiled in only with the feature `named-hashes` and that is off. No filter has such a
    /// placement: decoding refuses it.
    pub(super) const fn is_not_compiled_in(self) -> Option<&'static str> {
        match self {
            _ if cfg!(feature = "named-hashes") => None,
            Self::PybloomLive3 | Self::PybloomLive4 => Some("pybloom_live's salted MD5 or SHA"),
            _ => None,
        }
    }

    /// The first measurement of `shape` that no filter placed so can have.
    pub(super) fn misfit(self, shape: &BloomShape) -> Option<(&'static str, u64)> {
        let (bits, probes) = (shape.bits(), u64::from(shape.probes()));
        match self {
            Self::Bip37 { .. } if bits % 8 != 0 || bits > BIP37_MAX_BYTES * 8 => Some(("bits", bits)),
            Self::Bip37 { .. } if probes > BIP37_MAX_FUNCTIONS.into() => Some(("probes", probes)),
            Self::PybloomLive3 | Self::PybloomLive4 if bits % probes != 0 => Some(("bits", bits)),
            _ => None,
        }
    }
}

/// A placement made ready for the filters of one shape.
#[derive(Clone, Debug)]
pub(super) struct WidePositions {
    bits: u64,
    probes: u32,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    BitsAndBlooms,
    Bip37 {
        tweak: u32,
    },
    PybloomLive(Slices),
    /// Over the four bytes of every code point, or over bytes.
    Pyprobables {
        code_points: bool,
    },
}

impl WidePositions {
    pub(super) fn new(placement: WidePlacement, shape: &BloomShape, items: ItemEncoding) -> Self {
        let rule = match placement {
            WidePlacement::BitsAndBlooms => Rule::BitsAndBlooms,
            WidePlacement::Bip37 { tweak } => Rule::Bip37 { tweak },
            WidePlacement::PybloomLive3 => Rule::PybloomLive(Slices::of_version_3(shape)),
            WidePlacement::PybloomLive4 => Rule::PybloomLive(Slices::of_version_4(shape)),
            // Text is hashed by its code points, byte strings by their bytes.
            WidePlacement::Pyprobables => Rule::Pyprobables { code_points: items == ItemEncoding::Utf32Le },
        };
        Self { bits: shape.bits(), probes: shape.probes(), rule }
    }

    /// Shows `see` the positions of an item, all of them below the number of bits, until it says `false`. Says whether it never did.
    ///
    /// Nothing is hashed before its position is asked for.
    #[inline]
    pub(super) fn all(&self, item: &[u8], mut see: impl FnMut(u64) -> bool) -> bool {
        match &self.rule {
            Rule::BitsAndBlooms => {
                let hashes = murmur3::x64_256(item);
                (0..u64::from(self.probes)).all(|i| {
                    let step = hashes[2 + ((i + i % 2) % 4 / 2) as usize];
                    see(hashes[(i % 2) as usize].wrapping_add(i.wrapping_mul(step)) % self.bits)
                })
            }
            Rule::Bip37 { tweak } => (0..self.probes).all(|i| {
                let seed = i.wrapping_mul(0xfba4_c795).wrapping_add(*tweak);
                see(u64::from(murmur3::x86_32(item, seed)) % self.bits)
            }),
            Rule::PybloomLive(slices) => slices.all(item, see),
            Rule::Pyprobables { code_points: false } => (0..u64::from(self.probes))
                .all(|i| see(fnv::fnv1a_64_units(31 * i, item.iter().copied().map(u32::from)) % self.bits)),
            Rule::Pyprobables { code_points: true } => {
                let (whole, rest) = item.as_chunks::<4>();
                let rest = (!rest.is_empty()).then(|| little_endian(rest));
                (0..u64::from(self.probes)).all(|i| {
                    let units = whole.iter().copied().map(u32::from_le_bytes).chain(rest);
                    see(fnv::fnv1a_64_units(31 * i, units) % self.bits)
                })
            }
        }
    }
}

/// What no encoder leaves behind the last code point, but a caller's bytes may: fewer than four bytes.
fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |unit, &byte| unit << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [WidePlacement; 5] = [
        WidePlacement::BitsAndBlooms,
        WidePlacement::Bip37 { tweak: 0xdead_beef },
        WidePlacement::PybloomLive3,
        WidePlacement::PybloomLive4,
        WidePlacement::Pyprobables,
    ];

    #[test]
    fn numbers_are_frozen() {
        for (number, placement) in (64..).zip(ALL) {
            assert_eq!(placement.number(), number);
            assert_eq!(WidePlacement::from_parts(number, placement.secret()), Some(placement));
            assert_eq!(crate::BloomPlacement::from_number(number), None, "they do not overlap");
        }
        assert_eq!(WidePlacement::from_parts(69, [0; 16]), None);
        assert_eq!(WidePlacement::from_parts(1, [0; 16]), None);
    }

    #[test]
    fn every_position_is_a_bit_and_there_is_one_for_every_probe() {
        let long: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        for placement in ALL.into_iter().filter(|placement| placement.is_not_compiled_in().is_none()) {
            for probes in [1, 2, 7, 16, 31, 50, 100, 255] {
                for bits in [u64::from(probes) * 8, u64::from(probes) << 16, u64::from(probes) << 33] {
                    let shape = BloomShape::from_parts(bits, probes, 1, 0.5).unwrap();
                    for items in [ItemEncoding::Utf8, ItemEncoding::Utf32Le] {
                        let positions = WidePositions::new(placement, &shape, items);
                        for item in [&[][..], b"a", b"hello", &long] {
                            let mut seen = 0;
                            assert!(positions.all(item, |position| {
                                seen += 1;
                                position < bits
                            }));
                            assert_eq!(seen, probes, "{placement:?}");
                            let mut seen = 0;
                            let stopped = positions.all(item, |_| {
                                seen += 1;
                                seen < probes
                            });
                            assert!(!stopped && seen == probes, "{placement:?} goes on when told to stop");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn shapes_that_no_program_makes_are_named() {
        let shape = |bits, probes| BloomShape::from_parts(bits, probes, 1, 0.5).unwrap();
        let bip37 = WidePlacement::Bip37 { tweak: 0 };
        assert_eq!(bip37.misfit(&shape(288_000, 50)), None);
        assert_eq!(bip37.misfit(&shape(288_008, 50)), Some(("bits", 288_008)));
        assert_eq!(bip37.misfit(&shape(9, 1)), Some(("bits", 9)));
        assert_eq!(bip37.misfit(&shape(8, 51)), Some(("probes", 51)));
        assert_eq!(WidePlacement::PybloomLive4.misfit(&shape(21, 7)), None);
        assert_eq!(WidePlacement::PybloomLive4.misfit(&shape(22, 7)), Some(("bits", 22)));
        assert_eq!(WidePlacement::BitsAndBlooms.misfit(&shape(1, 255)), None);
    }
}
