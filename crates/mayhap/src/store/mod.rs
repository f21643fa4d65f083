//! The words filters live in: zeroed, aligned to cache lines, on huge pages where they are large.

mod bits;
mod memory;

pub(crate) use bits::{Bits, BitsMut, Positions};
pub(crate) use memory::{LINE_BYTES, Lines, WORDS_PER_LINE};
