//! A blocked filter in an ordinary string of a Redis, with no module: where its bits are, and nothing about servers.
//!
//! ```text
//! string  = block 0 | block 1 | … | block B-1          B × 64 bytes (or × 512, for rates below 0.1 %)
//! block   = ready bit, always 1 | 511 bits (or 4095), k of which an item sets
//! ```
//!
//! Bit 0 is the top bit of byte 0, as Redis counts. An item is in one block, so a lookup is one `GETRANGE`, and an
//! addition one `BITFIELD`. The ready bit comes along with every lookup: a string that is missing, too short, or was
//! made again by somebody's addition after it was lost has zeros there, and is *not ready* rather than *absent*.

mod image;
mod shape;

pub use image::PlainImage;
pub(crate) use image::{empty, without_ready_bits};
pub use shape::PlainShape;
