//! What stands behind a header: the words of a filter, wherever they are.

use std::io;

use crate::store::{Lines, Segments};

/// Words, in one array or in several that are written as one.
#[doc(hidden)]
pub trait Payload {
    /// How many bytes they are.
    fn payload_bytes(&self) -> u64;

    /// The XXH3-64 of them as little-endian bytes.
    fn checksum(&self) -> u64;

    /// Writes them as little-endian bytes.
    fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()>;

    /// Appends `count` of their bytes from byte `at` on; fewer if they end before.
    fn append_to(&self, at: usize, count: usize, out: &mut Vec<u8>);
}

impl Payload for Lines {
    fn payload_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn checksum(&self) -> u64 {
        self.checksum()
    }

    fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.for_each_le_bytes(|bytes| out.write_all(bytes))
    }

    fn append_to(&self, at: usize, count: usize, out: &mut Vec<u8>) {
        self.extend_le_bytes(at, count, out);
    }
}

impl Payload for Segments {
    fn payload_bytes(&self) -> u64 {
        self.packed_bytes() as u64
    }

    fn checksum(&self) -> u64 {
        self.checksum()
    }

    fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.for_each_le_bytes(|bytes| out.write_all(bytes))
    }

    fn append_to(&self, at: usize, count: usize, out: &mut Vec<u8>) {
        self.extend_le_bytes(at, count, out);
    }
}
