//! Randomness that depends only on the seed.

use crate::mutate::{FRACTIONS, NUMBERS};

/// splitmix64.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Picks one of the options.
    ///
    /// # Panics
    /// If there are no options.
    pub fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Returns a replacement for a number.
    pub fn number(&mut self, old: u64) -> u64 {
        match self.below(8) {
            0 => old.wrapping_add(1),
            1 => old.wrapping_sub(1),
            2 => old ^ 1 << self.below(64),
            3 => old.wrapping_mul(2),
            4 => self.next() >> self.below(64),
            _ => *self.of(&NUMBERS),
        }
    }

    /// Returns a replacement for a fraction.
    pub fn fraction(&mut self, old: f64) -> f64 {
        match self.below(4) {
            0 => f64::from_bits(old.to_bits() ^ 1 << self.below(64)),
            1 => f64::from_bits(self.next()),
            _ => *self.of(&FRACTIONS),
        }
    }

    /// Changes some bytes, or their number.
    pub fn bytes(&mut self, bytes: &mut Vec<u8>) {
        match self.below(6) {
            0 => bytes.truncate(self.below(bytes.len() + 1)),
            1 => bytes.resize(bytes.len() + 1 + self.below(64), self.next() as u8),
            2 => bytes.fill(if self.below(2) == 0 { 0 } else { 0xff }),
            _ => {
                for _ in 0..=self.below(8) {
                    if bytes.is_empty() {
                        break;
                    }
                    let at = self.below(bytes.len());
                    bytes[at] = self.next() as u8;
                }
            }
        }
    }
}
