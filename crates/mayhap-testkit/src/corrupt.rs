//! Encoded bytes, damaged in every way a disk, a peer or an attacker might.
//!
//! Damage is done to one copy in place, shown, and undone. A checksum would reject all damaged bytes and hide the checks after it;
//! [`Corruptor::sealed_by`] corrects the checksum first.
//!
//! ```
//! use mayhap_testkit::{Subject, corrupt::Corruptor, honest::PlainBloom};
//!
//! let mut filter = PlainBloom::for_capacity(50, 0.01, 1);
//! filter.insert(b"item");
//! let mut corruptor = Corruptor::new(&filter.encode());
//! corruptor.truncations(|bytes, damage| assert!(PlainBloom::decode(bytes).is_err(), "{damage}"));
//! corruptor.flips(7, 1_000, |bytes, damage| assert!(PlainBloom::decode(bytes).is_err(), "{damage}"));
//! ```

use crate::rng::Rng;
use std::fmt;
use std::ops::Range;

/// The damage to the bytes; its text is for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Only the first `kept` bytes are left.
    Truncated {
        /// The remaining length.
        kept: usize,
    },
    /// `added` extra bytes follow.
    Extended {
        /// The number of extra bytes.
        added: usize,
    },
    /// One byte was replaced.
    Flipped {
        /// The offset of the byte.
        offset: usize,
        /// The old value.
        from: u8,
        /// The new value.
        to: u8,
    },
    /// A field holds an extreme value.
    Field {
        /// The offset of the field.
        offset: usize,
        /// Its length in bytes.
        length: usize,
        /// The new value, little-endian.
        value: u128,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { kept } => write!(f, "cut to {kept} bytes"),
            Self::Extended { added } => write!(f, "{added} bytes too long"),
            Self::Flipped { offset, from, to } => {
                write!(f, "byte {offset} changed from {from:#04x} to {to:#04x}")
            }
            Self::Field { offset, length, value } => {
                write!(f, "bytes {offset}..{} set to {value:#x}", offset + length)
            }
        }
    }
}

/// Writes a correct checksum into damaged bytes.
type Seal<'a> = Box<dyn FnMut(&mut [u8]) + 'a>;

/// Damages a copy of some bytes, one damage at a time.
pub struct Corruptor<'a> {
    whole: Vec<u8>,
    copy: Vec<u8>,
    seal: Option<Seal<'a>>,
}

impl fmt::Debug for Corruptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corruptor")
            .field("bytes", &self.whole.len())
            .field("sealed", &self.seal.is_some())
            .finish()
    }
}

impl<'a> Corruptor<'a> {
    /// Creates a corruptor for a copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self { whole: bytes.to_vec(), copy: bytes.to_vec(), seal: None }
    }

    /// Calls `seal` on damaged bytes before they are shown, to correct the checksum.
    ///
    /// The seal must leave bytes alone that are too short to contain one.
    ///
    /// ```
    /// use mayhap_testkit::corrupt::Corruptor;
    /// let seal = |bytes: &mut [u8]| {
    ///     if let [sum, body @ ..] = bytes {
    ///         *sum = body.iter().fold(0, |sum, byte| sum ^ byte);
    ///     }
    /// };
    /// Corruptor::new(&[3, 1, 2]).sealed_by(seal).truncations(|bytes, _| {
    ///     assert!(bytes.is_empty() || bytes == [0] || bytes == [1, 1]);
    /// });
    /// ```
    #[must_use]
    pub fn sealed_by(mut self, seal: impl FnMut(&mut [u8]) + 'a) -> Self {
        self.seal = Some(Box::new(seal));
        self
    }

    /// Every shorter length, from nothing to all but the last byte.
    pub fn truncations(&mut self, mut show: impl FnMut(&[u8], &Damage)) {
        for kept in 0..self.whole.len() {
            self.shown(kept, &Damage::Truncated { kept }, &mut show);
        }
    }

    /// Appends one to `most` zero bytes, like a file padded to a page.
    pub fn extensions(&mut self, most: usize, mut show: impl FnMut(&[u8], &Damage)) {
        for added in 1..=most {
            let length = self.whole.len() + added;
            self.copy.resize(length, 0);
            self.shown(length, &Damage::Extended { added }, &mut show);
        }
        self.copy.truncate(self.whole.len());
    }

    /// `times` random bytes, one at a time, each replaced by a random other value.
    pub fn flips(&mut self, seed: u64, times: u64, mut show: impl FnMut(&[u8], &Damage)) {
        if self.whole.is_empty() {
            return;
        }
        let mut rng = Rng::new(seed);
        for _ in 0..times {
            let offset = rng.below(self.whole.len() as u64) as usize;
            let mask = 1 + rng.below(255) as u8;
            self.flipped(offset, mask, &mut show);
        }
    }

    /// Flips every single bit, one at a time; for short bytes such as headers.
    pub fn bit_flips(&mut self, bytes: Range<usize>, mut show: impl FnMut(&[u8], &Damage)) {
        for offset in bytes {
            (0..8).for_each(|bit| self.flipped(offset, 1 << bit, &mut show));
        }
    }

    /// Sets every field, given by an offset and a length in bytes, to each extreme value: 0, 1, 2, all ones, one less, the largest and smallest signed
    /// numbers, and the powers of two around which sizes wrap. Skips the value that a field already has, so everything shown is damaged.
    ///
    /// ```
    /// use mayhap_testkit::corrupt::Corruptor;
    /// let mut largest = 0;
    /// Corruptor::new(&[0; 12]).extremes(&[(0, 4), (4, 8)], |bytes, _damage| {
    ///     largest = largest.max(u64::from_le_bytes(bytes[4..].try_into().unwrap()));
    /// });
    /// assert_eq!(largest, u64::MAX);
    /// ```
    ///
    /// # Panics
    ///
    /// If a field is outside the bytes or longer than 16 bytes.
    pub fn extremes(&mut self, fields: &[(usize, usize)], mut show: impl FnMut(&[u8], &Damage)) {
        for &(offset, length) in fields {
            assert!(
                offset + length <= self.whole.len() && (1..=16).contains(&length),
                "a field of {length} bytes at {offset} does not fit {} bytes",
                self.whole.len()
            );
            for value in extreme_values(length) {
                let damaged = &value.to_le_bytes()[..length];
                if self.whole[offset..offset + length] == *damaged {
                    continue;
                }
                self.copy[offset..offset + length].copy_from_slice(damaged);
                self.shown(self.whole.len(), &Damage::Field { offset, length, value }, &mut show);
            }
        }
    }

    fn flipped(&mut self, offset: usize, mask: u8, show: &mut impl FnMut(&[u8], &Damage)) {
        let from = self.copy[offset];
        self.copy[offset] ^= mask;
        let damage = Damage::Flipped { offset, from, to: self.copy[offset] };
        self.shown(self.whole.len(), &damage, show);
        self.copy[offset] = from;
    }

    /// Seals and shows the first `length` bytes of the copy, then restores it.
    fn shown(&mut self, length: usize, damage: &Damage, show: &mut impl FnMut(&[u8], &Damage)) {
        if let Some(seal) = &mut self.seal {
            seal(&mut self.copy[..length]);
        }
        show(&self.copy[..length], damage);
        match (damage, &self.seal) {
            // Nothing was written, or the caller restores the one byte that was.
            (Damage::Truncated { .. } | Damage::Extended { .. } | Damage::Flipped { .. }, None) => {}
            (&Damage::Field { offset, length, .. }, None) => {
                let field = offset..offset + length;
                self.copy[field.clone()].copy_from_slice(&self.whole[field]);
            }
            // A seal may have written anywhere.
            (_, Some(_)) => {
                self.copy.truncate(self.whole.len());
                self.copy.copy_from_slice(&self.whole);
            }
        }
    }
}

/// The extremes of a little-endian field of `bytes` bytes, ascending, without repeats.
fn extreme_values(bytes: usize) -> Vec<u128> {
    let bits = bytes as u32 * 8;
    let most = u128::MAX >> (128 - bits);
    let mut values = vec![0, 1, 2, most / 2, most / 2 + 1, most - 1, most];
    for power in [7, 8, 15, 16, 31, 32, 33, 40, 48, 53, 62, 63, 64] {
        if power < bits {
            values.extend([(1 << power) - 1, 1 << power]);
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOB: &[u8] = b"some bytes, twenty-five";

    /// Shown bytes differ from the original only by the reported damage; the copy is intact at the end.
    fn watched(corruptor: &mut Corruptor<'_>, run: impl FnOnce(&mut Corruptor<'_>, &mut usize)) -> usize {
        let mut shown = 0;
        run(corruptor, &mut shown);
        assert_eq!(corruptor.copy, BLOB, "the copy was not restored");
        shown
    }

    #[test]
    fn truncations_are_all_prefixes() {
        let shown = watched(&mut Corruptor::new(BLOB), |corruptor, shown| {
            corruptor.truncations(|bytes, damage| {
                assert_eq!(bytes, &BLOB[..*shown]);
                assert_eq!(*damage, Damage::Truncated { kept: *shown });
                *shown += 1;
            });
        });
        assert_eq!(shown, BLOB.len());
    }

    #[test]
    fn extensions_end_in_zeros() {
        let shown = watched(&mut Corruptor::new(BLOB), |corruptor, shown| {
            corruptor.extensions(5, |bytes, _| {
                *shown += 1;
                assert_eq!(bytes, [BLOB, &[0; 5][..*shown]].concat());
            });
        });
        assert_eq!(shown, 5);
    }

    #[test]
    fn flips_change_one_byte() {
        let mut offsets = std::collections::HashSet::new();
        let shown = watched(&mut Corruptor::new(BLOB), |corruptor, shown| {
            let mut one_changed = |bytes: &[u8], damage: &Damage| {
                let changed: Vec<usize> = (0..BLOB.len()).filter(|&i| bytes[i] != BLOB[i]).collect();
                let Damage::Flipped { offset, from, to } = *damage else { panic!("{damage}") };
                assert_eq!((changed, from, to), (vec![offset], BLOB[offset], bytes[offset]));
                offsets.insert(offset);
                *shown += 1;
            };
            corruptor.flips(3, 1_000, &mut one_changed);
            corruptor.bit_flips(2..5, one_changed);
        });
        assert_eq!(shown, 1_000 + 3 * 8);
        assert_eq!(offsets.len(), BLOB.len(), "every byte was changed once");
        Corruptor::new(&[]).flips(3, 10, |_, damage| panic!("there are no bytes, but {damage}"));
    }

    #[test]
    fn extremes_fill_their_field_and_no_more() {
        let shown = watched(&mut Corruptor::new(BLOB), |corruptor, shown| {
            corruptor.extremes(&[(4, 4), (10, 1)], |bytes, damage| {
                let Damage::Field { offset, length, value } = *damage else { panic!("{damage}") };
                let end = offset + length;
                assert_eq!(bytes[offset..end], value.to_le_bytes()[..length]);
                assert_eq!((&bytes[..offset], &bytes[end..]), (&BLOB[..offset], &BLOB[end..]));
                *shown += 1;
            });
        });
        assert_eq!(shown, extreme_values(4).len() + extreme_values(1).len());
        assert!([0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff].iter().all(|v| extreme_values(4).contains(v)));
        assert_eq!(extreme_values(1), [0, 1, 2, 127, 128, 254, 255]);
        let mut zeros = Corruptor::new(&[0; 4]);
        zeros.extremes(&[(0, 4)], |bytes, damage| assert_ne!(bytes, [0; 4], "not damaged: {damage}"));
    }

    #[test]
    fn a_seal_is_written_each_time_and_removed_again() {
        let seal = |bytes: &mut [u8]| {
            if let Some((last, body)) = bytes.split_last_mut() {
                *last = body.iter().fold(0, |sum, byte| sum ^ byte);
            }
        };
        let mut sealed = Corruptor::new(BLOB).sealed_by(seal);
        let shown = watched(&mut sealed, |corruptor, shown| {
            let mut holds = |bytes: &[u8], damage: &Damage| {
                assert_eq!(bytes.iter().fold(0, |sum, byte| sum ^ byte), 0, "{damage}");
                *shown += 1;
            };
            corruptor.truncations(&mut holds);
            corruptor.extensions(3, &mut holds);
            corruptor.flips(1, 50, &mut holds);
            corruptor.extremes(&[(0, 4)], holds);
        });
        assert_eq!(shown, BLOB.len() + 3 + 50 + extreme_values(4).len());
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_field_outside_the_bytes_panics() {
        Corruptor::new(BLOB).extremes(&[(20, 8)], |_, _| {});
    }
}
