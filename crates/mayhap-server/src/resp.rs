//! The protocol: bytes to requests and replies to bytes, without a socket.
//!
//! ```text
//! bytes ─▶ Decoder ─▶ Frame (spans of one request) ─▶ … ─▶ Reply ─▶ encode ─▶ bytes
//! ```

pub mod decode;
pub mod encode;

pub use decode::{Decoder, Frame, Limits, ProtocolError};
pub use encode::Protocol;
