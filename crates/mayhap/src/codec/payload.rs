//! The payload after a header: the words of a filter, wherever they are stored.

use std::io;

use crate::store::{Lines, Segments};

/// Words, stored in one or more arrays and written as one.
#[doc(hidden)]
pub trait Payload {
    /// The length of the words in bytes.
    fn payload_bytes(&self) -> u64;

    /// The XXH3-64 checksum of the words as little-endian bytes.
    fn checksum(&self) -> u64;

    /// Writes the words as little-endian bytes.
    fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()>;

    /// Appends `count` bytes of the words, starting at byte `at`; fewer if the words end before that.
    fn append_to(&self, at: usize, count: usize, out: &mut Vec<u8>);

    /// Are these the same words as `other`?
    fn same_as(&self, other: &dyn Payload) -> bool {
        /// Bytes compared at a time.
        const CHUNK: usize = 64 << 10;
        let bytes = self.payload_bytes();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        bytes == other.payload_bytes()
            && (0..bytes).step_by(CHUNK).all(|at| {
                ours.clear();
                theirs.clear();
                self.append_to(at as usize, CHUNK, &mut ours);
                other.append_to(at as usize, CHUNK, &mut theirs);
                ours == theirs
            })
    }
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
