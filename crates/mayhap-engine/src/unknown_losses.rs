//! Parts of the keyspace that lost an unknown set of names.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::Lost;

use crate::journal::{PARTS, part_of};

/// The parts that lost names, one bit for each.
#[derive(Debug, Default)]
pub(crate) struct UnknownLosses(AtomicU64);

/// All parts.
pub(crate) const ALL: u64 = u64::MAX;

const _: () = assert!(PARTS == u64::BITS as usize);

/// The bit of a part.
pub(crate) const fn bit(part: usize) -> u64 {
    1 << (part % PARTS)
}

impl UnknownLosses {
    /// The parts.
    pub(crate) fn parts(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the parts.
    pub(crate) fn set(&self, parts: u64) {
        self.0.store(parts, Relaxed);
    }

    /// Adds parts.
    pub(crate) fn add(&self, parts: u64) {
        self.0.fetch_or(parts, Relaxed);
    }

    /// Returns whether a name that does not exist may have been lost.
    pub(crate) fn of(&self, name: &[u8]) -> Option<Lost> {
        let parts = self.parts();
        (parts != 0 && parts & bit(part_of(name)) != 0).then_some(Lost::Unknown)
    }
}
