//! The bit of one number, for [`explain`](crate::explain).

use super::{Bitmap, load};
use crate::explain::{BitProbe, Density, NumberLookup};

impl Bitmap {
    /// Traces what [`get`](Self::get) reads: nothing for an item that is not a number.
    pub(crate) fn trace(&self, number: Option<u64>) -> NumberLookup {
        let there = number.and_then(|number| self.index_of(number));
        let probe = there.map(|bit| BitProbe::of(bit, load(&self.words.words()[(bit / 64) as usize])));
        NumberLookup { number, first: self.first, bits: self.len, probe }
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        Density::of_bits(name, self.words.words(), self.len, parts)
    }
}
