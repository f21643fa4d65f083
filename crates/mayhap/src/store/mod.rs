//! The words filters live in: zeroed, aligned to cache lines, on huge pages where they are large.

mod bits;
#[cfg(all(unix, feature = "file"))]
mod fault;
mod memory;
#[cfg(unix)]
mod pages;
mod relocate;
mod segments;

pub(crate) use bits::{BitPositions, Bits, BitsMut};
#[cfg(all(unix, feature = "file"))]
pub(crate) use fault::survive;
pub(crate) use memory::{LINE_BYTES, WORDS_PER_LINE};
pub use memory::{Lines, give_memory_back, take_all_from_heap};
pub(crate) use relocate::relocate_vec;
pub use relocate::{Relocate, relocate_box};
pub(crate) use segments::{Segments, Start};
