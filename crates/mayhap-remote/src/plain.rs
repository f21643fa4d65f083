//! A blocked filter in an ordinary Redis string, without a module: the positions of its bits, and nothing
//! about servers.
//!
//! ```text
//! string  = block 0 | block 1 | … | block B-1          B × 64 bytes (or × 512, for rates below 0.1 %)
//! block   = ready bit, always 1 | 511 bits (or 4095); an item sets k of them
//! ```
//!
//! Bit 0 is the top bit of byte 0, as Redis counts. All bits of an item are in one block, so a lookup is one
//! `GETRANGE` and an insertion one `BITFIELD`. Every lookup reads the ready bit as well. It is zero in a
//! string that is missing or too short, and in one that was lost and then created again by another client's
//! insertion. Such a string is *not ready*; it does not answer *no*.

mod image;
mod shape;

pub use image::PlainImage;
pub(crate) use image::{empty, without_ready_bits};
pub use shape::PlainShape;
