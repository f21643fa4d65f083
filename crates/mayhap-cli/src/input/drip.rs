//! For tests: input that arrives a few bytes at a time.

use std::io::{self, Read};

/// Returns 1 to `at_most` bytes per read.
pub(crate) struct Drip {
    bytes: io::Cursor<Vec<u8>>,
    random: Random,
    at_most: usize,
}

impl Drip {
    pub(crate) fn new(bytes: Vec<u8>, seed: u64, at_most: usize) -> Self {
        Self { bytes: io::Cursor::new(bytes), random: Random(seed), at_most }
    }
}

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (1 + self.random.below(self.at_most)).min(buffer.len());
        self.bytes.read(&mut buffer[..length])
    }
}

/// A deterministic sequence of pseudo-random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// The concatenation of at most `at_most` random elements of `pieces`.
    pub(crate) fn text(&mut self, pieces: &[&str], at_most: usize) -> Vec<u8> {
        (0..self.below(at_most + 1)).flat_map(|_| pieces[self.below(pieces.len())].bytes()).collect()
    }
}
